"""Corpus and settings for property tests, and how a learner is run over them."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from rerank.data.corpus import Corpus, save_joined
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner, State
from rerank.learn.pairs import PairSource
from rerank.learn.train import ORACLE_PAIRS, epoch_order
from rerank.learn.workspace import EpochStats
from rerank.metrics.metric import oracles

WIDTH = 6
# Made once, and of few choices: what draws and checks them takes longer than the tests do.
QUARTERS = st.integers(-8, 8).map(lambda n: n / 4)
ENTRY = st.integers(0, 17 * WIDTH - 1).map(lambda code: (code % WIDTH, code // WIDTH / 4 - 2))
POOL = st.lists(st.lists(ENTRY, max_size=4).map(dict), min_size=2, max_size=6)
NUMBERS = st.lists(QUARTERS, min_size=1, max_size=3)
GAINS = (0.0, 0.25, 0.5, 0.5, 1.0)
# A list: a code for every candidate, and one for the weight.
LIST = st.sampled_from([0, 1, 2, 2, 3, 4, 9]).flatmap(
    {n: st.tuples(*[st.integers(0, 7 * 5 * len(GAINS) - 1)] * n, st.integers(0, 3)) for n in range(10)}.__getitem__
)

Row = dict[int, float]
Candidate = tuple[Row, float, float]  # features, base score, gain


def corpus_of(lists: list[list[Candidate]], weights: list[float] | None = None, width: int = WIDTH) -> Corpus:
    """The corpus of plain lists."""
    candidates = [candidate for of_list in lists for candidate in of_list]
    entries = [entry for row, *_ in candidates for entry in sorted(row.items())]
    return Corpus(
        lists=np.cumsum([0] + [len(of_list) for of_list in lists]),
        rows=np.cumsum([0] + [len(row) for row, *_ in candidates]),
        columns=np.array([column for column, _ in entries], np.int32),
        values=np.array([value for _, value in entries], np.float32),
        base=np.array([base for _, base, _ in candidates], float),
        gain=np.array([gain for *_, gain in candidates], float),
        stats=np.zeros((len(candidates), 1)),
        reference=np.zeros((len(lists), 1)),
        weight=np.array(weights if weights is not None else [1.0] * len(lists), float),
        width=width,
    )


@st.composite
def corpora(draw: st.DrawFn, *, dyadic: bool = True, whole: bool = False) -> Corpus:
    """Few lists of 0, 1, 2 or more candidates from a small pool of rows: duplicates, empty rows and ties abound.

    dyadic: all numbers are multiples of 1/4 (gains and weights too), so that sums are exact; otherwise every number of
    a row and every base score is scaled by a random number, and ties are left between the same candidates only.
    whole: the numbers of rows are whole.
    """
    pool = [*draw(POOL), {}]
    if whole:
        pool = [{j: 4 * x for j, x in row.items()} for row in pool]
    numbers = [0.0, 0.0, *draw(NUMBERS)]
    if not dyadic:
        noise = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        pool = [{j: float(np.float32(x * noise.uniform(0.5, 2))) for j, x in row.items()} for row in pool]
        numbers = [x * noise.uniform(0.5, 2) for x in numbers]

    def candidate(code: int) -> Candidate:
        return pool[code % 7 % len(pool)], numbers[code // 7 % 5 % len(numbers)], GAINS[code // 35]

    importance = [1.0, 1.0, 2.0 if whole else 0.5, 2.0]
    drawn = draw(st.lists(LIST, max_size=7))
    return corpus_of(
        [[candidate(code) for code in codes] for *codes, _ in drawn], [importance[own[-1]] for own in drawn]
    )


def in_parts(directory: Path, corpus: Corpus, cuts: Sequence[int]) -> Corpus:
    """``corpus`` mapped from a new directory, in parts that begin at these lists."""
    save_joined(directory, [corpus.slice(first, last) for first, last in pairwise(cuts)])
    return Corpus.load(directory)


def random_corpus(seed: int, lists: int = 30, candidates: int = 6, width: int = 12) -> Corpus:
    """Lists of random rows and base scores without ties."""
    random = np.random.default_rng(seed)

    def row() -> Row:
        columns = random.choice(width, size=random.integers(1, width // 2), replace=False)
        values = random.normal(size=columns.size).astype(np.float32)
        return {int(j): float(x) for j, x in zip(columns, values, strict=True)}

    return corpus_of(
        [[(row(), random.normal(), random.uniform()) for _ in range(candidates)] for _ in range(lists)],
        [float(x) for x in random.choice([0.5, 1.0, 2.0], size=lists)],
        width,
    )


def targets(corpus: Corpus) -> np.ndarray:
    """The oracles."""
    return oracles(corpus)


def orders(corpus: Corpus, epochs: int, first: int = 0, seed: int = 1) -> list[np.ndarray]:
    """The lists in the order of every epoch."""
    return [epoch_order(corpus.list_count, seed, epoch, shuffle=True) for epoch in range(first, first + epochs)]


class Ran(NamedTuple):
    """What a learner did: its state, the counts of every epoch, the log."""

    state: State
    stats: list[EpochStats]
    log: UpdateLog

    def per_epoch(self, name: str) -> list[float]:
        """A counter of every epoch."""
        return [getattr(stats, name) for stats in self.stats]


def run(
    learner: Learner,
    corpus: Corpus,
    epochs: int,
    *,
    any_ties: bool = False,
    state: State | None = None,
    first: int = 0,
    oracles: np.ndarray | None = None,
    pairs: PairSource = ORACLE_PAIRS,
) -> Ran:
    """Pass ``learner`` over ``corpus`` in the order of ``orders``, from a fresh state unless one is given."""
    state = learner.init(corpus.width, corpus.candidate_count) if state is None else state
    log, oracles = UpdateLog(), targets(corpus) if oracles is None else oracles
    stats = [
        learner.epoch(corpus, oracles, order, state, any_ties=any_ties, log=log, pairs=pairs.rule(1, epoch))
        for epoch, order in enumerate(orders(corpus, epochs, first), first)
    ]
    return Ran(state, stats, log)


def bits(state: State) -> dict[str, bytes]:
    """All arrays of a state as bytes."""
    return {name: np.asarray(array).tobytes() for name, array in state._asdict().items()}
