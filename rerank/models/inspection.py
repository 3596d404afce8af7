"""A look into a model: its strongest weights, the share of each template, and what each is worth."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.features.table import FeatureTable
from rerank.models.model import Model
from rerank.models.provenance import Provenance
from rerank.readers.score_columns import ScoreColumns


@dataclass(frozen=True)
class TemplateShare:
    """One template in a model: its columns, those with a weight, and its share of the weights' absolute sum."""

    template: str
    columns: int
    nonzero: int
    share: float
    strongest: list[tuple[str, float]]


def shares(model: Model, predictor: str, top: int) -> list[TemplateShare]:
    """Every template with its ``top`` strongest features, the largest share first."""
    w = model.weights[predictor].strength
    total = float(np.abs(w).sum())
    entries = []
    for name, columns in _columns_by_template(model):
        sizes = np.abs(w[columns])
        order = columns[np.argsort(-sizes, kind="stable")[:top]]
        strongest = [(model.table.name(int(j)), float(w[j])) for j in order if w[j] != 0.0]
        share = float(sizes.sum()) / total if total else 0.0
        entries.append(TemplateShare(name, columns.size, int(np.count_nonzero(sizes)), share, strongest))
    return sorted(entries, key=lambda entry: (-entry.share, entry.template))


def find_features(model: Model, predictor: str, pattern: str) -> list[tuple[str, float]]:
    """Name and weight of every feature whose name contains ``pattern``, strongest first."""
    w = model.weights[predictor].strength
    names = ((model.table.name(j), float(w[j])) for j in range(model.table.width))
    return sorted((pair for pair in names if pattern in pair[0]), key=lambda pair: (-abs(pair[1]), pair[0]))


def provenance_rows(model: Model) -> list[tuple[str, str]]:
    """The provenance of a model, as names and values to show; unknown ones are left out."""
    about, columns = Provenance.model_validate(model.about), ScoreColumns.of_table(model.table.about)
    dev, source = about.dev, about.imported
    program = [f"rerank {about.version}", about.python and f"Python {about.python}", about.platform]
    rows = [
        ("learner", about.learner),
        ("run", about.run),
        ("seed", str(about.seed)),
        ("epochs", str(about.epochs)),
        (f"dev {dev.measure}", f"{dev.score:.6g} ({dev.split})") if dev else ("", ""),
        ("weights imported from", f"{source.file} (SHA-256 {source.sha256})" if source else ""),
        ("date", about.date),
        ("version", ", ".join(filter(None, program))),
        ("libraries", ", ".join(f"{name} {version}" for name, version in about.libraries.items())),
        ("training data", about.training_data),
    ]
    if columns is not None:
        rows.append(("base score", columns.base or ""))
        rows += [(f"score columns of {source}", ", ".join(names)) for source, names in columns.sources.items()]
    rows += [(f"training {kind}", f"SHA-256 {digest}") for kind, all_ in about.files.items() for digest in all_]
    return [(name, value) for name, value in rows if value]


def part_sizes(model: Model) -> list[dict[str, Any]]:
    """Weights, table, state and votes: ``part``, how many ``arrays`` it has, and their ``bytes`` in memory."""
    table, trees = model.table, model.weights["last"].trees
    columns = [table.hashes, table.template, table.first, table.symbols] if isinstance(table, FeatureTable) else []
    parts = {
        "weights": [weights.w for weights in model.weights.values()],
        "trees": [trees.text] if trees else [],
        "table": columns,
        "state": list(model.state.values()),
        "votes": list(model.votes.values()),
    }
    return [
        {"part": part, "arrays": len(arrays), "bytes": sum(array.nbytes for array in arrays)}
        for part, arrays in parts.items()
    ]


def _columns_by_template(model: Model) -> list[tuple[str, np.ndarray]]:
    """Templates with their columns; a hashed table is one group."""
    table = model.table
    numbers = getattr(table, "template", None)
    if numbers is None:
        return [("hashed", np.arange(table.width))]
    return [(name, np.flatnonzero(numbers == i)) for i, name in enumerate(table.templates)]
