"""Ten kinds of generated lists, for ``resplits.py``: what is simple about one of them is wrong about another.

Each is drawn anew by a generator of numpy; the learners see columns, base scores and gains alone.
"""

from collections.abc import Callable

import numpy as np

from rerank.data.corpus import Corpus

SIZE = 12  # candidates of a list
WORDS = 1000  # that say nothing, of which a candidate has five


def corpus(columns: np.ndarray, base: np.ndarray, gain: np.ndarray, words: np.ndarray | None = None) -> Corpus:
    """Lists with dense columns (float64 [L, n, D]), base scores and gains (float64 [L, n]); words: int [L, n, 5], the
    places of sparse columns that are 1, increasing."""
    (L, n, D), more = columns.shape, 0 if words is None else words.shape[2]
    places, values = np.broadcast_to(np.arange(D), (L, n, D)), columns
    if words is not None:
        places, values = np.concatenate([places, D + words], 2), np.concatenate([values, np.ones(words.shape)], 2)
    return Corpus(
        np.arange(L + 1) * n, np.arange(L * n + 1) * (D + more), places.ravel(), values.ravel(), base.ravel(),
        gain.ravel(), gain.reshape(-1, 1), np.ones((L, 1)), np.ones(L), D + (WORDS if more else 0), free=D,
    )  # fmt: skip


def right_of(rng: np.random.Generator, lists: int, share: float = 0.35) -> np.ndarray:
    """Which samples are right (0 or 1): more of easy prompts than of hard ones."""
    odds = rng.normal(np.log(share / (1 - share)), 1.2, (lists, 1))
    return (rng.random((lists, SIZE)) < 1 / (1 + np.exp(-odds))).astype(float)


def one_column(rng: np.random.Generator, lists: int) -> Corpus:
    """One of twenty columns says what is right; the base says little."""
    right = right_of(rng, lists)
    columns = rng.normal(size=(lists, SIZE, 20))
    columns[:, :, 7] += 1.6 * right
    return corpus(columns, rng.normal(size=right.shape) + 0.4 * right, right)


def many_columns(rng: np.random.Generator, lists: int) -> Corpus:
    """Each of twenty columns says a little."""
    right = right_of(rng, lists)
    return corpus(
        rng.normal(size=(lists, SIZE, 20)) + 0.45 * right[:, :, None], rng.normal(size=right.shape) + 0.4 * right, right
    )


def shared_noise(rng: np.random.Generator, lists: int) -> Corpus:
    """Columns with the same noise: only their differences say something."""
    right = right_of(rng, lists)
    columns = 2.0 * rng.normal(size=(lists, SIZE, 1)) + 0.5 * rng.normal(size=(lists, SIZE, 6))
    columns[:, :, 0] += 0.8 * right
    return corpus(columns, columns[:, :, 1] + 0.3 * right, right)


def levels(rng: np.random.Generator, lists: int) -> Corpus:
    """Scores of a list have a level of their own, higher where fewer samples are right."""
    right = right_of(rng, lists)
    level = rng.normal(size=(lists, 1, 1)) - 2.0 * right.mean(axis=1)[:, None, None]
    columns = rng.normal(size=(lists, SIZE, 4)) + 0.6 * right[:, :, None] + 2.0 * level
    return corpus(columns, rng.normal(size=right.shape) + 0.4 * right, right)


def votes(rng: np.random.Generator, lists: int) -> Corpus:
    """Twelve systems, each on its own level, with answers, of which wrong ones repeat; the base is the vote."""
    skill = rng.normal(size=SIZE)
    right = (rng.random((lists, SIZE)) < 1 / (1 + np.exp(-(skill + rng.normal(-0.4, 2.0, (lists, 1)))))).astype(float)
    answers = np.where(right == 1, 0, rng.choice(6, right.shape, p=0.5 ** np.arange(1, 7) / (1 - 0.5**6)) + 1)
    same = answers[:, :, None] == answers[:, None]
    count, known = same.sum(axis=2), skill + rng.normal(0, 0.3, SIZE)
    of_answer = (same * known).sum(axis=2) / count
    verifier = (same * (rng.normal(size=right.shape) + 0.5 * right)[:, None]).sum(axis=2) / count
    return corpus(np.stack([np.log(count), of_answer, verifier], 2), count / SIZE, right)


def quality(rng: np.random.Generator, lists: int) -> Corpus:
    """Gains of any value, which all columns show, each with noise of its own."""
    gain = rng.normal(size=(lists, SIZE))
    noise = np.linspace(1.0, 6.0, 8) * rng.normal(size=(lists, SIZE, 8))
    return corpus(gain[:, :, None] + noise, gain + 2.0 * rng.normal(size=gain.shape), gain)


def grades(rng: np.random.Generator, lists: int) -> Corpus:
    """Grades from 0 to 4, few of which are high."""
    made = quality(rng, lists)
    level = np.searchsorted(np.array([0.3, 1.0, 1.6, 2.2]), made.gain.reshape(lists, SIZE)).astype(float)
    return corpus(made.values.reshape(lists, SIZE, 8), made.base.reshape(level.shape), level)


def together(rng: np.random.Generator, lists: int) -> Corpus:
    """Two columns that matter only together, by their product, among six."""
    columns = rng.normal(size=(lists, SIZE, 6))
    odds = 2.0 * columns[:, :, 0] * columns[:, :, 1] + 0.6 * columns[:, :, 2] - 1.0
    right = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
    return corpus(columns, rng.normal(size=right.shape) + 0.4 * right, right)


def good_base(rng: np.random.Generator, lists: int) -> Corpus:
    """The base says all that can be known, and thirty columns nothing."""
    right = right_of(rng, lists)
    return corpus(rng.normal(size=(lists, SIZE, 30)), rng.normal(size=right.shape) + 1.5 * right, right)


def words(rng: np.random.Generator, lists: int) -> Corpus:
    """Five columns, and words that say nothing, as those of titles among few queries."""
    right = right_of(rng, lists)
    columns = rng.normal(size=(lists, SIZE, 5)) + 0.5 * right[:, :, None]
    named = np.sort(rng.integers(WORDS // 5, size=(lists, SIZE, 5)) * 5 + np.arange(5), axis=2)
    return corpus(columns, rng.normal(size=right.shape) + 0.4 * right, right, named)


SETS: dict[str, Callable[[np.random.Generator, int], Corpus]] = {
    made.__name__.replace("_", " "): made
    for made in (one_column, many_columns, shared_noise, levels, votes, quality, grades, together, good_base, words)
}
