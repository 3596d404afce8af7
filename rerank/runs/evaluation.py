"""Selections scored: what a choice of one candidate per list is worth, and whether two choices differ."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rerank.base.errors import DataError
from rerank.data.shards import Corpora, reference_rows
from rerank.extraction.content import metric_of
from rerank.metrics.base import Metric, TestName
from rerank.metrics.significance import compare
from rerank.recipes.loading import load_recipe
from rerank.storage.arrays import DAMAGE, read_archive
from rerank.storage.files import new_file
from rerank.storage.strict_json import as_json


@dataclass(frozen=True)
class Selections:
    """Choices over the lists of one split, as the rows of statistics that they select.

    ids: those of the L lists; signature: the metric's; reference: float64 [L, R]; rows: by name, float64 [L, K]; path:
    the file that they were read from.
    """

    ids: list[str]
    signature: str
    reference: np.ndarray
    rows: dict[str, np.ndarray]
    path: str | None = None

    @staticmethod
    def of(corpus: Corpora, ids: list[str], metric: Metric, rows: dict[str, np.ndarray]) -> "Selections":
        """``rows``: by name, float64 [L, K]."""
        return Selections(ids, metric.signature, reference_rows(corpus), rows)

    def reports(self, metric: Metric) -> dict[str, dict[str, float]]:
        """All measures of every selection."""
        total = self.reference.sum(axis=0)
        return {name: metric.report(rows.sum(axis=0), total) for name, rows in self.rows.items()}

    def significance(
        self, metric: Metric, pairs: list[tuple[str, str]], test: TestName, samples: int, seed: int
    ) -> dict[str, dict[str, object]]:
        """The test of each pair (a, b), under the key ``a_vs_b``; the difference is a's score minus b's."""
        return {
            f"{a}_vs_{b}": compare(
                metric, self.rows[a], self.rows[b], self.reference, test=test, samples=samples, seed=seed
            ).as_dict()
            for a, b in pairs
        }

    def save(self, path: Path) -> None:
        """Write an .npz without objects; it appears under its name only when complete."""
        header = as_json({"ids": self.ids, "signature": self.signature})
        arrays: dict[str, Any] = {f"rows_{name}": rows for name, rows in self.rows.items()}
        with new_file(path) as new, new.open("wb") as stream:
            text = np.frombuffer(header.encode(), np.uint8)
            np.savez_compressed(stream, header=text, reference=self.reference, **arrays)

    @staticmethod
    def load(path: Path) -> "Selections":
        """Read what ``save`` wrote."""
        try:
            arrays = read_archive(path)
            header = json.loads(arrays.pop("header").tobytes())
            ids, signature = [str(name) for name in header["ids"]], str(header["signature"])
            for name, array in arrays.items():
                if array.dtype != np.float64 or array.ndim != 2 or len(array) != len(ids):
                    raise ValueError(f"{name} is {array.dtype} {array.shape}; expected float64 ({len(ids)}, any)")
            reference = arrays.pop("reference")
            rows = {name.removeprefix("rows_"): array for name, array in arrays.items()}
            if len({array.shape for array in rows.values()}) > 1:
                raise ValueError("its selections have statistics of different kinds")
            return Selections(ids, signature, reference, rows, str(path))
        except FileNotFoundError:
            raise DataError("no such file; has the run finished?", path=str(path)) from None
        except DAMAGE as error:
            raise DataError(f"damaged: {error}; run the recipe again", path=str(path)) from None


def compare_selections(
    a: Selections,
    b: Selections,
    name_a: str,
    name_b: str,
    metric: Metric,
    test: TestName,
    samples: int,
    seed: int,
    by: Literal["id", "order"] = "id",
) -> dict[str, object]:
    """Significance of ``name_a`` of ``a`` against ``name_b`` of ``b``, two runs over the same lists.

    by: whether lists of the same id are the same, or lists of the same place, as in two formats.
    """
    if a.signature != b.signature:
        raise DataError(f"the runs were scored differently: {a.signature} and {b.signature}", path=b.path)
    if len(a.ids) != len(b.ids):
        message = f"{len(b.ids):,} test lists, but the other run has {len(a.ids):,}; compare runs over the same data"
        raise DataError(message, path=b.path)
    if not np.array_equal(a.reference, b.reference):
        raise DataError("the test lists differ in their references from those of the other run", path=b.path)
    if by == "id" and (other := next(((i, j) for i, j in zip(a.ids, b.ids, strict=True) if i != j), None)):
        message = f"the list {other[1]!r} where the other run has {other[0]!r}: if the runs have the same lists in "
        raise DataError(f"{message}different formats, compare them --by order", path=b.path)
    for name, selections in ((name_a, a), (name_b, b)):
        _check_rows(selections, metric)
        if name not in selections.rows:
            message = f"no predictor {name!r} in the run; it has {', '.join(sorted(selections.rows))}"
            message += " (run it with training.vote: true)" if name == "voted" else ""
            raise DataError(message, path=selections.path)
    return compare(metric, a.rows[name_a], b.rows[name_b], a.reference, test=test, samples=samples, seed=seed).as_dict()


def compare_runs(
    a: Path,
    b: Path,
    predictor: str | None,
    test: TestName,
    samples: int,
    seed: int,
    by: Literal["id", "order"] = "id",
) -> list[tuple[str, dict[str, Any]]]:
    """Significance of run ``a`` against run ``b`` for every test split that both have: (split, result).

    predictor: of both; None: the one that the model of either run decides by. by: see ``compare_selections``.
    """
    first, second = (_read_results(path / "metrics.json") for path in (a, b))
    splits = [split for split in first["splits"] if split in second["splits"]]
    if not splits:
        message = f"the runs share no test split: {list(first['splits'])} and {list(second['splits'])}"
        raise DataError(message, path=f"{a}, {b}")
    metric = metric_of(load_recipe(a / "recipe.yaml"))
    names = [str(predictor or results.get("predictor", "average")) for results in (first, second)]
    compared = []
    for split in splits:
        sides = [Selections.load(path / "predictions" / f"{split}.selections.npz") for path in (a, b)]
        result = compare_selections(sides[0], sides[1], names[0], names[1], metric, test, samples, seed, by)
        scores = [side.reports(metric)[name][metric.primary] for side, name in zip(sides, names, strict=True)]
        about = {"measure": metric.primary, "lower_is_better": metric.lower_is_better, "metric": metric}
        about |= {"predictors": names, "a": scores[0], "b": scores[1], "signature": sides[0].signature}
        compared.append((split, about | result))
    return compared


def _check_rows(selections: Selections, metric: Metric) -> None:
    """Refuse selections that were not made with the metric that a run's recipe names."""
    widths = {rows.shape[1] for rows in selections.rows.values()}
    fits = widths <= {len(metric.columns)} and selections.reference.shape[1] == len(metric.reference_columns)
    if selections.signature != metric.signature or not fits:
        message = f"scored by {selections.signature}, but the run's recipe.yaml measures {metric.signature}; "
        raise DataError(f"{message}the files are of different runs: run the recipe again", path=selections.path)


def _read_results(path: Path) -> dict[str, Any]:
    try:
        results = dict(json.loads(path.read_text(encoding="utf-8")))
        if not isinstance(results["splits"], dict):
            raise TypeError("its splits are not a mapping")
        return results
    except DAMAGE as error:
        raise DataError(f"no results of a run here: {error}", path=str(path)) from None
