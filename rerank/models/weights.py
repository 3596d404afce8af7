"""Weights looked into, and as text, one ``name weight`` per line, for other programs; and back, to the bit.

A name is that of the feature table (``Template|symbols``) with white space, control characters, marks of direction, "%"
and a leading "#" as %XX, the bytes of their UTF-8. Names that several columns share are followed by ``%00#`` and the
feature's hash. The weight of the base score is called ``base``: features have a "|" in their names. Weights are written
with as many digits as it takes to read the same number; weights of 0 are left out.

Moses reads sparse weights in the same form (``weight-file``). It takes lines that begin with "#" for comments, and
splits at white space (``FVector::load`` in FeatureVector.cpp). It calls a feature by the name of its feature function,
"_", and what the function makes of it:

    Given|NAME                NAME: it came out of Moses, with its name
    PhrasePair|a b → c        pp_a,b~c      PhrasePairFeature name=pp
    WordPair|a → b            WT_a~b        WordTranslationFeature name=WT
    TargetNGram(n=2)|a b      TB_a:b        TargetBigramFeature name=TB

Weights of dense scores belong in the section [weight] of moses.ini; there they are in comments.
"""

import difflib
import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np

from rerank.base.errors import DataError
from rerank.features.table import FeatureTable, HashedTable
from rerank.features.template import ARROW
from rerank.learn.learner import Weights
from rerank.models.model import Model
from rerank.readers.lines import LineReader
from rerank.readers.reader import ScoreColumns, excerpt
from rerank.storage.streams import PathLike, open_stream, stream_name

BASE = "base"
_DIRECTIONS = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change how text is shown
_SPECIAL = re.compile(rf"[\s\x00-\x1f\x7f-\x9f%\udc80-\udcff{_DIRECTIONS}]|^#")
_NUMBER = re.compile(rb"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
NEAR_NAMES = 64  # names before and after an unknown one, in sorted order, that are searched for the nearest


def escape_name(name: str) -> str:
    """``name`` as one word."""
    return _SPECIAL.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape")), name
    )


def unescape_name(word: str) -> str:
    """The inverse of ``escape_name``."""
    return unquote_to_bytes(word.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def column_names(table: FeatureTable) -> list[str]:
    """The name of every column as one word; no two are the same."""
    columns = range(table.width)
    return distinct_names(table, columns, [escape_name(table.name(j)) for j in columns], "%00#")


def distinct_names(table: FeatureTable, columns: Sequence[int], names: list[str], mark: str) -> list[str]:
    """The ``names`` of columns, with a mark and the feature's hash after those that several share."""
    counts = Counter(names)
    return [
        f"{name}{mark}{int(table.hashes[j]):016x}" if counts[name] > 1 else name
        for j, name in zip(columns, names, strict=True)
    ]


def strongest(w: np.ndarray, top: int | None = None) -> np.ndarray:
    """int64: the columns whose weight is not 0 (-0.0 counts as 0), the largest |weight| first, at most ``top``."""
    columns = np.flatnonzero(np.ascontiguousarray(w).view(np.int64))
    return columns[np.argsort(-np.abs(w[columns]), kind="stable")][:top]


def weight_lines(table: FeatureTable, weights: Weights, *, top: int | None = None) -> Iterator[str]:
    """The lines, without line ends: the base score's weight, then the ``top`` strongest features."""
    names = column_names(table)
    yield f"{BASE} {float(weights.base)!r}"
    for j in strongest(weights.w, top).tolist():
        yield f"{names[j]} {float(weights.w[j])!r}"


def named_weights(table: FeatureTable, weights: Weights) -> dict[str, float]:
    """The weights that are not 0 by the names of their features, the strongest first; a name that several columns share
    is followed by the feature's hash."""
    columns = strongest(weights.w).tolist()
    names = distinct_names(table, columns, [table.name(j) for j in columns], " #")
    return dict(zip(names, weights.w[columns].tolist(), strict=True))


class TextWeights(NamedTuple):
    """The contents of a file of weights: the weights, for how many features, and the SHA-256 of its text."""

    weights: Weights
    features: int
    sha256: str


def read_weights(path: PathLike, table: FeatureTable) -> TextWeights:
    """The weights in a file, for the columns of ``table``.

    Features that it does not name weigh 0; empty lines and those that begin with "#" do not count.
    """
    source, names, digest = stream_name(path), column_names(table), hashlib.sha256()
    column = {name: j for j, name in enumerate(names)} | {BASE: len(names)}
    w, seen = np.zeros(len(names) + 1), dict[int, int]()  # seen: the line of a column
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            digest.update(line + b"\n")
            if not line.strip() or line.startswith(b"#"):
                continue
            fields = line.split()
            weight = float(fields[1]) if len(fields) == 2 and _NUMBER.fullmatch(fields[1]) else np.inf
            if not np.isfinite(weight):
                message = f"found {excerpt(line)}; expected a name, white space and a finite weight"
                raise DataError(message, path=source, line=number)
            name = escape_name(unescape_name(fields[0].decode("utf-8", "surrogateescape")))  # as it would be written
            if (j := column.get(name, -1)) < 0:
                message = f"the model has no feature {excerpt(fields[0])}; {_nearest(name, names)}"
                raise DataError(message, path=source, line=number)
            if j in seen:
                raise DataError(f"{excerpt(fields[0])} is already in line {seen[j]}", path=source, line=number)
            w[j], seen[j] = weight, number
    if len(names) not in seen:
        message = f"no line {BASE!r}, the weight of the base score: add `{BASE} 1.0`, or 0.0 if it does not count"
        raise DataError(message, path=source)
    return TextWeights(Weights(w[:-1].copy(), float(w[-1])), len(seen) - 1, digest.hexdigest())


def _nearest(name: str, names: list[str]) -> str:
    """Features with similar names; tables are too large to compare with all of them."""
    names = sorted(names)
    at = bisect_left(names, name)
    near = difflib.get_close_matches(name, names[max(0, at - NEAR_NAMES) : at + NEAR_NAMES], n=2)
    return f"did you mean {' or '.join(near)}?" if near else "was it exported from a model of other features?"


_INDEXED = re.compile(r"(.+)_(\d{1,3})")


def moses_name(template: str, symbols: Sequence[int], texts: Sequence[str]) -> str | None:
    """The name that Moses has for a feature; None if it has no such features.

    symbols, texts: the hashes of its symbols, and their texts.
    """
    name = None
    if template == "Given":
        name = " ".join(texts)
    elif template in ("PhrasePair", "WordPair") and symbols.count(int(ARROW)) == 1:
        at = symbols.index(int(ARROW))
        source, target = texts[:at], texts[at + 1 :]
        if source and target:
            prefix = "pp" if template == "PhrasePair" else "WT"
            name = f"{prefix}_{','.join(source)}~{','.join(target)}"
    elif template == "TargetNGram(n=2)":
        name = f"TB_{':'.join(texts)}"
    return None if name is None or re.search(r"\s|^#|^$", name) else name


def moses_lines(
    table: FeatureTable, weights: Weights, left_out: Counter[str], *, top: int | None = None
) -> Iterator[str]:
    """The lines, without line ends; counts in ``left_out``, by template, the weights that Moses has no place for."""
    sparse: list[tuple[str, float]] = []
    for j in strongest(weights.w).tolist():
        weight = float(weights.w[j])
        if isinstance(table, HashedTable):
            left_out["hashed"] += 1
            continue
        template = table.templates[table.template[j]]
        if template == "Dense":
            continue
        symbols = table.symbols[table.first[j] : table.first[j + 1]].tolist()
        complete = all(symbol in table.texts for symbol in symbols)
        name = moses_name(template, symbols, [table.texts[symbol] for symbol in symbols]) if complete else None
        if name is None:
            left_out[template] += 1
        else:
            sparse.append((name, weight))
    yield from _dense_lines(table, weights)
    for name, weight in sparse[:top]:
        yield f"{name} {weight!r}"


def _dense_lines(table: FeatureTable, weights: Weights) -> Iterator[str]:
    """The comment with the weights of dense scores, one line per feature function."""
    yield f"# Multiply the weights of moses.ini by the base score's, {float(weights.base)!r}, and add to them:"
    yield "# [weight]"
    columns, names = ScoreColumns.of_table(table.about), [table.name(j) for j in range(table.free)]
    weight_of = {
        name.removeprefix("Dense|"): float(weights.w[j]) for j, name in enumerate(names) if name[:6] == "Dense|"
    }
    # Moses wants a weight for every score of a function, also for those that never vary and are no features.
    dense = dict.fromkeys([name for name in columns.names if name != columns.base] if columns else (), 0.0) | weight_of
    rows: dict[str, dict[int, float]] = {}
    for name, weight in dense.items():
        match = _INDEXED.fullmatch(name)
        if match and f"{match[1]}_0" in dense:  # LM_1 alone is a name of its own
            rows.setdefault(match[1], {})[int(match[2])] = weight
        else:
            rows[name] = {0: weight}
    for name, row in sorted(rows.items()):
        yield f"# {name}= {' '.join(repr(row.get(i, 0.0)) for i in range(max(row) + 1))}"


def shares(model: Model, predictor: str, top: int) -> list[dict[str, Any]]:
    """Every template, the largest share first: its columns, those with a weight, its share of the weights' absolute
    sum, and its ``top`` strongest features; a hashed table is one group."""
    w, table, entries = model.weights[predictor].strength, model.table, list[dict[str, Any]]()
    total = float(np.abs(w).sum())
    by_template = [(name, np.flatnonzero(table.template == i)) for i, name in enumerate(table.templates)]
    if isinstance(table, HashedTable):
        by_template = [("hashed", np.arange(table.width))]
    for name, columns in by_template:
        sizes = np.abs(w[columns])
        share, nonzero = float(sizes.sum()) / total if total else 0.0, int(np.count_nonzero(sizes))
        order = columns[np.argsort(-sizes, kind="stable")[:top]]
        features = [{"feature": table.name(int(j)), "weight": float(w[j])} for j in order if w[j] != 0.0]
        entry = {"template": name, "columns": columns.size, "nonzero": nonzero, "share": share, "strongest": features}
        entries.append(entry)
    return sorted(entries, key=lambda entry: (-entry["share"], entry["template"]))


def find_features(model: Model, predictor: str, pattern: str) -> list[tuple[str, float]]:
    """Name and weight of every feature whose name contains ``pattern``, strongest first."""
    w = model.weights[predictor].strength
    names = ((model.table.name(j), float(w[j])) for j in range(model.table.width))
    return sorted((pair for pair in names if pattern in pair[0]), key=lambda pair: (-abs(pair[1]), pair[0]))
