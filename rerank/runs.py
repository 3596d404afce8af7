"""One run of a recipe: trained, kept on disk, evaluated."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from rerank.arrays import DAMAGE, read_array
from rerank.checkpoints import Checkpoint
from rerank.engine import Engine
from rerank.errors import DataError, RecipeError
from rerank.evaluation import Selections
from rerank.files import new_directory
from rerank.learn.base import Learner, Weights, learners
from rerank.learn.bounds import Bounds, bounds
from rerank.learn.combining import family_of
from rerank.learn.gathering import gather
from rerank.learn.log import UpdateLog
from rerank.learn.losses import LOSSES, PAIRWISE
from rerank.learn.mixing import Mixing, train_mixed
from rerank.learn.pairs import PairSource, require_source
from rerank.learn.scoring import best
from rerank.learn.trainer import Training, train
from rerank.learn.votes import Votes
from rerank.learn.voting import vote
from rerank.metrics.base import Metric
from rerank.model import Model
from rerank.oracle import base_choice, corpus_oracle, oracles, with_corpus_gains
from rerank.predict import choices as choices_of
from rerank.predict import corpus_score
from rerank.progress import counting
from rerank.recipe import ListRecipe, SelectSettings, Settings
from rerank.registry import build, nearest
from rerank.report.data import Curve
from rerank.shards import Lists, parts, selected

log = logging.getLogger("rerank")


@dataclass
class Run:
    """A trained run: its recipe (one learner, one seed), predictors, history, and what was evaluated."""

    name: str
    recipe: ListRecipe
    weights: dict[str, Weights]
    state: dict[str, np.ndarray]
    log: dict[str, np.ndarray]  # UpdateLog.arrays, empty where nothing was kept
    columns: np.ndarray | None  # bool [D]: the columns that a selection left, None for all
    training: dict[str, Any]
    history: list[dict[str, Any]]
    points: dict[str, list[int]]
    data: str  # digest of the training corpus
    splits: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    significance: dict[str, dict[str, Any]] = field(default_factory=dict)
    selections: dict[str, Selections] = field(default_factory=dict)
    choices: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    _votes: Votes | None = None

    @property
    def learner(self) -> Learner:
        """The learner with its parameters."""
        return build(learners, self.recipe.learner, "learner")

    @property
    def dev_score(self) -> float | None:
        """The metric on dev at the epoch that was kept, or of the tuned predictor; None without a dev split."""
        if "dev" in self.training.get("mert", {}):
            return float(self.training["mert"]["dev"])
        line = next((line for line in self.history if line["epoch"] == self.training["epochs"]), {})
        return float(line["dev"]) if "dev" in line else None

    def votes(self, corpus: Lists) -> Votes | None:
        """The predictors, from the updates repeated on the training corpus; None where they were not kept."""
        if self._votes is None and self.log and self.recipe.training.vote:
            kept = corpus if self.columns is None else corpus.keep_columns(self.columns)
            self._votes = self.learner.votes(*gather(UpdateLog.from_arrays(self.log), kept))
        return self._votes

    def forget_votes(self) -> None:
        """Give back the memory of the votes; the updates can be repeated."""
        self._votes = None

    def evaluate(self, split: str, corpus: Lists, ids: list[str], training: Lists, metric: Metric) -> None:
        """Score base, oracle and all predictors on a split, and test the predictors against the base."""
        choices = {
            "base": selected(corpus, lambda part: base_choice(part.lists, part.base)),
            "oracle": oracles(corpus),
            **{name: choices_of(corpus, weights) for name, weights in self.weights.items()},
        }
        votes = self.votes(training)
        if votes is not None:
            start = time.perf_counter()
            choices["voted"] = selected(corpus, lambda part: best(part, vote(votes, part)))
            self.training.setdefault("voting_seconds", {})[split] = round(time.perf_counter() - start, 3)
        selections = Selections.of(corpus, ids, metric, choices)
        settings = self.recipe.significance
        pairs = [(name, "base") for name in choices if name not in ("base", "oracle", "last")]
        self.choices[split], self.selections[split] = choices, selections
        self.splits[split] = selections.reports(metric)
        self.significance[split] = selections.significance(
            metric, pairs, settings.test, settings.samples, self.recipe.seed
        )

    def entry(self) -> dict[str, Any]:
        """The run in metrics.json."""
        return {
            "name": self.name,
            "seed": self.recipe.seed,
            "learner": self.recipe.learner,
            "dev": self.dev_score,
            "training": self.training,
            "splits": self.splits,
            "significance": self.significance,
        }

    def curve(self) -> Curve:
        """Mistakes, nonzero weights and dev scores over the lists seen."""
        lists = self.training["lists"]
        scored = [line for line in self.history if "dev" in line]
        return Curve(
            run=self.name,
            seed=self.recipe.seed,
            samples=self.points["samples"],
            mistakes=self.points["mistakes"],
            nonzero_weights=self.points["nonzero_weights"],
            dev_samples=[line["epoch"] * lists for line in scored],
            dev_scores=[line["dev"] for line in scored],
        )

    def save(self, directory: Path) -> None:
        """Keep the run for ``--resume`` and for the stage ``test``; it appears only when complete.

        Raises
        ------
        RunError: cannot be written.
        """
        arrays = {name: weights.w for name, weights in self.weights.items()}
        arrays |= {f"state_{name}": array for name, array in self.state.items()}
        arrays |= {f"log_{name}": array for name, array in self.log.items()}
        if self.columns is not None:
            arrays["columns"] = self.columns
        header = {
            "training": self.training,
            "history": self.history,
            "points": self.points,
            "data": self.data,
            "base": {name: weights.base for name, weights in self.weights.items()},
        }
        with new_directory(directory) as new:
            for name, array in arrays.items():
                np.save(new / f"{name}.npy", array, allow_pickle=False)
            (new / "run.json").write_text(json.dumps(header))

    @staticmethod
    def load(directory: Path, name: str, recipe: ListRecipe, data: str) -> Run:
        """Read what ``save`` wrote; ``data`` is the digest of the training corpus that it must have been trained on.

        Raises
        ------
        DataError: damaged, or trained on something else.
        """
        try:
            header = json.loads((directory / "run.json").read_text())
            if header["data"] != data:
                message = "trained before the training files or the program changed; train again without --resume"
                raise DataError(message, path=str(directory))
            arrays = {path.stem: read_array(path) for path in directory.glob("*.npy")}
            weights = {key: Weights(arrays[key], float(base)) for key, base in header["base"].items()}
            state = {key[6:]: array for key, array in arrays.items() if key.startswith("state_")}
            logged = {key[4:]: array for key, array in arrays.items() if key.startswith("log_")}
            training, history, points = (header[key] for key in ("training", "history", "points"))
            return Run(name, recipe, weights, state, logged, arrays.get("columns"), training, history, points, data)
        except DAMAGE as error:
            raise DataError(
                f"a stored run is damaged ({error}); run again without --resume", path=str(directory)
            ) from None


def train_run(
    name: str,
    recipe: ListRecipe,
    corpus: Lists,
    dev: Lists | None,
    metric: Metric,
    data: str = "",
    unfinished: Path | None = None,
    engine: Engine | None = None,
) -> Run:
    """Train what ``recipe`` says (a single learner and seed) and keep the best epoch on dev.

    ``data`` is the digest of ``corpus``. A run that goes on from another model has neither bounds nor votes: both are
    about all updates from the first, and only its own are logged. ``unfinished``: where checkpoints go, and what to go
    on from; whoever stores the run removes them. ``engine``: whose workers train sections, where there is mixing.
    """
    columns: np.ndarray | None = None
    chosen: dict[str, Any] = {}
    if recipe.training.select is not None:
        columns, chosen = _select(recipe, recipe.training.select, corpus, dev, metric, data, unfinished, engine)
        corpus = corpus.keep_columns(columns)
    if not recipe.training.dense and corpus.free:
        columns = np.ones(corpus.width, np.bool_) if columns is None else columns
        columns[: corpus.free] = False
        corpus = corpus.keep_columns(columns)
    checkpoint = _checkpoint(recipe, "training", data, unfinished)
    training = _train(recipe, recipe.learner, recipe.training.epochs, corpus, dev, metric, data, checkpoint, engine)
    updates = training.log.arrays() if training.log is not None else {}
    about = _about(recipe, training, corpus) | chosen
    warm = recipe.training.warm_start is not None
    about["bound"] = {} if warm else _bounds(recipe, training, corpus)
    points = {key: getattr(training, key) for key in ("samples", "mistakes", "nonzero_weights")}
    state = {key: np.asarray(array) for key, array in training.state._asdict().items()}
    kept = updates if recipe.training.vote and not warm else {}
    return Run(name, recipe, training.weights, state, kept, columns, about, training.history, points, data)


def _checkpoint(recipe: ListRecipe, stage: str, data: str, unfinished: Path | None) -> Checkpoint | None:
    """Where a training of a run leaves how far it has come."""
    if unfinished is None:
        return None
    text = json.dumps([stage, data, recipe.model_dump(mode="json", exclude={"name", "about", "reported"})])
    key = hashlib.sha256(text.encode()).hexdigest()
    return Checkpoint(unfinished / stage, key, recipe.training.checkpoint)


def _bounds(recipe: ListRecipe, training: Training, corpus: Lists) -> Bounds:
    """The mistake bounds of the first pass, for learners that update on mistakes with an oracle and a rival."""
    learner = training.learner
    loss = getattr(learner, "loss", "perceptron")
    rule = learner.dual_rule()
    if (
        training.log is None
        or rule is None
        or LOSSES[loss] not in PAIRWISE
        or recipe.training.pairs["name"] != "oracle"
        or getattr(learner, "update", "mistakes") != "mistakes"
    ):
        return {}
    first = training.log.head(training.history[0]["updates"])
    return bounds(first, corpus, rule, training.weights["average"], hinge=loss == "hinge")


def pair_source(settings: Settings) -> PairSource:
    """The pair source that a recipe describes.

    Raises
    ------
    RecipeError: an unknown source or setting.
    """
    known = [each.name for each in fields(PairSource)]
    for key in settings:
        if key not in known:
            raise RecipeError(f"a pair source has no {key!r}; {nearest(key, known)}", key="training.pairs")
    try:
        return PairSource(**settings)
    except RecipeError as error:
        raise RecipeError(error.message, key=f"training.pairs.{error.key}") from None


def check_pairs(learner: Learner, settings: Settings) -> None:
    """Refuse a pair source that is none, or that ``learner`` cannot learn from.

    Raises
    ------
    RecipeError: names the setting, and what is expected.
    """
    source = pair_source(settings)
    try:
        require_source(learner, source)
    except RecipeError as error:
        raise RecipeError(error.message, key="training.pairs.name") from None


def check_mixing(recipe: ListRecipe) -> None:
    """Refuse mixing where states of a learner cannot be combined, or not so.

    Raises
    ------
    RecipeError: names the setting, and what is expected.
    """
    settings = recipe.training
    if settings.mixing is not None:
        named = [recipe.learner, *([settings.select.learner] if settings.select is not None else [])]
        for learner in named:
            family_of(build(learners, learner, "learner"), settings.mixing.rule, settings.mixing.keep)


def _targets(recipe: ListRecipe, corpus: Lists, metric: Metric) -> np.ndarray:
    """The oracles that training aims at (int64 [L])."""
    return corpus_oracle(corpus, metric) if recipe.oracle.level == "corpus" else oracles(corpus)


def _train(
    recipe: ListRecipe,
    learner: Settings,
    epochs: int,
    corpus: Lists,
    dev: Lists | None,
    metric: Metric,
    data: str = "",
    checkpoint: Checkpoint | None = None,
    engine: Engine | None = None,
) -> Training:
    settings = recipe.training
    sign = -1.0 if metric.lower_is_better else 1.0  # what training keeps is the highest

    def say(line: dict[str, Any]) -> None:
        """Give the scores of an epoch's history line the metric's own sign, and log it."""
        line.update({key: sign * line[key] for key in ("train", "dev") if key in line})
        shown = "".join(f", {key} {metric.percent * line[key]:.2f}" for key in ("train", "dev") if key in line)
        count.advance(left=last - line["epoch"])
        log.info(
            "epoch %d: %s mistakes, %s nonzero weights%s, %.1f s, %.0f M nonzeros/s%s",
            line["epoch"], f"{line['mistakes']:,}", f"{line['nonzero_weights']:,}", shown, line["seconds"],
            line["nonzeros_per_second"] / 1e6, f", {count.remaining}" if count.remaining else "",
        )  # fmt: skip

    targets = _targets(recipe, corpus, metric)
    if share := recipe.oracle.corpus_share:
        corpus = with_corpus_gains(corpus, metric, targets, share)
    warm = _warm(settings.warm_start, learner, corpus, data)
    last = epochs + (warm[1] if warm is not None else 0)
    with counting("train", total=epochs, unit="epochs", lines=False) as count:
        how: dict[str, Any] = {
            "epochs": epochs,
            "seed": recipe.seed,
            "shuffle": settings.shuffle,
            "any_ties": recipe.oracle.ties == "any",
            "predictor": settings.predictor,
            "patience": settings.patience,
            "evaluate_train": lambda weights: sign * corpus_score(corpus, weights, metric),
            "evaluate_dev": None if dev is None else lambda weights: sign * corpus_score(dev, weights, metric),
            "warm": warm,
            "pairs": pair_source(settings.pairs),
            "on_epoch": say,
            "checkpoint": checkpoint,
        }
        made = build(learners, learner, "learner")
        if settings.mixing is not None:
            log.info("mixing %d sections: no voted predictor, and no mistake bounds", settings.mixing.shards)
            mixing, beside = Mixing(**settings.mixing.model_dump()), checkpoint.directory if checkpoint else None
            return train_mixed(made, corpus, targets, mixing=mixing, engine=engine, workspace=beside, **how)
        keep_log = settings.warm_start is None and (settings.vote or 1)
        return train(made, corpus, targets, keep_log=keep_log, **how)


def _warm(path: str | None, learner: Settings, corpus: Lists, data: str) -> tuple[Any, int] | None:
    """The state of the model at ``path`` and the epochs behind it, fit for ``corpus``, whose digest is ``data``."""
    if path is None:
        return None
    model = Model.load(path)
    going_on = build(learners, learner, "learner")
    fresh = going_on.init(corpus.width)
    fits = model.settings.get("learner") == learner and set(fresh._fields) == set(model.state)
    state = going_on.adopt(type(fresh)(**model.state), 0) if fits else fresh
    if not fits or any(own.shape != other.shape for own, other in zip(state, fresh, strict=True)):
        raise DataError("this model cannot go on here: another learner, settings or feature table", path=path)
    state = type(fresh)(**model.state)
    if model.about["training_data"] != data:
        state = going_on.adopt(state, corpus.candidate_count)
    return state, int(model.about["epochs"])


def _select(
    recipe: ListRecipe,
    settings: SelectSettings,
    corpus: Lists,
    dev: Lists | None,
    metric: Metric,
    data: str,
    unfinished: Path | None,
    engine: Engine | None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """The columns (bool [D]) that a first training leaves."""
    log.info("selecting features with %s", settings.learner)
    epochs = settings.epochs or recipe.training.epochs
    checkpoint = _checkpoint(recipe, "selection", data, unfinished)
    first = _train(recipe, settings.learner, epochs, corpus, dev, metric, checkpoint=checkpoint, engine=engine)
    size = np.abs(first.weights["average"].w)
    if settings.by == "contribution":
        squares = np.zeros(corpus.width)
        for _, part in parts(corpus):
            own = np.asarray(part.values, np.float64) ** 2
            squares += np.bincount(part.columns, weights=own, minlength=corpus.width)
        size = size * np.sqrt(squares)
    columns = size > 0
    columns[: corpus.free] = False
    if settings.keep is not None:
        most = int(settings.keep * (corpus.width - corpus.free)) if settings.keep < 1 else int(settings.keep)
        if np.count_nonzero(columns) > most:
            size[~columns] = 0.0
            order = np.lexsort((np.arange(size.size), -size))
            columns = np.zeros(size.size, np.bool_)
            columns[order[:most]] = True
    log.info("selected %s of %s columns", f"{np.count_nonzero(columns):,}", f"{corpus.width:,}")
    columns[: corpus.free] = True
    return columns, {"selected_columns": int(np.count_nonzero(columns))}


def _about(recipe: ListRecipe, training: Training, corpus: Lists) -> dict[str, Any]:
    """What metrics.json says of a training."""
    seconds = sum(line["seconds"] for line in training.history)
    processed = sum(line["nonzeros_per_second"] * line["seconds"] for line in training.history)
    weights = training.weights[recipe.training.predictor]
    return {
        "learner": recipe.learner["name"],
        "loss": getattr(training.learner, "loss", "perceptron"),
        "settings": dict(recipe.learner),
        "lists": corpus.list_count,
        "epochs": training.epoch,
        "epochs_run": len(training.history),
        "mistakes": [line["mistakes"] for line in training.history],
        "updates": training.learner.updates(training.state),
        "nonzero_weights": int(np.count_nonzero(weights.w)),
        "nonzero_weights_last": int(np.count_nonzero(training.weights["last"].w)),
        "base_weight": weights.base,
        "radius": training.radius,
        "seconds": round(seconds, 3),
        "nonzeros_per_second": round(processed / seconds) if seconds > 0 else 0,
    }
