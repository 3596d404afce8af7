"""Candidates in memory to lists as readers give them.

A candidate that is a dict is what a JSON line holds for one: its numbers stand under their names, and those that are no
score columns are sparse features. Where they are sorted already, under ``columns`` and ``features``, columns that are
not asked for are left out. Bad candidates are errors that say which one it is.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from rerank.base.encoding import encoded
from rerank.readers.candidate import NOTHING, Candidate
from rerank.readers.given.nbest import CandidateLike, GivenError, is_tree
from rerank.readers.nbest import NBestList
from rerank.readers.problems import NUL
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import SparseScores, TextList
from rerank.readers.texts.text_reader import NUMBERS, SCORE

DERIVATIONS = "segmentation", "alignment"
KEYS = "text", "tree", "score", "columns", "features", *DERIVATIONS  # of a candidate that is a dict
FORM = "jsonl"  # the format that texts are written in


class FlatCandidate(Candidate):
    """A candidate with ``numbers`` by name, of which the list decides whether they are columns or features."""

    __slots__ = ("numbers",)
    numbers: Mapping[str, float]


MAPPINGS = dict, Mapping  # ``isinstance`` knows a dict at once, and asks the abstract class about others
_PLAIN = {key.rstrip("s"): key for key in KEYS}


def candidate_of(given: CandidateLike, k: int) -> Candidate:
    """Candidate number ``k`` (from 1) of a list, whatever it was given as.

    Raises
    ------
    DataError: it is nothing that can be a candidate.
    """
    if isinstance(given, str):
        return Candidate(given)
    if isinstance(given, Candidate):
        return given
    if isinstance(given, MAPPINGS):
        wrong, own = _keys(tuple(given))
        if wrong is not None:
            raise GivenError(f"candidate {k}: {wrong}", _place(k))
        get = given.get
        columns, features = get("columns") or NOTHING, get("features") or NOTHING
        if not isinstance(columns, MAPPINGS) or not isinstance(features, MAPPINGS):
            message = f"candidate {k}: expected mappings of names to numbers under 'columns' and 'features'"
            raise GivenError(message, _place(k))
        if get("text") is None and get("tree") is None:
            key = "text" if "text" in given else "tree"
            raise GivenError(f"candidate {k}: found None as its {key}; expected a string", _place(k, key))
        candidate = (FlatCandidate if own else Candidate)(
            get("text"), get("score"), columns, features,
            tree=get("tree"), segmentation=get("segmentation"), alignment=get("alignment"),
        )  # fmt: skip
        if isinstance(candidate, FlatCandidate):
            candidate.numbers = {name: given[name] for name in own if _is_number(given[name])}
            if twice := [name for name in candidate.numbers if name in columns or name in features]:
                message = f"candidate {k} has two numbers called {twice[0]!r}; rename one of them"
                raise GivenError(message, _place(k, twice[0]))
        return candidate
    if isinstance(given, tuple) and len(given) == 2 and given[0] is not None:
        return Candidate(tree=given[0], score=given[1]) if is_tree(given[0]) else Candidate(given[0], given[1])
    if is_tree(given):
        return Candidate(tree=given)
    message = (
        f"found {type(given).__name__}; expected a text, a pair (text, score), a dict, an nltk.Tree or a Candidate"
    )
    raise GivenError(f"candidate {k}: {message}", _place(k))


def _place(k: int, *keys: str) -> str:
    """The field of candidate number ``k``, or of what it has under ``keys``."""
    return ".".join([f"candidates[{k - 1}]", *keys])


@lru_cache(maxsize=256)
def _keys(keys: tuple[Any, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The mistake in the keys of a candidate, if there is one, and those that may name numbers."""
    for key in keys:
        meant = _PLAIN.get(str(key).lower().rstrip("s"))
        if meant not in (None, key):
            return f"found the key {key!r}; did you mean {meant!r}?", ()
    if ("text" in keys) == ("tree" in keys):
        named = ", ".join(map(repr, keys)) or "none"
        return f"expected either 'text' or 'tree' among its keys, which are {named}", ()
    return None, tuple(key for key in keys if isinstance(key, str) and key not in KEYS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _sorted_out(candidates: list[Candidate], columns: ScoreColumns) -> list[Candidate]:
    """The candidates with their numbers among their columns or their features."""
    names = {*columns.names, *NUMBERS}
    return [
        Candidate(
            each.text,
            each.score,
            {**each.columns, **{name: value for name, value in each.numbers.items() if name in names}},
            {**{name: value for name, value in each.numbers.items() if name not in names}, **each.features},
            segmentation=each.segmentation,
            alignment=each.alignment,
        )
        if isinstance(each, FlatCandidate)
        else each
        for each in candidates
    ]


def texts_given(
    given: Iterable[CandidateLike],
    columns: ScoreColumns | None = None,
    *,
    name: str = "",
    source: str | None = None,
    references: Sequence[str] = (),
    scored: bool = False,
) -> TextList:
    """Candidates as a list of texts with ``columns``, by default "score" and those of the first candidate.

    scored: whether they must have base scores; if not, these are 0 where no candidate has one and they have no name of
    their own.

    Raises
    ------
    DataError: a candidate lacks a column, has something that is not a finite number, or is not a text.
    """
    candidates, columns = _candidates(given, columns)
    return text_list(
        _texts(candidates), _scores(candidates, columns, scored), columns, name,
        sparse=_sparse(candidates, columns.names), **_said(candidates, columns),
        segmentation=_derivations([each.segmentation for each in candidates], "segmentation"),
        alignment=_derivations([each.alignment for each in candidates], "alignment"),
        source=None if source is None else checked_text(source, "the source", "source"),
        references=tuple(checked_text(each, "a reference", "references") for each in references),
    )  # fmt: skip


def text_list(texts: list[bytes], scores: np.ndarray, columns: ScoreColumns, name: str, **more: Any) -> TextList:
    """A list of texts with ``scores`` (float64 [N, K]) in ``columns``; ``more`` are other fields."""
    return TextList(
        id=name, path="", line=0, texts=texts, lines=range(1, len(texts) + 1), scores=scores,
        column=columns.names.index(columns.base or SCORE), form=FORM, names=columns.names, sources=columns.sources,
        **more,
    )  # fmt: skip


def trees_given(
    given: Iterable[CandidateLike], columns: ScoreColumns | None = None, *, name: str = "", scored: bool = False
) -> NBestList:
    """Candidates as a list of parses with ``columns``, by default a score alone, or "score" and the columns of the
    first candidate; scored: see ``texts_given``.

    Raises
    ------
    DataError: see ``texts_given``.
    """
    candidates, columns = _candidates(given, columns)
    scores = _scores(candidates, columns, scored)
    return tree_list(_texts(candidates), scores, columns, name, **_said(candidates, columns))


def tree_list(texts: list[bytes], scores: np.ndarray, columns: ScoreColumns, name: str, **more: Any) -> NBestList:
    """A list of parses with ``scores`` (float64 [N, K]) in ``columns``; ``more`` are other fields."""
    named = len(columns.names) > 1 or columns.sources
    return NBestList(
        id=name, path="", line=0, texts=texts, lines=range(1, len(texts) + 1), scores=scores,
        column=columns.names.index(columns.base or SCORE) if named else 0,
        names=columns.names if named else (), sources=columns.sources, **more,
    )  # fmt: skip


def _candidates(given: Iterable[CandidateLike], columns: ScoreColumns | None) -> tuple[list[Candidate], ScoreColumns]:
    """The candidates of a list, and the columns that it has."""
    candidates = [candidate_of(candidate, k) for k, candidate in enumerate(given, start=1)]
    columns = columns_shown(candidates) if columns is None else columns
    return _sorted_out(candidates, columns) if FlatCandidate in map(type, candidates) else candidates, columns


def columns_shown(candidates: Sequence[Candidate]) -> ScoreColumns:
    """The columns of a first list: those of its first candidate, and the numbers that all of its candidates have."""
    columns = candidates[0].columns if candidates else ()
    if FlatCandidate not in map(type, candidates):
        return ScoreColumns(tuple(dict.fromkeys((SCORE, *columns))), SCORE)
    numbers = [candidate.numbers if isinstance(candidate, FlatCandidate) else NOTHING for candidate in candidates]
    shared = set.intersection(*map(set, numbers)).union(NUMBERS)
    names = [name for candidate in numbers for name in candidate if name in shared]
    return ScoreColumns(tuple(dict.fromkeys((SCORE, *columns, *names))), SCORE)


def checked_text(value: Any, what: str, field: str) -> bytes:
    """A text as lists hold it; ``what`` and ``field`` say in errors what it is, and where.

    Raises
    ------
    GivenError: it is not a text, or has a NUL character.
    """
    if not isinstance(value, str):
        raise GivenError(f"found {value!r} as {what}; expected a string", field)
    if "\0" in value:
        raise GivenError(f"in {what}: {NUL}", field)
    return encoded(value).strip()


def _derivations(given: Sequence[str | None], what: str) -> list[bytes] | None:
    """The derivations of all candidates, empty for those without one; None if no candidate has one."""
    if not any(given):
        return None
    each = enumerate(given, start=1)
    return [checked_text(text or "", f"{what} of candidate {k}", _place(k, what)) for k, text in each]


def _texts(candidates: Sequence[Candidate]) -> list[bytes]:
    texts = [each.text for each in candidates]
    try:
        if "\0" not in "".join(texts):
            return [encoded(text).strip() for text in texts]
    except TypeError:  # one of them is no text
        pass
    return [checked_text(text, f"candidate {k}", _place(k)) for k, text in enumerate(texts, start=1)]


def _unscored(candidates: Sequence[Candidate], base: str) -> bool:
    """Has no candidate a base score, which has no name of its own?"""
    return base == SCORE and all(each.score is None and SCORE not in each.columns for each in candidates)


def _said(candidates: Sequence[Candidate], columns: ScoreColumns) -> dict[str, Any]:
    """Whether the candidates are without base scores, and which columns they have besides ``columns``."""
    known = {columns.base or SCORE, *columns.names}
    others = dict.fromkeys(chain(*(each.columns for each in candidates if not known.issuperset(each.columns))))
    return {
        "unscored": _unscored(candidates, columns.base or SCORE),
        "others": tuple(name for name in others if name not in known),
    }


def _scores(candidates: Sequence[Candidate], columns: ScoreColumns, scored: bool) -> np.ndarray:
    """float64 [N, K]: the columns of all candidates; scored: see ``texts_given``."""
    base, names = columns.base or SCORE, columns.names
    values = array("d")
    try:
        for k, each in enumerate(candidates, start=1):
            own, score = each.columns, each.score
            if base in own and score is not None and own[base] != score:
                message = (
                    f"candidate {k} has the score {score!r}, and another, {own[base]!r}, among its columns as {base!r}"
                )
                raise GivenError(f"{message}; give one", _place(k, "score"))
            for name in names:
                values.append(score if score is not None and name == base else own[name])
    except (KeyError, TypeError, OverflowError):
        values = _slowly(candidates, base, names, scored)
    if not isfinite(sum(values)):
        _refuse_infinite(names, values, base)
    return np.frombuffer(values, np.float64).reshape(len(candidates), len(names))


def _slowly(candidates: Sequence[Candidate], base: str, names: Sequence[str], scored: bool) -> "array[float]":
    """The columns, row by row, where something is missing: a base score called "score" if no candidate has it nor must
    have it (it is 0 then), a column that is among the features. Anything else is an error."""
    unscored = not scored and _unscored(candidates, base)
    values = array("d")
    for k, each in enumerate(candidates, start=1):
        known: dict[str, Any] = {**each.features, **each.columns}
        if each.score is not None or unscored:
            known[base] = 0.0 if unscored else each.score
        for name in names:
            if name not in known:
                message = f"candidate {k} has no {_named(name, base)}; {_expected(base, names, scored)}"
                raise GivenError(message, _number(k, name, base))
            try:
                values.append(known[name])
            except (TypeError, OverflowError):
                message = f"candidate {k}: found {known[name]!r} as {_named(name, base)}; expected a number"
                raise GivenError(message, _number(k, name, base)) from None
    return values


def _named(name: str, base: str) -> str:
    return f"score ({name!r}, the base score)" if name == base else f"column {name!r}"


def _number(k: int, name: str, base: str) -> str:
    return _place(k, "score") if name == base else _place(k, "columns", name)


def _expected(base: str, names: Sequence[str], scored: bool) -> str:
    others = ", ".join(repr(name) for name in names if name != base)
    return f"expected a score for all candidates{', as in the training lists' if scored else ' or for none'}" + (
        f", and the columns {others}, which a dict has under their names" if others else ""
    )


def _refuse_infinite(names: Sequence[str], values: "array[float]", base: str) -> None:
    """Name the first number that is not finite; the sum of finite ones can be infinite too."""
    for i, value in enumerate(values):
        if not isfinite(value):
            k, name = i // len(names) + 1, names[i % len(names)]
            message = f"candidate {k}: found {value} as {name!r}; expected a finite number"
            raise GivenError(message, _number(k, name, base))


def _sparse(candidates: Sequence[Candidate], names: Sequence[str]) -> SparseScores | None:
    """The features of all candidates, without those that are columns."""
    if not any(each.features for each in candidates):
        return None
    columns, first = set(names), np.zeros(len(candidates) + 1, np.int64)
    own = [[pair for pair in each.features.items() if pair[0] not in columns] for each in candidates]
    np.cumsum([len(pairs) for pairs in own], out=first[1:])
    values = array("d")
    for k, pairs in enumerate(own, start=1):
        for feature, value in pairs:
            try:
                values.append(value)
                if isfinite(value):
                    continue
            except (TypeError, OverflowError):
                pass
            message = f"candidate {k}: found {value!r} as the feature {feature!r}; expected a finite number"
            raise GivenError(message, _place(k, "features", str(feature)))
    return SparseScores(first, [encoded(str(key)) for key, _ in chain(*own)], np.frombuffer(values, np.float64))
