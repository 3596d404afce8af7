"""The course of a recipe over labelled examples: set by set, at every noise level, with every seed, on every fold; and
its page: tables over sets and runs with the papers' numbers."""

import logging
from collections.abc import Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.encoding import file_name
from rerank.base.errors import RecipeError
from rerank.base.progress import track
from rerank.base.registry import build
from rerank.contrib.classification import fitting
from rerank.contrib.classification import results as outcomes
from rerank.contrib.classification.recipe import ClassificationRecipe, ExampleReported, Spec
from rerank.contrib.classification.sets import Sets
from rerank.kernels.sources import TRAINING
from rerank.learn.contract import accept
from rerank.learn.learner import learners
from rerank.recipes.settings import files_in
from rerank.runs.compared import Compared
from rerank.runs.experiment import Content, Kind, Metrics, Stages, code_of
from rerank.runs.report.page import PageSection
from rerank.runs.report.results import corpora_table
from rerank.runs.report.table import NONE, TextTable, fixed
from rerank.storage.files import write_text
from rerank.storage.outputs import output_file

log = logging.getLogger("rerank")
POOLED = "Errors over the test examples of all folds together, tested against the best run."


class ExampleKind(Kind[ClassificationRecipe]):
    """The steps for labelled examples.

    fits: the results of all single runs; examples: of every set that was gone through, those in some test part by the
    first seed: their classes as indices of the names that follow (int64 [n]), and their folds (int64 [n]).
    """

    singles: list[Spec]

    def check(self) -> None:
        self.singles = check_parts(self.recipe)
        self.sets = Sets(self.recipe)
        self.size, self.predictions = {"sets": len(self.sets.sources)}, []
        self.files = files_in(self.recipe.model_dump(mode="json"), self.recipe.data.root)
        self.code = code_of(self.recipe, (*TRAINING, str(Path(__file__).parent)))
        if not self.tests:
            raise RecipeError("classification leaves results and no model; run its tests too", key="task")
        self.fits = list[outcomes.Result]()
        self.examples = dict[str, tuple[np.ndarray, tuple[str, ...], np.ndarray]]()
        self.comparisons = dict[str, Compared]()

    def extract(self) -> dict[str, int]:
        """The other sets are read when it is their turn, for they need not fit into memory together."""
        first = self.sets.draw(self.singles[0].set, self.recipe.run_seeds[0]).examples
        return {"examples": first.size, "nonzeros": first.nonzeros, "columns": first.width}

    def counts(self) -> dict[str, Any]:
        for name in self.sets.sources.keys() - self.sets.counts.keys():
            self.sets.draw(name, self.recipe.run_seeds[0])
        return {name: self.sets.counts[name] for name in self.sets.sources}

    def train(self, work: Stages) -> dict[str, int]:
        """Fits all folds, whose test parts are predicted at once."""
        singles_in_turn = track(self.singles, self.recipe.name, total=len(self.singles), unit="runs")
        for name, singles in groupby(singles_in_turn, key=lambda single: single.set):
            results = [result for single in singles for result in self._results(single)]
            self.fits += results
            source = self.sets.draw(name, self.recipe.run_seeds[0])  # still in memory
            self.examples[name] = source.test_part.label, source.test_part.classes, source.folds
            work.append(line for result in results for line in result.lines())
        return {"results": len(self.fits)}

    def _results(self, single: Spec) -> list[outcomes.Result]:
        """The results of a single run, one for every seed, unless they are kept already."""
        files = files_in(self.sets.sources[single.set].model_dump())
        settings = [single.run, single.point, single.recipe.model_dump(mode="json"), single.baseline]

        def fit() -> Content:
            results = fitting.run_spec(single, partial(self.sets.draw, single.set), self.engine)
            return {"results": [[one.seed, [*map(vars, one.fits)], one.choice] for one in results]}, {}

        results = [
            outcomes.Result(single, seed, [outcomes.Fit(**entry) for entry in fits], choice)
            for seed, fits, choice in self.once(files, settings, fit)[0]["results"]
        ]
        error, choice = float(np.mean([result.error for result in results])), results[0].choice
        text = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in choice.items() if "error" not in key)
        key = outcomes.name_of(single.set, single.noise)
        log.info("%s, %s%s: error %.2f %%", key, single.name, f" ({text})" if choice else "", 100 * error)
        return results

    def make_model(self) -> None:
        """There is none: what is learned here is measured, and estimators learn for use."""

    def evaluate(self) -> Metrics:
        """By set (and noise level) what the runs get wrong of the test examples of all folds together, with the first
        seed, beside the largest class as the answer to all; tests are against the run that is best over all seeds, and
        the baselines."""
        recipe, results, tests = self.recipe, self.fits, dict[str, outcomes.Data]()
        groups = outcomes.first_seeds(results) if recipe.significance.test is not None else {}
        of_run = outcomes.group_by(results, lambda result: (*result.key, result.spec.name))
        means = {key: np.mean([result.error for result in of_all_seeds]) for key, of_all_seeds in of_run.items()}
        for (name, noise), group in groups.items():
            label, classes, _ = self.examples[name]
            usual = np.bincount(label, minlength=len(classes)).argmax()
            predictions = {f"always {classes[usual]}": np.full_like(label, usual)}
            predictions |= {result.spec.name: result.classes for result in group}
            best = min(group, key=lambda result: means[name, noise, result.spec.name]).spec.name
            rows = outcomes.selections_of(predictions, label, against=best, **recipe.testing)
            others = dict.fromkeys([best, *recipe.significance.against])
            key = outcomes.name_of(name, noise)
            tests[key] = rows.significance((a, b) for b in others for a in rows.rows if a != b)
            self.comparisons[key] = rows
        return self.head(recipe.run_seeds[0], outcomes.Classification().signature) | {
            "corpora": self.counts(),
            "reported": recipe.reported.model_dump() if recipe.reported else None,
            "splits": {"test": results[0].splits()} if len(results) == 1 else {},
            "tables": outcomes.as_data(recipe, results, tests),
            "significance": tests,
            "runs": [result.entry() for result in results],
        }

    def predict(self) -> None:
        """One file per set and noise level: example (from 1), fold, label, and what each run predicts with the first
        seed, separated by tabs."""
        for (name, noise), group in outcomes.first_seeds(self.fits).items():
            label, classes, folds = self.examples[name]
            lines = ["\t".join(["example", "fold", "label", *(result.spec.name for result in group)])]
            rows = zip(folds, label, *(result.classes for result in group), strict=True)
            for number, (fold, *own) in enumerate(rows, start=1):
                lines.append("\t".join([f"{number}\t{fold}", *(classes[k] for k in own)]))
            level = f"-noise{noise:g}" if noise else ""
            target = output_file(self.directory, "predictions", f"{file_name(name)}{level}.tsv")
            write_text(target, "\n".join(lines) + "\n")
        if len(self.fits) == 1:
            (only,) = self.fits
            wrong = outcomes.selections_of(only.predictions, self.examples[only.spec.set][0])
            wrong.save(output_file(self.directory, "predictions", "test.selections.npz"))

    def sections(self, metrics: Metrics) -> list[PageSection]:
        tables = [
            rows.table(key, f"Δ and p: against {rows.against}.", heading="error", of="run")
            for key, rows in self.comparisons.items()
            if key in self.examples  # without noise
        ]
        return [
            PageSection("Results", tables_of(self.recipe, metrics["tables"])),
            PageSection("Significance", [POOLED, *tables] if tables else []),
            PageSection("Data", [corpora_table(metrics["corpora"])]),
        ]

    def summary(self, metrics: Metrics) -> dict[str, Any]:
        """Tiles and a sentence: the best run of the one set, or the best mean ranks over several."""
        ranks = metrics["tables"]["ranks"]
        at_noise = (entry for entry in metrics["tables"]["results"] if entry["noise"] == self.fits[0].spec.noise)
        groups = outcomes.group_by(at_noise, lambda entry: entry["set"])
        if len(groups) > 1 and ranks and len(ranks[0]["ranks"]) > 1:
            first, second, *_ = sorted(ranks[0]["ranks"].items(), key=lambda run: run[1])
            tiles = [(name, fixed(rank), f"mean rank over {len(groups)} sets") for name, rank in (first, second)]
            sentence = f"Over {len(groups)} sets {first[0]} has the best mean rank, {fixed(first[1])}"
            return {"tiles": tiles, "sentence": f"{sentence}; {second[0]} follows with {fixed(second[1])}."}
        tiles, sentences = [], list[str]()
        over = "seeds" if len(self.recipe.run_seeds) > 1 else "folds"
        for name, entries in groups.items():
            errors = [1 - entry["mean"] if self.recipe.measure == "accuracy" else entry["mean"] for entry in entries]
            best, error = entries[int(np.argmin(errors))], fixed(100 * min(errors))
            how = f"mean of {best['values']} {over}" if best["values"] > 1 else "of the test part"
            how += f" ±{fixed(100 * best['se'])}" if best["se"] is not None else ""
            sentence = f"On {name}, {best['run']} errs on {error} % of the test examples ({how})"
            tiles.append((f"Error on {name}", f"{error} %", f"{best['run']}, {how}"))
            if (table := self.comparisons.get(name)) is not None:
                usual = next(iter(table.rows))
                sentence += f"; {usual} in {table.metric.text(table.score(usual))} %"
            sentences.append(f"{sentence}.")
        return {"tiles": tiles, "sentence": " ".join(sentences)}


def check_parts(recipe: ClassificationRecipe) -> list[Spec]:
    """Build every learner and baseline that the recipe names; returns its single runs."""
    if recipe.metric != {"name": "error"}:
        raise RecipeError(f"found {recipe.metric}; classification is measured by {{name: error}}", key="metric")
    specs = recipe.expand()
    for spec in {spec.name: spec for spec in specs}.values():  # of one set, at one noise level
        for single in [spec.at(point) for point in fitting.points_of(spec)] if spec.recipe.tune else [spec]:
            if single.baseline is not None:
                fitting.make_baseline(single.baseline, f"runs.{spec.run}.baseline")
            else:
                learner = accept(build(learners, single.recipe.learner, "learner"))
                if (sections := single.recipe.training.sections) is not None:
                    fitting.require_rule(learner, sections.rule)
    return specs


MARKS = {0.001: "†", 0.01: "*", 0.05: "★"}  # of results, by the highest p that they have
TIE = 1e-12  # means that are this close are equal: they are sums of the same numbers in another order
Cell = tuple[str, float, float | None]  # a cell's text, the number that it is compared by, and the paper's


def tables_of(recipe: ClassificationRecipe, data: outcomes.Data) -> list[TextTable]:
    """The tables that the recipe asks for, of what ``as_data`` gives: results, ranks and seconds, with the paper's
    numbers after a slash; without results there are none, and of a single run or set no ranks."""
    return [table for name in recipe.tables if data and (table := _table(name, recipe, data)).rows]


def _table(name: str, recipe: ClassificationRecipe, data: outcomes.Data) -> TextTable:
    """Sets, with their noise levels if there are any, × runs; or noise levels × runs, of mean ranks."""
    rows, paper = dict[tuple[str, ...], dict[str, Cell]](), recipe.reported or ExampleReported(source="")
    runs, sets = (list(dict.fromkeys(cell[key] for cell in data["results"])) for key in ("run", "set"))
    numbers = paper.ranks if name == "ranks" else paper.values
    source = f"; behind the slash: {paper.source}" if numbers else ""
    if name == "ranks":
        for line in data["ranks"] if len(runs) > 1 and len(sets) > 1 else ():
            level = f"{line['noise']:g}"
            ranks = paper.ranks.get(level, paper.ranks.get(str(line["noise"]), {}))
            rows[(level,)] = {run: (f"{of:.2f}", of, ranks.get(run)) for run, of in line["ranks"].items()}
        note = f"rank among {len(runs)} runs, mean over {len(sets)} sets{source}"
        return _grid("Mean rank by noise", ["noise"], rows, note)
    noisy, sign = any(cell["noise"] for cell in data["results"]), -1.0 if recipe.measure == "accuracy" else 1.0
    for cell in data["results"]:
        head = (cell["set"], f"{cell['noise']:g}") if noisy else (cell["set"],)
        if name == "seconds":
            text, value = f"{cell['seconds']:.3f}", float(cell["seconds"])
            number = paper.seconds.get(cell["set"], {}).get(cell["run"])
        else:
            text, value = f"{100 * cell['mean']:.2f}", sign * cell["mean"]
            text += "" if cell["se"] is None else f" ±{100 * cell['se']:.2f}"
            text += next((mark for level, mark in MARKS.items() if (p := cell.get("p")) is not None and p < level), "")
            number = cell["reported"] and 100 * cell["reported"]
        rows.setdefault(head, {})[cell["run"]] = text, value, number
    headings = ["set", "noise"] if noisy else ["set"]
    if name == "seconds":
        return _grid("Seconds of training", headings, rows, "mean over folds; reading not included")
    note = f"{recipe.measure} in percent"
    if any(cell["se"] is not None for cell in data["results"]):
        note += f", mean ± standard error over {'seeds' if len(recipe.run_seeds) > 1 else 'folds'}"
    if against := recipe.significance.against:
        marks = ", ".join(f"{mark} p < {level:g}" for level, mark in reversed(MARKS.items()))
        note += f"; differs from each of {', '.join(against)}: {marks}"
    return _grid(f"Test {recipe.measure} (%)", headings, rows, note + source)


def _grid(
    caption: str, headings: list[str], rows: Mapping[tuple[str, ...], Mapping[str, Cell]], note: str
) -> TextTable:
    """Rows by their first cells × runs; of several runs the lowest number of a row is highlighted."""
    runs = list(dict.fromkeys(run for cells in rows.values() for run in cells))
    lines, best = [], set()
    for number, (first, cells) in enumerate(rows.items()):
        texts = {run: text if paper is None else f"{text} / {paper:g}" for run, (text, _, paper) in cells.items()}
        lines.append([*first, *(texts.get(run, NONE) for run in runs)])
        lowest = min(value for _, value, _ in cells.values())
        lowest_runs = [run for run, (_, value, _) in cells.items() if value <= lowest + TIE and len(runs) > 1]
        best |= {(number, len(first) + runs.index(run)) for run in lowest_runs}
    return TextTable(caption, [*headings, *runs], lines, len(headings), best, note)
