"""Exact voting without a weight vector per predictor: replay the updates on the candidates that own their columns.

Under predictor k a candidate scores −(U − k·λ₁·V)·d_k + β_k·b, with U = Σ φ_j s_j and V = Σ φ_j sign(s_j) over the
columns whose |s_j| exceeds k·λ₁. An update touches, through an inverted index, only candidates that own one of its
columns; a column falls out of the sums at the first k with k·λ₁ ≥ |s_j|. The perceptron is the case λ₁ = 0, d_k = 1.
"""

from __future__ import annotations

import math

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.base import VotingRule
from rerank.learn.log import Votes


@kernel
def invert(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, first: np.ndarray, owner: np.ndarray, value: np.ndarray
) -> None:
    """Inverted index: the candidates that own column j, and their values, at first[j]..first[j + 1]."""
    for p in range(columns.shape[0]):
        first[columns[p] + 1] += 1
    for j in range(first.shape[0] - 1):
        first[j + 1] += first[j]
    for y in range(rows.shape[0] - 1):
        for p in range(rows[y], rows[y + 1]):
            j = columns[p]
            owner[first[j]], value[first[j]] = y, values[p]
            first[j] += 1
    for j in range(first.shape[0] - 1, 0, -1):
        first[j] = first[j - 1]
    first[0] = 0


@kernel
def add_column(
    first: np.ndarray, owner: np.ndarray, value: np.ndarray, j: int, u: float, v: float, U: np.ndarray, V: np.ndarray
) -> None:
    """U += u·φ_j and V += v·φ_j on all candidates that own column j."""
    for e in range(first[j], first[j + 1]):
        U[owner[e]] += u * value[e]
        V[owner[e]] += v * value[e]


@kernel
def replay(
    lists: np.ndarray,
    base: np.ndarray,
    index_first: np.ndarray,
    owner: np.ndarray,
    value: np.ndarray,
    first: np.ndarray,
    columns: np.ndarray,
    delta: np.ndarray,
    delta_base: np.ndarray,
    survived: np.ndarray,
    rule: VotingRule,
    s: np.ndarray,
    leaves: np.ndarray,
    bucket: np.ndarray,
    following: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
    votes: np.ndarray,
) -> None:
    """All predictors in turn: apply update k, drop the columns that fall out, count c_k for every list's winner.

    ``leaves`` (int64 [D], 0): the k at which an active column falls out; ``bucket`` (int64 [M + 2], −1) and
    ``following`` (int64 [entries]) queue the updates' entries by that k.
    """
    M = first.shape[0] - 1
    s_base = 0.0
    for k in range(M + 1):
        threshold = k * rule.l1
        if k > 0:
            s_base += delta_base[k - 1]
            for e in range(first[k - 1], first[k]):
                j = columns[e]
                old = s[j]
                s[j] += delta[e]
                if leaves[j] >= k:
                    add_column(index_first, owner, value, j, -old, -math.copysign(1.0, old), U, V)
                leaves[j] = 0
                size = abs(s[j])
                if size > threshold:
                    add_column(index_first, owner, value, j, s[j], math.copysign(1.0, s[j]), U, V)
                    leaves[j] = M + 1
                    if rule.l1 > 0.0 and (M + 1) * rule.l1 >= size:
                        leaves[j] = max(k + 1, math.ceil(size / rule.l1))
                        following[e] = bucket[leaves[j]]
                        bucket[leaves[j]] = e
            e = bucket[k]
            while e >= 0:
                j = columns[e]
                if leaves[j] == k:
                    add_column(index_first, owner, value, j, -s[j], -math.copysign(1.0, s[j]), U, V)
                    leaves[j] = 0
                e = following[e]
        d = rule_scale(rule, k, rule.l2)
        beta = rule.base - rule.base_rate * rule_scale(rule, k, 0.0) * s_base
        if survived[k] > 0:
            count_votes(lists, base, U, V, threshold, d, beta, survived[k], votes)


@kernel
def rule_scale(rule: VotingRule, k: int, l2: float) -> float:
    """d_k: 1 for the perceptron, 1/(k·λ₂ + η√k) for dual averaging."""
    if rule.eta == 0.0:
        return 1.0
    return 1.0 / (k * l2 + rule.eta * math.sqrt(k)) if k > 0 else 0.0


@kernel
def count_votes(
    lists: np.ndarray,
    base: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
    threshold: float,
    d: float,
    beta: float,
    c: int,
    votes: np.ndarray,
) -> None:
    """Give c votes to the winner of every list; ties to the higher base score, then the lower index."""
    for i in range(lists.shape[0] - 1):
        winner, top = -1, 0.0
        for y in range(lists[i], lists[i + 1]):
            score = beta * base[y] - d * (U[y] - threshold * V[y])
            if winner < 0 or score > top or (score == top and base[y] > base[winner]):
                winner, top = y, score
        if winner >= 0:
            votes[winner] += c


def vote(votes: Votes, rule: VotingRule, corpus: Corpus) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k]."""
    D, M, N = corpus.width, votes.survived.size - 1, corpus.candidate_count
    index_first = np.zeros(D + 1, np.int64)
    owner, value = np.empty(corpus.nonzeros, np.int32), np.empty(corpus.nonzeros, np.float32)
    invert(corpus.rows, corpus.columns, corpus.values, index_first, owner, value)
    counted = np.zeros(N)
    replay(
        corpus.lists,
        corpus.base,
        index_first,
        owner,
        value,
        votes.first,
        votes.columns,
        votes.delta,
        votes.base,
        votes.survived,
        rule,
        np.zeros(D),
        np.zeros(D, np.int64),
        np.full(M + 2, -1, np.int64),
        np.empty(votes.columns.size, np.int64),
        np.zeros(N),
        np.zeros(N),
        counted,
    )
    return counted
