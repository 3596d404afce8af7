"""A recipe of classification carried out: experiments, tables, figures, predictions, model, report."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.base.errors import RecipeError
from rerank.base.names import file_name
from rerank.base.progress import track
from rerank.classification.baselines import make_baseline
from rerank.classification.data import ExampleSet, load_set, load_sets
from rerank.classification.drawing import Traced, check_figures, draw_results, draw_traces, traces_of
from rerank.classification.experiment import Draw, SetOrigin, run_spec, seeds_of
from rerank.classification.figures import FigureDrawing
from rerank.classification.fitting import make_learner
from rerank.classification.kept import code_of, key_of, load_results, save_results
from rerank.classification.models import train_model
from rerank.classification.page import Outcome, write_page
from rerank.classification.predictions import significance_of, write_predictions, write_selections
from rerank.classification.results import Result
from rerank.classification.tables import as_data, tables_of
from rerank.classification.tuning import points_of
from rerank.engines.settings import Engine
from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import ClassificationRecipe, SourceSettings, Spec
from rerank.recipes.settings import files_named
from rerank.runs.stages import Stages
from rerank.storage.files import write_text
from rerank.storage.outputs import finished, output_directory, say_finished
from rerank.storage.strict_json import as_json
from rerank.storage.written import claim, remove_written

log = logging.getLogger("rerank")
Metrics = dict[str, Any]
KEPT = ".runs"  # in an output directory: finished results, until the recipe is done
RESULTS = (KEPT, "metrics.json", "history.jsonl", "report.html", "predictions", "figures", "model")


@dataclass
class Store:
    """The sets of a recipe, read when they are needed; drawn ones by seed."""

    recipe: ClassificationRecipe
    sets: dict[str, SourceSettings]
    counts: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)  # of the tested examples, by the first seed

    @staticmethod
    def of(recipe: ClassificationRecipe) -> Store:
        """The sets of ``recipe``, after a check that all files exist."""
        return Store(recipe, dict(load_sets(recipe)))

    def draw(self, name: str) -> Draw:
        """The function from a seed to the set; sets that are not drawn are read once."""
        source = self.sets[name]
        kept: dict[int, ExampleSet] = {}

        def drawn(seed: int) -> ExampleSet:
            """The set for a seed, kept in memory."""
            key = seed if source.generator is not None else 0
            if key not in kept:
                start = time.perf_counter()
                kept[key] = load_set(self.recipe.data, name, source, seed)
                self.counts.setdefault(name, _counts(kept[key], time.perf_counter() - start))
            return kept[key]

        return drawn


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
        log.warning("set %s: %s values of features that training has not are left out", found.name, f"{dropped:,}")
    return counts


def check(recipe: ClassificationRecipe) -> Store:
    """Build every part that the recipe names and look for its files, before anything is read or written.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    DataError: a file that does not exist or cannot be opened.
    """
    check_parts(recipe)
    return Store.of(recipe)


def check_parts(recipe: ClassificationRecipe) -> None:
    """Build every learner, baseline and figure that the recipe names.

    Raises
    ------
    RecipeError: an unknown part or setting, or settings that exclude one another.
    """
    if recipe.metric != {"name": "error"}:
        raise RecipeError(f"found {recipe.metric}; classification is measured by {{name: error}}", key="metric")
    for spec in recipe.expand():
        for single in [spec.at(point) for point in points_of(spec)] if spec.recipe.tune else [spec]:
            if single.baseline is not None:
                make_baseline(single.baseline, f"runs.{spec.run}.baseline")
            else:
                make_learner(single)
    check_figures(recipe)


def extract(recipe: ClassificationRecipe) -> dict[str, Any]:
    """Read all sets of a recipe; returns their counts."""
    store = check(recipe)
    for name in store.sets:
        store.draw(name)(seeds_of(recipe)[0])
    return store.counts


def run(
    recipe: ClassificationRecipe,
    directory: Path,
    *,
    resume: bool = False,
    stages: tuple[str, ...] = ("train", "test"),
    engine: Engine | None = None,
) -> Outcome:
    """Carry out a recipe and leave its artefacts in ``directory``.

    resume: keep the results that an interrupted call has finished. stages: with "train" alone, only the model is
    trained, on all training examples of the one set. engine: whose workers fit folds and points of tuning; threads of
    this process by default.

    Raises
    ------
    RerankError: see its subclasses.
    """
    start = time.monotonic()
    store = check(recipe)
    specs = recipe.expand()
    if "test" not in stages and not _single(recipe, store, specs):
        raise RecipeError("one set, one noise level and one run make a model; leave the others out", key="runs")
    inputs = files_named(recipe.model_dump(), recipe.data.root)
    with output_directory(directory, recipe.as_yaml(), RESULTS, resume=resume, inputs=inputs):
        done = finished(directory, {"report" if "test" in stages else "model"})
        if done is not None:
            say_finished(directory, done, code_of(recipe.model_dump(mode="json")))
            return Outcome(done, [])
        work = Stages(directory / "history.jsonl")
        outcome = _carry_out(recipe, store, specs, directory, work, stages, engine)
        outcome.metrics["stages"] = work.summary()
        outcome.metrics["seconds"] = round(time.monotonic() - start, 3)
        outcome.metrics["code"] = code_of(recipe.model_dump(mode="json"))
        write_text(directory / "metrics.json", as_json(outcome.metrics, indent=1) + "\n")
        remove_written(directory, [KEPT])
    return outcome


def _carry_out(
    recipe: ClassificationRecipe,
    store: Store,
    specs: Sequence[Spec],
    directory: Path,
    work: Stages,
    stages: tuple[str, ...],
    engine: Engine | None,
) -> Outcome:
    """Stage by stage; the metrics lack stages and time."""
    start = time.monotonic()
    results: list[Result] = []
    traced: dict[str, Traced] = {}
    if "test" in stages:
        with work.stage("experiments", sets=len(store.sets), runs=len(specs)) as found:
            results, traced = _experiments(recipe, store, specs, directory, engine)
            found["results"] = len(results)
        work.append(line for each in results for line in _history(each))
    if _single(recipe, store, specs):
        with work.stage("model"):
            (name,) = store.sets
            tuned = results[0].tuned if results else None
            train_model(recipe, specs[0], store.draw(name)(seeds_of(recipe)[0]), tuned).save(directory / "model")
    if len(results) == 1:
        label = store.labels[results[0].set]
        write_selections(claim(directory, "predictions", "test.selections.npz"), results[0], label)
    outcome = Outcome(_metrics(recipe, store, results), [])
    if results:
        with work.stage("report"):
            outcome.metrics["significance"] = significance_of(recipe, store.labels, results)
            outcome.tables += tables_of(recipe, results)
            outcome.drawings += _draw(recipe, results, traced, directory)
            outcome.metrics["seconds"] = round(time.monotonic() - start, 3)
            write_page(directory / "report.html", recipe, outcome)
    return outcome


def _single(recipe: ClassificationRecipe, store: Store, specs: Sequence[Spec]) -> bool:
    """Is it one learner, one set, one noise level, one seed? Then there is a model."""
    several = len(store.sets) > 1 or len(specs) > 1 or len(recipe.data.noise) > 1 or len(seeds_of(recipe)) > 1
    return not several and specs[0].baseline is None


def _experiments(
    recipe: ClassificationRecipe, store: Store, specs: Sequence[Spec], directory: Path, engine: Engine | None
) -> tuple[list[Result], dict[str, Traced]]:
    """All results, set by set, and what the figures measure on the way."""
    results: list[Result] = []
    traced: dict[str, Traced] = {}

    def jobs() -> Iterator[tuple[str, Draw, float, Spec]]:
        """Every run on every set at every noise level; after each set, what needs all of it."""
        for name in store.sets:
            draw = store.draw(name)
            for noise in recipe.data.noise:
                for spec in specs:
                    yield name, draw, noise, spec
            for figure in recipe.figures:
                if figure.kind in ("online", "stream"):
                    traced.setdefault(figure.name, {}).update(traces_of(recipe, specs, draw, figure))
            own = [each for each in results if each.set == name]
            examples = draw(seeds_of(recipe)[0])
            store.labels[name] = examples.tested.label
            write_predictions(directory, examples, own)

    total = len(store.sets) * len(recipe.data.noise) * len(specs)
    for name, draw, noise, spec in track(jobs(), recipe.name, total=total, unit="runs"):
        key = key_of(draw(seeds_of(recipe)[0]), noise, spec)
        found = load_results(directory / KEPT, key, spec)
        if found is None:
            origin = SetOrigin.of(recipe.data, name, store.sets[name])
            found = run_spec(spec, draw, noise, seeds_of(recipe), engine, origin)
            claim(directory, KEPT, f"{key}.json")
            save_results(directory / KEPT, key, found)
        results += found
        error = float(np.mean([np.mean(each.values("error")) for each in found]))
        level = f", noise {noise:g}" if noise else ""
        chosen = f" ({_chosen(found[0].tuned)})" if found[0].tuned else ""
        log.info("%s%s, %s%s: error %.2f %%", name, level, spec.name, chosen, 100 * error)
    return results, traced


def _chosen(tuned: dict[str, Any]) -> str:
    """What tuning chose, in words."""
    values = [f"{key.split('.')[-1]} {value}" for key, value in tuned.items() if "." in key]
    if tuned["held_out_error"] == tuned.get("default_error") and not values:
        values = ["the recipe's settings"]
    return ", ".join([*values, *([f"{tuned['epochs']} epochs"] if tuned["epochs"] else [])]) or "nothing to tune"


def _metrics(recipe: ClassificationRecipe, store: Store, results: Sequence[Result]) -> Metrics:
    """The content of metrics.json except for significance and time."""
    single = len(results) == 1
    return {
        "schema": 1,
        "task": recipe.task,
        "name": recipe.name,
        "seed": seeds_of(recipe)[0],
        "version": __version__,
        "metric": Classification().signature,
        "corpora": store.counts,
        "reported": recipe.reported.model_dump() if recipe.reported else None,
        "splits": {"test": results[0].splits()} if single else {},
        "tables": as_data(recipe, results) if results else {},
        "significance": {},
        "runs": [each.entry() for each in results],
    }


def _history(result: Result) -> list[dict[str, Any]]:
    place = {"run": result.spec.name, "set": result.set, "noise": result.noise, "seed": result.seed}
    return [place | line for line in result.history]


def _draw(
    recipe: ClassificationRecipe, results: Sequence[Result], traced: dict[str, Traced], directory: Path
) -> list[FigureDrawing]:
    drawings = []
    for figure in recipe.figures:
        if figure.kind in ("online", "stream"):
            drawings += draw_traces(figure, traced[figure.name])
        else:
            drawings += draw_results(recipe, figure, results)
    for drawing in drawings:
        write_text(claim(directory, "figures", f"{file_name(drawing.name)}.svg"), drawing.standalone())
    return drawings
