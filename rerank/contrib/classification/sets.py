"""The examples of a recipe: read, drawn or fetched, scaled, and divided into training and test parts.

Examples that are generated, not read: the same seed gives the same bits, everywhere. splitmix64 (Steele, Lea & Flood
2014): the stream of a seed is mix(seed + G), mix(seed + 2·G), ...; all arithmetic is modulo 2^64.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked, Range
from rerank.base.registry import Registry, build
from rerank.contrib.classification.recipe import ClassificationRecipe, ExampleData, FoldSettings, SourceSettings
from rerank.contrib.classification.scikit import read_newsgroups, read_texts
from rerank.data.labelled import Labelled
from rerank.data.shards import share_of
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel
from rerank.readers.examples.svmlight import read_folds, read_svmlight
from rerank.readers.lines import LineReader
from rerank.readers.streams import open_stream
from rerank.recipes.tasks import TaskFiles

G = np.uint64(0x9E3779B97F4A7C15)
ONE, U11, U32, U40 = (np.uint64(n) for n in (1, 11, 32, 40))
UNIT = 2.0**-53
EXAMPLE = re.compile(rb"[-+]?[\d.]+(?: +\d+:[-+.\deE]+)+ *(?:#.*)?$")  # a line of svmlight
LOOK = 50  # lines that say what a file holds
NOISE = 0.05  # share of labels that are flipped

ZIPF_SEED, ZIPF_WEIGHTS = np.uint64(2012), np.uint64(77)
ZIPF_BITS = 20  # ids are below 2^20
ZIPF_IDS = 80  # per example
ZIPF_DRAWS = 160  # per example; draw ZIPF_STRIDE - 1 decides on the noise
ZIPF_STRIDE = 256
ZIPF_THRESHOLD = -14506303  # the median of the first 10,001 sums

WINNOW_EXAMPLES = 1000  # of each part
ZIPF_EXAMPLES = 10_000_000  # at most; they take more than 3 GB

Size = Annotated[int, Range(1)]


class Generator(Protocol):
    """A data set by its parameters: a frozen dataclass whose fields are the recipe's schema."""

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Training and test examples."""


generators: Registry[type[Generator]] = Registry("generator")


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
        bits = np.empty((2 * WINNOW_EXAMPLES, self.dimension), np.uint8)
        positive = np.empty(2 * WINNOW_EXAMPLES, np.uint8)
        winnow_examples(np.uint64(seed % (1 << 64)), bits, positive)
        return _parted(bits, positive, WINNOW_EXAMPLES)


@dataclass(frozen=True)
class Zipf(Checked):
    """A large set for measurements: 80 features per example out of 2^20 - 1, distributed like words.

    The seed changes nothing: there is one such set; ``train`` and ``test`` say how much of it is generated.
    """

    train: Size = 500_000
    test: Size = 50_000

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

    train: Size = 5000
    test: Size = 10_000
    noise: Annotated[float, Range(0, 1)] = 0.1

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Normal deviates from numpy's default generator, example by example, those for training first."""
        rng = np.random.default_rng(seed)
        draws = rng.standard_normal((self.train + self.test, 20))
        a, b = draws[:, 0], 10.0 * draws[:, 1]
        points = np.column_stack([(a - b) / np.sqrt(2), (a + b) / np.sqrt(2), 2.0 * draws[:, 2:]])
        positive = a > 0
        positive[: self.train] ^= rng.random(self.train) < self.noise
        return _parted(points, positive, self.train)


def _zipf_part(first: int, size: int) -> Labelled:
    columns, positive = np.zeros((size, ZIPF_IDS), np.int32), np.zeros(size, np.uint8)
    zipf_examples(first, columns, positive, np.zeros(1 << ZIPF_BITS, np.int32))
    return _binary(np.arange(size + 1) * ZIPF_IDS, columns.reshape(-1), None, positive, (1 << ZIPF_BITS) - 1)


def _parted(points: np.ndarray, positive: np.ndarray, size: int) -> tuple[Labelled, Labelled]:
    """The first ``size`` of the dense rows ``points`` as examples, and the others; all nonzero bits are 1."""
    parts = []
    for part in (slice(size), slice(size, None)):
        place, columns = np.nonzero(points[part])
        values = None if points.dtype == np.uint8 else points[part][place, columns]
        rows = np.searchsorted(place, np.arange(len(points[part]) + 1))
        parts.append(_binary(rows, columns, values, positive[part], points.shape[1]))
    return parts[0], parts[1]


def _binary(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None, positive: np.ndarray, width: int
) -> Labelled:
    """Examples of two classes; without ``values`` all are one repeated 1."""
    return Labelled(
        rows=rows,
        columns=columns,
        values=np.broadcast_to(np.float32(1), columns.size) if values is None else values,
        label=positive,
        classes=("-1", "1"),
        group=np.empty(0, np.int64),
        weight=np.ones(positive.size),
        width=width,
    )


@kernel
def unit(h: Any) -> float:
    """A number in [0, 1) from the upper 53 bits."""
    return np.float64(h >> U11) * UNIT


@kernel
def winnow_examples(seed: Any, bits: np.ndarray, positive: np.ndarray) -> None:
    """Fill ``bits`` (uint8 [n, D]) and ``positive`` (uint8 [n]) with winnow examples."""
    state, i = np.uint64(seed), 0
    while i < bits.shape[0]:
        word: Any = np.uint64(0)
        for j in range(bits.shape[1]):
            if j % 64 == 0:
                state += G
                word = mix(state)
            bits[i, j] = (word >> np.uint64(j % 64)) & ONE
        margin = np.int64(bits[i, 0]) + bits[i, 1] + bits[i, 2] + bits[i, 3] + bits[i, 4] - bits[i, 5] - 2
        if margin == 0:
            continue
        state += G
        positive[i] = (margin > 0) != (unit(mix(state)) < NOISE)
        i += 1


@kernel
def zipf_examples(first: int, columns: np.ndarray, positive: np.ndarray, seen: np.ndarray) -> None:
    """Generate examples first, first + 1, ... of the zipf set.

    ``columns`` (int32 [n, 80]) receives the ids - 1, sorted; ``positive`` is uint8 [n]; ``seen`` (int32 [2^20], zeros)
    records the example in which an id was last drawn.
    """
    for i in range(columns.shape[0]):
        start = ZIPF_SEED + np.uint64(first + i) * np.uint64(ZIPF_STRIDE) * G
        count, total = 0, np.int64(0)
        for j in range(ZIPF_DRAWS):
            h = mix(start + np.uint64(j + 1) * G)
            e = h % np.uint64(ZIPF_BITS)
            power = ONE << e
            name = np.int64(power + ((h >> U32) & (power - ONE)))
            if seen[name] == i + 1:
                continue
            seen[name] = i + 1
            total += np.int64(mix(ZIPF_WEIGHTS + np.uint64(name) * G) >> U40) - (1 << 23)
            q = count  # insertion sort
            while q > 0 and columns[i, q - 1] > name - 1:
                columns[i, q] = columns[i, q - 1]
                q -= 1
            columns[i, q] = name - 1
            count += 1
            if count == ZIPF_IDS:
                break
        positive[i] = (total > ZIPF_THRESHOLD) != (unit(mix(start + np.uint64(ZIPF_STRIDE) * G)) < NOISE)


log = logging.getLogger("rerank")
FILES = ("path", "train", "test", "folds", "vocabulary")  # settings of a set that name one
MISSING = (
    "the recipe needs an svmlight file NAME.svm[.gz] here and its fold numbers, one per line, in NAME.folds.txt; "
    "say where such files are with --set data.root=DIR"
)


@dataclass(frozen=True)
class Split:
    """A training part, whose labels may be noisy, and a test part, with the indices of its examples in the set."""

    train: Labelled
    test: Labelled
    index: np.ndarray  # int64 [n of test]
    flipped: np.ndarray  # bool [n of train]: labels that noise has changed

    def shared(self, share: float, seed: int) -> "Split":
        """With the share of the training examples that ``share_of`` draws."""
        if share == 1:
            return self
        chosen = share_of(self.train.size, share, seed)
        return replace(self, train=self.train.take(chosen), flipped=self.flipped[chosen])


@dataclass(frozen=True)
class ExampleSet:
    """One set: examples with fold numbers, or examples to train on and others to test on (``test``).

    names: of the features, where there is a vocabulary.
    """

    name: str
    examples: Labelled
    test: Labelled | None = None
    folds: np.ndarray | None = None
    names: tuple[str, ...] = ()

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

    def split(self, number: int, noise: float, seed: int) -> Split:
        """Division ``number`` (from 0)."""
        noisy = self.noisy(noise, seed)
        changed = noisy.label != self.examples.label
        if self.test is not None:
            return Split(noisy, self.test, np.arange(self.test.label.size), changed)
        assert self.folds is not None
        held = self.folds == np.unique(self.folds)[number]
        train, index = np.flatnonzero(~held), np.flatnonzero(held)
        return Split(noisy.take(train), self.examples.take(index), index, changed[train])


Draw = Callable[[int], ExampleSet]  # from a seed to the set; the same for every seed where nothing is drawn


class Sets:
    """The sets of a recipe, which are read when they are needed, one at a time.

    sources: by name, with the root in the paths of their files, which exist; counts: what metrics.json says about those
    that were read.
    """

    def __init__(self, recipe: ClassificationRecipe) -> None:
        self._data, named = recipe.data, recipe.data.named_sets(recipe.name)
        self.sources = {name: _found(recipe.data, source) for name, source in named.items()}
        self.counts: dict[str, dict[str, Any]] = {}
        self._read: dict[tuple[str, int], ExampleSet] = {}

    def draw(self, name: str, seed: int) -> ExampleSet:
        """The set of this name for a seed, which is kept in memory until one of another name is asked for."""
        source = self.sources[name]
        key = name, seed if source.generator is not None else 0
        if key not in self._read:
            self._read = {other: known for other, known in self._read.items() if other[0] == name}
            start = time.perf_counter()
            self._read[key] = load_set(self._data, name, source, key[1])
            self.counts.setdefault(name, _counts(self._read[key], time.perf_counter() - start))
        return self._read[key]


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
        if path != places[key] and not Path(path).exists():
            raise DataError(f"no such file; {MISSING}", path=path)
        if path == "-":
            raise RecipeError("a recipe reads its files more than once; name a file", key="data")
        open_stream(path).close()
    if source.generator is not None:
        build(generators, source.generator, "data.generator")
    return source.model_copy(update=filled)


def load_set(data: ExampleData, name: str, source: SourceSettings, seed: int) -> ExampleSet:
    """Read, draw (from ``seed``) or fetch a set, and give its features bias and scale."""
    test: Labelled | None = None
    names: tuple[str, ...] = ()
    path = source.path or source.train or ""
    if source.generator is not None:
        examples, test = build(generators, source.generator, "data.generator").draw(seed)
    elif source.newsgroups:
        examples, names = read_newsgroups(source.newsgroups, data.vectorizer)
    elif data.format == "text":
        (examples, *tested), names = read_texts([path, *([source.test] if source.test else [])], data.vectorizer)
        test = tested[0] if tested else None
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
    if source.vocabulary is not None:
        names = read_vocabulary(source.vocabulary, examples.width)
    if len(examples.classes) < 2:
        classes = ", ".join(examples.classes)
        raise DataError(f"all labels are {classes!r}; expected at least two classes", path=path or None)
    folds = None if test is not None else _folds(source, examples)
    prepared = None if test is None else _prepared(data, test, examples)
    return ExampleSet(name, _prepared(data, examples, examples), prepared, folds, names)


def _prepared(data: ExampleData, part: Labelled, training: Labelled) -> Labelled:
    """``part`` with scale and bias; columns are divided by their largest size in ``training``."""
    if data.scale == "l2":
        part = part.normalised("l2")
    elif data.scale == "max":
        part = part.normalised("max", like=training)
    return part if data.bias is None else part.with_bias(data.bias)


def _folds(source: SourceSettings, examples: Labelled) -> np.ndarray:
    if not isinstance(source.folds, str):
        drawn = source.folds or FoldSettings()
        return draw_folds(examples.label, drawn.count, drawn.seed)
    folds = read_folds(source.folds, examples.label.size)
    if np.unique(folds).size < 2:
        raise DataError(f"all examples are in fold {folds[0]}; expected at least two folds", path=source.folds)
    return folds


def read_vocabulary(path: str, width: int) -> tuple[str, ...]:
    """The names of the features, one per line, at least ``width`` of them."""
    with open_stream(path, strict=False) as stream:
        lines = [line.decode("utf-8", "replace") for _, line in LineReader(stream)]
    if len(lines) < width:
        raise DataError(f"found {len(lines)} names for {width} features; expected a line for each", path=path)
    return tuple(lines)


def draw_folds(label: np.ndarray, count: int, seed: int) -> np.ndarray:
    """int64 [n]: folds 0..count - 1, each with its share of every class, and sizes that differ by at most one."""
    if label.size < count:
        raise DataError(f"{label.size} examples cannot make {count} folds; expected data.folds.count of at most that")
    order = np.random.default_rng(seed).permutation(label.size)
    order = order[np.argsort(label[order], kind="stable")]  # one class after the other, each in random order
    folds = np.empty(label.size, np.int64)
    folds[order] = np.arange(label.size) % count
    return folds


def new_recipe(files: TaskFiles) -> list[str]:
    """What `rerank new` makes of files of svmlight without lists (qid); see ``Task``."""
    for path in files.paths:
        with open_stream(path) as stream:
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
