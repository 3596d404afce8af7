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
from rerank.readers.given.nbest import CandidateLike, GivenError, is_tree
from rerank.readers.nbest import NOTHING, Candidate, NBestList, answers_of, plain_texts, stripped
from rerank.readers.problems import NUL, Problem
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.samples import FINISH, derived, stepped
from rerank.readers.texts.text_list import NUMBERS, SCORE, SparseScores, TextList

# The keys of a candidate that is a dict.
KEYS = "text", "tree", "score", "columns", "features", "segmentation", "alignment", "answer"
MAPPINGS = dict, Mapping  # ``isinstance`` knows a dict at once, and asks the abstract class about others
_PLAIN = {key.rstrip("s"): key for key in KEYS}


class FlatCandidate(Candidate):
    """A candidate with ``numbers`` by name, of which the list decides whether they are columns or features."""

    __slots__ = ("numbers",)
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
    raise GivenError(f"candidate {k}: found {type(given).__name__}; expected {expected}", _place(k))


def _of_mapping(given: Mapping[str, Any], k: int) -> Candidate:
    wrong, names = _keys(tuple(given))
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
    candidate = (FlatCandidate if names else Candidate)(
        get("text"), get("score"), columns, features,
        tree=get("tree"), segmentation=get("segmentation"), alignment=get("alignment"), answer=get("answer"),
    )  # fmt: skip
    if isinstance(candidate, FlatCandidate):
        candidate.numbers = {name: given[name] for name in names if _is_number(given[name])}
        if lists := {name: given[name] for name in names if type(given[name]) is list}:
            candidate.numbers |= _of_steps(lists, k)
        if FINISH in names:
            candidate.numbers |= derived({FINISH: given[FINISH]}, ())
        if twice := [name for name in candidate.numbers if name in columns or name in features]:
            message = f"candidate {k} has two numbers called {twice[0]!r}; rename one of them"
            raise GivenError(message, _place(k, twice[0]))
    return candidate


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


def _of_steps(lists: Mapping[str, list[Any]], k: int) -> dict[str, float]:
    """The columns that lists of candidate ``k`` are, where they are the scores of steps."""
    try:
        return derived(lists, stepped([lists]), k=k)
    except Problem as problem:
        raise GivenError(problem.message, _place(k)) from None


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
) -> NBestList:
    """Candidates as a list of texts or of parses with ``columns``, by default "score" and those that they show; a
    GivenError where one lacks a column, has something that is not a finite number, or is not a text.

    scored: whether they must have base scores; if not, these are 0 where no candidate has one and they have no name of
    their own.
    """
    candidates = [candidate_of(candidate, k) for k, candidate in enumerate(given, start=1)]
    columns = columns_shown(candidates) if columns is None else columns
    if FlatCandidate in map(type, candidates):
        candidates = _sorted_out(candidates, columns)
    texts_of = _texts(candidates)
    base = columns.base or SCORE
    known = {base, *columns.names}
    others = dict.fromkeys(chain(*(each.columns for each in candidates if not known.issuperset(each.columns))))
    more: dict[str, Any] = {
        "unscored": base == SCORE and all(each.score is None and SCORE not in each.columns for each in candidates),
        "others": tuple(name for name in others if name not in known),
    }
    scores = _scores(candidates, columns, zeros=more["unscored"] and not scored, scored=scored)
    more["answers"] = answers_of(_derivations([each.answer for each in candidates], "answer") or ())
    if texts:
        more["sparse"] = _sparse(candidates, columns.names)
        more["segmentation"] = _derivations([each.segmentation for each in candidates], "segmentation")
        more["alignment"] = _derivations([each.alignment for each in candidates], "alignment")
        more["source"] = None if source is None else checked_text(source, "the source", "source").strip()
    return list_of(texts_of, scores, columns, name, texts=texts, **more)


def list_of(
    found: list[bytes], scores: np.ndarray, columns: ScoreColumns, name: str, *, texts: bool, **more: Any
) -> NBestList:
    """A list of texts or parses with ``scores`` (float64 [N, K]) in ``columns``; ``more`` are other fields."""
    kind, form = (TextList, "jsonl") if texts else (NBestList, "")
    held, given = stripped(found)
    named = texts or len(columns.names) > 1 or bool(columns.sources)  # parsers give a single score no name
    return kind(
        id=name, path="", line=0, texts=held, given=given, lines=range(1, len(found) + 1), scores=scores,
        column=columns.names.index(columns.base or SCORE) if named else 0, form=form,
        names=columns.names if named else (), sources=columns.sources, **more,
    )  # fmt: skip


def _sorted_out(candidates: list[Candidate], columns: ScoreColumns) -> list[Candidate]:
    """The candidates with their numbers among their columns or their features."""
    names, sorted_out = {*columns.names, *NUMBERS}, list[Candidate]()
    for candidate in candidates:
        if isinstance(candidate, FlatCandidate):
            numbers = candidate.numbers.items()
            candidate = Candidate(
                candidate.text,
                candidate.score,
                {**candidate.columns, **{name: value for name, value in numbers if name in names}},
                {**{name: value for name, value in numbers if name not in names}, **candidate.features},
                segmentation=candidate.segmentation,
                alignment=candidate.alignment,
                answer=candidate.answer,
            )
        sorted_out.append(candidate)
    return sorted_out


def columns_shown(candidates: Sequence[Candidate]) -> ScoreColumns:
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


def _derivations(given: Sequence[str | None], what: str) -> list[bytes] | None:
    """The values of candidates under ``what``, empty for those without it; None if no candidate has it."""
    if not any(given):
        return None
    return [
        checked_text(text or "", f"{what} of candidate {k}", _place(k, what)).strip()
        for k, text in enumerate(given, start=1)
    ]


def _texts(candidates: Sequence[Candidate]) -> list[bytes]:
    texts = [candidate.text for candidate in candidates]
    plain = plain_texts(texts)
    return plain or [checked_text(text, f"candidate {k}", _place(k)) for k, text in enumerate(texts, start=1)]


def _scores(candidates: Sequence[Candidate], columns: ScoreColumns, *, zeros: bool, scored: bool) -> np.ndarray:
    """float64 [N, K]: the columns of all candidates; zeros: whether base scores are 0; scored: see ``list_given``."""
    base, names, values = columns.base or SCORE, columns.names, array("d")
    for k, candidate in enumerate(candidates, start=1):
        flat, score = candidate.columns, candidate.score
        if base in flat and score is not None and flat[base] != score:
            message = f"candidate {k} has the score {score!r}, and another, {flat[base]!r}, among its columns as "
            raise GivenError(f"{message}{base!r}; give one", _place(k, "score"))
        try:
            for name in names:
                values.append(score if score is not None and name == base else flat[name])
        except (KeyError, TypeError, OverflowError):  # something is missing, is among the features, or is no number
            del values[(k - 1) * len(names) :]
            known = {**candidate.features, **flat}
            if score is not None or zeros:
                known[base] = 0.0 if score is None else score
            values.extend(_number(known, name, k, columns, scored=scored) for name in names)
    if not isfinite(sum(values)):  # that of finite numbers can be infinite too
        for i, value in enumerate(values):
            if not isfinite(value):
                k, name = i // len(names) + 1, names[i % len(names)]
                message = f"candidate {k}: found {value} as {name!r}; expected a finite number"
                raise GivenError(message, _place(k, "score") if name == base else _place(k, "columns", name))
    return np.frombuffer(values, np.float64).reshape(len(candidates), len(names))


def _number(known: Mapping[str, Any], name: str, k: int, columns: ScoreColumns, *, scored: bool) -> float:
    """The number of candidate ``k`` in a column, among those that are ``known`` of it."""
    base = columns.base or SCORE
    what = f"score ({name!r}, the base score)" if name == base else f"column {name!r}"
    place = _place(k, "score") if name == base else _place(k, "columns", name)
    if name not in known:
        expected = f"expected a score for all candidates{', as in the training lists' if scored else ' or for none'}"
        if others := ", ".join(repr(other) for other in columns.names if other != base):
            expected += f", and the columns {others}, which a dict has under their names"
        raise GivenError(f"candidate {k} has no {what}; {expected}", place)
    try:
        return float(array("d", [known[name]])[0])
    except (TypeError, OverflowError):
        message = f"candidate {k}: found {known[name]!r} as {what}; expected a number"
        raise GivenError(message, place) from None


def _sparse(candidates: Sequence[Candidate], names: Sequence[str]) -> SparseScores | None:
    """The features of all candidates, without those that are columns."""
    if not any(candidate.features for candidate in candidates):
        return None
    columns, first, keys, values = set(names), [0], list[bytes](), array("d")
    for k, candidate in enumerate(candidates, start=1):
        for feature, value in candidate.features.items():
            if feature in columns:
                continue
            try:
                values.append(value)
            except (TypeError, OverflowError):
                values.append(np.nan)
            if not isfinite(values[-1]):
                message = f"candidate {k}: found {value!r} as the feature {feature!r}; expected a finite number"
                raise GivenError(message, _place(k, "features", str(feature)))
            keys.append(encoded(str(feature)))
        first.append(len(keys))
    return SparseScores(np.array(first, np.int64), keys, np.frombuffer(values, np.float64))
