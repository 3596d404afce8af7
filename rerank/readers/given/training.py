"""Lists of a program as those that a recipe trains on, with what is right in them."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.readers.given.lists import candidate_of, columns_shown, texts_given, trees_given
from rerank.readers.given.nbest import GAIN, NBest, is_tree
from rerank.readers.given.reading import ListFile
from rerank.readers.nbest import NBestList
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import TextList
from rerank.readers.trees.treebank import GoldText

_TWO_GAINS = f"the column {GAIN!r} does not hold the gains of the list; rename it"


def lists_given(
    lists: Iterable[Any], *, texts: bool, gains: bool, columns: ScoreColumns | None = None
) -> Iterator[NBestList]:
    """Lists as readers give them, with sources and references and, if asked for, with gains as the column "gain".

    columns: those that the lists must have; by default those of the first list's first candidate.

    Raises
    ------
    DataError: something that is not an ``NBest``, a candidate that cannot be used, or has other columns than the first;
        as many gains as candidates are expected, and one gold tree.
    """
    for nbest in lists:
        if not isinstance(nbest, NBest):
            raise DataError(f"found a list of the type {type(nbest).__name__}; expected rerank.NBest")
        if columns is None and nbest.rows is None and len(nbest):
            columns = columns_shown([candidate_of(given, k) for k, given in enumerate(nbest.candidates, start=1)])
        try:
            rows = _rows(nbest, texts, columns)
            yield _with_gains(rows, nbest) if gains else rows
        except DataError as error:
            raise DataError(error.message, list_id=nbest.id) from None


def first_list(lists: Iterable[NBest]) -> tuple[NBest, Iterable[NBest]]:
    """The first list that has candidates, and all lists, which may be an iterator.

    Raises
    ------
    DataError: there is none.
    """
    if isinstance(lists, ListFile) and "-" not in lists.files:
        found = next((each for each in lists if len(each)), None)
        if found is not None:
            return found, lists
    ahead, rest = list[NBest](), iter(lists)
    for nbest in rest:
        if not isinstance(nbest, NBest):
            raise DataError(f"found a list of the type {type(nbest).__name__}; expected rerank.NBest")
        ahead.append(nbest)
        if len(nbest):
            return nbest, chain(ahead, rest)
    raise DataError("no list with candidates", path=lists.path if isinstance(lists, ListFile) else None)


def holds_trees(nbest: NBest) -> bool:
    """Whether the candidates of a list are trees, by its gold tree or its first candidate."""
    if nbest.rows is not None:
        return not isinstance(nbest.rows, TextList)
    return bool(len(nbest)) and _candidate(nbest).text.lstrip().startswith("(") and not nbest.gains


def _candidate(nbest: NBest) -> Any:
    return candidate_of(nbest.candidates[0], 1)


def _rows(nbest: NBest, texts: bool, columns: ScoreColumns | None) -> NBestList:
    rows = nbest.rows
    if rows is None:
        _check_columns(nbest, columns)
        own = None if columns is None else columns.without({GAIN} if nbest.gains is not None else ())
        made = texts_given if texts else trees_given
        rows = made(nbest.candidates, own, name=nbest.id)
    elif isinstance(rows, TextList) != texts:
        raise DataError(
            "found a list of trees; expected lists of texts" if texts else "found a list of texts, not trees"
        )
    if isinstance(rows, TextList):
        source = None if nbest.source is None else encoded(nbest.source).strip()
        return rows.changed(source=source, references=tuple(_text(each) for each in nbest.references))
    if len(nbest.references) > 1:
        raise DataError(f"found {len(nbest.references)} gold trees as references; expected one")
    if rows.gold is None and nbest.references:
        return rows.changed(gold=GoldText(_text(nbest.references[0]), 0, ""))
    return rows


def _check_columns(nbest: NBest, columns: ScoreColumns | None) -> None:
    """Refuse columns that nobody would learn from: those that the first list does not have, and a second "gain"."""
    known = set() if columns is None else {*columns.names, GAIN}
    gains = nbest.gains or ()
    for k, given in enumerate(nbest.candidates, start=1):
        candidate = candidate_of(given, k)
        numbers = {**candidate.columns, **getattr(candidate, "numbers", {})}
        if GAIN in numbers and k <= len(gains) and numbers[GAIN] != gains[k - 1]:
            raise DataError(f"candidate {k}: {_TWO_GAINS}")
        if unknown := candidate.columns.keys() - known:
            message = f"candidate {k} has the column {min(unknown)!r}, which the very first candidate lacks"
            raise DataError(f"{message}; numbers that few candidates have are 'features'")


def _with_gains(rows: NBestList, nbest: NBest) -> NBestList:
    """The list with its gains as the column "gain"."""
    if nbest.gains is None:
        return rows
    gains = np.array(nbest.gains, np.float64)
    if gains.size != len(rows):
        raise DataError(f"found {gains.size} gains for {len(rows)} candidates; expected one for each")
    if GAIN in rows.names:
        if not np.array_equal(rows.scores[:, rows.names.index(GAIN)], gains):
            raise DataError(_TWO_GAINS)
        return rows
    named = rows.named()
    sources = {source: (*names, GAIN) for source, names in named.by_source.items()}
    return named.changed(names=(*named.names, GAIN), scores=np.column_stack([named.scores, gains]), sources=sources)


def _text(reference: Any) -> bytes:
    if not isinstance(reference, str) and not is_tree(reference):
        raise DataError(f"found {reference!r} as a reference; expected a text or a tree")
    return encoded(str(reference)).strip()
