"""The examples of a recipe: read, drawn or fetched, scaled, and divided into training and test parts."""

import logging
import os
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.contrib.classification.generators import generators
from rerank.contrib.classification.recipe import ClassificationRecipe, ExampleData, SourceSettings
from rerank.data.labelled import Labelled
from rerank.readers.base import excerpt
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream
from rerank.readers.svmlight import read_svmlight
from rerank.recipes.loading import TaskFiles

EXAMPLE = re.compile(rb"[-+]?[\d.]+(?: +\d+:[-+.\deE]+)+ *(?:#.*)?$")  # a line of svmlight
LOOK = 50  # lines that say what a file holds
log = logging.getLogger("rerank")
FILES = ("path", "train", "test", "folds")  # settings of a set that name one
MISSING = (
    "the recipe needs an svmlight file NAME.svm[.gz] here and its fold numbers, one per line, in NAME.folds.txt; "
    "say where such files are with --set data.root=DIR"
)


@dataclass(frozen=True)
class ExampleSet:
    """One set: examples with fold numbers, or examples to train on and others to test on (``test``)."""

    name: str
    examples: Labelled
    test: Labelled | None = None
    folds: np.ndarray | None = None

    @property
    def splits(self) -> int:
        """The number of (training, test) divisions."""
        return 1 if self.folds is None else int(np.unique(self.folds).size)

    @property
    def tested(self) -> Labelled:
        """The examples that are in some test part: all, or ``test``."""
        return self.examples if self.test is None else self.test

    def noisy(self, noise: float, seed: int) -> Labelled:
        """The training examples, every label flipped with probability ``noise``; the same in all folds."""
        if not noise:
            return self.examples
        if len(self.examples.classes) != 2:
            message = f"only labels of two classes can be flipped; set {self.name} has {len(self.examples.classes)}"
            raise RecipeError(f"{message}; leave data.noise out", key="data.noise")
        return self.examples.flip(noise, seed)

    def split(self, number: int, noise: float, seed: int) -> tuple[Labelled, Labelled, np.ndarray]:
        """Division ``number`` (from 0): a training part, whose labels may be noisy, a test part, and the indices of its
        examples in the set (int64)."""
        noisy = self.noisy(noise, seed)
        if self.test is not None:
            return noisy, self.test, np.arange(self.test.label.size)
        assert self.folds is not None
        held = self.folds == np.unique(self.folds)[number]
        index = np.flatnonzero(held)
        return noisy.take(np.flatnonzero(~held)), self.examples.take(index), index


Draw = Callable[[int], ExampleSet]  # from a seed to the set; the same for every seed where nothing is drawn
_READ = dict[tuple[str, str, int], ExampleSet]()  # by run, name and seed: the one set that this process has in memory


class Sets:
    """The sets of a recipe, which are read when they are needed, one at a time, and again by every worker.

    sources: by name, with the root in the paths of their files, which exist; counts: what metrics.json says about those
    that were read.
    """

    def __init__(self, recipe: ClassificationRecipe) -> None:
        self._data, named = recipe.data, recipe.data.named_sets(recipe.name)
        self.sources = {name: _found(recipe.data, source) for name, source in named.items()}
        self.counts: dict[str, dict[str, Any]] = {}
        self._run = uuid.uuid4().hex  # files may be others in the next run

    def draw(self, name: str, seed: int) -> ExampleSet:
        """The set of this name for a seed, which is kept in memory until one of another name is asked for."""
        source = self.sources[name]
        key = self._run, name, seed if source.generator is not None else 0
        if key not in _READ:
            for other in [other for other in _READ if other[:2] != key[:2]]:
                del _READ[other]
            start = time.perf_counter()
            _READ[key] = load_set(self._data, name, source, key[2])
            if name not in self.counts:
                self.counts[name] = _counts(_READ[key], time.perf_counter() - start)
        return _READ[key]


def _counts(of: ExampleSet, seconds: float) -> dict[str, Any]:
    """The entry of metrics.json on a set."""
    examples = of.examples
    labels = np.bincount(examples.label, minlength=len(examples.classes))
    if of.test is not None and (dropped := of.test.dropped):
        message = "set %s: %s values of features that the training examples do not have are left out"
        log.warning(message, of.name, f"{dropped:,}")
    return {
        "examples": examples.size,
        "test_examples": of.tested.size,
        "nonzeros": examples.nonzeros,
        "columns": examples.width,
        "classes": dict(zip(examples.classes, labels.tolist(), strict=True)),
        "splits": of.splits,
        "seconds": round(seconds, 3),
    }


def _found(data: ExampleData, source: SourceSettings) -> SourceSettings:
    places = {key: path for key in FILES if isinstance(path := getattr(source, key), str)}
    filled = {key: path.replace("{root}", data.root) for key, path in places.items()}
    for key, path in filled.items():
        if path != places[key] and not os.path.exists(path):
            raise DataError(f"no such file; {MISSING}", path=path)
        if path == "-":
            raise RecipeError("a recipe reads its files more than once; name a file", key="data")
        open_stream(path).close()
    if source.generator is not None:
        build(generators, source.generator, "data.generator")
    return source.model_copy(update=filled)


def load_set(data: ExampleData, name: str, source: SourceSettings, seed: int) -> ExampleSet:
    """Read, draw (from ``seed``) or fetch a set, and give its features bias and scale."""
    test, path = None, source.path or source.train or ""
    if source.generator is not None:
        examples, test = build(generators, source.generator, "data.generator").draw(seed)
    else:
        examples = read_svmlight(path)
        if examples.group.size:
            log.warning(
                "%s: qid is ignored, and grades are classes without an order; task: ranking with data.reader: letor "
                "ranks the documents of every query", path,
            )  # fmt: skip
        if source.test is not None:
            try:
                test = read_svmlight(source.test).align(examples.classes, examples.width)
            except DataError as error:
                raise error if error.path else DataError(error.message, path=source.test) from None
    if len(examples.classes) < 2:
        classes = ", ".join(examples.classes)
        raise DataError(f"all labels are {classes!r}; expected at least two classes", path=path or None)
    folds = None if test is not None or source.folds else draw_folds(examples.label, source.drawn, seed=1)
    if source.folds is not None:
        folds = read_folds(source.folds, examples.size)

    def prepared(part: Labelled) -> Labelled:
        """With scale and bias; columns are divided by their largest size in training."""
        part = part if data.scale is None else part.normalised(data.scale, like=examples)
        return part if data.bias is None else part.with_bias(data.bias)

    return ExampleSet(name, prepared(examples), None if test is None else prepared(test), folds)


def read_folds(path: PathLike, n: int) -> np.ndarray:
    """The fold numbers of ``n`` examples, one per line: int64 [n].

    Raises
    ------
    DataError: a line is not a whole number from 0, there are not ``n`` lines, or all are in one fold.
    """
    with open_stream(path, strict=False) as stream:
        lines = list(LineReader(stream))
    for line, text in lines:
        if not re.fullmatch(rb"\s*\d{1,9}\s*", text):
            message = f"found {excerpt(text)}; expected the number of a fold, 0 or higher"
            raise DataError(message, path=stream.path, line=line)
    if len(lines) != n:
        message = f"found {len(lines):,} fold numbers for {n:,} examples; expected one for each, on a line of its own"
        raise DataError(message, path=stream.path)
    folds = np.array([int(text) for _, text in lines], np.int64)
    if np.unique(folds).size < 2:
        raise DataError(f"all examples are in fold {folds[0]}; expected at least two folds", path=stream.path)
    return folds


def draw_folds(label: np.ndarray, count: int, seed: int) -> np.ndarray:
    """int64 [n]: folds 0..count - 1, each with its share of every class, and sizes that differ by at most one."""
    if label.size < count:
        raise DataError(f"{label.size} examples cannot make {count} folds; expected data.drawn of at most that")
    order = np.random.default_rng(seed).permutation(label.size)
    order = order[np.argsort(label[order], kind="stable")]  # one class after the other, each in random order
    folds = np.empty(label.size, np.int64)
    folds[order] = np.arange(label.size) % count
    return folds


def new_recipe(files: TaskFiles) -> list[str]:
    """What `rerank new` makes of files of svmlight without lists (qid); see ``Task``."""
    for path in files.paths:
        lines = list[bytes]()
        with suppress(DataError), open_stream(path) as stream:  # what has no lines may be of another format
            lines = [line for _, line in islice(LineReader(stream), LOOK)]
        if not lines or not all(map(EXAMPLE.match, lines)):
            return []
    if len(others := [path for path in files.paths if path != files.train]) > 1:
        message = f"found {len(files.paths)} files of examples; expected one, or one to train on and one to test on"
        raise DataError(message, path=others[1])
    train = files.quoted(files.train)
    return [
        "examples in the format svmlight, measured by errors",
        "task: classification", "", "data:",
        *([f"  train: {train}", f"  test: {files.quoted(others[0])}"] if others else [f"  path: {train}"]), "",
        "learner: {name: arow}  # or one that suits:", "# rerank list learners; docs/choosing.md",
    ]  # fmt: skip
