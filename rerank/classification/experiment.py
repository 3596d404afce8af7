"""Every run of a recipe on every set, at every noise level, with every seed, on every fold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from rerank.classification.data import ExampleSet, load_set
from rerank.classification.fitting import Fit, fit
from rerank.classification.results import Result
from rerank.classification.tuning import Map, best_point, held_out_errors, points_of, tune
from rerank.engines.settings import Engine
from rerank.recipes.example_recipe import ClassificationRecipe, ExampleData, SourceSettings, Spec

log = logging.getLogger("rerank")
Draw = Callable[[int], ExampleSet]  # from a seed to the set; the same for every seed where nothing is drawn


def seeds_of(recipe: ClassificationRecipe) -> tuple[int, ...]:
    """The seeds of all runs."""
    return recipe.seeds or (recipe.seed,)


@contextmanager
def workers(count: int | None) -> Iterator[Map]:
    """A map over so many threads (one per processor for None), in order; results do not depend on their number."""
    most = count or cpu_count() or 1
    if most == 1:
        yield map
        return
    with ThreadPoolExecutor(most) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or an interrupt nothing more is started


@dataclass(frozen=True)
class SetOrigin:
    """Where a set comes from, for workers that have not read it: its name, and its settings as JSON."""

    name: str
    data: str
    source: str

    @staticmethod
    def of(data: ExampleData, name: str, source: SourceSettings) -> SetOrigin:
        """The origin of a set of a recipe."""
        return SetOrigin(name, data.model_dump_json(), source.model_dump_json())


@lru_cache(maxsize=2)
def drawn(origin: SetOrigin, seed: int) -> ExampleSet:
    """The set for a seed; a worker keeps the last ones."""
    data, source = ExampleData.model_validate_json(origin.data), SourceSettings.model_validate_json(origin.source)
    return load_set(data, origin.name, source, seed if source.generator is not None else 0)


class FoldJob(NamedTuple):
    """A fold with a seed, or a point of tuning, as a task of an engine; see ``fit_fold`` and ``errors_of``."""

    spec: Spec
    origin: SetOrigin
    noise: float
    seed: int
    fold: int = 0


class FoldOutcome(NamedTuple):
    """The result of a fold: the fit, its errors by predictor, which examples were tested, and how many trained."""

    fit: Fit
    errors: dict[str, float]
    tested: np.ndarray
    size: int


def fit_fold(spec: Spec, examples: ExampleSet, noise: float, seed: int, fold: int) -> FoldOutcome:
    """Fit one fold with one seed."""
    part = examples.split(fold, noise, seed)
    done = fit(spec, part.train, part.test, seed=seed)
    done.training = None  # a fold's weights are not needed again
    return FoldOutcome(done, done.errors(part.test.label), part.index, part.train.size)


def fit_job(job: FoldJob) -> FoldOutcome:
    """``fit_fold``, as a task."""
    _warm_up_once(job.spec.model_dump_json(), job.origin, job.noise, job.seed)
    return fit_fold(job.spec, drawn(job.origin, job.seed), job.noise, job.seed, job.fold)


def errors_of(job: FoldJob) -> list[list[float]]:
    """The held-out errors of a point of tuning, as a task."""
    examples = drawn(job.origin, job.seed)
    return held_out_errors(job.spec, examples.noisy(job.noise, job.seed), examples.examples)


def run_spec(
    spec: Spec,
    draw: Draw,
    noise: float,
    seeds: tuple[int, ...],
    engine: Engine | None = None,
    origin: SetOrigin | None = None,
) -> list[Result]:
    """The results of one run on one set at one noise level, by seed; tuned once, with the first seed.

    Folds, and points of tuning, are tasks of ``engine``, whose workers read the set by its ``origin``; in this process
    they are shared by threads.
    """
    sets = {seed: draw(seed) for seed in seeds}
    first = sets[seeds[0]]
    noisy, clean = first.noisy(noise, seeds[0]), first.examples
    jobs = [(seed, number) for seed in seeds for number in range(first.splits)]
    single, tuned = spec, None
    if engine is not None and engine.workers > 1 and origin is not None:
        if spec.recipe.tune is not None:
            points = [FoldJob(spec.at(point), origin, noise, seeds[0]) for point in points_of(spec)]
            tuned = best_point(spec, engine.map(errors_of, points))
            single = tuned.applied(spec)
        tasks = [FoldJob(single, origin, noise, seed, number) for seed, number in jobs]
        found = list(zip(jobs, engine.map(fit_job, tasks), strict=True))
    else:
        with workers(spec.recipe.training.workers) as run_all:
            _warm_up(spec, first, noise, seeds[0])
            if spec.recipe.tune is not None:
                tuned = tune(spec, noisy, clean, run_all)
                single = tuned.applied(spec)

            def carry_out(job: tuple[int, int]) -> FoldOutcome:
                """One fold with one seed."""
                return fit_fold(single, sets[job[0]], noise, *job)

            found = list(zip(jobs, run_all(carry_out, jobs), strict=True))
    entry = tuned.as_dict() if tuned is not None else {}
    by_seed = {seed: [outcome for (other, _), outcome in found if other == seed] for seed in seeds}
    return [_result(first.name, noise, spec, seed, by_seed[seed], sets[seed].tested.size, entry) for seed in seeds]


@lru_cache(maxsize=64)
def _warm_up_once(spec: str, origin: SetOrigin, noise: float, seed: int) -> None:
    """``_warm_up``, in a worker."""
    _warm_up(Spec.model_validate_json(spec), drawn(origin, seed), noise, seed)


def _warm_up(spec: Spec, examples: ExampleSet, noise: float, seed: int) -> None:
    """Fit a few examples, so that no fold's time includes the compilation of kernels."""
    if spec.baseline is None:
        part = examples.split(0, noise, seed)
        small = spec.recipe.training.model_copy(update={"epochs": 1})
        once = spec.model_copy(update={"recipe": spec.recipe.model_copy(update={"training": small})})
        few = np.arange(min(4, part.train.size))
        fit(once, part.train.take(few), part.test.take(np.arange(min(4, part.test.size))), seed=seed)


def _result(
    name: str,
    noise: float,
    spec: Spec,
    seed: int,
    outcomes: list[FoldOutcome],
    tested: int,
    tuned: dict[str, Any],
) -> Result:
    predictions = {name: np.full(tested, -1, np.int64) for name in outcomes[0].errors}
    for outcome in outcomes:
        for key, classes in outcome.fit.predictions.items():
            predictions[key][outcome.tested] = classes
    fits = [outcome.fit for outcome in outcomes]
    return Result(
        set=name,
        noise=noise,
        spec=spec,
        seed=seed,
        errors={key: [outcome.errors[key] for outcome in outcomes] for key in outcomes[0].errors},
        train_errors=[done.train_error for done in fits],
        seconds=[done.seconds for done in fits],
        updates=[done.updates for done in fits],
        mistakes=[done.mistakes for done in fits],
        predictions=predictions,
        size=outcomes[0].size,
        tuned=tuned,
        history=[{"fold": number, **line} for number, done in enumerate(fits) for line in done.history],
    )
