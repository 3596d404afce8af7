"""Boosted trees for lists: LambdaMART, as LightGBM grows them. Its predictor is no sum of weights.

LightGBM's labels are whole numbers. Gains that are, from 0 to 30, are taken as they are: a candidate of gain g is worth
2^g − 1 (Järvelin & Kekäläinen 2002). Others lie on 31 levels at equal distances from the worst of their list to its
best, a level is worth its number, and a list counts as much as these two differ.
"""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from rerank.base.errors import RecipeError, RunError
from rerank.base.ranges import Range
from rerank.contrib.search.trees import END, read_trees
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, Weights
from rerank.learn.predictor import named
from rerank.learn.scoring import choices
from rerank.learn.settings import Count
from rerank.learn.train import Training, history_line
from rerank.learn.workspace import EpochStats
from rerank.metrics.oracle import oracles

LABELS = np.arange(31.0)  # of LightGBM
MOST = 10_000  # candidates of a list that LightGBM takes
EXTRA = "pip install 'rerank-nbest[trees]'"


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

    def grown(self, lists: Corpus, dev: Corpus | None, seed: int) -> Training:
        """Trees from ``lists``, as many as are best on ``dev``: the only predictor.

        Raises
        ------
        RecipeError: LightGBM is not installed. RunError: it refuses the lists.
        """
        lightgbm, start, sets = require_lightgbm(), time.perf_counter(), list[Any]()
        corpora = [part for part in (lists, dev) if part is not None]
        if (longest := max(int(np.diff(corpus.lists).max(initial=0)) for corpus in corpora)) > MOST:
            raise RunError(f"lambdamart: found a list of {longest:,} candidates; LightGBM takes up to {MOST:,}, cut it")
        exact = all(np.isin(corpus.gain, LABELS).all() for corpus in corpora)
        settings = {
            "objective": "lambdarank", "label_gain": 2.0**LABELS - 1 if exact else LABELS, "metric": "ndcg",
            "eval_at": [5], "num_leaves": self.leaves, "learning_rate": self.rate, "min_data_in_leaf": self.min_leaf,
            "num_threads": self.threads, "seed": seed, "deterministic": True, "force_row_wise": True,
            "use_missing": False, "verbosity": -1,
        }  # fmt: skip
        for corpus in corpora:
            label, weight, group = graded(corpus, exact)
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
        missed = int((corpus.gain[oracles(corpus)] > corpus.gain[choices(corpus, predictor)]).sum())
        count = trees.first.size - 1
        stats = EpochStats(corpus.list_count, missed, count, 0.0, 0)
        counts = named(state).counts
        counts.updates, counts.free = count, corpus.free
        line = history_line(count * corpus.nonzeros, stats, predictor, seconds) | {"epoch": 1}
        return Training(self, dict.fromkeys(("last", "average"), predictor), state, None, 1, [line])


def vote_by_trees(corpus: Corpus, seed: int) -> Weights | None:
    """What chooses among samples, for `rerank vote`: trees, as many as are best on a tenth of the lists; None where
    LightGBM is not installed."""
    if find_spec("lightgbm") is None:
        return None
    count = corpus.list_count
    last = count - max(1, count // 10)
    return LambdaMart(base=0.0).grown(corpus.slice(0, last), corpus.slice(last, count), seed).weights["last"]


def require_lightgbm() -> Any:
    """The module that grows trees; a ``RecipeError`` if it is not installed."""
    try:
        import lightgbm
    except ImportError:
        message = f"lambdamart needs LightGBM, which is not installed: {EXTRA}"
        raise RecipeError(message, key="learner.name") from None
    return lightgbm


def matrix_of(corpus: Corpus) -> sparse.csr_matrix:
    """float64 [N, D + 1]: the features of every candidate, and its base score."""
    values, shape = corpus.values.astype(np.float32).astype(np.float64), (corpus.candidate_count, corpus.width)
    features = sparse.csr_matrix((values, corpus.columns, corpus.rows), shape)
    return sparse.hstack([features, corpus.base[:, None]], "csr")


def graded(corpus: Corpus, exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
