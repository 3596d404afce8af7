"""A list as users see it, whether they have made it or it was read from a file, and candidates in memory as lists.

A candidate that is a dict is what a JSON line holds for one: its numbers stand under their names, and those that are no
score columns are sparse features. Where they are sorted already, under ``columns`` and ``features``, columns that are
not asked for are left out. Bad candidates are errors that say which one it is.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import IO, Any, TypeAlias, cast

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.data.corpus import offsets
from rerank.readers.base import OnBadList, SkipCount, counted, usable
from rerank.readers.lines import LineReader
from rerank.readers.lists import (
    NOTHING,
    Candidate,
    Candidates,
    Lists,
    SparseScores,
    answers_of,
    one_by_one,
    plain_texts,
    stripped,
)
from rerank.readers.problems import NUL, Problem
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import InputStream
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.json_lines import FINISH, JsonReader, derived, stepped
from rerank.readers.texts.text_list import NUMBERS, SCORE
from rerank.storage.strict_json import as_json


class GivenError(DataError):
    """The input that a program has given cannot be used; ``field`` says where that is, as "candidates[3].score"."""

    def __init__(self, message: str, field: str, *, list_id: str | None = None) -> None:
        super().__init__(message, list_id=list_id)
        self.field = field


def each_of(given: Any, expected: str, field: str, *, list_id: str | None = None) -> Iterator[Any]:
    """Go through what is given, ``expected`` as the ``field``; it is an error if that is one thing."""
    with suppress(TypeError):
        if not isinstance(given, str | bytes | Mapping):
            return iter(given)
    raise GivenError(f"found {type(given).__name__}; expected {expected}", field, list_id=list_id)


def check_for_files(found: str, **given: Any) -> None:
    """Raises a ``RecipeError`` that names what only files can have, where ``found`` was given in place of one."""
    for name, value in given.items():
        if value is not None:
            raise RecipeError(f"found {value!r}, which is for files, and {found}; leave one of them out", key=name)


def refusal(problem: Problem) -> GivenError:
    """A list or a candidate that was given and cannot be used, as an error."""
    k = 0 if problem.path else problem.line or 0  # the lines of a list that has no file are its candidates
    k = k if problem.place is None else problem.place + 1
    message = f"candidate {k}: {problem.message}" if k else problem.message
    return GivenError(message, f"candidates[{k - 1}]" if k else "candidates", list_id=problem.list_id or None)


@contextmanager
def told() -> Iterator[None]:
    """Within the block, errors in lists that have no file name the list and the candidate."""
    try:
        yield
    except Problem as problem:
        raise problem if problem.path else refusal(problem) from None
    except DataError as error:
        raise error if error.path else DataError(error.message, list_id=error.list_id) from None


# A text, (text, score), a dict (text or tree and what else a Candidate has), an ``nltk.Tree`` or a Candidate.
CandidateLike: TypeAlias = Any
GAIN = "gain"  # the score column that holds gains


@dataclass(frozen=True, eq=False, repr=False)
class NBest:
    """Candidates for one input.

    Parameters
    ----------
    id: the list's name.
    candidates: texts or trees, pairs (text, score), dicts with the keys ``text`` or ``tree``, ``score``, ``columns``,
        ``features``, ``segmentation``, ``alignment`` and ``answer``, instances of ``nltk.Tree``, or ``Candidate``s.
    source: the input, if there is one.
    references: what is right: one text or several, or a gold tree, in brackets or as an ``nltk.Tree``.
    gains: in place of references, the gain of every candidate; higher is better. They are held as float64, which has
        whole numbers up to 2^53.

    Raises
    ------
    DataError: candidates, references or gains that are not several, or gains that are not numbers.
    """

    id: str
    candidates: Sequence[CandidateLike]
    source: str | None = None
    references: Sequence[Any] = ()
    gains: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.candidates, Sequence) or isinstance(self.candidates, str | bytes):
            self._take("candidates", each_of(self.candidates, "candidates, in a list", "candidates", list_id=self.id))
        if isinstance(self.references, str) or is_tree(self.references):
            self._take("references", (self.references,))
        elif not isinstance(self.references, Sequence):
            self._take("references", each_of(self.references, "references, in a list", "references", list_id=self.id))
        if self.gains is not None:
            self._take("gains", _gains(self.gains, self.id))

    def _take(self, name: str, values: Iterable[Any]) -> None:
        object.__setattr__(self, name, tuple(values))

    @staticmethod
    def of(rows: Lists, *, known: bool = True, rule: str | None = None) -> "NBest":
        """A list that was read, with the answers that ``rule`` finds; without its references and gains if these are not
        ``known``."""
        rows = with_answers(rows, rule)
        if not rows.of_trees:
            source, right = None if rows.source is None else decoded(rows.source), rows.references
        else:
            source, right = None, () if rows.gold is None else (rows.gold.text,)
        if not known:
            return NBest(rows.id, rows.candidates, source)
        gains = tuple(rows.scores[:, rows.names.index(GAIN)].tolist()) if GAIN in rows.names else None
        made, references = object.__new__(NBest), tuple(map(decoded, right))
        vars(made).update(id=rows.id, candidates=rows.candidates, source=source, references=references, gains=gains)
        return made  # with nothing to check

    @property
    def rows(self) -> Lists | None:
        """The list as its reader gave it; None if its candidates are the user's own."""
        return self.candidates.nbest if isinstance(self.candidates, Candidates) else None

    def __len__(self) -> int:
        return len(self.candidates)

    def __repr__(self) -> str:
        return f"<NBest {self.id}: {len(self)} candidates>"


def _gains(gains: Any, name: str) -> "array[float]":
    """Gains as float64, of whatever library their numbers are."""
    values = array("d")
    for k, gain in enumerate(each_of(gains, "gains, in a list", "gains", list_id=name)):
        try:
            values.append(gain)
        except (TypeError, OverflowError):
            message = f"found {gain!r} as the gain of candidate {k + 1}; expected a number"
            raise GivenError(message, f"gains[{k}]", list_id=name) from None
    return values


def is_tree(value: Any) -> bool:
    """Whether it is an ``nltk.Tree``. nltk is not imported to tell."""
    return hasattr(value, "pformat") and hasattr(value, "leaves")


def used(items: Iterable[Lists], on_bad_list: OnBadList) -> Iterator[Lists | Lists]:
    """The lists that can be used; the others are errors, or are left out and logged."""
    count = SkipCount(on_bad_list)
    yield from usable(items, counted, count)
    count.warn()


def nbests(items: Iterable[Lists | Lists], rule: str | None = None) -> Iterator[NBest]:
    """Lists as users see them; ``rule``: see ``NBest.of``."""
    return (NBest.of(rows, rule=rule) for rows in one_by_one(items))


@dataclass(frozen=True)
class ObjectLists:
    """Objects as lists, read by the reader of lines like them; they begin again if the objects do. answer: the rule for
    answers."""

    objects: Iterable[Mapping[str, Any]]
    reader: JsonReader
    on_bad_list: OnBadList = "error"
    answer: str | None = None

    def __iter__(self) -> Iterator[NBest]:
        with told():
            yield from nbests(used(self.blocks(), self.on_bad_list), self.answer)

    def blocks(self, *, gains: bool = True) -> Iterator[Lists]:  # noqa: ARG002 - the objects have them
        """The lists, bad ones in their places, in blocks where the reader gives some."""
        lines = LineReader(InputStream(cast(IO[bytes], _ObjectLines(self.objects)), ""))
        records = (record._replace(line=0) for record in self.reader.records(lines))  # they have no lines
        return self.reader.lists(lines, records)


class _ObjectLines:
    """Objects as a file, a line for each."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._objects = enumerate(objects)

    def read(self, size: int) -> bytes:  # noqa: ARG002 - a line, however long
        """The next line; b"" at the end."""
        for place, item in self._objects:
            if not isinstance(item, Mapping):
                raise DataError(f"found {type(item).__name__}; expected a dict like the first", list_id=str(place))
            try:
                return encoded(as_json(dict(item), ensure_ascii=False, default=_plain, allow_nan=True)) + b"\n"
            except (TypeError, ValueError, RecursionError) as error:
                raise DataError(f"a dict that is no JSON object: {error}", list_id=str(place)) from None
        return b""


def _plain(value: Any) -> Any:
    """Numbers, lists and mappings of other libraries as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"found {type(value).__name__}")


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
