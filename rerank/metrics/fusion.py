"""The brackets of a list's trees: how many any two share, and one tree of many, of the brackets that enough have.

Sagae & Lavie (2006) and Choe, McClosky & Charniak (2015): a bracket is kept if the trees that have it weigh more than a
threshold of one half or more. Any two such brackets are in one tree together, so that no two cross and the outcome is
a tree, though perhaps none of the list.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rerank.base.interrupts import check
from rerank.data.symbols import SymbolTable
from rerank.data.trees import FOREST, Trees
from rerank.kernels.compile import kernel
from rerank.metrics.parseval import EMPTY_TAG
from rerank.readers.lists import ROOTS

ROUNDING = 1e-9  # of a weight: the brackets kept have this much more than the threshold, so that no two can cross


def probabilities(scores: np.ndarray, sharpness: np.ndarray, deviation: float = 1.0) -> np.ndarray:
    """float64 [A, N]: p(y) ∝ exp(a · s(y)/σ) for scores float64 [N] and A values of a (float64 [A])."""
    powers = np.exp(sharpness[:, None] * ((scores - scores.max()) / deviation))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


class Brackets(NamedTuple):
    """B different brackets and which every tree has, in preorder: those of tree t are bracket[first[t]:first[t + 1]].

    A bracket that a tree repeats is another one; ``copy`` is how many equal ones are above it.
    """

    first: np.ndarray  # int64 [T + 1]
    bracket: np.ndarray  # int32 [n]
    label: np.ndarray  # int32 [B], as are the next three
    start: np.ndarray
    end: np.ndarray
    copy: np.ndarray

    @property
    def incidence(self) -> np.ndarray:
        """bool [T, B]: which brackets each tree has."""
        incidence = np.zeros((self.first.size - 1, self.label.size), np.bool_)
        incidence[np.repeat(np.arange(len(incidence)), np.diff(self.first)), self.bracket] = True
        return incidence


def number_brackets(first: np.ndarray, spans: np.ndarray) -> Brackets:
    """Brackets (int64 [3, n]: label, start, end), those of tree t at first[t]:first[t + 1], numbered in the order in
    which they are first met."""
    n, T, (label, start, end) = spans.shape[1], first.size - 1, spans
    span = np.unique(start * (end.max(initial=0) + 1) + end, return_inverse=True)[1]
    kind = np.unique(label * (n + 1) + span, return_inverse=True)[1]
    by_tree = kind * T + np.repeat(np.arange(T), np.diff(first))
    order, copy = np.argsort(by_tree, kind="stable"), np.empty(n, np.int64)
    copy[order] = np.arange(n) - np.searchsorted(by_tree[order], by_tree[order])
    _, met, number = np.unique(kind * (n + 1) + copy, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(met))
    met.sort()
    return Brackets(first, *(column.astype(np.int32) for column in (rank[number], *spans[:, met], copy[met])))


def crossing(union: Brackets, indices: np.ndarray) -> np.ndarray:
    """bool [n, B]: which brackets share words with each at ``indices`` (int [n]), though neither holds the other."""
    start, end = union.start[indices][:, None], union.end[indices][:, None]
    starts_within, ends_within = (start < union.start) & (union.start < end), (start < union.end) & (union.end < end)
    return np.asarray((starts_within & (end < union.end)) | (ends_within & (union.start < start)))


@kernel
def _heaviest(labels: np.ndarray, used: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> int:
    """The first of those ``used`` whose label has the most weight; ``sums`` (float64 [T]) is scratch."""
    best = -1
    for t in range(labels.shape[0]):
        if used[t]:
            same = 0
            while not used[same] or labels[same] != labels[t]:
                same += 1
            sums[t] = 0.0
            sums[same] += weights[t]
    for t in range(labels.shape[0]):
        if used[t] and (best < 0 or sums[t] > sums[best] + ROUNDING):
            best = t
    return best


@kernel
def _above(union: Brackets, weights: np.ndarray, upper: int, lower: int) -> float:
    """The weight of trees that have bracket ``upper`` above ``lower``, less that of those with it below."""
    total = 0.0
    for t in range(weights.shape[0]):
        previous = -1
        for i in range(union.first[t], union.first[t + 1]):
            if union.bracket[i] == upper or union.bracket[i] == lower:
                if previous >= 0:
                    total += weights[t] if previous == upper else -weights[t]
                previous = union.bracket[i]
    return total


@kernel
def _choose(
    union: Brackets, order: np.ndarray, total: np.ndarray, weights: np.ndarray, threshold: float, tree: np.ndarray
) -> int:
    """Brackets of more weight than ``threshold`` in preorder → ``tree``; of equal spans first what is above in most."""
    count = 0
    for i in range(order.shape[0]):
        b = order[i]
        if not total[b] > threshold + ROUNDING:
            continue
        at = count
        while at > 0 and union.start[tree[at - 1]] == union.start[b] and union.end[tree[at - 1]] == union.end[b]:
            if not _above(union, weights, b, tree[at - 1]) > ROUNDING:
                break
            tree[at] = tree[at - 1]
            at -= 1
        tree[at] = b
        count += 1
    return count


@kernel
def _open(out: Trees, node: int, parent: int, label: int, start: int) -> None:
    """Begin a node of a tree."""
    out.label[node], out.word[node], out.parent[node], out.start[node] = label, -1, parent, start


@kernel
def _whole(union: Brackets, total: np.ndarray, words: int) -> int:
    """The label of the heaviest bracket over all words, the first of equal ones; -1 if there is none."""
    best = -1
    for b in range(total.shape[0]):
        if union.start[b] == 0 and union.end[b] == words and (best < 0 or total[b] > total[best] + ROUNDING):
            best = b
    return -1 if best < 0 else int(union.label[best])


@kernel
def _build(
    union: Brackets, tree: np.ndarray, count: int, root: int, tags: np.ndarray, words: np.ndarray, node: int, out: Trees
) -> int:
    """Write the tree of ``count`` brackets in preorder from ``node`` on; returns the node after it."""
    W, current, b = words.shape[0], -1, 0
    if root >= 0:
        _open(out, node, -1, root, 0)
        out.end[node] = W
        current, node = node, node + 1
    for w in range(W):
        while b < count and union.start[tree[b]] == w:
            _open(out, node, current, union.label[tree[b]], w)
            out.end[node] = union.end[tree[b]]
            current, node, b = node, node + 1, b + 1
        _open(out, node, current, tags[w], w)
        out.word[node], out.end[node], out.size[node] = words[w], w + 1, 1
        node += 1
        while current >= 0 and out.end[current] == w + 1:
            out.size[current] = node - current
            current = out.parent[current]
    return node


@kernel
def _fuse_trees(
    union: Brackets, order: np.ndarray, used: np.ndarray, roots: np.ndarray, tags: np.ndarray, words: np.ndarray,
    weights: np.ndarray, total: np.ndarray, thresholds: np.ndarray, sums: np.ndarray, word_tags: np.ndarray,
    tree: np.ndarray, out: Trees,
) -> None:  # fmt: skip
    """A tree for each of A weightings (float64 [A, T]) and each of H thresholds: A · H trees → ``out``.

    order: int64 [B], brackets by start and falling end; roots: int32 [T], the label of every tree's root if it is no
    bracket, else -1; tags: int32 [W, T]; words: int32 [W]; total: float64 [A, B], the weight of every bracket; sums
    (float64 [T]), word_tags (int32 [W]) and tree (int32 [B]) are scratch.
    """
    node, W = 0, words.shape[0]
    for a in range(weights.shape[0]):
        for w in range(W):
            word_tags[w] = tags[w, _heaviest(tags[w], used, weights[a], sums)]
        root = roots[_heaviest(roots, used, weights[a], sums)]
        for h in range(thresholds.shape[0]):
            out.first[a * thresholds.shape[0] + h] = node
            count = _choose(union, order, total[a], weights[a], thresholds[h], tree)
            top = root
            if top < 0 and not (count and union.start[tree[0]] == 0 and union.end[tree[0]] == W):
                top = _whole(union, total[a], W)
            node = _build(union, tree, count, top, word_tags, words, node, out)
    out.first[weights.shape[0] * thresholds.shape[0]] = node


class VotedBracket(NamedTuple):
    """A bracket, the weight behind it, and which candidates have it (places in the list)."""

    label: str
    start: int  # its first word, from 0
    end: int  # one past its last
    weight: float
    candidates: list[int]

    def as_object(self) -> dict[str, Any]:
        """The bracket as commands show it: words and candidates counted from 1."""
        words = {"first_word": self.start + 1, "last_word": self.end}
        votes = {"probability": self.weight, "candidates": [y + 1 for y in self.candidates]}
        return {"label": self.label} | words | votes


class Fusion:
    """The trees of a list (T candidates) for fusion.

    Traces are left out. A candidate with other words than the first that has any, such as a failed parse, does not take
    part: ``left_out`` says how many do not, ``used`` (bool [T]) which do. Of W words (``words``, int32 [W]), ``tags``
    (int32 [W, T]) has the symbols of their tags.
    """

    def __init__(self, trees: Trees, symbols: SymbolTable) -> None:
        self._trees, self.symbols = trees, symbols
        self._words = np.flatnonzero((trees.word >= 0) & (trees.label != symbols.intern(EMPTY_TAG)))
        self._bounds = np.searchsorted(self._words, trees.first)  # of the words of each tree
        # Symbols as they are: labels of roots are no brackets.
        self._is_root = np.isin(trees.label, [symbols.intern(text) for text in (FOREST, *ROOTS)]) & (trees.word < 0)
        counts, T = np.diff(self._bounds), trees.first.size - 1
        W = int(next(filter(None, counts), 0))
        alike = np.flatnonzero(counts == W) if W else np.zeros(0, np.int64)
        leaves = self._words[self._bounds[alike, None] + np.arange(W)]
        self.words = trees.word[leaves[0]] if W else np.zeros(0, np.int32)
        self.used, self.tags = np.zeros(T, np.bool_), np.zeros((W, T), np.int32)
        self.used[alike] = (trees.word[leaves] == self.words).all(axis=1)
        self.tags[:, alike] = trees.label[leaves].T
        top = trees.first[:-1]
        self._roots = np.where(self._is_root[top], trees.label[top], -1).astype(np.int32)

    @property
    def left_out(self) -> int:
        """The number of candidates with other words, or none."""
        return int(self.used.size - np.count_nonzero(self.used))

    @cached_property
    def brackets(self) -> Brackets:
        """The trees' B brackets, over words that are no traces."""
        trees = self._trees
        nodes = np.flatnonzero((trees.word < 0) & ~self._is_root)
        owner = np.searchsorted(trees.first, nodes, side="right") - 1
        spans = np.searchsorted(self._words, [nodes, nodes + trees.size[nodes]]) - self._bounds[owner]
        mask = self.used[owner] & (spans[0] < spans[1])
        first = np.searchsorted(nodes[mask], trees.first)
        return number_brackets(first, np.stack([trees.label[nodes], *spans])[:, mask])

    def index_of(self, tree: Trees, scores: np.ndarray) -> int | None:
        """The candidate that a fused tree is, of equal ones the one with the best score (float64 [T]); None: none."""
        n, first = tree.label.size, self._trees.first
        alike = np.flatnonzero(np.diff(first) == n)
        nodes = first[alike, None] + np.arange(n)
        for name in ("label", "word", "size"):
            same = (getattr(self._trees, name)[nodes] == getattr(tree, name)).all(axis=1)
            alike, nodes = alike[same], nodes[same]
        return int(alike[np.argmax(scores[alike])]) if alike.size else None

    def weights(self, weights: np.ndarray) -> np.ndarray:
        """float64 [A, B]: the weight of every bracket under weights (float64 [A, T]) of the candidates."""
        brackets, sizes = self.brackets, np.diff(self.brackets.first)
        B = brackets.label.size
        return np.stack([np.bincount(brackets.bracket, np.repeat(row, sizes), B) for row in weights])

    def normalise(self, weights: np.ndarray) -> np.ndarray:
        """float64 [A, T]: weights of the candidates that take part, with sum 1; 0 for the others."""
        weights = np.where(self.used, weights, 0.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def trees(self, weights: np.ndarray, thresholds: np.ndarray, chances: np.ndarray | None = None) -> Trees:
        """The A · H trees of A weightings (float64 [A, T], any positive sum) and H thresholds, in this order; some
        candidate is ``used``. A threshold is one half or more unless there are ``chances``, and below 1.

        chances: the probabilities of all brackets (float64 [A, B]), in place of the weight of the trees that have them.
        As two that cross can both be probable, the more probable stays, whatever the threshold.
        """
        weights, brackets = self.normalise(weights), self.brackets
        total = self.weights(weights) if chances is None else np.stack([self.without_crossing(row) for row in chances])
        W, B, number = self.words.size, brackets.label.size, weights.shape[0] * thresholds.size
        longest = int(np.diff(brackets.first).max(initial=0))
        most = min(B, 2 * longest) if chances is None else B  # of kept brackets, twice the mean of a tree at most
        room = number * (W + 1 + most)
        out = Trees(np.zeros(number + 1, np.int64), *(np.empty(room, np.int32) for _ in range(6)))
        order = np.lexsort((-brackets.end, brackets.start))
        scratch = np.empty(self.used.size), np.empty(W, np.int32), np.empty(B, np.int32)
        _fuse_trees(
            brackets, order, self.used, self._roots, self.tags, self.words, weights, total, thresholds, *scratch, out
        )
        return Trees(out.first, *(array[: out.first[-1]] for array in out[1:]))

    def nearest(self, chances: np.ndarray, threshold: float, scores: np.ndarray) -> tuple[int, float]:
        """The candidate whose brackets are worth most, of equal ones that with the best score (float64 [T]), and how
        much more, from 0, those of the tree are worth that is fused of brackets above the ``threshold``.

        A bracket is worth its probability (float64 [B]) less the threshold: what it adds to the matches that are
        expected, less what another bracket costs.
        """
        free, brackets = self.without_crossing(chances), self.brackets
        owner = np.repeat(np.arange(self.used.size), np.diff(brackets.first))
        worth = np.bincount(owner, chances[brackets.bracket] - threshold, self.used.size)
        best = np.lexsort((-scores, np.where(self.used, -worth, np.inf)))[0]
        return int(best), max(0.0, float(np.maximum(free - threshold, 0.0).sum() - worth[best]))

    def without_crossing(self, chances: np.ndarray) -> np.ndarray:
        """Probabilities of brackets (float64 [B]), 0 for those that cross a more probable one that stays."""
        total, losers = np.array(chances), np.zeros(chances.size, np.bool_)
        for b in np.argsort(-total, kind="stable"):
            if losers[b]:
                total[b] = 0.0
            else:
                check()
                losers |= crossing(self.brackets, b[None])[0]
        return total

    def votes(self, weights: np.ndarray, chances: np.ndarray | None = None) -> list[VotedBracket]:
        """Every bracket with the candidates that have it, the heaviest first; ``weights``: float64 [T].

        chances: probabilities of the brackets (float64 [B]) in place of weights.
        """
        brackets, shares = self.brackets, self.normalise(weights[None])
        total = self.weights(shares)[0] if chances is None else chances
        columns = (array.tolist() for array in (brackets.label, brackets.start, brackets.end, total))
        votes = [
            VotedBracket(self.symbols.text(label), start, end, weight, np.flatnonzero(owned).tolist())
            for label, start, end, weight, owned in zip(*columns, brackets.incidence.T, strict=True)
        ]
        return sorted(votes, key=lambda vote: (-vote.weight, vote.start, -vote.end, vote.label))
