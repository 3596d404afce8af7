"""The course of a recipe, whatever it is about: one run in a directory, its stages, and metrics.json at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rerank.recipes.recipe import TaskRecipe
from rerank.runs.results import Metrics
from rerank.runs.stages import Stages
from rerank.storage.files import write_text
from rerank.storage.outputs import finished, output_directory, say_finished
from rerank.storage.strict_json import as_json


def carry_out(
    recipe: TaskRecipe,
    directory: Path,
    work: Callable[[Stages], Metrics],
    *,
    results: Sequence[str],
    inputs: Iterable[str],
    resume: bool,
    last: str | None,
    code: str,
    clean: Callable[[], None],
) -> Metrics:
    """Do the ``work`` of a recipe in ``directory``, unless it is done; returns the content of metrics.json.

    work: goes through the stages; returns that content except for stages, time and code. results: what a new run starts
    without; inputs: the files that are read; last: the stage that ends a finished run (None: the work is done in any
    case). code: the digest of the code that results depend on. clean: removes what only resumption needs.

    Raises
    ------
    RerankError: see its subclasses.
    """
    start = time.monotonic()
    with output_directory(directory, recipe.as_yaml(), results, resume=resume, inputs=inputs):
        done = finished(directory, {last}) if last is not None else None
        if done is None:
            stages = Stages(directory / "history.jsonl")
            done = work(stages)
            done |= {"stages": stages.summary(), "seconds": round(time.monotonic() - start, 3), "code": code}
            write_text(directory / "metrics.json", as_json(done, indent=1) + "\n")
        else:
            say_finished(directory, done, code)
        clean()
    return done
