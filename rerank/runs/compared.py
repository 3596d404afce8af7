"""Scores of choices from the same lists, with intervals and tests of their differences: the one table of results.

``rerank run``, ``vote``, ``weigh``, ``evaluate`` and ``compare`` print this, and their JSON holds it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.data.corpus import Corpus
from rerank.extraction.kinds import metric_of
from rerank.metrics.metric import Metric, TestName, best_of_lists
from rerank.metrics.significance import Significance, compare, score_interval
from rerank.readers.reader import settings_within
from rerank.recipes.loading import load_recipe
from rerank.runs.report.table import TextTable
from rerank.storage.documents import as_json
from rerank.storage.files import DAMAGE, new_file, read_archive

FILE = "{}.selections.npz"  # in a run's predictions, by the split
WITHIN_ONE_ERROR = 0.6827  # the middle of a normal distribution within ±1 deviation


class RowScore(NamedTuple):
    """A score, its interval, the test against another choice, None where there is nothing to test, and its p, None too
    where nothing is claimed."""

    score: float
    interval: tuple[float, float]
    test: Significance | None
    p: float | None


@dataclass(frozen=True, eq=False)
class Compared:
    """Choices from the same L lists by name, as the statistics of what they choose.

    reference: float64 [L, R]; rows: by name, float64 [L, K], or [S, L, K] of S seeds, whose scores are means; against:
    the row that the others are tested against; oracles: rows that nobody can choose, which are not tested; test,
    samples, seed: of significance. ids: of the lists; path: the file that all this was read from; doubt: what speaks
    against claims, which is to be shown before any table: there is no p then.
    """

    metric: Metric
    reference: np.ndarray
    rows: dict[str, np.ndarray]
    against: str = "base"
    oracles: tuple[str, ...] = ("oracle",)
    test: TestName = "approximate_randomization"
    samples: int = 10_000
    seed: int = 1
    ids: list[str] = field(default_factory=list)
    path: str | None = None
    doubt: str = ""

    def _seed_scores(self, name: str) -> np.ndarray:
        """float64 [S]: the scores of a row, that of each seed."""
        rows = self.rows[name]
        return np.array([self.metric.score(each, self.reference) for each in (rows if rows.ndim == 3 else rows[None])])

    def _mean(self, name: str) -> np.ndarray:
        """float64 [L, K]: a row, the mean over seeds."""
        rows = self.rows[name]
        return rows.mean(axis=0) if rows.ndim == 3 else rows

    def score(self, name: str) -> float:
        """The score of a row."""
        return float(self._seed_scores(name).mean())

    def difference(self, name: str, other: str) -> float:
        """The score of a row less that of another."""
        return float((self._seed_scores(name) - self._seed_scores(other)).mean())

    def error(self, name: str, other: str | None = None) -> float:
        """The standard error of a row's score, or of its difference from another, over lists and seeds."""
        scores = self._seed_scores(name) - (0.0 if other is None else self._seed_scores(other))
        other_rows = None if other is None else self._mean(other)
        low, high = score_interval(
            self.metric, self._mean(name), self.reference, other_rows, samples=self.samples, seed=self.seed,
            confidence=WITHIN_ONE_ERROR,
        )  # fmt: skip
        over_seeds = float(scores.var(ddof=1)) / scores.size if scores.size > 1 else 0.0
        return float(np.hypot((high - low) / 2, np.sqrt(over_seeds)))

    def report(self, name: str) -> dict[str, float]:
        """All measures of a row."""
        return self.metric.report(self._mean(name).sum(axis=0), self.reference.sum(axis=0))

    def reports(self) -> dict[str, dict[str, float]]:
        """All measures of every row."""
        return {name: self.report(name) for name in self.rows}

    def test_between(self, name: str, other: str) -> Significance:
        """The test of a row against another; the difference is the score of the first less that of the other."""
        a, b = self.rows[name], self.rows[other]
        return compare(self.metric, a, b, self.reference, test=self.test, samples=self.samples, seed=self.seed)

    def significance(self, pairs: Iterable[tuple[str, str]] | None = None) -> dict[str, dict[str, Any]]:
        """The tests of pairs, by default of every row that can be, as metrics.json has them: under ``a_vs_b``."""
        benchmarks = self.against, *self.oracles
        usual = ((name, self.against) for name in self.rows if name not in benchmarks)
        return {f"{a}_vs_{b}": self.test_between(a, b).as_dict() for a, b in (usual if pairs is None else pairs)}

    def repeats(self, names: Iterable[str]) -> dict[str, str]:
        """The rows among ``names`` with the results of one before them in every list, each with the first such."""
        first = dict[bytes, str]()
        same = {name: first.setdefault(self.rows[name].tobytes(), name) for name in names}
        return {name: other for name, other in same.items() if name != other}

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % interval of a row's score, by the bootstrap over lists."""
        return score_interval(self.metric, self.rows[name], self.reference, samples=self.samples, seed=self.seed)

    @cached_property
    def row_scores(self) -> dict[str, RowScore]:
        """Every row with its interval and test."""
        benchmarks, scores = (self.against, *self.oracles), dict[str, RowScore]()
        for name in self.rows:
            test = None if name in benchmarks else self.test_between(name, self.against)
            p = None if test is None or self.doubt else test.p
            scores[name] = RowScore(self.score(name), self.interval(name), test, p)
        return scores

    def as_data(self) -> list[dict[str, Any]]:
        """The rows as JSON."""
        return [
            {"name": name, "score": score, "interval": interval, "difference": test and test.difference, "p": p}
            for name, (score, interval, test, p) in self.row_scores.items()
        ]  # fmt: skip

    def table(self, caption: str, note: str, *, heading: str, of: str = "chosen by") -> TextTable:
        """The table, without rows with the results of one before them in every list, which are named below it.

        heading: of the scores; of: of the rows.
        """
        text, difference, lines = self.metric.text, self.metric.signed, list[dict[str, str]]()
        repeats = self.repeats(name for name in self.rows if name not in self.oracles)
        for name, (score, interval, test, p) in self.row_scores.items():
            if name in repeats:
                continue
            line = {of: name, heading: text(score)}
            line["95 % interval"] = " to ".join(map(text, interval))
            line[f"Δ {self.against.removesuffix(' vote')}"] = "" if test is None else difference(test.difference)
            lines.append(line | {"p": "" if p is None else f"{p:.2g}"})
        same = ", ".join(f"{name} as {other}" for name, other in repeats.items())
        notes = note, f"The same result in every list: {same}." if same else ""
        return TextTable.of(caption, lines, note=" ".join(filter(None, notes)))

    def save(self, path: Path) -> None:
        """Write the rows as an .npz without objects; it appears under its name only when complete."""
        header = as_json({"ids": self.ids, "signature": self.metric.signature})
        arrays: dict[str, Any] = {f"rows_{name}": rows for name, rows in self.rows.items()}
        with new_file(path) as new, new.open("wb") as stream:
            text = np.frombuffer(header.encode(), np.uint8)
            np.savez_compressed(stream, header=text, reference=self.reference, **arrays)

    @staticmethod
    def of_run(directory: Path, split: str) -> "Compared":
        """The choices of a run from the lists of a test split; refused if its recipe names another metric."""
        recipe, path = load_recipe(directory / "recipe.yaml"), directory / "predictions" / FILE.format(split)
        try:
            arrays = read_archive(path)
            header = json.loads(arrays.pop("header").tobytes())
            ids, signature = [str(name) for name in header["ids"]], str(header["signature"])
            for name, array in arrays.items():
                if array.dtype != np.float64 or array.ndim != 2 or len(array) != len(ids):
                    raise ValueError(f"{name} is {array.dtype} {array.shape}; expected float64 ({len(ids)}, any)")
            reference = arrays.pop("reference")
            rows = {name.removeprefix("rows_"): array for name, array in arrays.items()}
            widths = {array.shape[1] for array in rows.values()}
            if len(widths) > 1:
                raise ValueError("its selections have statistics of different kinds")
        except FileNotFoundError:
            raise DataError("no such file; has the run finished?", path=str(path)) from None
        except DAMAGE as error:
            raise DataError(f"damaged: {error}; run the recipe again", path=str(path)) from None
        if recipe.metric["name"] == "auto":  # as the lists suggest, which the run has found out
            recipe = recipe.change({"metric.name": signature.partition("|")[0]})
        metric = metric_of(recipe)
        fits = widths <= {len(metric.columns)} and reference.shape[1] == len(metric.reference_columns)
        if signature != metric.signature or not fits:
            message = f"scored by {signature}, but the run's recipe.yaml measures {metric.signature}; "
            raise DataError(f"{message}the files are of different runs: run the recipe again", path=str(path))
        return Compared(metric, reference, rows, ids=ids, path=str(path))


def doubts_of_base(base: str | None, reader: Mapping[str, Any], corpora: Iterable[Corpus]) -> list[str]:
    """A sentence where the base score ``base`` chooses worse than the first candidate, or a random one, does: by more
    than two standard errors of the mean gain over lists. Nothing is to be claimed against such a base, unless the
    settings of the ``reader`` say what it is."""
    losses, says = [np.zeros((2, 0))], any("scores" in settings for settings in settings_within(reader))
    for corpus in corpora if base is not None and not says else ():
        lists, gain, scores, indices = corpus.lists, corpus.gain, corpus.base, np.flatnonzero(np.diff(corpus.lists))
        first, sizes, choices = lists[indices], np.diff(lists)[indices], best_of_lists(lists, scores, scores)[indices]
        if indices.size:
            losses.append(np.stack([gain[first], np.add.reduceat(gain, first) / sizes]) - gain[choices])
    differences = np.concatenate(losses, axis=1)
    if differences.shape[1] < 2:
        return []
    beyond = differences.mean(axis=1) > 2 * differences.std(axis=1, ddof=1) / np.sqrt(differences.shape[1])
    others = [what for what, holds in zip(("the first candidate", "a random one"), beyond, strict=True) if holds]
    message = (
        f"The base score {base!r} chooses worse than {' and than '.join(others)}, so nothing is claimed against it: if "
        "it is a cost, say scores: cost in the reader's options (data.reader of a recipe), if it is a score, scores: "
        "score."
    )
    return [message] if others else []


def check_same_lists(a: Compared, b: Compared, name_a: str, name_b: str) -> None:
    """Refuse to compare ``name_a`` of ``a`` with ``name_b`` of ``b`` unless they choose from the same lists."""
    message, unlike = "", next(((i, j) for i, j in zip(a.ids, b.ids, strict=False) if i != j), None)
    if a.metric.signature != b.metric.signature:
        message = f"the runs were scored differently: {a.metric.signature} and {b.metric.signature}"
    elif len(a.ids) != len(b.ids):
        message = f"{len(b.ids):,} test lists, but the other run has {len(a.ids):,}; compare runs over the same data"
    elif not np.array_equal(a.reference, b.reference):
        message = "the test lists differ in their references from those of the other run"
    elif unlike is not None:
        message = f"the list {unlike[1]!r} where the other run has {unlike[0]!r}; compare runs over the same lists"
    if message:
        raise DataError(message, path=b.path)
    for name, each in ((name_a, a), (name_b, b)):
        if name not in each.rows:
            message = f"no predictor {name!r} in the run; it has {', '.join(sorted(each.rows))}"
            message += " (run it with training.vote: true)" if name == "voted" else ""
            raise DataError(message, path=each.path)


def compare_runs(
    a: Path, b: Path, predictor: str | None = None, **testing: Any
) -> list[tuple[str, Compared, tuple[str, str]]]:
    """Run ``a`` and run ``b`` on every test split that both have: the split, what they choose there, as the rows "A"
    and "B", and by which predictors.

    predictor: of both; None: the one that the model of either run decides by. testing: test, samples and seed.
    """
    both = list[dict[str, Any]]()
    for path in (a / "metrics.json", b / "metrics.json"):
        try:
            both.append(dict(json.loads(path.read_text(encoding="utf-8"))))
            if not isinstance(both[-1]["splits"], dict):
                raise TypeError("its splits are not a mapping")
        except DAMAGE as error:
            raise DataError(f"no results of a run here: {error}", path=str(path)) from None
    first, second = both
    splits = [split for split in first["splits"] if split in second["splits"]]
    if not splits:
        message = f"the runs share no test split: {list(first['splits'])} and {list(second['splits'])}"
        raise DataError(message, path=f"{a}, {b}")
    name_a, name_b = (str(predictor or results.get("predictor", "average")) for results in (first, second))
    doubt = " ".join(dict.fromkeys(filter(None, (run.get("base_doubt") for run in (first, second)))))
    results = []
    for split in splits:
        ours, theirs = Compared.of_run(a, split), Compared.of_run(b, split)
        check_same_lists(ours, theirs, name_a, name_b)
        rows = {"A": ours.rows[name_a], "B": theirs.rows[name_b]}
        table = Compared(ours.metric, ours.reference, rows, "B", **testing, doubt=doubt)
        results.append((split, table, (name_a, name_b)))
    return results
