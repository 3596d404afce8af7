"""How probable a bracket of a list's union is: its features, numbers and the symbols around it, and boosted trees that
judge it by these, fitted by scikit-learn and kept as plain arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import RecipeError
from rerank.base.interrupts import pieces
from rerank.data.symbols import SymbolTable
from rerank.kernels.compile import kernel
from rerank.metrics.fusion import Brackets, Fusion, crossing, probabilities

MAX_MARGIN = 20.0  # in deviations
NONE, UNSEEN = -1, -2  # among the symbols around a bracket
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
MIN_PROBABILITY = 1e-6  # log-odds are those of at least this, and of at most 1 minus it


# 9,300 numbers in all: a value for every leaf, a threshold for every other node. The best on dev are hardly better.
TREES, LEAVES, RATE = 300, 16, 0.08
MIN_LEAF, SHRINKAGE = 40, 1.0  # brackets at a leaf; the penalty of a leaf's value
OTHER, UNKNOWN = 40, 63  # codes: of a symbol that is not among the 40 most frequent of its column, of one never seen
EXTRA = "pip install 'rerank-nbest[estimators]'"
DTYPES = {
    "baseline": "<f8", "first": "<i8", "feature": "<i4", "threshold": "<f8", "members": "<u8", "child": "<i4",
    "value": "<f8", "names": "|u1", "codes": "<i4", "deviation": "<f8",
}  # fmt: skip


class Kin(NamedTuple):
    """For each of B brackets, the symbols (int32 [B], UNSEEN at first) of what is around it in a tree: labels of
    brackets, tags of words that no smaller bracket holds, NONE where there is nothing."""

    parent: np.ndarray
    grandparent: np.ndarray
    before: np.ndarray  # the child of its parent that ends where it begins
    after: np.ndarray  # and the one that begins where it ends
    first: np.ndarray  # its own first child
    last: np.ndarray
    children: np.ndarray  # how many it has


@kernel
def _read_children(union: Brackets, own: int, i: int, stop: int, tags: np.ndarray, above: np.ndarray, out: Kin) -> None:
    """Write the children of bracket ``own`` (-1: the tree) that are new; union.bracket[i:stop] come after it."""
    label_above, higher = NONE, NONE
    word, end = np.int64(0), np.int64(tags.shape[0])
    if own >= 0:
        label_above, higher = union.label[own], above[i - 1]
        word, end = np.int64(union.start[own]), np.int64(union.end[own])
    fresh = own >= 0 and out.children[own] == UNSEEN
    count, symbol, waiting = 0, np.int32(NONE), -1
    while word < end:
        child, before = -1, symbol
        if i < stop and union.start[union.bracket[i]] == word:
            child = union.bracket[i]
            above[i] = label_above
            symbol, word = union.label[child], np.int64(union.end[child])
            while i < stop and union.start[union.bracket[i]] < word:
                i += 1
        else:
            symbol = tags[word]
            word += 1
        if waiting >= 0:
            out.after[waiting] = symbol
        waiting = -1
        if child >= 0 and out.parent[child] == UNSEEN:
            out.parent[child], out.grandparent[child] = label_above, higher
            out.before[child], out.after[child] = before, NONE
            waiting = child
        if fresh and count == 0:
            out.first[own] = symbol
        count += 1
    if fresh:
        out.last[own], out.children[own] = symbol, count


@kernel
def read_kin(union: Brackets, order: np.ndarray, tags: np.ndarray, above: np.ndarray, out: Kin) -> None:
    """Fill ``out`` from candidates in the ``order`` in which they count; above: as long as ``union.bracket``."""
    for rank in range(order.shape[0]):
        t = order[rank]
        first, stop = union.first[t], union.first[t + 1]
        _read_children(union, -1, first, stop, tags[t], above, out)
        for i in range(first, stop):
            _read_children(union, union.bracket[i], i + 1, stop, tags[t], above, out)


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
    by_score, by_base = (np.where(used, of, -np.inf) for of in (scores, base))  # the others have the probability 0
    weights = np.vstack([probabilities(by_score, sharpness * SCALES), probabilities(by_base, np.ones(1))])
    total = fusion.weights(weights)
    order = np.argsort(np.where(used, -scores, np.inf), kind="stable")[:n]
    has, column = brackets.incidence[order], scores[order, None]
    best, rival = (np.where(those, column, -np.inf).max(axis=0) for those in (has, ~has))
    masses = _masses(brackets, has, weights[[OWN, BASE]][:, order], total[OWN])
    kin = Kin(*np.full((len(Kin._fields), B), UNSEEN, np.int32))
    read_kin(brackets, order, np.ascontiguousarray(fusion.tags.T), np.empty(brackets.bracket.size, np.int32), kin)
    weight, extents = weights[OWN], (brackets.end - brackets.start, np.full(B, W), brackets.start, np.full(B, n))
    entropy = np.full(B, -float((weight * np.log(np.where(weight > 0, weight, 1.0))).sum()))
    share, margin = _log_odds(has.sum(axis=0) / n, 0.5 / n), np.clip(best - rival, -MAX_MARGIN, MAX_MARGIN)
    numbers = (*_log_odds(total, MIN_PROBABILITY), share, margin, *masses, *extents, entropy, kin.children)
    tags, words = fusion.tags[:, order[0]], fusion.symbols.lower[fusion.words]
    symbols = (brackets.label, *kin[:-1], *_at_edges(brackets, tags), *_at_edges(brackets, words))
    return BracketColumns(np.stack(numbers, axis=1).astype(np.float64), np.stack(symbols, axis=1))


def _masses(union: Brackets, has: np.ndarray, weights: np.ndarray, total: np.ndarray) -> np.ndarray:
    """float64 [6, B]: by two weightings (float64 [2, n]) the weight of the trees with a bracket that crosses each, then
    of those with another over its words, and not it; then the ``total`` of the heaviest bracket of either kind.

    has: bool [n, B], which brackets each tree has.
    """
    n, B = has.shape
    masses, incidence = np.zeros((6, B)), has.astype(np.float32)
    for first, last in pieces(B, 4 * n * B):
        of = np.arange(first, last)
        crosses, same = crossing(union, of), of[:, None] != np.arange(B)
        same &= (union.start[of][:, None] == union.start) & (union.end[of][:, None] == union.end)
        relabel = (incidence @ same.T.astype(np.float32) > 0) & ~has[:, of]
        for k, (others, trees) in enumerate(((crosses, incidence @ crosses.T.astype(np.float32) > 0), (same, relabel))):
            # tree after tree, as ``sum`` would add up a single column in another order than many
            masses[2 * k : 2 * k + 2, of] = np.where(trees, weights[:, :, None], 0.0).cumsum(axis=1)[:, -1]
            masses[4 + k, of] = np.where(others, total, 0.0).max(axis=1)
    return masses


def _at_edges(union: Brackets, symbols: np.ndarray) -> tuple[np.ndarray, ...]:
    """int32 [B] each: of symbols of words, those of each bracket's first and last, and of those before and after."""
    every = np.concatenate([[-1], symbols, [-1]]).astype(np.int32)
    return every[union.start + 1], every[union.end], every[union.start], every[union.end + 1]


def right_brackets(fusion: Fusion, gold: Fusion) -> np.ndarray:
    """bool [B]: which brackets the gold tree has."""
    own, right = (map(tuple, np.stack(of.brackets[2:], axis=1).tolist()) for of in (fusion, gold))
    golds = set(right)
    return np.array([bracket in golds for bracket in own], np.bool_)


def _log_odds(p: np.ndarray, least: float) -> np.ndarray:
    p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p / (1 - p)))


class Arrays(NamedTuple):
    """K trees with the nodes of each after those of the last, its root first. Columns are codes of SYMBOLS, then
    NUMBERS.

    baseline: float64 [1], what a row has before any tree. first: int64 [K + 1]. feature: int32 [nodes], the column that
    is asked for, -1 at a leaf. threshold: float64 [nodes], members: uint64 [nodes], child: int32 [nodes, 2]: of a
    number, those up to the threshold go to the first child; of a code, those whose bit is set. value: float64 [nodes],
    of leaves. names: uint8, S symbols as UTF-8 with a line break after each; codes: int32 [S, SYMBOLS]. deviation:
    float64 [1], that of base scores.
    """

    baseline: np.ndarray
    first: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    members: np.ndarray
    child: np.ndarray
    value: np.ndarray
    names: np.ndarray
    codes: np.ndarray
    deviation: np.ndarray


@kernel
def add_leaves(trees: Arrays, rows: np.ndarray, total: np.ndarray) -> None:
    """Add to total (float64 [n]) the value of the leaf of every tree that a row (float64 [n, C]) comes to."""
    for k in range(trees.first.shape[0] - 1):
        for i in range(rows.shape[0]):
            node = trees.first[k]
            while trees.feature[node] >= 0:
                column = trees.feature[node]
                x = rows[i, column]
                if column < len(SYMBOLS):
                    to_left = (trees.members[node] >> np.uint64(x)) & np.uint64(1) == np.uint64(1)
                else:
                    to_left = x <= trees.threshold[node]
                node = trees.child[node, 0] if to_left else trees.child[node, 1]
            total[i] += trees.value[node]


@dataclass(frozen=True)
class BracketModel:
    """The probabilities of brackets of a list to be right."""

    arrays: Arrays

    @cached_property
    def _code_rows(self) -> dict[str, int]:
        """Rows of ``codes`` by symbol."""
        return {name: row for row, name in enumerate(decoded(self.arrays.names.tobytes()).split("\n")[:-1])}

    def judge(
        self, fusion: Fusion, scores: np.ndarray, base: np.ndarray, sharpness: np.ndarray, deviation: float
    ) -> np.ndarray:
        """float64 [A, B]: the probabilities of a list's brackets, for A values of a (float64 [A]), from scores, whose
        deviation is given, and base scores (float64 [T] each)."""
        scores, base = scores / deviation, base / self.arrays.deviation[0]
        columns = (bracket_columns(fusion, scores, base, float(a)) for a in sharpness)
        return np.stack([self.probabilities(each, fusion.symbols) for each in columns])

    def probabilities(self, columns: BracketColumns, symbols: SymbolTable) -> np.ndarray:
        """float64 [B]: the probabilities of brackets with these columns."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.log_odds(self.rows(columns, symbols)))))

    def log_odds(self, rows: np.ndarray) -> np.ndarray:
        """float64 [n]: their log-odds, from rows of codes and numbers (float64 [n, SYMBOLS + NUMBERS])."""
        total = np.full(rows.shape[0], self.arrays.baseline[0])
        add_leaves(self.arrays, rows, total)
        return total

    def rows(self, columns: BracketColumns, symbols: SymbolTable) -> np.ndarray:
        """Columns as rows of codes and numbers."""
        different, inverse = np.unique(columns.symbols, return_inverse=True)
        rows = [self._code_rows.get("" if one < 0 else symbols.text(one), -1) for one in different.tolist()]
        table = np.vstack([self.arrays.codes, np.full(len(SYMBOLS), UNKNOWN)])  # the last for -1
        codes = table[np.array(rows, np.int64)[inverse.reshape(columns.symbols.shape)], np.arange(len(SYMBOLS))]
        return np.ascontiguousarray(np.hstack([codes.astype(np.float64), columns.numbers]))

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> "BracketModel":
        """The model in these arrays."""
        if set(arrays) != set(Arrays._fields):
            raise ValueError(f"its brackets have {', '.join(sorted(arrays))}; expected {', '.join(Arrays._fields)}")
        for name, array in arrays.items():
            if array.dtype != np.dtype(DTYPES[name]) or (array.dtype.kind == "f" and not np.isfinite(array).all()):
                raise ValueError(f"brackets_{name}.npy: expected finite numbers of type {np.dtype(DTYPES[name])}")
        # copies, as kernels would be compiled again for arrays that are read-only
        copies = Arrays(**{name: np.array(array) for name, array in arrays.items()})
        nodes = copies.feature.size
        shapes = dict.fromkeys(("feature", "threshold", "members", "value"), (nodes,)) | {"child": (nodes, 2)}
        shapes |= {"baseline": (1,), "deviation": (1,), "first": (copies.first.size,), "names": (copies.names.size,)}
        shapes |= {"codes": (copies.names.tobytes().count(b"\n"), len(SYMBOLS))}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"brackets_{name}.npy: its shape is {arrays[name].shape}; expected {shape}")
        _check_nodes(copies)
        if not (copies.deviation > 0).all() or not ((copies.codes >= 0) & (copies.codes <= UNKNOWN)).all():
            raise ValueError("its brackets have a deviation that is not positive, or codes out of range")
        return BracketModel(copies)


def _check_nodes(trees: Arrays) -> None:
    """Check that every path ends at a leaf: children come after their node, in its tree."""
    sizes = np.diff(trees.first)
    if trees.first.size < 1 or trees.first[0] != 0 or trees.first[-1] != trees.feature.size or (sizes < 1).any():
        raise ValueError("brackets_first.npy does not divide the nodes into trees")
    inner = trees.feature >= 0
    end, after = np.repeat(trees.first[1:], sizes)[:, None], np.arange(trees.feature.size)[:, None]
    within = (trees.child > after) & (trees.child < end)
    if not within[inner].all() or not (trees.feature < len(SYMBOLS) + len(NUMBERS)).all():
        raise ValueError("brackets_child.npy or brackets_feature.npy lead out of a tree")


def fit(columns: BracketColumns, right: np.ndarray, symbols: SymbolTable, deviation: float) -> BracketModel:
    """A model of which brackets are ``right`` (bool [n]), of many lists; ``deviation`` is that of base scores.

    The trees ascend in what speaks for a bracket (``ASCENDING``). The same brackets give the same model.
    """
    classifier = require_classifier()
    from threadpoolctl import threadpool_limits  # of scikit-learn

    if np.unique(right).size < 2:
        message = f"found {right.size} brackets to learn from, all of them right or none; expected both"
        raise RecipeError(message, key="decode.kinds")
    names, codes = _codes(columns.symbols, symbols)
    nothing = dict.fromkeys(("baseline", "first", "feature", "threshold", "members", "child", "value"), np.zeros(0))
    vocabulary = {"names": names, "codes": codes, "deviation": np.array([deviation])}
    rows = BracketModel(Arrays(**nothing, **vocabulary)).rows(columns, symbols)
    booster = classifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, min_samples_leaf=MIN_LEAF, random_state=0,
        l2_regularization=SHRINKAGE, early_stopping=False, categorical_features=list(range(len(SYMBOLS))),
        monotonic_cst=[0] * len(SYMBOLS) + [int(name in ASCENDING) for name in NUMBERS],
    )  # fmt: skip
    with threadpool_limits(1, "openmp"):  # no sum depends on the number of threads; on a busy machine they only wait
        booster.fit(rows, right)
    counts = np.where(codes == UNKNOWN, -1, codes).max(axis=0) + 1
    return BracketModel(Arrays(**_tree_arrays(booster, counts.tolist()), **vocabulary))


def require_classifier() -> Any:
    """The class that boosts trees."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        message = f"learned fusion is trained by scikit-learn, which is not installed: {EXTRA}"
        raise RecipeError(message, key="decode.kinds") from None
    return HistGradientBoostingClassifier


def _codes(columns: np.ndarray, symbols: SymbolTable) -> tuple[np.ndarray, np.ndarray]:
    """The names and codes of ``Arrays``: of each column (int32 [n]), symbols by falling frequency."""
    texts = {one: "" if one < 0 else symbols.text(one) for one in np.unique(columns).tolist()}
    names = sorted(texts.values())
    rows, codes = {name: at for at, name in enumerate(names)}, np.full((len(names), len(SYMBOLS)), UNKNOWN, np.int32)
    for column in range(len(SYMBOLS)):
        different, times = np.unique(columns[:, column], return_counts=True)
        by_frequency = sorted(zip((-times).tolist(), (texts[one] for one in different.tolist()), strict=True))
        for rank, (_, name) in enumerate(by_frequency):
            codes[rows[name], column] = min(rank, OTHER)
    text = encoded("".join(f"{name}\n" for name in names))
    return np.frombuffer(text, np.uint8).copy(), codes


def _tree_arrays(booster: Any, counts: list[int]) -> dict[str, np.ndarray]:
    """The trees of a classifier that has seen the codes below ``counts``; others go where it sends what is missing."""
    predictors = [one for (one,) in booster._predictors]
    first = np.cumsum([0, *(one.nodes.size for one in predictors)], dtype=np.int64)
    nodes = np.concatenate([one.nodes for one in predictors])
    offset = np.repeat(first[:-1], np.diff(first))
    members = np.zeros(nodes.size, np.uint64)
    for k, one in enumerate(predictors):
        for i in np.flatnonzero(one.nodes["is_categorical"]).tolist():
            node = one.nodes[i]
            low, high = one.raw_left_cat_bitsets[node["bitset_idx"], :2].tolist()
            unseen = (1 << 64) - (1 << counts[node["feature_idx"]]) if node["missing_go_to_left"] else 0
            members[first[k] + i] = low | high << 32 | unseen
    leaf = nodes["is_leaf"].astype(bool)
    children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64) + offset[:, None]
    return {
        "baseline": np.array(booster._baseline_prediction, np.float64).reshape(1),
        "first": first,
        "feature": np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        "threshold": np.where(leaf | (nodes["is_categorical"] > 0), 0.0, nodes["num_threshold"]),
        "members": members,
        "child": np.where(leaf[:, None], 0, children).astype(np.int32),
        "value": np.where(leaf, nodes["value"], 0.0),
    }
