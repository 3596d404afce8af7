"""Tables over sets and runs: means with their spread and the paper's numbers, ranks, times; how all were trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import Result, grouped
from rerank.contrib.classification.tuning import point_of
from rerank.runs.report.list_tables import first_to_last, learner_text
from rerank.runs.report.numbers import NONE, Spread, count, duration, fixed, signed
from rerank.runs.report.rows import verdict
from rerank.runs.report.table import TextTable

Data = Mapping[str, Any]  # ``as_data``, or one of its results
Shown = tuple[str, float]  # a cell's text, and the number that it is compared by
MARKS = {0.001: "†", 0.01: "*", 0.05: "★"}  # of results, by the highest p that they have
TIE = 1e-12  # means that are this close are equal: they are sums of the same numbers in another order


@dataclass(frozen=True)
class Cell:
    """A run on a set at a noise level: the results of all its seeds, at one point of its grid."""

    set: str
    noise: float
    run: str
    results: tuple[Result, ...]

    def spread(self, measure: str) -> Spread:
        """The spread over the seeds' means where there are several seeds, else over the folds."""
        by_seed = [result.values(measure) for result in self.results]
        return Spread.of(by_seed[0] if len(by_seed) == 1 else [float(np.mean(values)) for values in by_seed])


def cells_of(recipe: ClassificationRecipe, results: Sequence[Result]) -> list[Cell]:
    """A cell for every set, noise level and run; with ``best_of_grid`` the best point of every run."""
    groups = grouped(results, lambda result: (result.set, result.noise, result.spec.run, result.spec.name))
    if not recipe.best_of_grid:
        return [Cell(name, noise, shown, tuple(alike)) for (name, noise, _, shown), alike in groups.items()]
    best: dict[tuple[str, float, str], Cell] = {}
    for (name, noise, run, _), alike in groups.items():
        cell = Cell(name, noise, run, tuple(alike))
        known = best.setdefault((name, noise, run), cell)
        if cell.spread("error").mean < known.spread("error").mean:
            best[name, noise, run] = cell
    return list(best.values())


def mean_ranks(cells: Sequence[Cell]) -> dict[float, dict[str, float]]:
    """By noise level and run: the rank of its mean error among the runs (1: the lowest, equals share), averaged over
    the sets."""
    from scipy.stats import rankdata  # it takes a second to load

    runs = list(dict.fromkeys(cell.run for cell in cells))
    by_noise: dict[float, dict[str, float]] = {}
    for noise in dict.fromkeys(cell.noise for cell in cells):
        ranks = []
        for name in dict.fromkeys(cell.set for cell in cells):
            errors = {c.run: c.spread("error").mean for c in cells if (c.set, c.noise) == (name, noise)}
            if len(errors) == len(runs):
                ranks.append(rankdata(np.round([errors[run] for run in runs], 12)))
        if ranks:
            by_noise[noise] = dict(zip(runs, (float(rank) for rank in np.mean(ranks, axis=0)), strict=True))
    return by_noise


def as_data(recipe: ClassificationRecipe, results: Sequence[Result], tests: Mapping[str, Data]) -> dict[str, Any]:
    """The tables as numbers, for metrics.json; tests: ``significance_of`` the results."""
    cells, against = cells_of(recipe, results), recipe.significance.against
    names = {(cell.set, cell.noise, cell.run): cell.results[0].spec.name for cell in cells}
    entries = []
    for cell in cells:
        mean, sd, se, values = cell.spread(recipe.measure)
        seconds = [second for result in cell.results for second in result.seconds]
        paper = None if cell.noise else _paper(recipe, "values", cell.set, cell.run)
        entries.append(
            {"set": cell.set, "noise": cell.noise, "run": cell.run, "point": cell.results[0].spec.point}
            | {"mean": mean, "sd": sd, "se": se, "values": values}
            | {"reported": None if paper is None else paper / 100, "seconds": float(np.mean(seconds))}
            | ({"p": _least_sure(tests, cell, names, against)} if against else {})
        )
    ranks = [{"noise": noise, "ranks": by_run} for noise, by_run in mean_ranks(cells).items()]
    return {"measure": recipe.measure, "results": entries, "ranks": ranks}


def place_of(name: str, noise: float) -> str:
    """The key of a set at a noise level in ``significance_of``."""
    return f"{name}, noise {noise:g}" if noise else name


def _least_sure(
    tests: Mapping[str, Data], cell: Cell, names: Mapping[tuple[str, float, str], str], against: Sequence[str]
) -> float | None:
    """The largest p of a run's tests against the baselines ``against``; None for a baseline, and where one was not
    tested; names: of the runs in tests, with the points of their grids."""
    own, name = tests.get(place_of(cell.set, cell.noise), {}), cell.results[0].spec.name
    others = [names.get((cell.set, cell.noise, other)) for other in against]
    pairs = [own.get(f"{name}_vs_{other}") or own.get(f"{other}_vs_{name}") for other in others]
    p = [float(test["p"]) for test in pairs if test]
    return None if name in others or len(p) < len(pairs) else max(p)


def tables_of(recipe: ClassificationRecipe, data: Data) -> list[TextTable]:
    """The tables that the recipe asks for, of what ``as_data`` gives; without results there are none."""
    made = {"results": results_table, "ranks": ranks_table, "seconds": seconds_table}
    tables = [made[name](recipe, data) for name in recipe.tables if data]
    return [table for table in tables if table is not None]


def results_table(recipe: ClassificationRecipe, data: Data) -> TextTable:
    """Sets × runs: mean ± standard error in percent, with the paper's number after a slash."""
    sign, cells = -1.0 if recipe.measure == "accuracy" else 1.0, {}
    for cell in data["results"]:
        shown = fixed(100 * cell["mean"]) + ("" if cell["se"] is None else f" ±{100 * cell['se']:.2f}")
        p = cell.get("p")
        shown += next((mark for level, mark in MARKS.items() if p is not None and p < level), "")
        paper = None if cell["noise"] else _paper(recipe, "values", cell["set"], cell["run"])
        cells[cell["set"], cell["noise"], cell["run"]] = _beside(shown, paper), sign * cell["mean"]
    note = f"{recipe.measure} in percent"
    if any(cell["se"] is not None for cell in data["results"]):
        note += f", mean ± standard error over {'seeds' if len(recipe.run_seeds) > 1 else 'folds'}"
    if against := recipe.significance.against:
        marks = ", ".join(f"{mark} p < {level:g}" for level, mark in reversed(MARKS.items()))
        note += f"; differs from each of {', '.join(against)}: {marks}"
    return _by_set(f"Test {recipe.measure} (%)", cells, note + _source(recipe, "values"))


def seconds_table(recipe: ClassificationRecipe, data: Data) -> TextTable:
    """Sets × runs: seconds of training per fold, with the paper's number after a slash."""
    cells = {}
    for cell in data["results"]:
        shown = _beside(f"{cell['seconds']:.3f}", _paper(recipe, "seconds", cell["set"], cell["run"]))
        cells[cell["set"], cell["noise"], cell["run"]] = shown, float(cell["seconds"])
    return _by_set("Seconds of training", cells, "mean over folds; reading not included")


def ranks_table(recipe: ClassificationRecipe, data: Data) -> TextTable | None:
    """Noise levels × runs: mean ranks, with the paper's number after a slash; None for a single run or set."""
    runs, sets = ({cell[key] for cell in data["results"]} for key in ("run", "set"))
    if len(runs) < 2 or len(sets) < 2 or not data["ranks"]:
        return None
    reported = recipe.reported.ranks if recipe.reported else {}
    rows = dict[tuple[str, ...], dict[str, Shown]]()
    for line in data["ranks"]:
        level = f"{line['noise']:g}"
        paper = reported.get(level, reported.get(str(line["noise"]), {}))
        rows[(level,)] = {run: (_beside(f"{rank:.2f}", paper.get(run)), rank) for run, rank in line["ranks"].items()}
    note = f"rank among {len(runs)} runs, mean over {len(sets)} sets" + _source(recipe, "ranks")
    return _grid("Mean rank by noise", ["noise"], rows, note)


def _paper(recipe: ClassificationRecipe, what: Literal["values", "seconds"], name: str, run: str) -> float | None:
    """The paper's number for a run on a set."""
    return getattr(recipe.reported, what).get(name, {}).get(run) if recipe.reported else None


def _beside(text: str, paper: float | None) -> str:
    return text if paper is None else f"{text} / {paper:g}"


def _source(recipe: ClassificationRecipe, what: Literal["values", "ranks"]) -> str:
    """The source of the paper's numbers, if there are any."""
    known = recipe.reported is not None and getattr(recipe.reported, what)
    return f"; behind the slash: {recipe.reported.source}" if recipe.reported is not None and known else ""


def _by_set(caption: str, cells: Mapping[tuple[str, float, str], Shown], note: str) -> TextTable:
    """Sets, with their noise levels if there are any, × runs."""
    noisy, rows = any(noise for _, noise, _ in cells), dict[tuple[str, ...], dict[str, Shown]]()
    for (name, noise, run), shown in cells.items():
        rows.setdefault((name, f"{noise:g}") if noisy else (name,), {})[run] = shown
    return _grid(caption, ["set", "noise"] if noisy else ["set"], rows, note)


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


def sets_table(corpora: Mapping[str, Any]) -> TextTable:
    """The sizes of the sets."""
    rows = [
        {
            "set": name,
            "examples": count(entry["examples"]),
            "tested": count(entry["test_examples"]),
            "nonzeros": count(entry["nonzeros"]),
            "columns": count(entry["columns"]),
            "divisions": count(entry["splits"]),
            "examples of each class": ", ".join(f"{label}: {number:,}" for label, number in entry["classes"].items()),
        }
        for name, entry in corpora.items()
    ]
    return TextTable.of("Sets", rows)


def training_table(metrics: Mapping[str, Any]) -> TextTable:
    """The training of every result; means where there are several folds."""
    rows = []
    for run in metrics["runs"]:
        training, tested = run["training"], run["splits"]["test"]
        mistakes = [sum(epoch) / len(epoch) for epoch in zip(*training["mistakes"], strict=True)]
        errors = {
            f"{name} (%)": fixed(100 * tested[name]["error"]) if name in tested else NONE
            for name in ("last", "average", "voted")
        }
        rows.append(
            {
                "set": run["set"],
                "run": run["name"],
                "learner": learner_text(run["learner"]),
                **_place(metrics, run),
                "epochs": count(training["epochs"]),
                "mistakes, first → last epoch": first_to_last(mistakes),
                "training error (%)": fixed(100 * run["train_error"]),
                **errors,
                "time of a fold": duration(sum(training["seconds"]) / len(training["seconds"])),
            }
        )
    return TextTable.of("All results", rows, texts=3)


def _place(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, str]:
    """The noise level and seed of a result; empty where all have the same."""
    noises, seeds = (len({run[key] for run in metrics["runs"]}) > 1 for key in ("noise", "seed"))
    return {"noise": f"{run['noise']:g}" if noises else "", "seed": str(run["seed"]) if seeds else ""}


def tuned_table(metrics: Mapping[str, Any]) -> TextTable:
    """The choices of tuning; empty where nothing was tuned."""
    rows = []
    for run in metrics["runs"]:
        if run["tuned"]:
            tuned, default = run["tuned"], run["tuned"].get("default_error")
            chosen = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in point_of(tuned).items())
            rows.append(
                {
                    "set": run["set"],
                    "run": run["name"],
                    "parameters": chosen or "the recipe's",
                    **_place(metrics, run),
                    "epochs": count(tuned["epochs"]),
                    "held-out error (%)": fixed(100 * tuned["held_out_error"]),
                    "the recipe's (%)": NONE if default is None else fixed(100 * default),
                }
            )
    return TextTable.of("Chosen on held-out examples", rows, texts=3)


def significance_tables(metrics: Mapping[str, Any]) -> list[TextTable]:
    """One table per set: every pair of runs that was tested."""
    tables = []
    for place, pairs in metrics["significance"].items():
        rows = [
            {
                "runs": pair.replace("_vs_", " against "),
                "test": test["test"].replace("_", " ").replace("mcnemar", "McNemar"),
                "difference (points)": signed(100 * test["difference"]),
                "interval": " to ".join(signed(100 * end) for end in test["interval"]),
                "the first is": verdict(test, lower_is_better=True),
            }
            for pair, test in pairs.items()
        ]
        tables.append(TextTable.of(place, rows, texts=2))
    return tables
