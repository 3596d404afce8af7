"""The best word sequences of lattices under the weights of score columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.features.table import FeatureTable, Table
from rerank.learn.base import Weights
from rerank.learn.spaces.decoding import state_of
from rerank.learn.spaces.lattice import lattice_room, lattices_of
from rerank.learn.spaces.space import nbest
from rerank.models.weights_text import strongest
from rerank.readers.lattices import WORDS, WordLattice
from rerank.readers.problems import SkippedList
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import SCORE

MORE = 16  # times as many paths are looked at, at most, for different words
LARGEST = 1 << 24  # ways to nodes that are kept at a time
DENSE = "Dense|"
ALIGNED = 1 << 28  # nodes times words of a reference


class WordPath(NamedTuple):
    """Words of a lattice with the best sums of scores that it has for them, by columns, and their weighted sum."""

    text: str
    columns: dict[str, float]
    score: float


def best_texts(lattice: WordLattice, scales: Mapping[str, float], n: int) -> list[WordPath]:
    """The n best texts of a lattice, best first: different ones among the ``MORE``·n best paths.

    scales: the weights of columns; others weigh 0.
    """
    lattices, found, k = lattices_of([lattice]), dict[str, WordPath](), n
    state = state_of(np.array([scales.get(name, 0.0) for name in lattice.names]))
    most = max(n, min(MORE * n, LARGEST // lattice.nodes))
    while True:
        room = lattice_room(lattices, k)
        count = nbest(state, 0, k, room, lattices)
        for r in range(count):
            arcs = np.flatnonzero(room.output[r])
            text = " ".join(lattice.words[e] for e in arcs if lattice.words[e])
            if text not in found:
                sums = lattice.scores[arcs].sum(axis=0).tolist()
                found[text] = WordPath(text, dict(zip(lattice.names, sums, strict=True)), float(room.total[r]))
        if len(found) >= n or count < k or k >= most:
            return list(found.values())[:n]
        k = min(2 * k, most)


def oracle_text(lattice: WordLattice, reference: str) -> str:
    """The words of the path with the fewest errors in those of the reference."""
    words = reference.split()
    if lattice.nodes * (len(words) + 1) > ALIGNED:
        message = (
            f"found {lattice.nodes:,} nodes and {len(words):,} words in the reference; expected utterances: cut it up"
        )
        raise DataError(message, path=lattice.path, line=lattice.line, list_id=lattice.id)
    gold = lattices_of([lattice], [words]).gold
    return " ".join(word for word, right in zip(lattice.words, gold, strict=True) if right and word)


def check_scales(scales: Mapping[str, float], names: Sequence[str], path: str) -> None:
    """Refuse weights of columns that no arc has."""
    if unknown := [name for name, weight in scales.items() if name not in names and weight]:
        raise DataError(f"found no column {unknown[0]!r}, which is weighed; arcs have {', '.join(names)}", path=path)


def default_scales(names: Sequence[str]) -> dict[str, float]:
    """1 for every score, 0 for the number of words."""
    return {name: float(name != WORDS) for name in names}


def paired(
    lattices: Iterable[WordLattice | SkippedList], references: Iterable[tuple[bytes, ...]] | None, path: str
) -> Iterator[tuple[WordLattice | SkippedList, str | None]]:
    """Lattices with their references, in order. Raises DataError where the numbers differ."""
    if references is None:
        yield from ((lattice, None) for lattice in lattices)
        return
    for number, (lattice, reference) in enumerate(zip_longest(lattices, references)):
        if lattice is None or reference is None:
            what = "references than lattices" if lattice is None else "lattices than references"
            raise DataError(f"found more {what}, of which there are {number:,}; expected one for each", path=path)
        yield lattice, reference[0].decode("utf-8", "surrogateescape")


def dense_weights(table: Table, weights: Weights) -> dict[str, float]:
    """The weights of score columns, for values as files have them, by their names; the base score's is first, where
    it has a weight.

    Raises
    ------
    DataError: there are weights of other features, which lattices lack.
    """
    columns, base = ScoreColumns.of_table(table.about), float(weights.base)
    found, others = dict[str, float](), 0
    for j in strongest(weights.w).tolist():
        name = table.name(j)
        if j == table.base_column:
            base += float(weights.w[j])
        elif isinstance(table, FeatureTable) and name.startswith(DENSE):
            found[name.removeprefix(DENSE)] = float(weights.w[j])
        else:
            others += 1
    if others:
        message = f"found {others:,} weights of features that are no score columns; "
        raise DataError(message + "lattices need a model of columns alone, as `rerank weigh --save` makes it")
    name = columns.base if columns is not None and columns.base else SCORE
    return ({name: base} if base else {}) | found  # lists without base scores lack the column
