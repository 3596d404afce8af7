"""Small inputs for tests of classification: files of examples that are easy or hard to tell apart, and recipes."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from small import extended, without_clock

from rerank.contrib.classification.recipe import ClassificationRecipe, SourceSettings, Spec
from rerank.data.labelled import Labelled, canonical, canonical_order

SIZE, WIDTH, FOLDS = 120, 30, 4
steady = without_clock


def write_examples(path: Path, *, classes: tuple[str, ...] = ("-1", "+1"), noise: float = 0.05, seed: int = 1) -> Path:
    """A svmlight file: feature c + 1 marks class c but for a share ``noise``, the others say nothing."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(SIZE):
        c = i % len(classes)
        marked = int(rng.integers(len(classes))) if rng.random() < noise else c
        others = rng.choice(np.arange(len(classes) + 1, WIDTH + 1), size=5, replace=False)
        features = sorted([marked + 1, *others.tolist()])
        lines.append(" ".join([classes[c], *(f"{feature}:1" for feature in features)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_folds(path: Path, count: int = FOLDS, size: int = SIZE) -> Path:
    """Fold numbers for as many examples."""
    path.write_text("".join(f"{i // 2 % count}\n" for i in range(size)))
    return path


def write_set(directory: Path, name: str = "marked", **options: Any) -> Path:
    """NAME.svm.gz (plain text: what a file holds is recognised by its bytes) and NAME.folds.txt in ``directory``."""
    write_examples(directory / f"{name}.svm.gz", **options)
    write_folds(directory / f"{name}.folds.txt")
    return directory


def examples_of(X: Any, y: Any, classes: Any = None) -> Labelled:
    """Examples of a dense array and one label a row."""
    matrix, texts = scipy.sparse.csr_matrix(X), [canonical(str(label)) for label in y]
    order = canonical_order(texts) if classes is None else tuple(map(str, classes))
    label, n = [order.index(text) for text in texts], len(texts)
    values, shape = matrix.data, (order, np.empty(0), np.ones(n), matrix.shape[1])
    return Labelled(matrix.indptr, matrix.indices, values, np.array(label), *shape)


def settings(root: Path, **changes: Any) -> dict[str, Any]:
    """A recipe over the set ``marked`` in ``root``; ``changes`` replace or extend its sections."""
    made: dict[str, Any] = {
        "name": "small",
        "task": "classification",
        "data": {"root": str(root), "sets": ["marked"]},
        "learner": {"name": "perceptron"},
        "training": {"epochs": 2},
    }
    return extended(made, changes)


def recipe(root: Path, **changes: Any) -> ClassificationRecipe:
    """``settings`` as a recipe."""
    return ClassificationRecipe.model_validate(settings(root, **changes))


def placed(spec: Spec, name: str, noise: float = 0.0) -> Spec:
    """A single run on a set and at a noise level that its recipe need not have."""
    data = spec.recipe.data.model_copy(update={"sets": {name: SourceSettings()}, "noise": (noise,)})
    return spec.with_sections({"data": data})
