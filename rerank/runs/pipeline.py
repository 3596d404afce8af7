"""From a recipe to results, whatever the recipe is about: one run in a directory, stage by stage."""

import logging
import time
from pathlib import Path
from typing import Any

from rerank.base.registry import imported
from rerank.pool import Engine
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.tasks import task_named
from rerank.runs.stages import Metrics, Stages, Steps
from rerank.storage.arrays import DAMAGE
from rerank.storage.files import write_text
from rerank.storage.outputs import RUNS, output_directory, output_file, remove_results
from rerank.storage.strict_json import as_json, read_object

log = logging.getLogger("rerank")
CHOSEN = "chosen.yaml"  # the recipe that `rerank tune` leaves
# What is removed before a new run.
RESULTS = (RUNS, "metrics.json", "history.jsonl", "report.html", "predictions", "figures", CHOSEN)


def extract(recipe: TaskRecipe, directory: Path, engine: Engine | None = None) -> dict[str, Any]:
    """Read everything that a recipe is about, build and cache the corpora of lists; returns their counts."""
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, engine=engine)
        steps.extract()
        return steps.counts()


def run(
    recipe: TaskRecipe,
    directory: Path,
    *,
    resume: bool = False,
    tests: bool = True,
    engine: Engine | None = None,
) -> Metrics:
    """Carry out a recipe and leave its artefacts in ``directory``; returns the content of metrics.json.

    tests: evaluate the model on the test splits, and report; without, the model and the trained runs are left. resume:
    keep what an earlier call has finished. engine: whose workers extract, train and fit, this process by default.
    """
    start = time.monotonic()
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, tests, engine)
        path, last = directory / "metrics.json", "report" if tests else "model"
        with output_directory(
            directory, steps.recipe.as_yaml(), RESULTS + steps.results, resume=resume, inputs=steps.files
        ):
            try:
                done = read_object(path)
                finished = last in dict(done["stages"]) and "code" in done
            except DAMAGE:
                finished = False
            if not finished:
                work = Stages(directory / "history.jsonl")
                done = _stages(steps, work, start)
                done |= {"stages": work.summary(), "seconds": _since(start), "code": steps.code}
                write_text(path, as_json(done, indent=1) + "\n")
            elif done["code"] == steps.code:
                log.info("%s: already finished; run it without --resume to do it again", directory)
            else:
                message = "%s: already finished, by a program or a module of yours that has changed since; "
                log.warning(message + "run it without --resume to do it again", directory)
            if tests:
                remove_results(directory, [RUNS])
            return done


def fitted(recipe: TaskRecipe, directory: Path, engine: Engine) -> Any:
    """The model that a recipe makes, without its artefacts; what work leaves on the way is in ``directory``."""
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, tests=False, engine=engine)
        steps.extract()
        steps.train(Stages(None))
        steps.decode()
        return steps.model()


def check(
    recipe: TaskRecipe,
    inputs: Inputs,
    directory: Path = Path(),
    tests: bool = True,
    engine: Engine | None = None,
) -> Steps[Any]:
    """The steps of a recipe, all of whose parts can be built and whose files are open in ``inputs``, before anything
    is read or written; raises what ``Steps.check`` does."""
    kind: type[Steps[Any]] = imported(task_named(recipe.task).steps)
    steps = kind(recipe, directory, tests, engine or Engine(), inputs)
    steps.check()
    return steps


def _stages(steps: Steps[Any], work: Stages, start: float) -> Metrics:
    """Stage by stage; returns the content of metrics.json except for the stages, the time and the code."""
    recipe = steps.recipe
    for name in steps.predictions:
        output_file(steps.directory, "predictions", name)
    with work.stage("extract") as line:
        line |= steps.extract()
    with work.stage("train", runs=len(steps.singles)) as line:
        line |= steps.train(work)
    with work.stage("decode", kinds=len(recipe.decoders)):
        steps.decode()
    with work.stage("model"):
        model = steps.model()
        if model is not None:
            model.save(steps.directory / "model")
    with work.stage("evaluate", **steps.size):
        metrics = steps.evaluate()
    if (second := steps.second()) is not None:
        with work.stage("rerank"):
            steps.add_second(metrics, run(*second, engine=steps.engine))
    if steps.tests:
        with work.stage("predict", **steps.size):
            steps.predict()
        if recipe.training.curve:
            with work.stage("curve", shares=len(recipe.training.curve)):
                metrics["curve"] = steps.curve()
        with work.stage("report"):
            steps.report(metrics, _since(start))
    return metrics


def _since(start: float) -> float:
    return round(time.monotonic() - start, 3)
