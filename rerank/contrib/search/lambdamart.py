"""Boosted trees for lists: LambdaMART, as LightGBM grows them. Its predictor is no sum of weights.

LightGBM's labels are whole numbers. Gains that are, from 0 to 30, are taken as they are: a candidate of gain g is worth
2^g − 1 (Järvelin & Kekäläinen 2002). Others lie on 31 levels at equal distances from the worst of their list to its
best, a level is worth its number, and a list counts as much as these two differ.
"""

import re
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from rerank.base.errors import RecipeError, RunError
from rerank.base.ranges import Count, Range
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.learner import Learner, Weights
from rerank.learn.predictor import predictor_view
from rerank.learn.scoring import choices
from rerank.learn.train import Training, history_line
from rerank.learn.workspace import EpochStats
from rerank.metrics.metric import oracles

LABELS = np.arange(31.0)  # of LightGBM
MAX_CANDIDATES = 10_000  # candidates of a list that LightGBM takes


@dataclass(frozen=True, kw_only=True)
class LambdaMart(Learner):
    """Trees of columns, each grown along the gradient of NDCG, by LightGBM (extra ``trees``): no epochs, no votes.

    >>> LambdaMart(trees=100, rate=0.1).leaves
    15

    Reference: Burges 2010 (MSR-TR-2010-82); Ke et al. 2017 (NeurIPS). Memory: all lists at once, 12 bytes a nonzero.

    The base score is one more column. It also weighs ``base`` beside the trees, which are grown on top of that; with
    ``base: auto`` it does not, and the model is the base score alone where the trees are no better on dev.

    Parameters
    ----------
    trees: ≥ 1; the most trees that are grown.
    leaves: ≥ 2; the most leaves of a tree.
    rate: above 0, at most 1; the weight of each tree's answer.
    min_leaf: ≥ 1; the least number of candidates in a leaf.
    patience: ≥ 1; no more trees are grown after this many without a better NDCG of the first five on dev (without a dev
        split and with ``base: auto``, on a tenth of the training lists), and those up to the best are kept.
    threads: ≥ 1; any number grows the same trees, to the bit.
    base: see above; base_rate: plays no part.
    """

    name: ClassVar[str] = "lambdamart"
    linear: ClassVar[bool] = False
    batch: ClassVar[bool] = True
    passes: ClassVar[Any] = None
    replays: ClassVar[Any] = None
    sources: ClassVar[tuple[str, ...]] = ("oracle",)
    loss: ClassVar[str] = "lambdarank"

    trees: Count = 500
    leaves: Annotated[int, Range(2, 1 << 16)] = 15
    rate: Annotated[float, Range(above=0, high=1)] = 0.05
    min_leaf: Count = 20
    patience: Count = 50
    threads: Count = 1

    def require(self) -> None:
        require_lightgbm()

    def grow(self, lists: Corpus, dev: Corpus | None, seed: int) -> Training:
        """Trees from ``lists``, as many as are best on ``dev``: the only predictor.

        Raises RecipeError: LightGBM is not installed. RunError: it refuses the lists.
        """
        lightgbm, start, sets = require_lightgbm(), time.perf_counter(), list[Any]()
        corpora = [part for part in (lists, dev) if part is not None]
        if (longest := max(int(np.diff(corpus.lists).max(initial=0)) for corpus in corpora)) > MAX_CANDIDATES:
            message = f"found a list of {longest:,} candidates; LightGBM takes up to {MAX_CANDIDATES:,}, cut it"
            raise RunError(f"lambdamart: {message}")
        exact = all(np.isin(corpus.gain, LABELS).all() for corpus in corpora)
        settings = {
            "objective": "lambdarank", "label_gain": 2.0**LABELS - 1 if exact else LABELS, "metric": "ndcg",
            "eval_at": [5], "num_leaves": self.leaves, "learning_rate": self.rate, "min_data_in_leaf": self.min_leaf,
            "num_threads": self.threads, "seed": seed, "deterministic": True, "force_row_wise": True,
            "use_missing": False, "verbosity": -1,
        }  # fmt: skip
        for corpus in corpora:
            label, weight, group = labels_of(corpus, exact)
            how = {"weight": weight, "group": group, "reference": sets[0] if sets else None}
            sets.append(lightgbm.Dataset(matrix_of(corpus), label, init_score=self.base * corpus.base, **how))
        stopping = [lightgbm.early_stopping(self.patience, verbose=False)] if dev is not None else []
        try:
            booster = lightgbm.train(settings, sets[0], self.trees, valid_sets=sets[1:], callbacks=stopping)
        except lightgbm.basic.LightGBMError as error:
            raise RunError(f"lambdamart: LightGBM grows no trees from these lists: {error}") from None
        text = booster.model_to_string(num_iteration=booster.best_iteration).partition(END)[0] + END
        trees, state, corpus = read_trees(text.encode(), lists.width), self.init(lists.width), corpora[0]
        predictor, seconds = Weights(np.zeros(lists.width), self.base, trees), time.perf_counter() - start
        mistakes = int((corpus.gain[oracles(corpus)] > corpus.gain[choices(corpus, predictor)]).sum())
        count = trees.first.size - 1
        stats = EpochStats(corpus.list_count, mistakes, count, 0.0, 0)
        counts = predictor_view(state).counts
        counts.updates, counts.free = count, corpus.free
        line = history_line(count * corpus.nonzeros, stats, predictor, seconds) | {"epoch": 1}
        return Training(self, dict.fromkeys(("last", "average"), predictor), state, None, 1, [line])


def vote_by_trees(corpus: Corpus, seed: int) -> Weights | None:
    """The predictor that chooses among samples, for `rerank vote`: trees, as many as are best on a tenth of the lists;
    None where LightGBM is not installed."""
    if find_spec("lightgbm") is None:
        return None
    count = corpus.list_count
    last = count - max(1, count // 10)
    return LambdaMart(base=0.0).grow(corpus.slice(0, last), corpus.slice(last, count), seed).weights["last"]


def require_lightgbm() -> Any:
    """The module that grows trees; a ``RecipeError`` if it is not installed."""
    try:
        import lightgbm
    except ImportError:
        message = "lambdamart needs LightGBM, which is not installed: pip install 'rerank-nbest[trees]'"
        raise RecipeError(message, key="learner.name") from None
    return lightgbm


def matrix_of(corpus: Corpus) -> sparse.csr_matrix:
    """float64 [N, D + 1]: the features of every candidate, and its base score."""
    values, shape = corpus.values.astype(np.float32).astype(np.float64), (corpus.candidate_count, corpus.width)
    features = sparse.csr_matrix((values, corpus.columns, corpus.rows), shape)
    return sparse.hstack([features, corpus.base[:, None]], "csr")


def labels_of(corpus: Corpus, exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and weights of candidates (float64 [N]), and the sizes of lists that have some; ``exact``: gains are
    labels already."""
    sizes = np.diff(corpus.lists)
    weight, sizes, first = corpus.weight[sizes > 0], sizes[sizes > 0], corpus.lists[:-1][sizes > 0]
    if exact:
        return corpus.gain, np.repeat(weight, sizes), sizes
    worst = np.minimum.reduceat(corpus.gain, first)
    spread = np.maximum.reduceat(corpus.gain, first) - worst
    label = (corpus.gain - np.repeat(worst, sizes)) / np.repeat(np.where(spread > 0, spread, 1.0), sizes)
    return np.rint(LABELS[-1] * label), np.repeat(weight * spread / (spread.mean() or 1.0), sizes), sizes


END = "end of trees\n"  # what follows it says how they were grown
LEAF = "leaf_value"
KINDS = {
    "split_feature": np.int64, "threshold": np.float64, "split_gain": np.float64, "decision_type": np.int64,
    "left_child": np.int64, "right_child": np.int64, "internal_value": np.float64, LEAF: np.float64,
}  # fmt: skip
NUMERIC = 0, 2  # decision types: values up to the threshold go left, and none is missing


class BoostedTrees(NamedTuple):
    """K trees, the nodes of each after those of the last: the root first, the leaves at the end."""

    text: np.ndarray  # uint8
    gains: np.ndarray  # float64 [D + 1]: by how much the splits by each column bettered what was optimised
    first: np.ndarray  # int64 [K + 1]
    feature: np.ndarray  # int64 [nodes]: the column that is asked for, -1 at a leaf
    threshold: np.ndarray  # float64 [nodes]
    child: np.ndarray  # int64 [nodes, 2]: for values up to the threshold, and above it
    value: np.ndarray  # float64 [nodes]: of leaves what is added to a score, of others about the mean of that

    def scores(self, corpus: Corpus) -> np.ndarray:
        """float64 [N]: the sum of all trees for every candidate."""
        total, row = np.zeros(corpus.candidate_count), np.zeros(self.gains.size)
        add_trees(self, corpus.rows, corpus.columns, corpus.values, corpus.base, row, total, np.zeros(0))
        return total

    def parts(self, corpus: Corpus, y: int) -> np.ndarray:
        """float64 [D + 1]: by how much each column changes the score of candidate y, along its paths (Saabas 2014)."""
        row, part = np.zeros((2, self.gains.size))
        rows, base = corpus.rows[y : y + 2], corpus.base[y : y + 1]
        add_trees(self, rows, corpus.columns, corpus.values, base, row, np.zeros(1), part)
        return np.asarray(part)


@kernel
def add_trees(
    trees: BoostedTrees,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    base: np.ndarray,
    row: np.ndarray,
    total: np.ndarray,
    part: np.ndarray,
) -> None:
    """Add to total what trees give every candidate and to part, unless it is empty, what each column changes."""
    for y in range(total.shape[0]):
        for p in range(rows[y], rows[y + 1]):
            row[columns[p]] = np.float32(values[p])
        row[-1] = base[y]
        for k in range(trees.first.shape[0] - 1):
            node = trees.first[k]
            while trees.feature[node] >= 0:
                j, before = trees.feature[node], trees.value[node]
                node = trees.child[node, 0 if row[j] <= trees.threshold[node] else 1]
                if part.shape[0] > 0:
                    part[j] += trees.value[node] - before
            total[y] += trees.value[node]
        for p in range(rows[y], rows[y + 1]):
            row[columns[p]] = 0.0


def read_trees(text: bytes, width: int) -> BoostedTrees:
    """The trees in ``text``, over ``width`` columns and the base score.

    Raises ValueError: they are no trees over these columns whose every path ends at a leaf.
    """
    blocks = re.split(r"^Tree=\d+\n", text.decode("ascii").partition(END)[0], flags=re.MULTILINE)[1:]
    if not blocks:
        raise ValueError("there are no trees in it")
    trees = [_numbers(block) for block in blocks]
    first = np.cumsum([0, *(2 * tree[LEAF].size - 1 for tree in trees)], dtype=np.int64)
    feature, child = np.full(first[-1], -1), np.zeros((first[-1], 2), np.int64)
    threshold, gain, value = np.zeros((3, first[-1]))
    for tree, root, end in zip(trees, first, first[1:], strict=False):
        splits, sides = tree["split_feature"].size, np.stack([tree["left_child"], tree["right_child"]], axis=1)
        inner = slice(root, root + splits)
        feature[inner], threshold[inner], gain[inner] = (tree[key] for key in list(KINDS)[:3])
        value[root:end] = np.append(tree["internal_value"], tree[LEAF])
        child[inner] = root + np.where(sides < 0, splits + ~sides, sides)
        inside = (child[inner] > np.arange(root, root + splits)[:, None]) & (child[inner] < end)
        if not (inside.all() and ((feature[inner] >= 0) & (feature[inner] <= width)).all()):
            raise ValueError("its trees have a path that ends at no leaf, or ask for a column that is not there")
    if not np.isfinite([threshold, gain, value]).all():
        raise ValueError("its trees hold numbers that are not finite")
    gains = np.bincount(feature[feature >= 0], gain[feature >= 0], width + 1)
    return BoostedTrees(np.frombuffer(text, np.uint8), gains, first, feature, threshold, child, value)


def _numbers(block: str) -> dict[str, np.ndarray]:
    """The numbers of one tree by key."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if line)
    if missing := {*KINDS, "num_cat", "is_linear"} - lines.keys():
        raise ValueError(f"one of its trees lacks {min(missing)}")
    try:
        numbers = {key: np.array(lines[key].split(), kind) for key, kind in KINDS.items()}
    except OverflowError as error:
        raise ValueError(f"one of its trees has a number that is too large ({error})") from None
    if any(array.size != numbers[LEAF].size - (key != LEAF) for key, array in numbers.items()):
        raise ValueError(f"one of its trees has not as many splits as its {numbers[LEAF].size} leaves need")
    if lines["num_cat"] != "0" or lines["is_linear"] != "0" or not np.isin(numbers["decision_type"], NUMERIC).all():
        raise ValueError("its trees have other splits than those of numbers, or other leaves than constant ones")
    return numbers
