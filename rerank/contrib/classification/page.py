"""The page of a recipe: tables over sets and runs with the papers' numbers, and what comes first."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rerank.contrib.classification.fitting import point_of
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import (
    Data,
    Result,
    best_of,
    first_seeds,
    paper_of,
)
from rerank.runs.compared import Compared
from rerank.runs.report.numbers import NONE, Spread, count, duration, fixed
from rerank.runs.report.results import first_to_last
from rerank.runs.report.table import TextTable

MARKS = {0.001: "†", 0.01: "*", 0.05: "★"}  # of results, by the highest p that they have
TIE = 1e-12  # means that are this close are equal: they are sums of the same numbers in another order


def headline(metrics: Mapping[str, Any], results: Sequence[Result], compared: Mapping[str, Compared]) -> dict[str, Any]:
    """Tiles and a sentence: the best run of the one set, or the best mean ranks over several."""
    ranks = metrics["tables"]["ranks"]
    groups = {name: runs for (name, noise), runs in first_seeds(results).items() if noise == results[0].spec.noise}
    if len(groups) > 1 and ranks and len(ranks[0]["ranks"]) > 1:
        first, second, *_ = sorted(ranks[0]["ranks"].items(), key=lambda run: run[1])
        tiles = [(name, fixed(rank), f"mean rank over {len(groups)} sets") for name, rank in (first, second)]
        sentence = f"Over {len(groups)} sets {first[0]} has the best mean rank, {fixed(first[1])}"
        return {"tiles": tiles, "sentence": f"{sentence}; {second[0]} follows with {fixed(second[1])}."}
    tiles, sentences = [], list[str]()
    for name, runs in groups.items():
        best, error = best_of(runs), Spread.of(best_of(runs).own_errors)
        folds = f"mean of {error.values} folds" if error.values > 1 else "of the test part"
        folds += f" ±{fixed(100 * error.error)}" if error.error is not None else ""
        sentence = f"On {name}, {best.spec.name} errs on {fixed(100 * error.mean)} % of the test examples ({folds})"
        tiles.append((f"Error on {name}", f"{fixed(100 * error.mean)} %", f"{best.spec.name}, {folds}"))
        if name in compared:
            usual = next(iter(compared[name].rows))
            sentence += f"; {usual} in {compared[name].metric.text(compared[name].score(usual))} %"
        sentences.append(f"{sentence}.")
    return {"tiles": tiles, "sentence": " ".join(sentences)}


# Sets × runs

Shown = tuple[str, float]  # a cell's text, and the number that it is compared by


def tables_of(recipe: ClassificationRecipe, data: Data) -> list[TextTable]:
    """The tables that the recipe asks for, of what ``as_data`` gives: results, ranks and seconds, with the paper's
    numbers after a slash; without results there are none, and of a single run or set no ranks."""
    return [table for name in recipe.tables if data and (table := _table(name, recipe, data)).rows]


def _table(name: Literal["results", "ranks", "seconds"], recipe: ClassificationRecipe, data: Data) -> TextTable:
    """Sets, with their noise levels if there are any, × runs; or noise levels × runs, of mean ranks."""
    rows, reported = dict[tuple[str, ...], dict[str, Shown]](), recipe.reported
    runs, sets = (list(dict.fromkeys(cell[key] for cell in data["results"])) for key in ("run", "set"))
    source = f"; behind the slash: {reported.source}" if reported is not None and getattr(reported, name, None) else ""
    if name == "ranks":
        for line in data["ranks"] if len(runs) > 1 and len(sets) > 1 else ():
            level = f"{line['noise']:g}"
            paper = {} if reported is None else reported.ranks.get(level, reported.ranks.get(str(line["noise"]), {}))
            rows[(level,)] = {run: (_slash(f"{of:.2f}", paper.get(run)), of) for run, of in line["ranks"].items()}
        note = f"rank among {len(runs)} runs, mean over {len(sets)} sets{source}"
        return _grid("Mean rank by noise", ["noise"], rows, note)
    noisy, sign = any(cell["noise"] for cell in data["results"]), -1.0 if recipe.measure == "accuracy" else 1.0
    for cell in data["results"]:
        head = (cell["set"], f"{cell['noise']:g}") if noisy else (cell["set"],)
        if name == "seconds":
            text, value = f"{cell['seconds']:.3f}", float(cell["seconds"])
            paper_value = paper_of(recipe, "seconds", cell["set"], cell["run"])
        else:
            text, value = f"{100 * cell['mean']:.2f}", sign * cell["mean"]
            text += "" if cell["se"] is None else f" ±{100 * cell['se']:.2f}"
            text += next((mark for level, mark in MARKS.items() if (p := cell.get("p")) is not None and p < level), "")
            paper_value = None if cell["noise"] else paper_of(recipe, "values", cell["set"], cell["run"])
        rows.setdefault(head, {})[cell["run"]] = _slash(text, paper_value), value
    headings = ["set", "noise"] if noisy else ["set"]
    if name == "seconds":
        return _grid("Seconds of training", headings, rows, "mean over folds; reading not included")
    note = f"{recipe.measure} in percent"
    if any(cell["se"] is not None for cell in data["results"]):
        note += f", mean ± standard error over {'seeds' if len(recipe.run_seeds) > 1 else 'folds'}"
    if against := recipe.significance.against:
        marks = ", ".join(f"{mark} p < {level:g}" for level, mark in reversed(MARKS.items()))
        note += f"; differs from each of {', '.join(against)}: {marks}"
    if reported is not None and reported.values:
        note += f"; behind the slash: {reported.source}"
    return _grid(f"Test {recipe.measure} (%)", headings, rows, note)


def _slash(text: str, paper: float | None) -> str:
    return text if paper is None else f"{text} / {paper:g}"


def _grid(
    caption: str, headings: list[str], rows: Mapping[tuple[str, ...], Mapping[str, Shown]], note: str
) -> TextTable:
    """Rows by their first cells × runs; of several runs the lowest number of a row is highlighted."""
    runs = list(dict.fromkeys(run for cells in rows.values() for run in cells))
    lines, best = [], set()
    for number, (first, cells) in enumerate(rows.items()):
        lines.append([*first, *(cells[run][0] if run in cells else NONE for run in runs)])
        lowest = min(value for _, value in cells.values())
        lowest_runs = [run for run, (_, value) in cells.items() if value <= lowest + TIE and len(runs) > 1]
        best |= {(number, len(first) + runs.index(run)) for run in lowest_runs}
    return TextTable(caption, [*headings, *runs], lines, len(headings), best, note)


# Of each set, and of each result


def sets_table(corpora: Mapping[str, Any]) -> TextTable:
    """The sizes of the sets."""
    keys = {"examples": "examples", "tested": "test_examples", "nonzeros": "nonzeros", "columns": "columns",
            "divisions": "splits"}  # fmt: skip
    rows = [
        {"set": name, **{heading: count(entry[key]) for heading, key in keys.items()}}
        | {"examples of each class": ", ".join(f"{label}: {number:,}" for label, number in entry["classes"].items())}
        for name, entry in corpora.items()
    ]
    return TextTable.of("Sets", rows)


def training_table(metrics: Mapping[str, Any]) -> TextTable:
    """The training of every result, and what was chosen on held-out examples; means where there are several folds."""
    rows, every = [], metrics["runs"]
    noises, seeds = (len({run[key] for run in every}) > 1 for key in ("noise", "seed"))
    for run in every:
        training, tested, tuned = run["training"], run["splits"]["test"], run["tuned"]
        mistakes = [sum(epoch) / len(epoch) for epoch in zip(*training["mistakes"], strict=True)]
        chosen = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in point_of(tuned).items())
        rows.append(
            {
                "set": run["set"], "run": run["name"], "chosen": (chosen or "the recipe's") if tuned else "",
                "noise": f"{run['noise']:g}" if noises else "", "seed": str(run["seed"]) if seeds else "",
                "epochs": count(training["epochs"]), "mistakes, first → last epoch": first_to_last(mistakes),
                "training error (%)": fixed(100 * run["train_error"]),
                **{f"{name} (%)": fixed(100 * tested[name]["error"]) if name in tested else NONE
                   for name in ("last", "average", "voted")},
                "time of a fold": duration(sum(training["seconds"]) / len(training["seconds"])),
            }
        )  # fmt: skip
    return TextTable.of("All results", rows, texts=3)
