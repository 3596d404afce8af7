"""One list from the lists that several systems have for an input, with the columns of all."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import NBestList, Problem
from rerank.readers.combined.systems import System, system_name
from rerank.readers.texts.text_list import SparseScores, TextList

Duplicates = Literal["drop", "keep"]


class Origin(NamedTuple):
    """Where the candidates of a merged list come from."""

    parts: list[NBestList]  # the list of each system that has one
    systems: list[int]  # the system of each part
    places: list[tuple[int, int]]  # (part, candidate) of every candidate

    def some(self, places: Sequence[int]) -> "Origin":
        """Where the candidates at ``places`` come from."""
        return self._replace(places=[self.places[place] for place in places])


class UnitedColumns:
    """The columns of merged lists, and which of them are those of each system."""

    def __init__(self, systems: list[System], base: str | None) -> None:
        shown = [system for system in systems if system.names]
        names = list(dict.fromkeys(name for system in shown for name in system.names)) or ["score"]
        indicators = [system_name(system.number) for system in systems]
        if clash := set(names) & set(indicators):
            raise DataError(f"has a column {min(clash)!r}, a name that merged lists need", path=shown[0].path)
        base = base if base is not None else shown[0].base if shown else names[0]
        if base not in names:
            message = f"no system has the column {base!r}; the columns are {', '.join(names)}"
            raise RecipeError(message, key="base")
        self.names = (*names, *indicators)
        self.base = names.index(base)
        self.width = len(names)
        self.sources = {system_name(system.number): system.names for system in shown}
        self.places = {system.number: [names.index(name) for name in system.names] for system in systems}

    def join(self, parts: list[tuple[System, NBestList]], duplicates: Duplicates, *, normal: bool) -> NBestList:
        """One list from the lists of all systems that have one; normal: whether words are compared in normal form.

        Raises
        ------
        RecipeError: some are lists of texts, and others of trees.
        """
        lists = [found for _, found in parts]
        alike = [found.alike(normal=normal) for found in lists]
        blocks = [self._block(system, found) for system, found in parts]
        scores = np.concatenate([np.empty((0, len(self.names))), *blocks])
        flat = [(k, i) for k, found in enumerate(lists) for i in range(len(found))]
        first: dict[bytes, int] = {}
        kept, again = [], []
        for at, (k, i) in enumerate(flat):
            place = first.setdefault(alike[k][i], at)
            if place != at:
                again.append((place, at))
            if place == at or duplicates == "keep":
                kept.append(at)
        if duplicates == "drop":
            self._fill(scores, [parts[k][0] for k, _ in flat], again)
        places = [flat[at] for at in kept]
        common: dict[str, Any] = {
            "texts": [lists[k].texts[i] for k, i in places],
            "lines": [lists[k].lines[i] for k, i in places],
            "scores": scores[kept], "column": self.base, "names": self.names, "sources": self.sources,
            "duplicates": len(again), "bad": _join_bad(lists),
            "others": tuple(dict.fromkeys(name for found in lists for name in found.others)),
            "absent": sum((Counter(found.absent) for found in lists), Counter[str]()),
            "unscored": all(found.unscored for found in lists),
            "raw": Origin(lists, [system.number for system, _ in parts], places),
        }  # fmt: skip
        texts = [found for found in lists if isinstance(found, TextList)]
        if texts and len(texts) < len(lists):
            paths = ", ".join(system.path for system, _ in parts)
            raise RecipeError(f"some of {paths} hold texts, and others trees; they cannot be merged", key="of")
        own = {"form": "merged", **_of_texts(texts, places)} if texts else {}
        return lists[0].changed(**common, **own)

    def _block(self, system: System, found: NBestList) -> np.ndarray:
        """float64 [N, columns]: the candidates of one system."""
        scores = np.zeros((len(found), len(self.names)))
        scores[:, self.base], scores[:, self.width + system.number - 1] = found.base, 1.0
        if len(found):
            scores[:, self.places[system.number]] = found.scores
        return scores

    def _fill(self, scores: np.ndarray, owners: list[System], again: list[tuple[int, int]]) -> None:
        """Give candidates the values that they lack from later ones that are equal; ``again``: (first, later)."""
        known: dict[int, set[int]] = {}
        for place, at in again:
            have = known.setdefault(place, set(self.places[owners[place].number]))
            fresh = [column for column in self.places[owners[at].number] if column not in have]
            scores[place, fresh] = scores[at, fresh]
            scores[place, self.width + owners[at].number - 1] = 1.0
            have.update(fresh)


def _of_texts(lists: list[TextList], places: list[tuple[int, int]]) -> dict[str, Any]:
    """What only lists of texts have, for the chosen candidates."""
    return {
        "sparse": _join_sparse(lists, places),
        "segmentation": _join_texts([found.segmentation for found in lists], places),
        "alignment": _join_texts([found.alignment for found in lists], places),
        "source": next((found.source for found in lists if found.source is not None), None),
        "references": next((found.references for found in lists if found.references), ()),
        "ended": any(found.ended for found in lists),
    }


def _join_bad(lists: Sequence[NBestList]) -> tuple[Problem, ...]:
    """The candidates that were left out of the lists, with their places among the candidates of all systems."""
    sizes = [found.size for found in lists]
    before = np.cumsum([0, *sizes]).tolist()
    return tuple(
        problem.at(problem.list_id or "", problem.path or "", problem.line or 0, (problem.place or 0) + start)
        for nbest, start in zip(lists, before, strict=False)
        for problem in nbest.bad
    )


def _join_texts(columns: list[list[bytes] | None], places: list[tuple[int, int]]) -> list[bytes] | None:
    """The derivations of the chosen candidates, empty if their system gives none."""
    if all(column is None for column in columns):
        return None
    found = [columns[k] for k, _ in places]
    return [b"" if column is None else column[i] for column, (_, i) in zip(found, places, strict=True)]


def _join_sparse(lists: list[TextList], places: list[tuple[int, int]]) -> SparseScores | None:
    """The sparse features of the chosen candidates."""
    if all(found.sparse is None for found in lists):
        return None
    first, names = [0], list[bytes]()
    values = list[np.ndarray]()
    for k, i in places:
        sparse = lists[k].sparse
        if sparse is not None:
            one = slice(int(sparse.first[i]), int(sparse.first[i + 1]))
            names += sparse.names[one]
            values.append(sparse.values[one])
        first.append(len(names))
    return SparseScores(np.array(first, np.int64), names, np.concatenate([np.empty(0), *values]))
