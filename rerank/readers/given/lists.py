"""Candidates in memory to lists as readers give them.

A candidate that is a dict is what a JSON line holds for one: its numbers stand under their names, and those that are no
score columns are sparse features. Where they are sorted already, under ``columns`` and ``features``, columns that are
not asked for are left out. Bad candidates are errors that say which one it is.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from rerank.base.encoding import encoded
from rerank.data.corpus import offsets
from rerank.readers.given.nbest import GAIN, CandidateLike, GivenError, is_tree
from rerank.readers.lists import NOTHING, Candidate, Lists, SparseScores, answers_of, plain_texts, stripped
from rerank.readers.problems import NUL, Problem
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.samples import FINISH, derived, stepped
from rerank.readers.texts.text_list import NUMBERS, SCORE

# The keys of a candidate that is a dict.
KEYS = "text", "tree", "score", "columns", "features", "segmentation", "alignment", "answer"
MAPPINGS = dict, Mapping  # ``isinstance`` knows a dict at once, and asks the abstract class about others
TWO_GAINS = f"the column {GAIN!r} does not hold the gains of the list; rename it"
_PLAIN = {key.rstrip("s"): key for key in KEYS}


class FlatCandidate(Candidate):
    """A candidate with ``numbers`` by name, of which the list decides whether they are columns or features."""

    numbers: dict[str, float]


def candidate_of(given: CandidateLike, k: int) -> Candidate:
    """Candidate number ``k`` (from 1) of a list, whatever it was given as; a GivenError if it can be none."""
    if isinstance(given, str):
        return Candidate(given)
    if isinstance(given, Candidate):
        return given
    if isinstance(given, MAPPINGS):
        return _of_mapping(given, k)
    if isinstance(given, tuple) and len(given) == 2 and given[0] is not None:
        return Candidate(tree=given[0], score=given[1]) if is_tree(given[0]) else Candidate(given[0], given[1])
    if is_tree(given):
        return Candidate(tree=given)
    expected = "a text, a pair (text, score), a dict, an nltk.Tree or a Candidate"
    raise _error(k, f": found {type(given).__name__}; expected {expected}")


def _of_mapping(given: Mapping[str, Any], k: int) -> Candidate:
    wrong, names = _keys(tuple(given))
    if wrong is not None:
        raise _error(k, f": {wrong}")
    held = {key: given[key] for key in KEYS if given.get(key) is not None}
    if not held.keys() & {"text", "tree"}:
        key = "text" if "text" in given else "tree"
        raise _error(k, f": found None as its {key}; expected a string", key)
    candidate = (FlatCandidate if names else Candidate)(**held)
    columns, features = candidate.columns, candidate.features
    if not isinstance(columns, MAPPINGS) or not isinstance(features, MAPPINGS):
        raise _error(k, ": expected mappings of names to numbers under 'columns' and 'features'")
    if isinstance(candidate, FlatCandidate):
        lists = {name: given[name] for name in names if type(given[name]) is list}
        ended = {FINISH: given[FINISH]} if FINISH in names else {}
        try:
            more = derived({**lists, **ended}, stepped([lists]), k=k) if lists or ended else {}
        except Problem as problem:
            raise GivenError(problem.message, _place(k)) from None
        candidate.numbers = {name: given[name] for name in names if _is_number(given[name])} | more
        if twice := [name for name in candidate.numbers if name in columns or name in features]:
            raise _error(k, f" has two numbers called {twice[0]!r}; rename one of them", twice[0])
    return candidate


def _place(k: int, *keys: str) -> str:
    """The field of candidate number ``k``, or of what it has under ``keys``."""
    return ".".join([f"candidates[{k - 1}]", *keys])


def _error(k: int, message: str, *keys: str) -> GivenError:
    return GivenError(f"candidate {k}{message}", _place(k, *keys))


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


def list_given(
    given: Iterable[CandidateLike],
    columns: ScoreColumns | None = None,
    *,
    texts: bool,
    name: str = "",
    source: str | None = None,
    scored: bool = False,
    gains: Sequence[float] | None = None,
) -> Lists:
    """Candidates as a list of texts or of parses with ``columns``, by default "score" and those that they show; a
    GivenError where one lacks a column, has something that is not a finite number, or is not a text.

    scored: whether they must have base scores; if not, these are 0 where no candidate has one and they have no name of
    their own. gains: those of the candidates, where they are known; no column "gain" may say anything else.
    """
    candidates = [candidate_of(candidate, k) for k, candidate in enumerate(given, start=1)]
    columns = _columns_shown(candidates) if columns is None else columns
    columns = columns if gains is None else columns.without({GAIN})
    base, known = columns.base or SCORE, {*columns.names, columns.base or SCORE}
    named = [_numbers(candidate, k, base, known) for k, candidate in enumerate(candidates, start=1)]
    unscored = base == SCORE and not any(SCORE in own for own, _ in named)
    for own, _ in named if unscored and not scored else ():
        own[SCORE] = 0.0
    for k, ((own, _), gain) in enumerate(zip(named, gains or (), strict=False), start=1):
        if own.get(GAIN, gain) != gain:
            raise _error(k, f": {TWO_GAINS}")
    others = dict.fromkeys(chain(*(own for own, _ in named if not known.issuperset(own))))
    parts = {part: _texts([getattr(one, part) for one in candidates], part) for part in KEYS[-3:]}
    more: dict[str, Any] = {"unscored": unscored, "others": tuple(key for key in others if key not in known)}
    more["answers"] = answers_of(parts.pop("answer") or ())
    if texts:
        more |= parts | {"sparse": _sparse([features for _, features in named], known)}
        more["source"] = None if source is None else checked_text(source, "the source", "source").strip()
    written = [candidate.text for candidate in candidates]
    found = plain_texts(written)
    found = found or [checked_text(text, f"candidate {k}", _place(k)) for k, text in enumerate(written, start=1)]
    return list_of(found, _scores(named, columns, scored=scored), columns, name, texts=texts, **more)


def list_of(
    found: list[bytes], scores: np.ndarray, columns: ScoreColumns, name: str, *, texts: bool, **more: Any
) -> Lists:
    """A list of texts or parses with ``scores`` (float64 [N, K]) in ``columns``; ``more`` are other fields."""
    held, given = stripped(found)
    named = texts or len(columns.names) > 1 or bool(columns.sources)  # parsers give a single score no name
    return Lists.one(
        name, "", 0, held, range(1, len(found) + 1), scores, columns.names.index(columns.base or SCORE) if named else 0,
        given=given, form="jsonl" if texts else "", of_trees=not texts,
        names=columns.names if named else (), sources=columns.sources, **more,
    )  # fmt: skip


def _numbers(one: Candidate, k: int, base: str, known: set[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The columns of candidate ``k``, its base score among them if it has one, and its features."""
    own, features = dict(one.columns), one.features
    if isinstance(one, FlatCandidate):
        own |= {name: value for name, value in one.numbers.items() if name in known or name in NUMBERS}
        features = {**{name: value for name, value in one.numbers.items() if name not in own}, **features}
    if one.score is not None:
        if own.setdefault(base, one.score) != one.score == one.score:  # one that is not a number is refused later
            message = f" has the score {one.score!r}, and another, {own[base]!r}, among its columns as {base!r}"
            raise _error(k, f"{message}; give one", "score")
    return own, features


def _columns_shown(candidates: Sequence[Candidate]) -> ScoreColumns:
    """The columns of a first list: those of its first candidate, and the numbers that all of its candidates have."""
    columns = candidates[0].columns if candidates else ()
    numbers = [candidate.numbers if isinstance(candidate, FlatCandidate) else NOTHING for candidate in candidates]
    shared = set.intersection(*map(set, numbers)).union(NUMBERS) if numbers else ()
    names = [name for candidate in numbers for name in candidate if name in shared]
    return ScoreColumns(tuple(dict.fromkeys((SCORE, *columns, *names))), SCORE)


def checked_text(value: Any, what: str, field: str) -> bytes:
    """A text as it stands, or a GivenError; ``what`` and ``field`` say what it is, and where."""
    if not isinstance(value, str):
        raise GivenError(f"found {value!r} as {what}; expected a string", field)
    if "\0" in value:
        raise GivenError(f"in {what}: {NUL}", field)
    return encoded(value)


def _texts(given: Sequence[str | None], what: str) -> list[bytes] | None:
    """The values of candidates under ``what``, empty for those without it; None if no candidate has it."""
    if not any(given):
        return None
    return [
        checked_text(text or "", f"{what} of candidate {k}", _place(k, what)).strip()
        for k, text in enumerate(given, start=1)
    ]


def _scores(
    named: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], columns: ScoreColumns, *, scored: bool
) -> np.ndarray:
    """float64 [N, K]: the columns of all candidates; scored: see ``list_given``."""
    try:
        values = _sound([own[name] for own, _ in named for name in columns.names])
    except KeyError:  # something is missing, or is among the features
        values = None
    if values is None:
        rows = enumerate(({**features, **own} for own, features in named), start=1)
        values = array(
            "d", [_number(row, name, k, columns, scored=scored) for k, row in rows for name in columns.names]
        )
    return np.frombuffer(values, np.float64).reshape(len(named), len(columns.names))


def _number(row: Mapping[str, Any], name: str, k: int, columns: ScoreColumns, *, scored: bool) -> float:
    """The number that candidate ``k`` has in a column, of all in its ``row``; scored: see ``list_given``."""
    is_base = name == (columns.base or SCORE)
    what = f"score ({name!r}, the base score)" if is_base else f"column {name!r}"
    keys = ("score",) if is_base else ("columns", name)
    if name in row:
        return _finite(row[name], k, what, *keys)
    expected = f"expected a score for all candidates{', as in the training lists' if scored else ' or for none'}"
    if others := ", ".join(repr(other) for other in columns.names if other != (columns.base or SCORE)):
        expected += f", and the columns {others}, which a dict has under their names"
    raise _error(k, f" has no {what}; {expected}", *keys)


def _sound(values: list[Any]) -> "array[float] | None":
    """``values`` as float64; None unless their sum is a finite number."""
    with suppress(TypeError, OverflowError):
        numbers = array("d", values)
        return numbers if isfinite(sum(numbers)) else None
    return None


def _finite(value: Any, k: int, what: str, *keys: str) -> float:
    with suppress(TypeError, OverflowError):
        number: float = array("d", [value])[0]
        if isfinite(number):
            return number
    raise _error(k, f": found {value!r} as {what}; expected a finite number", *keys)


def _sparse(features: Sequence[Mapping[str, Any]], columns: set[str]) -> SparseScores | None:
    """The features of all candidates, without those that are columns."""
    if not any(features):
        return None
    kept = [[(str(name), value) for name, value in own.items() if name not in columns] for own in features]
    values = _sound([value for own in kept for _, value in own])
    if values is None:
        every = ((k, *pair) for k, own in enumerate(kept, start=1) for pair in own)
        values = array("d", [_finite(value, k, f"the feature {name!r}", "features", name) for k, name, value in every])
    keys = [encoded(name) for own in kept for name, _ in own]
    return SparseScores(offsets(list(map(len, kept))), keys, np.array(values, np.float64))
