"""What is known of every bracket of a list's union before it is judged: numbers, and symbols around it."""

from typing import NamedTuple

import numpy as np

from rerank.base.interrupts import pieces
from rerank.metrics.decoding.bracket_kernel import Brackets
from rerank.metrics.decoding.column_kernel import BracketVotes, count_votes, weigh_rivals
from rerank.metrics.decoding.fusion import Fusion
from rerank.metrics.decoding.kin_kernel import UNSEEN, Kin, read_kin

SYMBOLS = (
    "label", "parent", "grandparent", "sibling before", "sibling after", "first child", "last child",
    "first tag", "last tag", "tag before", "tag after", "first word", "last word", "word before", "word after",
)  # fmt: skip
ASCENDING = ("log-odds, flat", "log-odds", "log-odds, sharp", "base log-odds", "share log-odds", "margin")
NUMBERS = (
    *ASCENDING, "crossed", "crossed by base", "relabelled", "relabelled by base", "most crossed", "most relabelled",
    "size", "words", "start", "candidates", "entropy", "children",
)  # fmt: skip
SCALES = np.array([0.5, 1.0, 2.5])  # of the sharpness
OWN, BASE = 1, 3  # rows of the weights: those at the sharpness itself, those of the base scores
LEAST = 1e-6  # log-odds are those of at least this probability, and of at most 1 minus it


class BracketColumns(NamedTuple):
    """The brackets of a list in the order of ``Fusion.brackets``: what candidates have in their place."""

    numbers: np.ndarray  # float64 [B, NUMBERS]
    symbols: np.ndarray  # int32 [B, SYMBOLS]: symbol ids, -1 for none


def bracket_columns(fusion: Fusion, scores: np.ndarray, base: np.ndarray, sharpness: float) -> BracketColumns:
    """The columns of a list's brackets, from scores and base scores (float64 [T]) in units of their deviations.

    At least one candidate takes part in fusion.
    """
    found, used, W = fusion.brackets, fusion.used, fusion.words.size
    B, n = found.label.size, int(np.count_nonzero(used))
    weights = np.vstack([_softmax(scores, used, sharpness * SCALES), _softmax(base, used, np.ones(1))])
    total = fusion.weights(weights)
    order = np.argsort(np.where(used, -scores, np.inf), kind="stable")[:n]
    votes, both = BracketVotes.empty(B), weights[[OWN, BASE]]
    count_votes(found, order, scores, np.zeros(B, np.int64), votes)
    for first, last in pieces(B, found.bracket.size + B):
        weigh_rivals(found, order, both, total[OWN], first, last, votes)
    kin = Kin(*np.full((len(Kin._fields), B), UNSEEN, np.int32))
    read_kin(found, order, np.ascontiguousarray(fusion.tags.T), np.empty(found.bracket.size, np.int32), kin)
    own, places = weights[OWN], (found.end - found.start, np.full(B, W), found.start, np.full(B, n))
    entropy = np.full(B, -float((own * np.log(np.where(own > 0, own, 1.0))).sum()))
    share = _log_odds(votes.times / n, 0.5 / n)
    masses = *votes.crossed, *votes.relabelled, votes.most_crossed, votes.most_relabelled
    numbers = (*_log_odds(total, LEAST), share, votes.margin, *masses, *places, entropy, kin.children)
    tags, words = fusion.tags[:, order[0]], fusion.symbols.lower[fusion.words]
    symbols = (found.label, *kin[:-1], *_at_edges(found, tags), *_at_edges(found, words))
    return BracketColumns(np.stack(numbers, axis=1).astype(np.float64), np.stack(symbols, axis=1))


def _at_edges(found: Brackets, symbols: np.ndarray) -> tuple[np.ndarray, ...]:
    """int32 [B] each: of symbols of words, those of each bracket's first and last, and of those before and after."""
    every = np.concatenate([[-1], symbols, [-1]]).astype(np.int32)
    return every[found.start + 1], every[found.end], every[found.start], every[found.end + 1]


def right_brackets(fusion: Fusion, gold: Fusion) -> np.ndarray:
    """bool [B]: which brackets the gold tree has."""
    golds = set(_keys(gold))
    return np.array([key in golds for key in _keys(fusion)], np.bool_)


def _keys(fusion: Fusion) -> list[tuple[int, ...]]:
    found = fusion.brackets
    return list(zip(*(array.tolist() for array in (found.label, found.start, found.end, found.copy)), strict=True))


def _softmax(scores: np.ndarray, used: np.ndarray, sharpness: np.ndarray) -> np.ndarray:
    """float64 [A, T]: probabilities of the candidates that are used, 0 for the others."""
    own = np.where(used, scores, -np.inf)
    raised = np.exp(sharpness[:, None] * (own - own.max()))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _log_odds(p: np.ndarray, least: float) -> np.ndarray:
    p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p / (1 - p)))
