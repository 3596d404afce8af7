"""The page of a recipe: tables over sets and runs with the papers' numbers, confusions, and what comes first."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rerank.contrib.classification.fitting import point_of
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import (
    Data,
    Result,
    Tested,
    groups_of,
    mean_error,
    paper_of,
    place_of,
)
from rerank.runs.report.list_parts import first_to_last, learner_text
from rerank.runs.report.numbers import NONE, Spread, count, duration, fixed, signed
from rerank.runs.report.results import verdict
from rerank.runs.report.table import TextTable

MARKS = {0.001: "†", 0.01: "*", 0.05: "★"}  # of results, by the highest p that they have
TIE = 1e-12  # means that are this close are equal: they are sums of the same numbers in another order
CLASSES = 12  # that a confusion matrix shows; of more, the commonest confusions
PAIRS = 20  # rows of the table of confusions


def headline(metrics: Mapping[str, Any], tested: Mapping[str, Tested], results: Sequence[Result]) -> dict[str, Any]:
    """Tiles and a sentence: the best run of the one set, or the best mean rank over several."""
    groups = groups_of(results)
    if len(groups) > 1:
        return _over_sets(metrics, groups)
    ((name, runs),) = groups.items()
    best, *others = sorted(runs, key=mean_error)
    label, classes = tested[name].label, tested[name].classes
    usual = int(np.bincount(label, minlength=len(classes)).argmax())
    chance, spread = 100 * float(np.mean(label != usual)), Spread.of(best.values("error"))
    folds = f"mean of {spread.values} folds" if spread.values > 1 else "of the test part"
    folds += f" ±{fixed(100 * spread.error)}" if spread.error is not None else ""
    error = 100 * mean_error(best)
    sentence = (
        f"On {name}, {best.spec.name} errs on {fixed(error)} % of the test examples ({folds}); to say {classes[usual]} "
        f"always would be wrong in {fixed(chance)} %."
    )
    tiles = [
        (f"Always {classes[usual]}", f"{fixed(chance)} %", "error of the largest class"),
        ("Error", f"{fixed(error)} %", f"{best.spec.name}, {folds}"),
        ("Difference", signed(error - chance), "percentage points"),
        ("Error in training", f"{fixed(100 * float(np.mean(best.train_errors)))} %", "of the same"),
        ("Time of a fold", duration(float(np.mean(best.seconds))), f"{count(best.size)} examples"),
    ]
    if others:
        second, against = others[0], _against(metrics, best, others[0])
        next_error = f"{fixed(100 * mean_error(second))} %"
        sentence += f" Next is {second.spec.name} with {next_error}: the first is {against}."
        tiles[3] = ("Next", next_error, f"{second.spec.name}; the first is {against}")
    return {"tiles": tiles, "sentence": sentence}


def _against(metrics: Mapping[str, Any], a: Result, b: Result) -> str:
    """The verdict on ``a`` compared with ``b``, by the tests of metrics.json."""
    tests = metrics["significance"].get(place_of(a.set, a.noise), {})
    for first, second, sign in ((a, b, 1), (b, a, -1)):
        if test := tests.get(f"{first.spec.name}_vs_{second.spec.name}"):
            return verdict(test | {"difference": sign * test["difference"]}, lower_is_better=True)
    return "not tested against it"


def _over_sets(metrics: Mapping[str, Any], groups: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """The headline of several sets: which run has the best mean rank, or the mean error of a single run."""
    sets = len(groups)
    tiles = [("Sets", str(sets), f"{len(metrics['runs'])} results")]
    ranks = metrics["tables"]["ranks"][0]["ranks"] if metrics["tables"].get("ranks") else {}
    if len(ranks) < 2:
        error = fixed(100 * float(np.mean([mean_error(each) for runs in groups.values() for each in runs])))
        tiles.append(("Mean error", f"{error} %", f"over {sets} sets"))
        return {"tiles": tiles, "sentence": f"Over {sets} sets, {error} % of the test examples are wrong."}
    first, second, *_ = sorted(ranks, key=lambda run: ranks[run])
    tiles += [("Best mean rank", fixed(ranks[first]), f"{first}, of {len(ranks)} runs"),
              ("Next", fixed(ranks[second]), second)]  # fmt: skip
    sentence = (
        f"Over {sets} sets, {first} has the best mean rank among {len(ranks)} runs, {fixed(ranks[first])}. "
        f"{second} follows with {fixed(ranks[second])}; see below which differences are significant."
    )
    return {"tiles": tiles, "sentence": sentence}


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
                "set": run["set"], "run": run["name"], "learner": learner_text(run["learner"]),
                "chosen": (chosen or "the recipe's") if tuned else "",
                "noise": f"{run['noise']:g}" if noises else "", "seed": str(run["seed"]) if seeds else "",
                "epochs": count(training["epochs"]), "mistakes, first → last epoch": first_to_last(mistakes),
                "training error (%)": fixed(100 * run["train_error"]),
                "held-out error (%)": fixed(100 * tuned["held_out_error"]) if tuned else NONE,
                **{f"{name} (%)": fixed(100 * tested[name]["error"]) if name in tested else NONE
                   for name in ("last", "average", "voted")},
                "time of a fold": duration(sum(training["seconds"]) / len(training["seconds"])),
            }
        )  # fmt: skip
    return TextTable.of("All results", rows, texts=4)


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


def confusion_table(result: Result, label: np.ndarray, classes: Sequence[str]) -> TextTable:
    """True classes (``label``, int64 [n]) in rows, predicted ones in columns; of many, the commonest confusions."""
    k, name = len(classes), f"{result.spec.name} on {result.set}"
    counts = np.bincount(label * k + result.predicted, minlength=k * k).reshape(k, k)
    sizes, right = counts.sum(axis=1), counts.diagonal()
    if k > CLASSES:
        wrong = np.where(np.eye(k, dtype=np.bool_), 0, counts)
        pairs = [divmod(int(i), k) for i in np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]]
        rows = [
            [classes[a], classes[b], count(int(wrong[a, b])), f"{fixed(100 * wrong[a, b] / sizes[a], 1)} %"]
            for a, b in pairs
            if wrong[a, b]
        ]
        return TextTable(f"Commonest confusions: {name}", ["class", "taken for", "examples", "of the class"], rows, 2)
    rows = [
        [classes[a], *map(count, counts[a]), f"{fixed(100 * right[a] / sizes[a], 1) if sizes[a] else NONE} %"]
        for a in range(k)
    ]
    headings = ["true class", *(f"as {label}" for label in classes), "right"]
    return TextTable(f"Confusion matrix: {name}", headings, rows, best={(a, a + 1) for a in range(k)})
