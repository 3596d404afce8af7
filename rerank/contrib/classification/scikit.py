"""The parts that use scikit-learn: batch classifiers to compare with, and documents as examples."""

import re
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import nearest
from rerank.data.labelled import Labelled, from_csr
from rerank.readers.lines import LineReader
from rerank.readers.streams import open_stream
from rerank.recipes.settings import Settings

ScikitPart = tuple[str, str, Settings]  # the module of a class, its name, and settings that a recipe may override
BASELINES: dict[str, ScikitPart] = {
    "naive-bayes": ("naive_bayes", "MultinomialNB", {}),
    "maxent": ("linear_model", "LogisticRegression", {"max_iter": 1000, "random_state": 0}),
    "svm": ("svm", "LinearSVC", {"max_iter": 1000, "random_state": 0, "tol": 0.01}),
}
VECTORIZERS: dict[str, ScikitPart] = {
    "count": ("feature_extraction.text", "CountVectorizer", {}),
    "tfidf": ("feature_extraction.text", "TfidfVectorizer", {}),
}
VECTORIZER = "data.vectorizer"  # the key of its settings


def scikit(module: str, key: str) -> Any:
    """A module of scikit-learn, which only some settings need; ``key`` names the setting."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        message = f"needs scikit-learn ({error}); install it with pip install 'rerank-nbest[classification]'"
        raise RecipeError(message, key=key) from None


def part_named(parts: Mapping[str, ScikitPart], settings: Settings, key: str, refused: tuple[str, ...] = ()) -> Any:
    """The part that ``settings``, its name and scikit-learn's own parameters except those ``refused``, describe."""
    name = settings.get("name")
    if not isinstance(name, str) or name not in parts:
        raise RecipeError(f"found {name!r}; {nearest(str(name), parts)}", key=f"{key}.name")
    module, class_name, usual = parts[name]
    made = getattr(scikit(module, key), class_name)(**usual)
    parameters, known = _parameters(settings), set(made.get_params()) - set(refused)
    for parameter in parameters:
        if parameter not in known:
            raise RecipeError(f"{class_name} has no {parameter!r} here; {nearest(parameter, known)}", key=key)
    return made.set_params(**parameters)


def _parameters(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != "name"}


def _matrix(examples: Labelled) -> scipy.sparse.csr_matrix:
    """The features as scipy's CSR matrix [n, D], float64."""
    values = np.asarray(examples.values, dtype=np.float64)
    shape = (examples.size, examples.width)
    return scipy.sparse.csr_matrix((values, np.array(examples.columns), np.array(examples.rows)), shape=shape)


def fit_baseline(settings: Settings, train: Labelled) -> Any:
    """The classifier fitted to ``train``; its classes are indices into those of ``train``."""
    made = part_named(BASELINES, settings, "baseline")
    if settings["name"] == "maxent" and "solver" not in settings and len(train.classes) == 2:
        # For two classes only, but on wide sparse rows many times faster than the solver that serves all.
        made.set_params(**{"solver": "liblinear", "dual": True, "tol": 0.01} | _parameters(settings))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterations ended: the settings are the recipe's
            return made.fit(_matrix(train), train.label, sample_weight=train.weight)
    except (ValueError, TypeError) as error:
        raise DataError(f"{settings['name']} cannot be fitted to the training examples: {error}") from None


def predict_baseline(fitted: Any, examples: Labelled) -> np.ndarray:
    """int64 [n]: the class of every example."""
    return np.asarray(fitted.predict(_matrix(examples)), dtype=np.int64)


def read_texts(paths: Sequence[str], vectorizer: Settings) -> tuple[list[Labelled], tuple[str, ...]]:
    """The documents of every file, one ``label TAB text`` per line that is not empty, and the names of the features,
    on which the first file alone decides."""
    labels, texts = zip(*(_documents(path) for path in paths), strict=True)
    return _vectorised(labels, texts, vectorizer, paths[0])


def _documents(path: str) -> tuple[list[str], list[str]]:
    labels, texts = [], []
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            if not line.strip():
                continue
            label, tab, text = decoded(line).partition("\t")
            if not tab or not label.strip():
                message = f"found {decoded(line)[:40]!r}, expected a label, a tab and a text"
                raise DataError(message, path=path, line=number)
            labels.append(label.strip())
            texts.append(text)
    if not labels:
        raise DataError("the file is empty; expected lines of a label, a tab and a text", path=path)
    return labels, texts


def read_newsgroups(categories: Sequence[str], vectorizer: Settings) -> tuple[Labelled, tuple[str, ...]]:
    """All messages of these categories of the 20 Newsgroups, headers included, and the names of the features;
    scikit-learn fetches the collection on first use and keeps it."""
    datasets = scikit("datasets", "data.newsgroups")
    try:
        fetched = datasets.fetch_20newsgroups(subset="all", categories=list(categories), shuffle=False)
    except (KeyError, ValueError) as error:
        raise RecipeError(f"the 20 Newsgroups have no such category: {error}", key="data.newsgroups") from None
    except OSError as error:
        raise DataError(f"cannot fetch the 20 Newsgroups: {error}; they are fetched once, over the network") from None
    labels = [fetched.target_names[target] for target in fetched.target]
    (examples,), names = _vectorised([labels], [fetched.data], vectorizer, "20 Newsgroups")
    return examples, names


def _vectorised(
    labels: Sequence[list[str]], texts: Sequence[list[str]], settings: Settings, path: str
) -> tuple[list[Labelled], tuple[str, ...]]:
    if "ngram_range" in settings:  # a tuple, which YAML does not have
        pair = settings["ngram_range"]
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise RecipeError(f"found {pair!r}; expected two numbers [low, high]", key=f"{VECTORIZER}.ngram_range")
        settings = {**settings, "ngram_range": tuple(pair)}
    made = part_named(VECTORIZERS, settings, VECTORIZER, refused=("input", "dtype"))
    invalid = scikit("utils._param_validation", VECTORIZER).InvalidParameterError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about settings that others leave without effect
            matrices = [made.fit_transform(texts[0]), *(made.transform(part) for part in texts[1:])]
    except (re.error, invalid, TypeError) as error:
        raise RecipeError(f"the vectoriser does not accept its settings: {error}", key=VECTORIZER) from None
    except ValueError as error:
        raise DataError(f"the texts yield no features: {error}", path=path) from None
    first, *rest = (from_csr(matrix, part) for matrix, part in zip(matrices, labels, strict=True))
    aligned = [part.align(first.classes, first.width) for part in rest]
    return [first, *aligned], tuple(str(name) for name in made.get_feature_names_out())
