"""The examples of a recipe: read or drawn, and divided into training and test parts.

Those that are drawn are the same everywhere for the same seed, to the bit. The stream of a seed is that of splitmix64
(Steele, Lea & Flood 2014): mix(seed + G), mix(seed + 2·G), ...; all arithmetic is modulo 2^64.
"""

import logging
import os
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import numpy as np
from scipy.sparse import csr_array

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked, Count, Range
from rerank.base.registry import Registry, build
from rerank.contrib.classification.recipe import ClassificationRecipe, ExampleData, SourceSettings
from rerank.data.labelled import Labelled
from rerank.data.svmlight import parse_examples
from rerank.data.symbols import mix
from rerank.readers.lines import LineReader
from rerank.readers.reader import excerpt
from rerank.recipes.loading import TaskFiles
from rerank.storage.streams import PathLike, open_stream

EXAMPLE = re.compile(rb"[-+]?[\d.]+(?: +\d+:[-+.\deE]+)+ *(?:#.*)?$")  # a line of svmlight
SAMPLE_LINES = 50  # lines that say what a file holds
log = logging.getLogger("rerank")
FILES = ("path", "train", "test", "folds")  # settings of a set that name one
MISSING = (
    "the recipe needs an svmlight file NAME.svm[.gz] here and its fold numbers, one per line, in NAME.folds.txt; "
    "say where such files are with --set data.root=DIR"
)


@dataclass(frozen=True)
class ExampleSet:
    """One set: examples in ``folds`` (int64), or examples to train on and others to test on, ``test``, in one fold."""

    name: str
    examples: Labelled
    test: Labelled | None
    folds: np.ndarray

    @property
    def splits(self) -> int:
        """The number of (training, test) divisions."""
        return int(np.unique(self.folds).size)

    @property
    def test_part(self) -> Labelled:
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
        noisy, mask = self.noisy(noise, seed), self.folds == np.unique(self.folds)[number]
        index = np.flatnonzero(mask)
        if self.test is not None:
            return noisy, self.test, index
        return noisy.take(np.flatnonzero(~mask)), self.examples.take(index), index


Draw = Callable[[int], ExampleSet]  # from a seed to the set; the same for every seed where nothing is drawn
_LOADED = dict[tuple[str, str, int], ExampleSet]()  # by run, name and seed: the one set that this process has in memory


class Sets:
    """The sets of a recipe, which are read when they are needed, one at a time, and again by every worker.

    sources: by name, with the root in the paths of their files, which exist; counts: what metrics.json says about those
    that were read.
    """

    def __init__(self, recipe: ClassificationRecipe) -> None:
        self._data, self.sources, self.counts = recipe.data, dict[str, SourceSettings](), dict[str, dict[str, Any]]()
        for name, source in recipe.data.named_sets(recipe.name).items():
            patterns = {key: path for key in FILES if isinstance(path := getattr(source, key), str)}
            paths = {key: path.replace("{root}", recipe.data.root) for key, path in patterns.items()}
            for key, path in paths.items():
                if path != patterns[key] and not os.path.exists(path):
                    raise DataError(f"no such file; {MISSING}", path=path)
                if path == "-":
                    raise RecipeError("a recipe reads its files more than once; name a file", key="data")
                open_stream(path).close()
            if source.generator is not None:
                build(generators, source.generator, "data.generator")
            self.sources[name] = source.model_copy(update=paths)
        self._run = uuid.uuid4().hex  # files may be others in the next run

    def draw(self, name: str, seed: int) -> ExampleSet:
        """The set of this name for a seed, which is kept in memory until one of another name is asked for."""
        source = self.sources[name]
        key = self._run, name, seed if source.generator is not None else 0
        if key not in _LOADED:
            for other in [other for other in _LOADED if other[:2] != key[:2]]:
                del _LOADED[other]
            start = time.perf_counter()
            _LOADED[key] = load_set(self._data, name, source, key[2])
            if name not in self.counts:
                self.counts[name] = _counts(_LOADED[key], time.perf_counter() - start)
        return _LOADED[key]


def _counts(of: ExampleSet, seconds: float) -> dict[str, Any]:
    """The entry of metrics.json on a set."""
    examples = of.examples
    labels = np.bincount(examples.label, minlength=len(examples.classes))
    if of.test is not None and (count := of.test.omissions):
        message = "set %s: %s values of features that the training examples do not have are left out"
        log.warning(message, of.name, f"{count:,}")
    return {
        "examples": examples.size,
        "test_examples": of.test_part.size,
        "nonzeros": examples.nonzeros,
        "columns": examples.width,
        "classes": dict(zip(examples.classes, labels.tolist(), strict=True)),
        "splits": of.splits,
        "seconds": round(seconds, 3),
    }


def load_set(data: ExampleData, name: str, source: SourceSettings, seed: int) -> ExampleSet:
    """Read, draw (from ``seed``) or fetch a set, and give its features a bias."""
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
    if source.folds is not None:
        folds = read_folds(source.folds, examples.size)
    else:
        folds = draw_folds(examples.label, source.drawn, seed=1) if test is None else np.zeros(test.size, np.int64)
    if data.bias is not None:
        examples, test = examples.with_bias(data.bias), test and test.with_bias(data.bias)
    return ExampleSet(name, examples, test, folds)


def read_svmlight(path: PathLike) -> Labelled:
    """The examples of a plain or compressed file or, as "-", of standard input; see ``parse_examples``."""
    with open_stream(path, strict=False) as stream:
        return parse_examples(LineReader(stream).chunks(), stream.path)


def read_folds(path: PathLike, n: int) -> np.ndarray:
    """The fold numbers of ``n`` examples, one per line: int64 [n].

    Raises DataError: a line is not a whole number from 0, there are not ``n`` lines, or all are in one fold.
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
    """The recipe that `rerank new` makes of files of svmlight without lists (qid); see ``Task``."""
    for path in files.paths:
        lines = list[bytes]()
        with suppress(DataError), open_stream(path) as stream:  # what has no lines may be of another format
            lines = [line for _, line in islice(LineReader(stream), SAMPLE_LINES)]
        if not lines or not all(map(EXAMPLE.match, lines)):
            return []
    if len(others := [path for path in files.paths if path != files.train]) > 1:
        message = f"found {len(files.paths)} files of examples; expected one, or one to train on and one to test on"
        raise DataError(message, path=others[1])
    train = files.quote(files.train)
    return [
        "examples in the format svmlight, measured by errors",
        "task: classification", "", "data:",
        *([f"  train: {train}", f"  test: {files.quote(others[0])}"] if others else [f"  path: {train}"]), "",
        "learner: {name: arow}  # or one that suits:", "# rerank list learners; docs/choosing.md",
    ]  # fmt: skip


G = np.uint64(0x9E3779B97F4A7C15)
ONE, U11, U32, U40 = map(np.uint64, (1, 11, 32, 40))
UNIT = 2.0**-53
MIX: Any = getattr(mix, "function", mix)  # for arrays
NOISE = 0.05  # share of labels that are flipped

ZIPF_SEED, ZIPF_WEIGHTS = np.uint64(2012), np.uint64(77)
ZIPF_BITS = np.uint64(20)  # ids are below 2^20
ZIPF_IDS = 80  # per example
ZIPF_DRAWS = 160  # per example; draw ZIPF_STRIDE - 1 decides on the noise
ZIPF_STRIDE = np.uint64(256)
ZIPF_BLOCK = 10_000  # examples that are drawn together
ZIPF_THRESHOLD = -14506303  # the median of the first 10,001 sums

WINNOW_EXAMPLES = 1000  # of each part
ZIPF_EXAMPLES = 10_000_000  # at most; they take more than 3 GB

# Data sets by their parameters, frozen dataclasses: ``draw`` gives training and test examples for a seed.
generators: Registry[Any] = Registry("generator")


@dataclass(frozen=True)
class Winnow(Checked):
    """Many irrelevant features, after Zhang (Regularized Winnow Methods, section 4): 1000 training and test examples.

    x has ``dimension`` fair bits; the label is the sign of m = x₁ + x₂ + x₃ + x₄ + x₅ - x₆ - 2. Examples with m = 0 are
    left out, then 5 % of all labels are flipped. There is no constant feature: learners need a bias.
    """

    dimension: Annotated[int, Range(6, 1_000_000)] = 500

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Both parts from one stream of splitmix64.

        It gives ⌈d/64⌉ words of bits per example (the lowest bit is the first feature) and, for those that are not left
        out, a number in [0, 1); the label is flipped if it is below 0.05.
        """
        words = -(-self.dimension // 64)
        steps = np.arange(1, words + 2, dtype=np.uint64) * G
        state, bits, positive = np.array([seed % (1 << 64)], np.uint64), list[np.ndarray](), list[bool]()
        while len(bits) < 2 * WINNOW_EXAMPLES:
            numbers = MIX(state + steps)
            x = np.unpackbits(numbers[:-1].astype("<u8").view(np.uint8), count=self.dimension, bitorder="little")
            margin = int(x[:5].sum()) - int(x[5]) - 2
            state += steps[words - (margin == 0)]
            if margin != 0:
                bits.append(x)
                positive.append((margin > 0) != (float(numbers[-1] >> U11) * UNIT < NOISE))
        return _split_points(np.stack(bits), np.array(positive), WINNOW_EXAMPLES)


@dataclass(frozen=True)
class Zipf(Checked):
    """A large set for measurements: 80 features per example out of 2^20 - 1, distributed like words.

    The seed changes nothing: there is one such set; ``train`` and ``test`` say how much of it is generated.
    """

    train: Count = 500_000
    test: Count = 50_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train + self.test > ZIPF_EXAMPLES:
            raise RecipeError(
                f"found {self.train + self.test:,} examples; expected at most {ZIPF_EXAMPLES:,}", key="train"
            )

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:  # noqa: ARG002
        """The first ``train`` examples of one endless set, and the ``test`` that follow.

        Draw j of example i is h = mix(2012 + (256·i + j + 1)·G), the id 2^e + (h >> 32) mod 2^e with e = h mod 20; the
        first 80 distinct ids are the features, with value 1. The label says whether the sum of the ids' weights,
        integers of 24 bits, exceeds its median; 5 % are flipped. Column j is id j + 1.
        """
        return _zipf_part(0, self.train), _zipf_part(self.train, self.test)


@dataclass(frozen=True)
class Ellipse(Checked):
    """Two informative dimensions of unequal spread among 20 (Crammer, Dredze & Pereira 2008), with noise as in Crammer
    et al. (2009).

    The first two are (a - b)/√2 and (a + b)/√2 with a of standard deviation 1 and b of standard deviation 10: a
    Gaussian turned by 45°. The label is the sign of a, so that the long axis separates the classes. The other 18 are
    independent with standard deviation 2 and say nothing. Training labels are flipped with probability ``noise``; test
    labels never are.
    """

    train: Count = 5000
    test: Count = 10_000
    noise: Annotated[float, Range(0, 1)] = 0.1

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Normal deviates from numpy's default generator, example by example, those for training first."""
        rng = np.random.default_rng(seed)
        draws = rng.standard_normal((self.train + self.test, 20))
        a, b = draws[:, 0], 10.0 * draws[:, 1]
        points = np.column_stack([(a - b) / np.sqrt(2), (a + b) / np.sqrt(2), 2.0 * draws[:, 2:]])
        positive = a > 0
        positive[: self.train] ^= rng.random(self.train) < self.noise
        return _split_points(points, positive, self.train)


def _zipf_part(first: int, size: int) -> Labelled:
    columns, positive = np.empty((size, ZIPF_IDS), np.int32), np.empty(size, np.bool_)
    for begin in range(0, size, ZIPF_BLOCK):
        block = slice(begin, min(begin + ZIPF_BLOCK, size))
        start = ZIPF_SEED + np.arange(first + block.start, first + block.stop, dtype=np.uint64) * ZIPF_STRIDE * G
        h = MIX(start[:, None] + np.arange(1, ZIPF_DRAWS + 1, dtype=np.uint64) * G)
        power = ONE << h % ZIPF_BITS
        draws = (power + ((h >> U32) & (power - ONE))).astype(np.int64)
        key = np.sort(draws << 8 | np.arange(ZIPF_DRAWS), axis=1)  # by id, then by draw
        when = np.where(np.diff(key >> 8, axis=1, prepend=0) > 0, key & 255, ZIPF_DRAWS)  # the first draw of an id
        last = np.partition(when, ZIPF_IDS - 1, axis=1)[:, ZIPF_IDS - 1 : ZIPF_IDS]
        ids = (key >> 8)[when <= last].reshape(-1, ZIPF_IDS)
        weights = (MIX(ZIPF_WEIGHTS + ids.astype(np.uint64) * G) >> U40).astype(np.int64) - (1 << 23)
        flips = (MIX(start + G * np.array([ZIPF_STRIDE])) >> U11) * UNIT < NOISE
        columns[block], positive[block] = ids - 1, (weights.sum(axis=1) > ZIPF_THRESHOLD) != flips
    values = np.ones(columns.size, np.float32)
    return _binary(np.arange(size + 1) * ZIPF_IDS, columns.reshape(-1), values, positive, (1 << int(ZIPF_BITS)) - 1)


def _split_points(points: np.ndarray, positive: np.ndarray, size: int) -> tuple[Labelled, Labelled]:
    """The first ``size`` of the dense rows ``points`` as examples, and the others."""
    parts = [(csr_array(points[part]), positive[part]) for part in (slice(size), slice(size, None))]
    first, second = (_binary(x.indptr, x.indices, x.data, own, points.shape[1]) for x, own in parts)
    return first, second


def _binary(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, positive: np.ndarray, width: int) -> Labelled:
    """Examples of two classes."""
    return Labelled(rows, columns, values, positive, ("-1", "1"), np.empty(0, np.int64), np.ones(positive.size), width)
