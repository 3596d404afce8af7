"""What a run leaves behind: metrics, predictions, selections."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.base.progress import track
from rerank.data.shards import first_candidates, list_sizes
from rerank.extraction.content import content_of
from rerank.extraction.extraction import Extracted
from rerank.metrics.base import Metric
from rerank.models.dense_line import NAME, dense_line
from rerank.models.model import Model
from rerank.models.scorer import Scorer, write_ranked
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import open_output
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.ranking import ranked_lists
from rerank.runs.run import UNFINISHED, Run
from rerank.storage.files import remove
from rerank.storage.written import claim

Metrics = dict[str, Any]
RUNS = ".runs"  # in an output directory: the trained runs, until the recipe is done


def evaluate_runs(
    recipe: ListRecipe,
    directory: Path,
    data: Data,
    metric: Metric,
    runs: list[Run],
    chosen: Run,
    tests: tuple[str, ...],
) -> Metrics:
    """The content of metrics.json; evaluates every run on the test splits."""
    for number, each in enumerate(runs):
        place = directory.absolute() / RUNS / f"{number:04d}"
        for split in tests:
            each.evaluate(split, data.others[split], data.training.corpus, metric, place)
        each.forget_votes()
    line = dense_line(data.training.corpus, data.table) if tests else None
    if line is not None:
        for split in tests:
            chosen.evaluate_beside(split, NAME, line.weights, data.others[split], metric)
    columns = ScoreColumns.of_table(data.table.about)
    signatures = {split: _describe(recipe, split, data.others[split], chosen, columns) for split in tests}
    entries = [each.entry() for each in runs]
    own = chosen.entry()
    return {
        "schema": 1,
        "task": recipe.task,
        "name": recipe.name,
        "seed": chosen.recipe.seed,
        "version": __version__,
        "metric": metric.signature,
        "measure": metric.primary,
        "signatures": signatures,
        "corpora": data.counts(recipe, metric),
        "features": {key: value for key, value in data.table.about.items() if key != "templates"},
        "dev_split": own["training"]["base"]["split"],
        "reported": recipe.reported.model_dump() if recipe.reported else None,
        "chosen": {"name": chosen.name, "seed": chosen.recipe.seed},
        "predictor": recipe.predictor,
        NAME: line.about if line is not None else None,
        "training": own["training"],
        "splits": own["splits"],
        "significance": own["significance"],
        "runs": entries,
    }


def _describe(
    recipe: ListRecipe, split: str, extracted: Extracted, chosen: Run, columns: ScoreColumns | None
) -> dict[str, str]:
    """Add what needs the texts to the chosen run's reports of a split; returns the signatures of measures."""
    first = first_candidates(extracted.corpus)
    places = {name: np.where(choice >= 0, choice - first, -1) for name, choice in chosen.choices[split].items()}
    content = content_of(recipe, columns=columns)
    lists = content.read_again(recipe.data, split, extracted.ids, list_sizes(extracted.corpus))
    found = content.describe(split, lists, places)
    for name, measures in found.reports.items():
        chosen.splits[split][name] = {**chosen.splits[split][name], **measures}
    return found.signatures


def forget_votes(directory: Path) -> None:
    """Remove what voting has left next to the runs in an output directory: it is done."""
    for place in (directory / RUNS).glob(f"*/{UNFINISHED}"):
        remove(place)


def prediction_files(split: str) -> tuple[str, str]:
    """What ``write_predictions`` and ``save_selections`` write for a split, below ``predictions``."""
    return f"{split}.nbest.gz", f"{split}.selections.npz"


def save_selections(directory: Path, chosen: Run, tests: tuple[str, ...]) -> None:
    """The statistics of what the chosen run selects, for `rerank compare`."""
    for split in tests:
        chosen.selections[split].save(claim(directory, "predictions", prediction_files(split)[1]))


def write_predictions(
    recipe: ListRecipe, directory: Path, data: Data, model: Model, chosen: Run, tests: tuple[str, ...]
) -> None:
    """Every test split in the input's own format, candidates in the model's order."""
    for split in tests:
        scorer = Scorer(model, recipe.predictor)
        target = claim(directory, "predictions", prediction_files(split)[0])
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_output(target) as out:
            extracted = data.others[split]
            ranked = ranked_lists(scorer, recipe.data, split, extracted, chosen.weights[recipe.predictor])
            total = extracted.corpus.list_count
            write_ranked(out, scorer.reader, track(ranked, f"predict {split}", total=total))


def environment() -> list[str]:
    """Lines about machine, Python and libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return [
        f"rerank {__version__}",
        f"Python {platform.python_version()}, {libraries}",
        f"{platform.system()} {platform.machine()}",
    ]
