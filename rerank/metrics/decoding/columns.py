"""The features of every bracket of a list's union before it is judged: numbers, and symbols around it."""

from typing import NamedTuple

import numpy as np

from rerank.base.interrupts import pieces
from rerank.kernels.compile import kernel
from rerank.metrics.decoding.bracket_kernel import UNSEEN, Brackets, Kin, crossing, read_kin
from rerank.metrics.decoding.fusion import Fusion

FAR = 20.0  # of margins, in deviations: none is larger
HAS, CROSSES, RELABELS = 1, 2, 3  # what a tree does to a bracket


class BracketVotes(NamedTuple):
    """For each of B brackets, what T candidates have in its place."""

    times: np.ndarray  # float64 [B]: how many have it; as all others, zeros at first
    best: np.ndarray  # float64 [B]: the best score of those
    margin: np.ndarray  # float64 [B]: by how much that is better than the best of the others
    crossed: np.ndarray  # float64 [2, B]: the weight of those with a bracket that crosses it, by two weightings
    relabelled: np.ndarray  # float64 [2, B]: of those that have another over its words, and not it
    most_crossed: np.ndarray  # float64 [B]: the weight of the heaviest bracket that crosses it
    most_relabelled: np.ndarray  # float64 [B]: and of another over its words

    @classmethod
    def empty(cls, B: int) -> "BracketVotes":
        """Before any candidate has been counted."""
        one, two = np.zeros((5, B)), np.zeros((2, 2, B))
        return cls(one[0], one[1], one[2], two[0], two[1], one[3], one[4])


@kernel
def _done_to(found: Brackets, t: int, b: int) -> int:
    """The effect of tree t on bracket b: HAS, CROSSES or RELABELS it; 0 for none of these."""
    relabels = 0
    for i in range(found.first[t], found.first[t + 1]):
        other = found.bracket[i]
        if other == b:
            return HAS
        if crossing(found, b, other):
            return CROSSES
        if found.start[b] == found.start[other] and found.end[b] == found.end[other]:
            relabels = RELABELS
    return relabels


@kernel
def count_votes(found: Brackets, order: np.ndarray, scores: np.ndarray, lead: np.ndarray, out: BracketVotes) -> None:
    """Fill times, best and margin of ``out`` from candidates in the ``order`` of their scores; lead: zeros, scratch."""
    for rank in range(order.shape[0]):
        t = order[rank]
        for i in range(found.first[t], found.first[t + 1]):
            b = found.bracket[i]
            if out.times[b] == 0:
                out.best[b] = scores[t]
            out.times[b] += 1
            lead[b] += lead[b] == rank
    for b in range(lead.shape[0]):
        out.margin[b] = FAR
        if lead[b] < order.shape[0]:
            out.margin[b] = max(-FAR, min(FAR, out.best[b] - scores[order[lead[b]]]))


@kernel
def weigh_rivals(
    found: Brackets, order: np.ndarray, weights: np.ndarray, total: np.ndarray, first: int, last: int, out: BracketVotes
) -> None:
    """Fill the rest of ``out`` for brackets first..last - 1; total: the weights of all by the first weighting."""
    for rank in range(order.shape[0]):
        t = order[rank]
        for b in range(first, last):
            done = _done_to(found, t, b)
            for k in range(weights.shape[0]):
                if done == CROSSES:
                    out.crossed[k, b] += weights[k, t]
                elif done == RELABELS:
                    out.relabelled[k, b] += weights[k, t]
    for b in range(first, last):
        for other in range(total.shape[0]):
            if crossing(found, b, other):
                out.most_crossed[b] = max(out.most_crossed[b], total[other])
            elif other != b and found.start[b] == found.start[other] and found.end[b] == found.end[other]:
                out.most_relabelled[b] = max(out.most_relabelled[b], total[other])


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
    brackets, used, W = fusion.brackets, fusion.used, fusion.words.size
    B, n = brackets.label.size, int(np.count_nonzero(used))
    weights = np.vstack([_softmax(scores, used, sharpness * SCALES), _softmax(base, used, np.ones(1))])
    total = fusion.weights(weights)
    order = np.argsort(np.where(used, -scores, np.inf), kind="stable")[:n]
    votes, both = BracketVotes.empty(B), weights[[OWN, BASE]]
    count_votes(brackets, order, scores, np.zeros(B, np.int64), votes)
    for first, last in pieces(B, brackets.bracket.size + B):
        weigh_rivals(brackets, order, both, total[OWN], first, last, votes)
    kin = Kin(*np.full((len(Kin._fields), B), UNSEEN, np.int32))
    read_kin(brackets, order, np.ascontiguousarray(fusion.tags.T), np.empty(brackets.bracket.size, np.int32), kin)
    weight, places = weights[OWN], (brackets.end - brackets.start, np.full(B, W), brackets.start, np.full(B, n))
    entropy = np.full(B, -float((weight * np.log(np.where(weight > 0, weight, 1.0))).sum()))
    share = _log_odds(votes.times / n, 0.5 / n)
    masses = *votes.crossed, *votes.relabelled, votes.most_crossed, votes.most_relabelled
    numbers = (*_log_odds(total, LEAST), share, votes.margin, *masses, *places, entropy, kin.children)
    tags, words = fusion.tags[:, order[0]], fusion.symbols.lower[fusion.words]
    symbols = (brackets.label, *kin[:-1], *_at_edges(brackets, tags), *_at_edges(brackets, words))
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
    arrays = (getattr(fusion.brackets, name).tolist() for name in ("label", "start", "end", "copy"))
    return list(zip(*arrays, strict=True))


def _softmax(scores: np.ndarray, used: np.ndarray, sharpness: np.ndarray) -> np.ndarray:
    """float64 [A, T]: probabilities of the candidates that are used, 0 for the others."""
    taken = np.where(used, scores, -np.inf)
    raised = np.exp(sharpness[:, None] * (taken - taken.max()))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _log_odds(p: np.ndarray, least: float) -> np.ndarray:
    p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p / (1 - p)))
