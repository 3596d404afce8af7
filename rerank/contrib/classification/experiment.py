"""A single run of a recipe over labelled examples, with every seed, on every fold."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from rerank.contrib.classification.fitting import Fit, fit
from rerank.contrib.classification.recipe import SourceSettings, Spec
from rerank.contrib.classification.results import Result
from rerank.contrib.classification.sets import Draw, ExampleSet, Split, load_set
from rerank.contrib.classification.tuning import applied, best_point, held_out_errors, points_of
from rerank.kernels.threads import thread_count
from rerank.pool import Engine

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@contextmanager
def workers(count: int | None) -> Iterator[Map]:
    """A map over this many threads (one per processor for None), in order; results do not depend on their number."""
    most = count or thread_count()
    if most == 1:
        yield map
        return
    with ThreadPoolExecutor(most) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or an interrupt nothing more is started


@lru_cache(maxsize=2)
def set_again(settings: bytes, seed: int) -> ExampleSet:
    """A set for a seed, in a worker that has not read it: from what ``load_set`` takes, pickled to be told apart."""
    data, name, source = pickle.loads(settings)
    return load_set(data, name, source, seed if source.generator is not None else 0)


class FoldJob(NamedTuple):
    """A fold with a seed, or a point of tuning, as a task: see ``fit_fold`` and ``errors_of``."""

    spec: Spec
    draw: Draw
    seed: int
    fold: int = 0

    def __str__(self) -> str:
        return f"fold {self.fold + 1} with seed {self.seed}"


def fit_fold(job: FoldJob) -> tuple[Fit, np.ndarray, int]:
    """Fit one fold with one seed; also which examples were tested, and how many trained."""
    examples = job.draw(job.seed)
    part = examples.split(job.fold, job.spec.noise, job.seed).shared(job.spec.recipe.training.share, job.seed)
    _warm_up(job.spec, part, job.seed)
    return fit(job.spec, part.train, part.test, seed=job.seed), part.index, part.train.size


def errors_of(job: FoldJob) -> list[list[float]]:
    """The held-out errors of a point of tuning."""
    examples = job.draw(job.seed)
    return held_out_errors(job.spec, examples.noisy(job.spec.noise, job.seed), examples.examples)


def run_spec(
    spec: Spec, draw: Draw, engine: Engine | None = None, source: SourceSettings | None = None
) -> list[Result]:
    """The results of a single run by seed; tuned once, with the first seed.

    Folds, and points of tuning, are tasks of ``engine``, whose workers read the set from its ``source``; in this
    process they are shared by threads.
    """
    seeds, place, single, tuned = spec.recipe.run_seeds, draw, spec, {}
    shared: AbstractContextManager[Map] = workers(spec.recipe.training.workers)
    if engine is not None and engine.workers > 1 and source is not None:
        place = partial(set_again, pickle.dumps((spec.recipe.data, spec.set, source)))
        shared = nullcontext(engine.map)
    with shared as run_all:
        if spec.recipe.tune is not None:
            points = [FoldJob(spec.at(point), place, seeds[0]) for point in points_of(spec)]
            tuned = best_point(spec, run_all(errors_of, points))
            single = applied(spec, tuned)
        jobs = [FoldJob(single, place, seed, fold) for seed in seeds for fold in range(draw(seeds[0]).splits)]
        outcomes = list(zip(jobs, run_all(fit_fold, jobs), strict=True))
    return [
        _result(spec, seed, [outcome for job, outcome in outcomes if job.seed == seed], draw(seed).tested.size, tuned)
        for seed in seeds
    ]


_WARM = set[str]()  # the recipes of single runs that this process has compiled the kernels for


def _warm_up(spec: Spec, part: Split, seed: int) -> None:
    """Fit a few examples of a set, once, so that no fold's time includes the compilation of kernels."""
    key = spec.recipe.model_dump_json()
    if spec.baseline is None and key not in _WARM:
        once = spec.at({"training.epochs": 1})
        few, some = (np.arange(min(4, side.size)) for side in (part.train, part.test))
        fit(once, part.train.take(few), part.test.take(some), seed=seed)
        _WARM.add(key)


def _result(
    spec: Spec, seed: int, outcomes: list[tuple[Fit, np.ndarray, int]], tested: int, tuned: dict[str, Any]
) -> Result:
    """The outcomes of all folds as one."""
    fits, places, sizes = zip(*outcomes, strict=True)
    predictions = {name: np.full(tested, -1, np.int64) for name in fits[0].errors}
    margins = np.full(tested, np.nan)
    for fitted, place in zip(fits, places, strict=True):
        if fitted.margins.size:
            margins[place] = fitted.margins
        for name, classes in fitted.predictions.items():
            predictions[name][place] = classes
    return Result(
        spec=spec,
        seed=seed,
        errors={name: [fitted.errors[name] for fitted in fits] for name in fits[0].errors},
        train_errors=[fitted.train_error for fitted in fits],
        seconds=[fitted.seconds for fitted in fits],
        updates=[fitted.updates for fitted in fits],
        mistakes=[fitted.mistakes for fitted in fits],
        predictions=predictions,
        margins=margins,
        size=sizes[0],
        tuned=tuned,
        history=[{"fold": number, **line} for number, fitted in enumerate(fits) for line in fitted.history],
    )
