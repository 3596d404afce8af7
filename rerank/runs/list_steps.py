"""The course of a recipe over lists: corpora (cached), runs, the choice of the best on dev, tests, artefacts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rerank.base.errors import DataError, RecipeError
from rerank.data.shards import Lists
from rerank.engines.settings import Engine
from rerank.extraction.content import content_of, metric_of
from rerank.extraction.content.base import make_reader
from rerank.extraction.content.sets import with_set
from rerank.extraction.extraction import paths_of
from rerank.features.table import Table, same_columns
from rerank.kernels.sources import TRAINING, code_digest, user_digest
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accepted
from rerank.models.model import HEADER, Model
from rerank.models.provenance import provenance
from rerank.models.unscaled import raw_weights
from rerank.recipes.recipe import ListRecipe, Single
from rerank.recipes.settings import files_named
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs.choice import blind, choose
from rerank.runs.corpora import Data
from rerank.runs.decoding import check_decoding, decodings, tune_decoding
from rerank.runs.ensembles import check_ensemble, train_ensemble
from rerank.runs.figures import check_figures
from rerank.runs.kept import RUNS, is_finished, place_of
from rerank.runs.learning import learning_curve
from rerank.runs.mert import check_mert, tune_run
from rerank.runs.opening import open_files
from rerank.runs.page import write_page
from rerank.runs.results import evaluate_runs, prediction_files, save_selections, write_predictions
from rerank.runs.run import Run, check_stored
from rerank.runs.stages import Stages
from rerank.runs.steps import Metrics, Steps
from rerank.runs.training import check_mixing, check_pairs, check_room, train_run, trained_on
from rerank.storage.strict_json import read_object

log = logging.getLogger("rerank")


class ListSteps(Steps[ListRecipe]):
    """See ``Steps``; data: the corpora; runs: all single runs, trained; chosen: the one that is served."""

    singles: list[Single[ListRecipe]]
    data: Data
    runs: list[Run]
    chosen: Run
    choice: dict[str, Any]
    served: Model

    def check(self) -> None:
        """See ``Steps``."""
        recipe = self.recipe
        content_of(recipe)
        make_reader(recipe.data.reader)
        check_figures(recipe)
        check_decoding(recipe)
        for single in recipe.expand():
            check_parts(single.recipe)
        open_files(recipe, self.inputs)
        self.recipe = with_set(recipe)
        self.singles = self.recipe.expand()
        self.metric = metric_of(self.recipe)
        self.tested = tuple(recipe.data.tests) if self.tests else ()
        if not self.trains and not (self.directory / RUNS).exists():
            message = (
                "no trained runs are kept here (a finished `rerank run` removes its own); run `rerank train` first"
            )
            raise DataError(message, path=str(self.directory))

    def files(self) -> list[str]:
        """See ``Steps``."""
        recipe = self.recipe
        found = [path for split in recipe.splits for path in paths_of(recipe.data, split)]
        warm = recipe.training.warm_start
        return [*found, *files_named(recipe.model_dump()), *([] if warm is None else [str(Path(warm) / HEADER)])]

    @property
    def code(self) -> str:
        """See ``Steps``."""
        return _code(self.recipe)

    @property
    def size(self) -> dict[str, int]:
        """See ``Steps``."""
        return {"splits": len(self.tested)}

    def predictions(self) -> list[str]:
        """See ``Steps``."""
        return [name for split in self.recipe.data.tests for name in prediction_files(split)]

    def extract(self) -> dict[str, int]:
        """See ``Steps``."""
        recipe = self.recipe
        tuned = [recipe.mert.split] if isinstance(recipe, TextRecipe) and recipe.mert else []
        splits = (*([recipe.data.dev] if recipe.data.dev else []), *tuned, *self.tested)
        self.data = Data.load(recipe, self.directory, tuple(dict.fromkeys(splits)), self.engine, self.inputs)
        return self.data.size()

    def counts(self) -> dict[str, Any]:
        """See ``Steps``."""
        return self.data.counts(self.recipe, self.metric)

    def train(self, work: Stages) -> dict[str, int]:
        """See ``Steps``."""
        if self.trains:
            self._train_all()
        self.runs = []
        for number, single in enumerate(self.singles):
            stored = self.directory.absolute() / RUNS / f"{number:04d}"
            if not is_finished(stored):
                raise DataError("nothing is trained here; run `rerank train` first", path=str(self.directory))
            run = Run.load(stored, single.name, single.recipe, _digests(self.data, single.recipe))
            work.append({"run": run.name, "seed": run.recipe.seed, **line} for line in run.history)
            self.runs.append(run)
        return {"epochs": sum(each.training["epochs_run"] for each in self.runs)}

    def _train_all(self) -> None:
        """Train and store all runs that are not stored already, side by side where there are workers."""
        pending, shown, engine = [], [], self.engine
        for number, single in enumerate(self.singles):
            stored = place_of(self.directory, f"{number:04d}")
            if is_finished(stored):
                check_stored(stored, _digests(self.data, single.recipe))  # before others are trained in vain
                continue
            _check_warm_start(single.recipe, self.data.table)
            pending.append(self._pending(single.name, single.recipe, stored))
            shown.append(f"run {number + 1} of {len(self.singles)}: {single.name}, seed {single.recipe.seed}")
        if len(pending) > 1 and engine.workers > 1 and all(each.recipe.training.mixing is None for each in pending):
            log.info("training %d runs, %d at once", len(pending), min(engine.workers, len(pending)))
            for line, _ in zip(shown, engine.map(train_pending, pending), strict=True):
                log.info("%s: trained", line)
            return
        for line, each in zip(shown, pending, strict=True):
            log.info("%s", line)
            train_pending(each, engine)

    def _pending(self, name: str, single: ListRecipe, stored: Path) -> Pending:
        """A run with what it needs of the data."""
        data = self.data
        dev = data.others[single.data.dev].corpus if single.data.dev else None
        mert = single.mert if isinstance(single, TextRecipe) else None
        tuned = data.others[mert.split].corpus if mert is not None else None
        table = data.table if mert is not None else None
        return Pending(name, single, data.training.corpus, dev, tuned, table, _digests(data, single), stored)

    def decode(self) -> None:
        """See ``Steps``."""
        self.chosen, self.choice = choose(self.recipe, self.runs, self.data, self.metric)
        if len(self.runs) > 1 and self.recipe.data.dev:
            log.info("best on dev: %s, seed %d", self.chosen.name, self.chosen.recipe.seed)
        tune_decoding(self.recipe, self.data, self.runs, self.metric, self.engine)

    def model(self) -> Model:
        """The chosen run as a model."""
        chosen, data = self.chosen, self.data
        score, base = chosen.dev_score, chosen.training["base"]
        files = self.recipe.data.files(self.recipe.data.training)
        about = provenance(
            learner=chosen.training["learner"],
            run=chosen.name,
            seed=chosen.recipe.seed,
            epochs=chosen.training["epochs"],
            dev=None if score is None else {"split": base["split"], "measure": self.metric.primary, "score": score},
            training_data=trained_on(data.key, chosen.recipe),
            training_base=base["training"],
            files={kind: [self.inputs.digest(path) for path in paths] for kind, paths in files.items()},
            decodings=decodings(chosen),
            decode=chosen.training.get("decode", {}).get("use", ""),
        )
        settings = chosen.recipe.model_dump(mode="json")
        votes = chosen.votes(data.training.corpus)
        arrays = votes.arrays() if votes else {}
        weights = {name: raw_weights(weights, data.table) for name, weights in chosen.weights.items()}
        brackets = chosen.brackets.arrays._asdict() if chosen.brackets else {}
        self.served = Model(settings, about, data.table, weights, chosen.state, arrays, brackets)
        return self.served

    def evaluate(self) -> Metrics:
        """See ``Steps``."""
        head = self.head(self.chosen.recipe.seed, self.metric.signature)
        own = evaluate_runs(self.recipe, self.directory, self.data, self.metric, self.runs, self.chosen, self.tested)
        return head | own | {"choice": self.choice, "blind": blind(self.recipe, self.choice)}

    def predict(self) -> None:
        """See ``Steps``."""
        write_predictions(self.recipe, self.directory, self.data, self.served, self.chosen, self.tested)
        save_selections(self.directory, self.chosen, self.tested)

    def curve(self) -> dict[str, Any]:
        """See ``Steps``."""

        def train(single: ListRecipe) -> Run:
            """The run of a share of the training lists, unless it is stored already."""
            share, name = single.training.share, self.chosen.name
            stored = place_of(self.directory, f"share-{share:g}")
            if not is_finished(stored):
                log.info("learning curve: %g %% of the training lists", 100 * share)
                train_pending(self._pending(name, single, stored), self.engine)
            return Run.load(stored, name, single, _digests(self.data, single))

        return learning_curve(self.chosen, self.data, self.metric, self.tested, train)

    def report(self, metrics: Metrics, seconds: float) -> None:
        """See ``Steps``."""
        write_page(self.recipe, self.directory, self.data, self.served, self.runs, self.chosen, metrics, seconds)


def check_parts(single: ListRecipe) -> None:
    """Build the parts that a single run names.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    """
    settings = single.training
    check_pairs(accepted(make_learner(single.learner)), settings.pairs)
    check_mixing(single)
    check_room(single)
    check_ensemble(single)
    if isinstance(single, TextRecipe):
        check_mert(single)
    if settings.select is not None:
        accepted(make_learner(settings.select.learner, "training.select.learner"))
        if settings.warm_start is not None:
            message = "a selection starts from the beginning; leave out warm_start or select"
            raise RecipeError(message, key="training.warm_start")
    if settings.warm_start is not None:
        Model.load(settings.warm_start)


def _check_warm_start(recipe: ListRecipe, table: Table) -> None:
    path = recipe.training.warm_start
    if path is None:
        return
    if not same_columns(Model.load(path).table, table):
        raise DataError("training cannot continue from this model: its feature table is another one", path=path)
    if recipe.training.vote:
        log.warning(
            "no voted predictor: votes need all updates from the first on, and those of %s were made before", path
        )


@dataclass(frozen=True)
class Pending:
    """A run to be trained: a task. The lists, and the place where the run is stored, are on a disk that workers share.

    tuned: the lists of MERT; table: what it needs to know of the columns; digests: those of everything that the run
    depends on, the lists of training first.
    """

    name: str
    recipe: ListRecipe
    training: Lists
    dev: Lists | None
    tuned: Lists | None
    table: Table | None
    digests: tuple[str, ...]
    stored: Path


def train_pending(task: Pending, engine: Engine | None = None) -> None:
    """Train a run and store it; with mixing, by the workers of ``engine``."""
    single, metric = task.recipe, metric_of(task.recipe)
    if single.training.ensemble is not None and task.dev is not None:
        lists = task.training, task.dev
        run_ = train_ensemble(task.name, single, *lists, metric, task.digests, task.stored, engine)
    else:
        run_ = train_run(task.name, single, task.training, task.dev, metric, task.digests, task.stored, engine)
    if isinstance(single, TextRecipe) and task.tuned is not None and task.table is not None:
        tune_run(run_, single, task.tuned, task.dev, metric, task.table)
    run_.save(task.stored)


def _digests(data: Data, single: ListRecipe) -> tuple[str, ...]:
    """Digests of what a run depends on: the lists of training, of dev and of MERT, the code that trains, and the model
    that it continues from."""
    mert = single.mert if isinstance(single, TextRecipe) else None
    splits = [single.data.dev, mert.split if mert is not None else None]
    lists = [data.others[split].key for split in splits if split]
    warm = single.training.warm_start
    return data.key, *lists, _code(single), *([] if warm is None else [read_object(Path(warm) / HEADER)["digest"]])


def _code(recipe: ListRecipe) -> str:
    """Digest of the code that trains: this program's, and that of the user's own parts."""
    return f"{code_digest(TRAINING)[:32]} {user_digest(recipe.model_dump())[:32]}"
