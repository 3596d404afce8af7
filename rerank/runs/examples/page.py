"""The report of a classification recipe as one self-contained HTML page."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.runs.examples.predictions import Tested
from rerank.runs.examples.results import Result
from rerank.runs.examples.shown import best_of, confusion_table, fold_figures, groups_of
from rerank.runs.examples.summary import summary
from rerank.runs.examples.tables import tables_of
from rerank.runs.examples.tuning import Tuned
from rerank.runs.learning import shown_curve
from rerank.runs.report.html import fill, frame
from rerank.runs.report.lines import FigureDrawing
from rerank.runs.report.measures import MEASURES, NONE, count, duration, signed
from rerank.runs.report.sections import learning
from rerank.runs.report.table import TextTable
from rerank.runs.report.verdict import verdict
from rerank.runs.results import environment
from rerank.storage.files import write_text

UNIT = "examples"
ERROR = next(measure for measure in MEASURES if measure.key == Classification.primary)


def write_page(
    path: Path,
    recipe: ClassificationRecipe,
    metrics: Mapping[str, Any],
    *,
    seconds: float,
    results: Sequence[Result],
    tested: Mapping[str, Tested],
    features: TextTable | None,
    drawings: Sequence[FigureDrawing],
) -> None:
    """Write the report to ``path``; tested: the tested examples of every set; features: the strongest of the model.

    Raises
    ------
    RunError: it cannot be written.
    """
    ended = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
    runs = len(metrics["runs"])
    compared = significance_tables(metrics)
    optional = [("Features", features is not None), ("Significance", bool(compared))]
    sections = ["Results", "Errors", *(title for title, there in optional if there), "Training", "Data"]
    content = frame(
        title=recipe.name,
        task=recipe.task,
        about=recipe.about,
        facts=[ended, f"{runs} result{'s' if runs > 1 else ''}", duration(seconds)],
        sections=sections,
        summary=summary(recipe, metrics, tested, results),
        recipe=recipe.as_yaml(),
        provenance=[("finished", ended), ("version", f"rerank {metrics['version']}"), ("metric", metrics["metric"])],
        environment=environment(),
    ) | {
        "tables": tables_of(recipe, metrics["tables"]),
        "significance": compared,
        "tuned": tuned_table(metrics),
        "data": sets_table(metrics["corpora"]),
        "training": training_table(metrics),
        "learning": [
            learning(shown_curve(each, ERROR, unit=UNIT), ERROR) for each in metrics.get("curve", {}).values()
        ],
        "figures": figures_of(drawings),
        "errors": [_errors(name, own, tested[name]) for name, own in groups_of(results).items()],
        "features": features,
    }
    write_text(path, fill("classification.html.j2", content))


def figures_of(drawings: Sequence[FigureDrawing]) -> list[dict[str, Any]]:
    """Figures as the page shows them."""
    return [{"svg": Markup(each.svg), "caption": each.caption} for each in drawings]


def _errors(name: str, results: Sequence[Result], tested: Tested) -> dict[str, Any]:
    """What is wrong in one set."""
    confusions = confusion_table(best_of(results), tested.label, tested.classes)
    tables = [confusions, *([tested.hardest] if tested.hardest.rows else [])]
    return {"set": name, "figures": figures_of(fold_figures(results)), "tables": tables}


def sets_table(corpora: Mapping[str, Any]) -> TextTable:
    """How large the sets are."""
    rows = [
        [
            name,
            *(count(entry[key]) for key in ("examples", "test_examples", "nonzeros", "columns", "splits")),
            ", ".join(f"{label}: {number:,}" for label, number in entry["classes"].items()),
        ]
        for name, entry in corpora.items()
    ]
    headings = ["set", "examples", "tested", "nonzeros", "columns", "divisions", "examples of each class"]
    return TextTable("Sets", headings, rows)


def training_table(metrics: Mapping[str, Any]) -> TextTable:
    """How every result was trained; means where there are several folds."""
    rows, place = [], _place_of(metrics)
    for run in metrics["runs"]:
        training, learner = run["training"], run["learner"]
        settings = ", ".join(f"{key} {value}" for key, value in learner.items() if key != "name")
        mistakes = [sum(epoch) / len(epoch) for epoch in zip(*training["mistakes"], strict=True)]
        span = f"{mistakes[0]:,.0f} → {mistakes[-1]:,.0f}" if mistakes else ""
        rows.append(
            [
                run["set"],
                run["name"],
                f"{learner['name']}{': ' if settings else ''}{settings}",
                *place(run),
                count(training["epochs"]),
                span,
                f"{100 * run['train_error']:.2f}",
                *(f"{100 * run['splits']['test'][name]['error']:.2f}" if name in run["splits"]["test"] else "–"
                  for name in ("last", "average", "voted")),
                duration(sum(training["seconds"]) / len(training["seconds"])),
            ]
        )  # fmt: skip
    headings = [
        "set",
        "run",
        "learner",
        "noise",
        "seed",
        "epochs",
        "mistakes, first → last epoch",
        "training error (%)",
    ]
    return TextTable(
        "All results", [*headings, "last (%)", "average (%)", "voted (%)", "time of a fold"], rows, texts=3
    )


def _place_of(metrics: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], list[str]]:
    """From a result to its noise level and seed; nothing where all have the same."""
    noises, seeds = (len({run[key] for run in metrics["runs"]}) > 1 for key in ("noise", "seed"))
    return lambda run: [f"{run['noise']:g}" if noises else "", str(run["seed"]) if seeds else ""]


def tuned_table(metrics: Mapping[str, Any]) -> TextTable:
    """What tuning chose; empty where nothing was tuned."""
    rows, place_of = [], _place_of(metrics)
    for run in metrics["runs"]:
        if run["tuned"]:
            tuned = Tuned.from_dict(run["tuned"])
            chosen = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in tuned.point.items())
            usual = NONE if tuned.default is None else f"{100 * tuned.default:.2f}"
            place = [run["set"], run["name"], chosen or "the recipe's", *place_of(run)]
            rows.append([*place, count(tuned.epochs), f"{100 * tuned.error:.2f}", usual])
    headings = ["set", "run", "parameters", "noise", "seed", "epochs", "held-out error (%)", "the recipe's (%)"]
    return TextTable("Chosen on held-out examples", headings, rows, texts=3)


def significance_tables(metrics: Mapping[str, Any]) -> list[TextTable]:
    """One table per set: every pair of runs that was tested."""
    tables = []
    for place, pairs in metrics["significance"].items():
        rows = [
            [
                pair.replace("_vs_", " against "),
                found["test"].replace("_", " ").replace("mcnemar", "McNemar"),
                signed(100 * found["difference"]),
                " to ".join(signed(100 * end) for end in found["interval"]),
                verdict(found, lower_is_better=True),
            ]
            for pair, found in pairs.items()
        ]
        tables.append(
            TextTable(place, ["runs", "test", "difference (points)", "interval", "the first is"], rows, texts=2)
        )
    return tables
