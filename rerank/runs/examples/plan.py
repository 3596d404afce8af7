"""A recipe of classification, checked before anything is read or written: its runs, its sets, its parts."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.learn.contract import accepted
from rerank.recipes.example_recipe import ClassificationRecipe, SourceSettings, Spec
from rerank.runs.examples.baselines import make_baseline
from rerank.runs.examples.data import ExampleSet, load_set, load_sets
from rerank.runs.examples.drawing import check_figures
from rerank.runs.examples.experiment import Draw
from rerank.runs.examples.fitting import make_learner
from rerank.runs.examples.tuning import points_of

log = logging.getLogger("rerank")


@dataclass
class Plan:
    """A recipe that has been checked, with its runs at every point and its sets, which are read when they are needed.

    counts: what metrics.json says about the sets that were read; labels: of the tested examples, by the first seed.
    """

    recipe: ClassificationRecipe
    specs: list[Spec]
    sets: dict[str, SourceSettings]
    counts: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    _drawn: dict[str, Draw] = field(default_factory=dict)

    @property
    def single(self) -> bool:
        """Is it one learner, one set, one noise level, one seed? Then there is a model."""
        axes = (self.sets, self.specs, self.recipe.data.noise, self.recipe.run_seeds)
        return all(len(axis) == 1 for axis in axes) and self.specs[0].baseline is None

    def draw(self, name: str) -> Draw:
        """The function from a seed to the set, which is kept in memory until another one is asked for."""
        if name not in self._drawn:
            self._drawn = {name: self._draw(name)}
        return self._drawn[name]

    def _draw(self, name: str) -> Draw:
        source = self.sets[name]

        @cache
        def drawn(seed: int) -> ExampleSet:
            start = time.perf_counter()
            found = load_set(self.recipe.data, name, source, seed)
            self.counts.setdefault(name, _counts(found, time.perf_counter() - start))
            return found

        return lambda seed: drawn(seed if source.generator is not None else 0)


def _counts(found: ExampleSet, seconds: float) -> dict[str, Any]:
    """What metrics.json says about a set."""
    labels = np.bincount(found.examples.label, minlength=len(found.examples.classes))
    counts = {
        "examples": found.examples.size,
        "test_examples": found.tested.size,
        "nonzeros": found.examples.nonzeros,
        "columns": found.examples.width,
        "classes": dict(zip(found.examples.classes, labels.tolist(), strict=True)),
        "splits": found.splits,
        "seconds": round(seconds, 3),
    }
    dropped = found.test.dropped if found.test is not None else 0
    if dropped:
        log.warning(
            "set %s: %s values of features that the training examples do not have are left out",
            found.name,
            f"{dropped:,}",
        )
    return counts


def check(recipe: ClassificationRecipe) -> Plan:
    """Build every part that the recipe names and look for its files, before anything is read or written.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    DataError: a file that does not exist or cannot be opened.
    """
    return Plan(recipe, check_parts(recipe), load_sets(recipe))


def check_parts(recipe: ClassificationRecipe) -> list[Spec]:
    """Build every learner, baseline and figure that the recipe names; returns its runs.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    """
    if recipe.metric != {"name": "error"}:
        raise RecipeError(f"found {recipe.metric}; classification is measured by {{name: error}}", key="metric")
    specs = recipe.expand()
    for spec in specs:
        for single in [spec.at(point) for point in points_of(spec)] if spec.recipe.tune else [spec]:
            if single.baseline is not None:
                make_baseline(single.baseline, f"runs.{spec.run}.baseline")
            else:
                accepted(make_learner(single))
    check_figures(recipe, specs)
    return specs
