"""Every run of a recipe on every set, at every noise level, with every seed, on every fold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from os import cpu_count
from typing import Any

import numpy as np

from rerank.classification.data import ExampleSet
from rerank.classification.fitting import Fit, fit
from rerank.classification.recipe import ClassificationRecipe, Spec
from rerank.classification.results import Result
from rerank.classification.tuning import Map, tune

log = logging.getLogger("rerank")
Draw = Callable[[int], ExampleSet]  # from a seed to the set; the same for every seed where nothing is drawn


def seeds_of(recipe: ClassificationRecipe) -> tuple[int, ...]:
    """The seeds of all runs."""
    return recipe.seeds or (recipe.seed,)


@contextmanager
def workers(count: int | None) -> Iterator[Map]:
    """A map over so many threads (one a processor for None), in order; results do not depend on their number."""
    most = count or cpu_count() or 1
    if most == 1:
        yield map
        return
    with ThreadPoolExecutor(most) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or an interrupt nothing more is begun


def run_spec(spec: Spec, draw: Draw, noise: float, seeds: tuple[int, ...]) -> list[Result]:
    """The results of one run on one set at one noise level, by seed; tuned once, with the first seed."""
    sets = {seed: draw(seed) for seed in seeds}
    first = sets[seeds[0]]
    with workers(spec.recipe.training.workers) as run_all:
        tuned: dict[str, Any] = {}
        single = spec
        if spec.recipe.tune is not None:
            _warm_up(spec, first, noise, seeds[0])
            chosen = tune(spec, first.noisy(noise, seeds[0]), first.examples, run_all)
            single, tuned = chosen.applied(spec), chosen.as_dict()
        else:
            _warm_up(single, first, noise, seeds[0])
        jobs = [(seed, number) for seed in seeds for number in range(first.splits)]

        def carry_out(job: tuple[int, int]) -> tuple[Fit, dict[str, float], np.ndarray, int]:
            """One fold with one seed."""
            seed, number = job
            part = sets[seed].split(number, noise, seed)
            done = fit(single, part.train, part.test, seed=seed)
            done.training = None  # a fold's weights are not looked at again
            return done, done.errors(part.test.label), part.index, part.train.size

        outcomes = list(zip(jobs, run_all(carry_out, jobs), strict=True))
    return [
        _result(
            first.name,
            noise,
            spec,
            seed,
            [outcome for (other, _), outcome in outcomes if other == seed],
            sets[seed].tested.size,
            tuned,
        )
        for seed in seeds
    ]


def _warm_up(spec: Spec, examples: ExampleSet, noise: float, seed: int) -> None:
    """Fit a few examples, so that no fold's time holds the compilation of kernels."""
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
    outcomes: list[tuple[Fit, dict[str, float], np.ndarray, int]],
    tested: int,
    tuned: dict[str, Any],
) -> Result:
    predictions = {name: np.full(tested, -1, np.int64) for name in outcomes[0][1]}
    for done, _, index, _ in outcomes:
        for key, classes in done.predictions.items():
            predictions[key][index] = classes
    fits = [done for done, _, _, _ in outcomes]
    return Result(
        set=name,
        noise=noise,
        spec=spec,
        seed=seed,
        errors={key: [errors[key] for _, errors, _, _ in outcomes] for key in outcomes[0][1]},
        train_errors=[done.train_error for done in fits],
        seconds=[done.seconds for done in fits],
        updates=[done.updates for done in fits],
        mistakes=[done.mistakes for done in fits],
        predictions=predictions,
        size=outcomes[0][3],
        tuned=tuned,
        history=[{"fold": number, **line} for number, done in enumerate(fits) for line in done.history],
    )
