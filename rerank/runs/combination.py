"""Combinations of trained weights: the sum of several trainings, and MERT's weights of dense columns.

An ensemble is the sum of the weights of its members, each in units of the deviation of its scores.

Dense columns are the few numbers of every candidate. Sparse features cost time, memory and care: a run that is no
better than ``maxent`` on the dense columns and the base score has gained nothing from them. So every results table has
a line for these.

After training, MERT sets the weights of dense columns, base score and learned sparse score on a split. The protocol is
that of Gao et al. (section 5): what was learned from many lists with sparse features becomes one more dense feature of
the log-linear model, and minimum error rate training sets the few weights of that model on held-out lists.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.data.corpus import Corpus, dense_alone, free_values
from rerank.extraction.kinds import metric_of
from rerank.features.table import FeatureTable, dense_columns
from rerank.learn.base_weight import AUTO, BaseSearch
from rerank.learn.folds import best_trial, latest, pad_weights, trials, with_base_column
from rerank.learn.learner import Weights
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import corpus_score, deviation_within, scores
from rerank.metrics.metric import Metric, oracles
from rerank.models.model import one_base, raw_weights
from rerank.pool import check_visible
from rerank.recipes.recipe import ListRecipe, TextRecipe
from rerank.recipes.settings import dataclass_of
from rerank.runs.run import Run, sibling_path, weight_counts
from rerank.runs.training import RunTask, column_norms, data_identity, largest, train_run

if TYPE_CHECKING:
    from rerank.learn.mert import MertSettings

log = logging.getLogger("rerank")
SEED_STRIDE = 1000  # seeds of members: runs with neighbouring seeds share none


def fit(task: RunTask) -> Run:
    """Train a run of one or several members, tuned by MERT where it has lists for that, and keep it; if it is kept
    already, it is not trained again."""
    if task.path is not None:
        check_visible(task.path.parent.parent)  # the directory of the results
    if (run := task.load()) is not None:
        return run
    run = train_run(task) if task.recipe.training.ensemble is None or task.dev is None else train_ensemble(task)
    tune_run(run, task)
    if (work := task.work()) is not None:
        run.save(work)
    return replace(run, path=task.path)


def members(recipe: ListRecipe) -> list[ListRecipe]:
    """The recipes of all members of an ensemble, all of which see the same share of the lists."""
    settings = recipe.training.ensemble
    assert settings is not None
    plain = {"training.ensemble": None, "training.vote": False, "training.share": 1.0}
    return [recipe.change({**plain, "seed": recipe.seed + SEED_STRIDE * number}) for number in range(settings.seeds)]


def train_ensemble(task: RunTask) -> Run:
    """Train all members and sum up their weights.

    Members that an interrupted call has finished are kept beside the file of the run. The history is that of the first
    member.
    """
    recipe, dev, metric = task.recipe, task.dev, metric_of(task.recipe)
    settings, predictor = recipe.training.ensemble, recipe.training.predictor
    assert dev is not None
    assert settings is not None
    corpus = task.corpus.take_share(recipe.training.share, recipe.seed)
    digests = data_identity(task.digests[0], recipe), *task.digests[1:]
    runs = list[Run]()
    for number, single in enumerate(recipes := members(recipe)):
        log.info("member %d of %d: %s, seed %d", number + 1, len(recipes), single.learner["name"], single.seed)
        path = None if task.path is None else sibling_path(task.path, f"member-{number}")
        member = replace(task, recipe=single, corpus=corpus, digests=digests, path=path, mert_lists=None)
        runs.append(fit(member))
    weights = {kind: sum_weights([run.weights[kind] for run in runs], dev) for kind in ("last", "average")}
    columns = np.ones(corpus.width, np.bool_)
    if settings.keep is not None:
        columns = largest(np.abs(weights[predictor].w) * column_norms(corpus), corpus.free, settings.keep)
    search = BaseSearch(dev, metric)
    for kind, total in weights.items():
        total.w[~columns] = 0.0
        if recipe.learner.get("base") == AUTO:
            weights[kind] = search(total)[0]
    score = corpus_score(dev, weights[predictor], metric)
    beaten = metric.sign * score > search.base_score
    log.info("ensemble of %d: dev %s", len(runs), metric.text(score))
    entries = [
        {"learner": run.recipe.learner, "seed": run.recipe.seed, "dev": run.dev_score,
         "deviation": deviation_of(dev, scores(dev, run.weights[predictor])), "seconds": run.training["seconds"]}
        for run in runs
    ]  # fmt: skip
    base = runs[0].training["base"]
    base |= {"weights": {kind: total.base for kind, total in weights.items()}, "dev": metric.sign * search.base_score}
    base |= {"beaten": beaten, "kept": not beaten and base["setting"] == AUTO}
    if base["kept"]:
        weights = {kind: Weights(np.zeros_like(total.w), 1.0) for kind, total in weights.items()}
    about = {**runs[0].training, "base": base, "ensemble": {"members": entries, "dev": score}}
    about |= weight_counts(weights, predictor)
    return Run(task.name, recipe, weights, {}, {}, None, about, runs[0].history, task.digests, np.zeros(0))


def sum_weights(weights: Sequence[Weights], dev: Corpus) -> Weights:
    """The sum of weights, each divided by the deviation of its scores on ``dev``."""
    w, base = np.zeros_like(weights[0].w), 0.0
    for predictor in weights:
        deviation = deviation_of(dev, scores(dev, predictor))
        w, base = w + predictor.w / deviation, base + predictor.base / deviation
    return Weights(w, base)


def deviation_of(lists: Corpus, values: np.ndarray) -> float:
    """The standard deviation of scores (float64 [N]) from the means of their lists; 1 where all are alike."""
    deviation = deviation_within(lists.lists, values)
    return deviation if deviation > 0 and np.isfinite(deviation) else 1.0


PREDICTOR = "mert"
DENSE_LINE = "logistic"  # of the choices by dense columns alone, among those of the predictors


def dense_line(corpus: Corpus, table: FeatureTable, metric: Metric) -> tuple[dict[str, Weights], dict[str, Any] | None]:
    """Fit the regression on the training lists ``corpus``: weights over a recipe's columns by the name DENSE_LINE, and
    what metrics.json says about it; none and None if there are no dense columns besides the base score.

    Every candidate with the best gain of its list is right. The dense columns of the last lists, as many as are enough
    to choose among penalties, are held in memory: see ``folds.latest``.
    """
    if corpus.free == 0:
        return {}, None
    lists = dense_alone(latest(corpus))
    learner = with_base_column(Maxent(columns="dense"), lists)
    (attempts,) = trials(learner, lists, metric, oracles, any_ties=True).values()
    learner, state = replace(learner, l2=best_trial(attempts).l2), learner.init(lists.width)
    learner.solve(lists, oracles(lists), state, any_ties=True)
    weights = pad_weights(learner.last(state), corpus.width)
    raw = one_base(raw_weights(weights, table), table)
    columns = [j for j in range(corpus.free) if j != table.base_column]
    by_name = {"base": raw.base, **{table.name(j): float(raw.w[j]) for j in columns}}
    return {DENSE_LINE: weights}, {"lists": lists.list_count, "l2": learner.l2, "weights": by_name}


def make_mert(recipe: TextRecipe) -> "MertSettings":
    """The settings of MERT that a recipe gives."""
    from rerank.learn.mert import MertSettings  # with the search, which few recipes ask for

    assert recipe.mert is not None
    return dataclass_of(MertSettings, {"seed": recipe.seed, **recipe.mert.settings}, "mert.settings")


def tune_run(run: Run, task: RunTask) -> None:
    """Tune a trained run on the lists that its task has for MERT: adds the predictor "mert", and what happened to the
    run's history.

    The base score, the sparse score and every free column are weighed, from their weights in the trained predictor
    and 1; or the whole score and the ``columns`` that the recipe names, from 1 and 0. MERT's input, a few
    dense numbers per candidate, is held in memory.
    """
    recipe, lists, metric, table = task.recipe, task.mert_lists, metric_of(task.recipe), task.table
    if lists is None:
        return
    assert isinstance(recipe, TextRecipe)
    assert recipe.mert is not None
    assert table is not None
    from rerank.learn.mert import mert

    start, weights, free = time.perf_counter(), run.weights["average"], lists.free
    if recipe.mert.columns is None:
        columns, names = np.arange(free), ["base", "sparse"]
        sparse = Weights(np.where(np.arange(weights.w.size) < free, 0.0, weights.w), 0.0)
        predictors, first = [Weights(np.zeros_like(weights.w), 1.0), sparse], [weights.base, 1.0, *weights.w[:free]]
    else:
        columns, names = dense_columns(table, recipe.mert.columns, "mert.columns"), ["learned"]
        predictors, first = [weights], [1.0, *np.zeros(columns.size)]
    features = np.concatenate(
        [np.column_stack([*(scores(part, own) for own in predictors), free_values(part)[:, columns]])
         for part in lists.parts()]
    )  # fmt: skip
    arrays = lists.lists, features, lists.stats, lists.reference
    result = mert(*arrays, metric, np.array(first), make_mert(recipe), ties=lists.base)
    factors, of_columns = result.weights[: len(predictors)], result.weights[len(predictors) :]
    w, of_base = weights.w * factors[-1], float(factors[0]) * (1.0 if len(predictors) > 1 else weights.base)
    w[columns] = of_columns + (0.0 if len(predictors) > 1 else w[columns])
    run.weights[PREDICTOR] = Weights(w, of_base)

    names += map(table.name, columns.tolist())
    scale = np.append(np.ones(len(predictors)), table.scale[columns])

    def by_name(weights: np.ndarray) -> dict[str, float]:
        """The weights by name, those of columns for the values as files have them."""
        entries = dict(zip(names, (weights * scale).tolist(), strict=True))
        if len(predictors) > 1 and table.base_column is not None:
            entries["base"] += entries.pop(table.name(table.base_column))
        return entries

    about: dict[str, Any] = {
        "split": recipe.mert.split, "start": result.start_score, "score": result.score,
        "start_weights": by_name(np.array(first)), "weights": by_name(result.weights),
        "seconds": round(time.perf_counter() - start, 3),
    }  # fmt: skip
    if task.dev is not None:
        about["dev"] = corpus_score(task.dev, run.weights[PREDICTOR], metric)
    run.training["mert"] = about
    on_dev = "".join(f", dev {metric.text(about['dev'])}" for _ in range("dev" in about))
    log.info(
        "mert on %s: %s to %s%s, %.1f s",
        recipe.mert.split, metric.text(result.start_score), metric.text(result.score), on_dev, about["seconds"],
    )  # fmt: skip
