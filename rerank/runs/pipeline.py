"""From a recipe to results: corpora (cached), runs, the choice of the best on dev, tests, artefacts."""

from __future__ import annotations

import dataclasses
import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

from rerank.base.errors import DataError, RecipeError
from rerank.data.shards import Lists
from rerank.engines.settings import Engine, LocalEngine
from rerank.extraction.content import content_of, metric_of
from rerank.extraction.content.base import make_reader
from rerank.extraction.content.sets import with_set
from rerank.extraction.extraction import paths_of
from rerank.features.table import Table, same_columns
from rerank.kernels.sources import TRAINING, code_digest, user_digest
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accepted
from rerank.metrics.base import Metric
from rerank.models.model import HEADER, Model
from rerank.models.provenance import provenance
from rerank.models.unscaled import raw_weights
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import files_named
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs.choice import blind, choose
from rerank.runs.corpora import Data
from rerank.runs.course import carry_out
from rerank.runs.decoding import check_decoding, decodings, tune_decoding
from rerank.runs.ensembles import check_ensemble, train_ensemble
from rerank.runs.figures import check_figures
from rerank.runs.learning import learning_curve
from rerank.runs.mert import check_mert, tune_run
from rerank.runs.opening import open_files
from rerank.runs.page import write_page
from rerank.runs.results import (
    RUNS,
    Metrics,
    evaluate_runs,
    forget_votes,
    prediction_files,
    save_selections,
    write_predictions,
)
from rerank.runs.run import TRAINED, Run, check_stored
from rerank.runs.stages import Stages
from rerank.runs.training import check_mixing, check_pairs, check_room, train_run, trained_on
from rerank.storage.strict_json import read_object
from rerank.storage.written import claim, remove_written

log = logging.getLogger("rerank")
CHOSEN = "chosen.yaml"  # the recipe that `rerank tune` leaves
RESULTS = (
    RUNS,
    "metrics.json",
    "history.jsonl",
    "report.html",
    "predictions",
    "figures",
    CHOSEN,
)  # what is removed before a new run


def extract(recipe: ListRecipe, directory: Path, engine: Engine | None = None) -> dict[str, Any]:
    """Build and cache all corpora of a recipe; returns their counts."""
    with Inputs() as inputs:
        check(recipe, inputs)
        recipe = with_set(recipe)
        data = Data.load(recipe, directory, recipe.splits[1:], engine, inputs)
        return data.counts(recipe, metric_of(recipe))


def run(
    recipe: ListRecipe,
    directory: Path,
    *,
    resume: bool = False,
    stages: tuple[str, ...] = ("train", "test"),
    engine: Engine | None = None,
) -> Metrics:
    """Carry out a recipe and leave its artefacts in ``directory``; returns the content of metrics.json.

    stages: "train" leaves the trained runs and the model, "test" evaluates them. resume: keep the runs that an
    interrupted call has finished. engine: whose workers extract and train, this process by default.

    Raises
    ------
    RerankError: see its subclasses.
    """
    both = "train" in stages and "test" in stages
    with Inputs() as inputs:
        check(recipe, inputs)
        recipe = with_set(recipe)
        if "train" not in stages and not (directory / RUNS).exists():
            message = (
                "no trained runs are kept here (a finished `rerank run` removes its own); run `rerank train` first"
            )
            raise DataError(message, path=str(directory))
        return carry_out(
            recipe,
            directory,
            lambda work: _stages(recipe, directory, work, stages, engine or LocalEngine(), inputs),
            results=RESULTS,
            inputs=_inputs(recipe),
            resume=resume,
            last=None if "train" not in stages else "report" if both else "model",
            code=_code(recipe),
            clean=lambda: remove_written(directory, [RUNS]) if both else forget_votes(directory),
        )


def _stages(
    recipe: ListRecipe, directory: Path, work: Stages, stages: tuple[str, ...], engine: Engine, inputs: Inputs
) -> Metrics:
    """Stage by stage; returns the content of metrics.json except for the stages and the time."""
    start = time.monotonic()
    for split in recipe.data.tests:
        for name in prediction_files(split):
            claim(directory, "predictions", name)
    metric = metric_of(recipe)
    tests = recipe.data.tests if "test" in stages else ()
    with work.stage("extract") as found:
        tuned = [recipe.mert.split] if isinstance(recipe, TextRecipe) and recipe.mert else []
        splits = (*([recipe.data.dev] if recipe.data.dev else []), *tuned, *tests)
        data = Data.load(recipe, directory, tuple(dict.fromkeys(splits)), engine, inputs)
        found |= data.size()
    with work.stage("train", runs=len(recipe.expand())) as found:
        if "train" in stages:
            _train_all(recipe, directory, data, engine)
        runs = _load_all(recipe, directory, data, work)
        found["epochs"] = sum(each.training["epochs_run"] for each in runs)
    chosen, choice = choose(recipe, runs, data, metric)
    if len(runs) > 1 and recipe.data.dev:
        log.info("best on dev: %s, seed %d", chosen.name, chosen.recipe.seed)
    with work.stage("decode", kinds=len(recipe.decoders)):
        tune_decoding(recipe, data, runs, metric, engine)
    with work.stage("model"):
        model = _model(recipe, chosen, data, metric, inputs)
        model.save(directory / "model")
    with work.stage("evaluate", splits=len(tests)):
        metrics = evaluate_runs(recipe, directory, data, metric, runs, chosen, tests)
        metrics |= {"choice": choice, "blind": blind(recipe, choice)}
    if "test" in stages:
        with work.stage("predict", splits=len(tests)):
            write_predictions(recipe, directory, data, model, chosen, tests)
            save_selections(directory, chosen, tests)
        if recipe.training.curve:
            with work.stage("curve", shares=len(recipe.training.curve)):
                train = partial(_train_share, name=chosen.name, directory=directory, data=data, engine=engine)
                metrics["curve"] = learning_curve(chosen, data, metric, tests, train)
        with work.stage("report"):
            write_page(recipe, directory, data, model, runs, chosen, metrics, time.monotonic() - start)
    return metrics


def check(recipe: ListRecipe, inputs: Inputs) -> None:
    """Build every part that the recipe names and open its files in ``inputs``, before anything is read or written.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    DataError: a file that does not exist or cannot be opened.
    """
    content_of(recipe)
    make_reader(recipe.data.reader)
    check_figures(recipe)
    check_decoding(recipe)
    for _, single in recipe.expand():
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
    open_files(recipe, inputs)


def _inputs(recipe: ListRecipe) -> list[str]:
    """All files that a run reads."""
    found = [path for split in recipe.splits for path in paths_of(recipe.data, split)]
    warm = recipe.training.warm_start
    return [*found, *files_named(recipe.model_dump()), *([] if warm is None else [str(Path(warm) / HEADER)])]


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


@dataclasses.dataclass(frozen=True)
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


def _train_all(recipe: ListRecipe, directory: Path, data: Data, engine: Engine) -> None:
    """Train and store all runs of the recipe that are not stored already, side by side where there are workers."""
    pending, shown = [], []
    expanded = recipe.expand()
    for number, (name, single) in enumerate(expanded):
        stored = claim(directory.absolute(), RUNS, f"{number:04d}")
        if (stored / TRAINED).exists():
            check_stored(stored, _digests(data, single))  # before others are trained in vain
            continue
        _check_warm_start(single, data.table)
        pending.append(_pending(name, single, data, stored))
        shown.append(f"run {number + 1} of {len(expanded)}: {name}, seed {single.seed}")
    if len(pending) > 1 and engine.workers > 1 and all(each.recipe.training.mixing is None for each in pending):
        log.info("training %d runs, %d at once", len(pending), min(engine.workers, len(pending)))
        for line, _ in zip(shown, engine.map(train_pending, pending), strict=True):
            log.info("%s: trained", line)
        return
    for line, each in zip(shown, pending, strict=True):
        log.info("%s", line)
        train_pending(each, engine)


def _pending(name: str, single: ListRecipe, data: Data, stored: Path) -> Pending:
    """A run with what it needs of the data."""
    dev = data.others[single.data.dev].corpus if single.data.dev else None
    mert = single.mert if isinstance(single, TextRecipe) else None
    tuned = data.others[mert.split].corpus if mert is not None else None
    table = data.table if mert is not None else None
    return Pending(name, single, data.training.corpus, dev, tuned, table, _digests(data, single), stored)


def _train_share(single: ListRecipe, *, name: str, directory: Path, data: Data, engine: Engine) -> Run:
    """The run of a share of the training lists, unless it is stored already."""
    share = single.training.share
    stored, digests = claim(directory.absolute(), RUNS, f"share-{share:g}"), _digests(data, single)
    if not (stored / TRAINED).exists():
        log.info("learning curve: %g %% of the training lists", 100 * share)
        train_pending(_pending(name, single, data, stored), engine)
    return Run.load(stored, name, single, digests)


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


def _load_all(recipe: ListRecipe, directory: Path, data: Data, work: Stages) -> list[Run]:
    """All runs of the recipe, from disk."""
    runs = []
    for number, (name, single) in enumerate(recipe.expand()):
        stored = directory.absolute() / RUNS / f"{number:04d}"
        if not (stored / TRAINED).exists():
            raise DataError("nothing is trained here; run `rerank train` first", path=str(directory))
        run_ = Run.load(stored, name, single, _digests(data, single))
        work.append({"run": name, "seed": single.seed, **line} for line in run_.history)
        runs.append(run_)
    return runs


def _model(recipe: ListRecipe, chosen: Run, data: Data, metric: Metric, inputs: Inputs) -> Model:
    """The chosen run as a model."""
    score, base = chosen.dev_score, chosen.training["base"]
    files = recipe.data.files(recipe.data.training)
    about = provenance(
        learner=chosen.training["learner"],
        run=chosen.name,
        seed=chosen.recipe.seed,
        epochs=chosen.training["epochs"],
        dev=None if score is None else {"split": base["split"], "measure": metric.primary, "score": score},
        training_data=trained_on(data.key, chosen.recipe),
        training_base=base["training"],
        files={kind: [inputs.digest(path) for path in paths] for kind, paths in files.items()},
        decodings=decodings(chosen),
        decode=chosen.training.get("decode", {}).get("use", ""),
    )
    settings = chosen.recipe.model_dump(mode="json")
    votes = chosen.votes(data.training.corpus)
    weights = {name: raw_weights(weights, data.table) for name, weights in chosen.weights.items()}
    brackets = chosen.brackets.arrays._asdict() if chosen.brackets else {}
    return Model(settings, about, data.table, weights, chosen.state, votes.arrays() if votes else {}, brackets)
