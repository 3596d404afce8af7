"""The training of one run of a recipe: selection, learning, checkpoints, mistake bounds."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.progress import DETAIL, counting
from rerank.base.registry import build
from rerank.data.corpus import Corpus, dense_alone
from rerank.extraction.kinds import metric_of
from rerank.features.table import FeatureTable
from rerank.learn.base_weight import AUTO, START_WEIGHT, BaseSearch, make_learner, start_weight
from rerank.learn.folds import Columns, cut_state, pad_state, with_base_column
from rerank.learn.learner import Weights
from rerank.learn.pairs import pairs as pair_sources
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import corpus_score, scores
from rerank.learn.train import Epoch, ListProblem, Training, train
from rerank.metrics.metric import oracles, owners, scored_rows, two_valued, with_corpus_gains
from rerank.models.model import Model, check_state
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import Settings
from rerank.runs.run import Run, sibling_path, weight_counts
from rerank.storage.outputs import Work, key_of

if TYPE_CHECKING:
    from rerank.learn.bounds import Bounds

log = logging.getLogger("rerank")
IN_MEMORY = "(a model in memory)"  # what stands for the path of a model that training continues from
HELD_OUT = "held-out training lists"  # what stands in for a dev split where there is none
NOT_BEATEN = "nothing that was learned beats the base score: candidates are ranked by it, and at most ties by the rest"
MIN_WEIGHT = 1e-100  # weights below it say nothing


@dataclass(frozen=True)
class TrainingEvent:
    """An epoch that has ended; of a batch learner, the optimum. Trainings on folds, for learned fusion, have none.

    run, seed: the run of the recipe; stage: "training", or "selection" of features; epoch: from 1, with those of a
    model that was continued from. dev, base: scores of the predictor and of the base on dev, in the metric's own sign;
    None without dev. weights: the predictor, as ``w`` (float64 [D], dense columns in units of their deviation) and
    ``base``, a copy that is read-only. history: everything else that history.jsonl has of the epoch.
    """

    run: str
    seed: int
    stage: str
    epoch: int
    dev: float | None
    base: float | None
    weights: Weights
    history: Mapping[str, Any]


Callback = Callable[[TrainingEvent], object]


@dataclass(frozen=True)
class RunTask:
    """A run to be trained: a task. Its lists, and ``path``, where it is stored, are on a disk that workers share.

    recipe: with a single learner and seed; digests: those of everything that the run depends on, the lists of training
    first; path: None for a run that is not stored; mert_lists: the lists of MERT; table: what that has to know of the
    columns; start: the model that training continues from; watcher: told of every epoch, in this process.
    """

    name: str
    recipe: ListRecipe
    corpus: Corpus
    dev: Corpus | None = None
    digests: tuple[str, ...] = ("",)
    path: Path | None = None
    mert_lists: Corpus | None = None
    table: FeatureTable | None = None
    start: Model | None = None
    watcher: Callback | None = None

    def __str__(self) -> str:
        return f"the run {self.name} with seed {self.recipe.seed}"

    def work(self, stage: str = "") -> Work | None:
        """The file of the run or, while it goes on, of a stage of its training; None where nothing is kept."""
        if self.path is None:
            return None
        path = sibling_path(self.path, stage) if stage else self.path
        settings = self.recipe.model_dump(mode="json", exclude={"name", "about", "quick", "reported"})
        return Work(path, key_of(stage, self.digests, settings), self.recipe.training.checkpoint)

    def load(self) -> Run | None:
        """The run, if it is trained already."""
        work = self.work()
        return None if work is None else Run.load(work, self.name, self.recipe, self.digests)


def train_run(task: RunTask) -> Run:
    """Train what the recipe of ``task`` says and keep the best epoch on dev.

    A run that continues from another model has neither bounds nor votes: both need all updates from the first, and only
    its own are logged.
    """
    recipe, metric, split = task.recipe, metric_of(task.recipe), task.recipe.data.dev
    settings, lists = recipe.training, data_identity(task.digests[0], recipe)
    task = replace(task, corpus=task.corpus.take_share(settings.share, recipe.seed))
    starts, gain = task.corpus.lists[:-1][np.diff(task.corpus.lists) > 0], task.corpus.gain
    if not starts.size or not (np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)).any():
        log.warning(
            "nothing to learn from %d training lists: in each, all candidates are equally good; see that the gains, or "
            "the references, are those of these lists", task.corpus.list_count,
        )  # fmt: skip
    folds = isinstance(make_learner(recipe.learner), Maxent)  # hold lists out in turn
    if task.dev is None and recipe.learner.get("base") == AUTO and not folds:
        task, split = _hold_out(task), HELD_OUT
    columns, selection = _columns(task)
    corpus, dev = task.corpus if columns.all() else task.corpus.keep_columns(columns), task.dev
    task = replace(task, corpus=corpus)
    training = _train(task, recipe.learner, "training", lists)
    history = training.history
    best = next((line for line in history if line["epoch"] == training.epoch), history[-1])
    best["train"] = corpus_score(corpus, training.weights[settings.predictor], metric)
    base = _compare_base(task, training, split)
    best_scores = {key: best[key] for key in ("train", "dev") if key in best}
    if len(history) > 1:
        scores_text = "".join(f", {key} {metric.text(score)}" for key, score in best_scores.items())
        log.info("epoch %d of %d is kept%s", training.epoch, history[-1]["epoch"], scores_text)
    if base["kept"]:
        log.warning(NOT_BEATEN)
    elif any(line["mistakes"] for line in history) and not any(
        np.abs(weights.strength).max(initial=0) > MIN_WEIGHT for weights in training.weights.values()
    ):
        log.warning("nothing was learned: all weights are 0, or as good as 0; take settings nearer to the defaults")
    seconds = sum(line["seconds"] for line in history)
    nonzeros = sum(line["nonzeros_per_second"] * line["seconds"] for line in history)
    about = {
        "learner": recipe.learner["name"],
        "loss": getattr(training.learner, "loss", "perceptron"),
        "settings": dict(recipe.learner),
        "lists": corpus.list_count,
        "epochs": training.epoch,
        "epochs_run": len(history),
        "mistakes": [line["mistakes"] for line in history],
        "updates": training.learner.updates(training.state),
        **weight_counts(training.weights, settings.predictor),
        "seconds": round(seconds, 3),
        "nonzeros_per_second": round(nonzeros / seconds) if seconds > 0 else 0,
        **training.about,
        "base": base,
        "ties": "any" if any_ties(recipe, corpus) else "base",
        "reached": best_scores,
        **selection,
    }
    warm = settings.start is not None
    if settings.bound:
        about["bound"] = {} if warm else _bounds(task, training)
    state = {key: np.asarray(array) for key, array in training.state._asdict().items()}
    update_log = training.log if settings.vote and not warm and not base["kept"] else None
    updates, mask = {} if update_log is None else update_log.arrays(), None if columns.all() else columns
    held_out = training.fold_scores
    if dev is not None and split == HELD_OUT:
        held_out = scores(dev, training.weights[settings.predictor])
    return Run(task.name, recipe, training.weights, state, updates, mask, about, history, task.digests, held_out)


def _columns(task: RunTask) -> tuple[np.ndarray, dict[str, int]]:
    """bool [D]: the columns that are trained on, and the entry of metrics.json on their selection, if there is one."""
    corpus, settings, selection = task.corpus, task.recipe.training, dict[str, int]()
    columns = np.ones(corpus.width, np.bool_)
    if (select := settings.select) is not None:
        log.info("selecting features with %s", select.learner)
        size = np.abs(_train(task, select.learner, "selection").weights["average"].w)
        size *= column_norms(corpus) if select.by == "contribution" else 1.0
        columns = largest(size, corpus.free, select.keep)
        selection = {"selected_columns": int(np.count_nonzero(columns))}
    columns[: corpus.free] &= settings.dense
    return columns, selection


def data_identity(data: str, recipe: ListRecipe) -> str:
    """The identity of the lists that a model has seen: the digest of the training lists, and the share that was
    used."""
    share = recipe.training.share
    return data if share == 1 else f"{data} {share!r} {recipe.seed}"


def _hold_out(task: RunTask) -> RunTask:
    """The task with all but the last tenth of its training lists, and with that tenth, at least one list, to weigh the
    base score on."""
    corpus = task.corpus
    lists = corpus.list_count
    if lists < 2:
        message = (
            f"{lists} training list and no dev split: nothing to weigh the base score on; name data.dev or a number"
        )
        raise RecipeError(message, key="learner.base")
    first = lists - max(1, lists // 10)
    log.warning(
        "no dev split: the last %d of %d training lists held out to choose epoch and weight of the base score; "
        "name data.dev, or a number as learner.base to train on all of them", lists - first, lists,
    )  # fmt: skip
    return replace(task, corpus=corpus.slice(0, first), dev=corpus.slice(first, lists))


def _compare_base(task: RunTask, training: Training, split: str | None) -> dict[str, Any]:
    """The entry of metrics.json on the base score; where no epoch beats the base, an automatic weight leaves
    only the base score in ``training``.

    setting: the recipe's; training: the weight while the learner trained; votes: the weight at the start of the
    predictors that vote, the last of which is the last predictor; weights: those of the other predictors; dev: the
    base's score on ``split``, on which epochs were chosen; beaten: whether the epoch that was kept scores better there
    or, of a batch learner, on the training lists held out in turn; kept: whether the model is the base itself.
    """
    best = next(line for line in training.history if line["epoch"] == training.epoch)
    recipe, sign = task.recipe, metric_of(task.recipe).sign
    setting = recipe.learner.get("base")
    beaten = None if split is None else sign * best["dev"] > sign * best["dev_base"]
    folds = training.about.get("columns", {})
    if folds.get("lists"):
        beaten = folds["beaten"]
    # What is decoded may beat the base though best candidates do not: that is then found out when decoding is tuned.
    later = recipe.data.dev is None and bool(recipe.decoders)
    kept = beaten is False and setting == AUTO and not later
    start = getattr(training.learner, "base", 0.0)
    shift = training.weights["last"].base - training.learner.last(training.state).base
    if kept:
        training.weights = base_alone(training.weights, training.about, task.corpus)
    return {
        "setting": setting,
        "training": start,
        "votes": max(0.0, start + shift),
        "weights": {name: predictor.base for name, predictor in training.weights.items()},
        "dev": best.get("dev_base"),
        "split": split,
        "beaten": beaten,
        "kept": kept,
    }


def base_alone(weights: dict[str, Weights], about: Mapping[str, Any], corpus: Corpus) -> dict[str, Weights]:
    """The weights of a model that is the base itself, in place of others.

    Where the base has ties, and the others have done no worse on training lists held out, these break the ties: their
    greatest difference between candidates of ``corpus`` is a quarter of the base's least.
    """
    alone = {name: Weights(np.zeros_like(other.w), 1.0) for name, other in weights.items()}
    if not about.get("columns", {}).get("lists"):
        return alone
    owner = owners(corpus.lists)
    gaps = np.diff(corpus.base[np.lexsort((corpus.base, owner))])[owner[1:] == owner[:-1]]
    if (gaps > 0).all() or not gaps.any():
        return alone
    for name, other in weights.items():
        if spread := float(np.ptp(scores(corpus, other._replace(base=0.0)))):
            alone[name] = Weights(other.w * (float(gaps[gaps > 0].min()) / (4 * spread)), 1.0)
    return alone


def _bounds(task: RunTask, training: Training) -> "Bounds":
    """The mistake bounds of the first pass, for learners with theorems about an oracle and a rival."""
    from rerank.learn.bounds import bounds, list_margins  # with all families of rules

    recipe, corpus, log = task.recipe, task.corpus, training.log
    if log is None or training.skipped or recipe.training.pairs["name"] != "oracle":
        return {}
    learner, first = training.learner, training.history[0]
    u, targets = learner.average(training.state), oracles(corpus)
    if share := recipe.oracle.corpus_share:
        corpus = with_corpus_gains(corpus, metric_of(recipe), targets, share)
    margins = list_margins(corpus, targets, u, any_ties=any_ties(recipe, corpus))
    return bounds(learner, log.head(first["updates"]), corpus, int(first["mistakes"]), u, margins)


def any_ties(recipe: ListRecipe, corpus: Corpus) -> bool:
    """Whether every candidate with the oracle's gain counts as right, by ``oracle.ties`` and the training lists.

    Where some candidates are right and all others wrong, the one with the best base score is no better than the other
    right ones, and pushing these away from it would be unlearning.
    """
    if recipe.oracle.ties == "auto":
        return recipe.task == "ranking" or two_valued(corpus)
    return recipe.oracle.ties == "any"


def _train(task: RunTask, learner: Settings, stage: str, lists: str = "") -> Training:
    """Train a learner on the lists of ``task``, whose digest is ``lists``."""
    recipe, corpus, dev, metric = task.recipe, task.corpus, task.dev, metric_of(task.recipe)
    settings, checkpoint = recipe.training, task.work(stage)
    sign = metric.sign  # training keeps the highest
    search = None if dev is None else BaseSearch(dev, metric)

    def observe(epoch: Epoch) -> None:
        """Measure an epoch on dev, log it and tell of it."""
        line, text = epoch.line, ""
        if search is not None and automatic:
            search.observe(epoch)
        elif search is not None:
            epoch.score = sign * corpus_score(search.dev, epoch.weights, metric)
        if search is not None and epoch.score is not None:
            line["dev"], line["dev_base"] = sign * epoch.score, sign * search.base_score
            text = f", dev {metric.text(line['dev'])} (base {metric.text(line['dev_base'])})"
        count.advance(rest=last - line["epoch"])
        log.info(
            "epoch %d: %s mistakes, %s nonzero weights%s, %.1f s, %.0f M nonzeros/s%s",
            line["epoch"], f"{line['mistakes']:,}", f"{line['nonzero_weights']:,}", text, line["seconds"],
            line["nonzeros_per_second"] / 1e6, f", {count.remaining}" if count.remaining else "",
            extra={DETAIL: True},
        )  # fmt: skip
        _tell(task, stage, line, epoch.weights)

    ties = any_ties(recipe, corpus)
    if recipe.oracle.ties == "auto":
        log.info("oracle.ties: %s", "any of the best candidates" if ties else "the best one by the base score")
    targets = oracles(corpus)
    if share := recipe.oracle.corpus_share:
        corpus = with_corpus_gains(corpus, metric, targets, share)
    if make_learner(learner).batch:
        return _solve(replace(task, corpus=corpus), learner, ties, stage)
    warm = _warm(task, learner, corpus, lists)
    epochs, last = settings.epochs, settings.epochs + (warm[1] if warm is not None else 0)
    automatic = learner.get("base") == AUTO
    base = 1.0
    if automatic and task.start is not None:  # as the model has it that training continues from
        base = float(task.start.about.get("training_base", START_WEIGHT))
    elif automatic:
        base = start_weight(corpus)
    pairs = build(pair_sources, settings.pairs, "training.pairs")
    problem = ListProblem(corpus, targets, recipe.seed, settings.shuffle, ties, pairs)
    with counting("train", total=epochs, unit="epochs", lines=False) as count:
        training = train(
            make_learner(learner, base=base), problem, epochs=epochs, predictor=settings.predictor,
            patience=settings.patience, start=warm, observers=[observe], checkpoint=checkpoint,
            keep_log=settings.start is None and (bool(settings.vote) or int(settings.bound)),
        )  # fmt: skip
        if search is not None and automatic:
            search.finish(training, settings.predictor)
        return training


def _solve(task: RunTask, settings: Settings, ties: bool, stage: str) -> Training:
    """Train a learner without epochs. Members of ``maxent`` are chosen by cross-validation, and what they learn on all
    training lists is summed."""
    corpus, dev, metric, rule = task.corpus, task.dev, metric_of(task.recipe), make_learner(settings, base=0.0)
    if not rule.linear:
        training: Training = rule.grow(corpus, dev, task.recipe.seed)
    else:
        from rerank.learn.folds import mixture  # with the search for penalties

        assert isinstance(rule, Maxent)
        warm, width = _warm(task, settings, corpus), corpus.width
        rule = with_base_column(rule, corpus) if settings.get("base") == AUTO else rule
        start, epochs = (rule.init(width), 0) if warm is None else (rule.anchor(warm[0]), warm[1])
        if np.any(start.cells[corpus.free : -1]):
            rule = replace(rule, columns="all")
        with counting("train", total=2, unit="steps", lines=False) as count:
            members = mixture(rule, corpus, metric, oracles, None if warm is None else start, any_ties=ties)
            count.advance(rest=1)
            log.info("maxent: %s", members.text(metric))
            weights = dict[Columns, Weights]()
            for columns, l2 in reversed(members.final_penalties().items()):  # the better one at last
                lists = dense_alone(corpus) if columns == "dense" else corpus
                problem = ListProblem(lists, oracles(lists), task.recipe.seed, any_ties=ties)
                begin = cut_state(start, lists.width)
                training = train(replace(rule, l2=l2), problem, epochs=1, start=(begin, epochs))
                weights[columns] = training.weights["last"]
        total, state = members.combine(weights, width), pad_state(training.state, width)
        state.cells[:] = np.append(total.w, total.base - rule.base)
        training.weights, training.state = dict.fromkeys(training.weights, total), state
        training.fold_scores, training.about["columns"] = members.scores, members.as_dict(metric)
    line, last = training.history[-1], training.weights["last"]
    if dev is not None:
        line["dev"] = corpus_score(dev, last, metric)
        line["dev_base"] = metric.score(scored_rows(dev, metric, dev.base), dev.reference)
        log.info("dev %s (base %s)", metric.text(line["dev"]), metric.text(line["dev_base"]))
    _tell(task, stage, line, last)
    return training


def _tell(task: RunTask, stage: str, line: dict[str, Any], weights: Weights) -> None:
    """Tell of an epoch whoever watches the run, whose exception ends the training as it is (Optuna prunes so)."""
    if task.watcher is None:
        return
    w = weights.w.copy()  # the trainer goes on with its own
    w.flags.writeable = False
    scores = line["epoch"], line.get("dev"), line.get("dev_base")
    task.watcher(TrainingEvent(task.name, task.recipe.seed, stage, *scores, weights._replace(w=w), dict(line)))


def _warm(task: RunTask, learner: Settings, corpus: Corpus, data: str = "") -> tuple[Any, int] | None:
    """The state of the model that ``task`` starts from, adapted to ``corpus`` (whose digest is ``data``), and its
    epochs so far."""
    model, path = task.start, task.recipe.training.start
    if model is None:
        return None
    check_state(model, str(path))  # of its settings the learner counts, and only if it is the recipe's own
    rule, settings = make_learner(learner), model.settings.get("learner") or {}
    fresh = rule.init(corpus.width)
    fits = settings == learner or (rule.batch and settings.get("name") == learner["name"])
    fits = fits and set(fresh._fields) == set(model.state)
    state = rule.for_corpus(type(fresh)(**model.state), 0) if fits else fresh
    if not fits or any(mine.shape != other.shape for mine, other in zip(state, fresh, strict=True)):
        raise DataError(
            "training cannot continue from this model: it has another learner, other settings, another feature table "
            "or is of an earlier version",
            path=path,
        )
    state = type(fresh)(**model.state)
    if model.about["training_data"] != data:
        state = rule.for_corpus(state, corpus.candidate_count)
    return state, int(model.about["epochs"])


def column_norms(corpus: Corpus) -> np.ndarray:
    """float64 [D]: the Euclidean norms of the columns."""
    squares = np.zeros(corpus.width)
    for part in corpus.parts():
        values = np.asarray(part.values, np.float64)
        squares += np.bincount(part.columns, weights=values**2, minlength=corpus.width)
    return np.asarray(np.sqrt(squares))


def largest(size: np.ndarray, free: int, keep: float | None) -> np.ndarray:
    """bool [D]: the free columns, and those of the others with the largest ``size`` (float64 [D]) above 0: ``keep`` of
    them, a share of all if it is below 1, or all."""
    size = np.array(size)
    size[:free] = 0.0
    columns = size > 0
    if keep is not None:
        most = int(keep * (size.size - free)) if keep < 1 else int(keep)
        if np.count_nonzero(columns) > most:
            order = np.lexsort((np.arange(size.size), -size))
            columns = np.zeros(size.size, np.bool_)
            columns[order[:most]] = True
    log.info("selected %s of %s columns", f"{np.count_nonzero(columns):,}", f"{size.size:,}")
    columns[:free] = True
    return columns
