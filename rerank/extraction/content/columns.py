"""Lists held to the score columns that a model was trained with."""

from typing import TypeVar

from rerank.readers.base import NBestList, SkippedList
from rerank.readers.score_columns import ScoreColumns

N = TypeVar("N", bound=NBestList)

SHOWN = 20  # names in a message


def columns_of(nbest: NBestList) -> ScoreColumns:
    """The columns of a list."""
    return ScoreColumns(nbest.names, nbest.names[nbest.column] if nbest.names else None, nbest.by_source)


def hold(columns: ScoreColumns, nbest: N) -> N | SkippedList:
    """``nbest`` with ``columns`` alone, or its base score if these are none; a bad list where one of them is missing,
    if only in one of its sources."""
    if not len(nbest):
        return nbest
    nbest = nbest.named() if columns.names else nbest
    own = columns_of(nbest)
    if own == columns:
        return nbest
    message = _difference(columns, own)
    if message is not None:
        return SkippedList(nbest.id, nbest.path, nbest.line, "columns", message, len(nbest) + len(nbest.bad))
    kept = [nbest.names.index(name) for name in columns.names] or [nbest.column]
    return nbest.changed(names=columns.names, scores=nbest.scores[:, kept], column=kept.index(nbest.column))


def unknown_columns(columns: ScoreColumns, nbest: NBestList) -> tuple[str, ...]:
    """The score columns of a list that are not among ``columns``; the base score is none of them."""
    if nbest.names == columns.names and not nbest.others:
        return ()
    shown = (*nbest.names[: nbest.column], *nbest.names[nbest.column + 1 :], *nbest.others) if len(nbest) else ()
    return tuple(name for name in shown if name not in columns.names)


def _difference(columns: ScoreColumns, own: ScoreColumns) -> str | None:
    """What keeps a list with the columns ``own`` from being used."""
    lacking = [name for name in columns.names if name not in own.names]
    if lacking:
        what = f"score column{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking))}"
        message = f"found no {what}; expected {_listed(columns.names)}, as in the training lists"
        return f"{message}: does the reader have the options of training?"
    if columns.base not in (None, own.base):
        message = f"the base score is {own.base!r}; expected {columns.base!r}, as in the training lists"
        return f"{message}: set the reader's option base"
    if own.sources.keys() == columns.sources.keys():  # else the lists are put together differently
        for source, names in columns.sources.items():
            lacking = [name for name in names if name not in own.sources[source]]
            if lacking:
                message = f"found no score column {lacking[0]!r} of {source}"
                return f"{message}; expected {_listed(names)} from there, as in the training lists"
    return None


def _listed(names: tuple[str, ...]) -> str:
    """Names for a message."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
