"""A list as users see it, whether they have made it or it was read from a file, and candidates in memory as lists.

A candidate that is a dict is what a JSON line holds for one: its numbers stand under their names, and those that are no
score columns are sparse features. Where they are sorted already, under ``columns`` and ``features``, columns that are
not asked for are left out. Bad candidates are errors that say which one it is.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from itertools import chain
from math import isfinite
from typing import Any, TypeAlias

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
from rerank.readers.texts.json_lines import JsonReader, derived, stepped
from rerank.readers.texts.text_list import NUMBERS, SCORE


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
MAPPINGS = dict, Mapping  # ``isinstance`` knows a dict at once, and asks the abstract class about others


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


def _gains(gains: Any, name: str) -> Iterable[float]:
    """Gains as float64, of whatever library their numbers are."""
    values = list(each_of(gains, "gains, in a list", "gains", list_id=name))

    def wrong(k: int) -> GivenError:
        message = f"found {values[k]!r:.60} as the gain of candidate {k + 1}; expected a finite number"
        return GivenError(message, f"gains[{k}]", list_id=name)

    return map(float, _finite(values, wrong))


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

    def blocks(self) -> Iterator[Lists]:
        """The lists, bad ones in their places, in blocks where the reader gives some."""
        lines = LineReader(InputStream(BytesIO(), ""))
        lines.objects = self._objects()
        records = (record._replace(line=0) for record in self.reader.records(lines))  # they have no lines
        return self.reader.lists(lines, records)

    def _objects(self) -> Iterator[dict[str, Any]]:
        """The objects as JSON has them."""
        for place, item in enumerate(self.objects):
            if not isinstance(item, Mapping):
                raise DataError(f"found {type(item).__name__}; expected a dict like the first", list_id=str(place))
            try:
                yield _plain(item)
            except (TypeError, RecursionError) as error:
                raise DataError(f"a dict that is no JSON object: {error}", list_id=str(place)) from None


def _plain(value: Any) -> Any:
    """A value as JSON has it; numbers, lists and mappings may be those of other libraries."""
    if isinstance(value, MAPPINGS):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"found {type(value).__name__}")


# The keys of a candidate that is a dict.
KEYS = "text", "tree", "score", "columns", "features", "segmentation", "alignment", "answer"
TWO_GAINS = f"the column {GAIN!r} does not hold the gains of the list; rename it"
_PLAIN = {key.rstrip("s"): key for key in KEYS}


class FlatCandidate(Candidate):
    """A candidate with ``numbers`` by name, of which the list decides whether they are columns or features."""

    numbers: Mapping[str, float] = NOTHING


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
    raise _error(k, f"found {type(given).__name__}; expected {expected}")


def _of_mapping(given: Mapping[str, Any], k: int) -> Candidate:
    mistake, names = _keys(tuple(given))
    parts = {key: given[key] for key in KEYS if given.get(key) is not None}
    if not mistake and not parts.keys() & {"text", "tree"}:
        key = "text" if "text" in given else "tree"
        raise _error(k, f"found None as its {key}; expected a string", key)
    for key in parts.keys() & {"columns", "features"}:
        if not isinstance(parts[key], MAPPINGS):
            mistake = f"found {type(parts[key]).__name__} under {key!r}; expected a mapping of names to numbers"
    if mistake:
        raise _error(k, mistake)
    if not names:
        return Candidate(**parts)
    steps = [name for name in names if type(given[name]) is list and stepped([given[name]])]
    try:
        more = derived(given, steps, k=k)
    except Problem as problem:
        raise GivenError(problem.message, _place(k)) from None
    candidate = FlatCandidate(**parts)
    candidate.numbers = {name: given[name] for name in names if _is_number(given[name])} | more
    if twice := next(
        (name for name in candidate.numbers for own in (candidate.columns, candidate.features) if name in own), ""
    ):
        raise _error(k, f"found two numbers called {twice!r}; rename one of them", twice)
    return candidate


def _place(k: int, *keys: str) -> str:
    """The field of candidate number ``k``, or of what it has under ``keys``."""
    return ".".join([f"candidates[{k - 1}]", *keys])


def _error(k: int, message: str, *keys: str) -> GivenError:
    return GivenError(f"candidate {k}: {message}", _place(k, *keys))


@lru_cache(maxsize=256)
def _keys(keys: tuple[Any, ...]) -> tuple[str, tuple[str, ...]]:
    """The mistake in the keys of a candidate, empty if there is none, and those that may name numbers."""
    for key in keys:
        if (meant := _PLAIN.get(str(key).lower().rstrip("s"), key)) != key:
            return f"found the key {key!r}; did you mean {meant!r}?", ()
    if ("text" in keys) == ("tree" in keys):
        return f"expected either 'text' or 'tree' among its keys, which are {', '.join(map(repr, keys)) or 'none'}", ()
    return "", tuple(key for key in keys if isinstance(key, str) and key not in KEYS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def list_given(given: Iterable[CandidateLike], columns: ScoreColumns | None = None, *, name: str, **how: Any) -> Lists:
    """Candidates as a list of texts or of parses with ``columns``, by default "score" and those that they show; a
    GivenError where one lacks a column, has something that is not a finite number, or is not a text.

    texts: whether they are texts. source: of a list of texts. scored: whether they must have base scores; if not, these
    are 0 where no candidate has one and they have no name of their own. gains: those of the candidates, where they are
    known; no column "gain" may say anything else.
    """
    try:
        return _list_given(given, columns, name, **how)
    except GivenError as error:
        raise GivenError(error.message, error.field, list_id=name or None) from None


def _list_given(
    given: Iterable[CandidateLike],
    columns: ScoreColumns | None,
    name: str,
    *,
    texts: bool,
    source: str | None = None,
    scored: bool = False,
    gains: Sequence[float] | None = None,
) -> Lists:
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
            raise _error(k, TWO_GAINS)
    every = dict.fromkeys(chain(*(own for own, _ in named if not known.issuperset(own))))
    fields: dict[str, Any] = {"unscored": unscored, "others": tuple(key for key in every if key not in known)}
    if texts:
        fields["source"] = None if source is None else checked_text(source, "the source", "source").strip()
        fields["sparse"] = _sparse([features for _, features in named], known)
    for part in KEYS[-3:] if texts else KEYS[-1:]:
        if any(values := [getattr(one, part) for one in candidates]):
            fields[part] = [checked_text(value or "", f"{part} of candidate {k}", _place(k, part)).strip()
                            for k, value in enumerate(values, start=1)]  # fmt: skip
    fields["answers"] = answers_of(fields.pop("answer", ()))
    exact = plain_texts(written := [one.text for one in candidates]) or [
        checked_text(text, f"candidate {k}", _place(k)) for k, text in enumerate(written, start=1)
    ]
    plain, as_written = stripped(exact)
    named_columns = texts or len(columns.names) > 1 or bool(columns.sources)  # parsers give a single score no name
    return Lists.one(
        name, "", 0, plain, range(1, len(candidates) + 1), _scores(named, columns),
        columns.names.index(base) if named_columns else 0, given=as_written, form="jsonl" if texts else "",
        of_trees=not texts, names=columns.names if named_columns else (), sources=columns.sources, **fields,
    )  # fmt: skip


def _numbers(one: Candidate, k: int, base: str, known: set[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The columns of candidate ``k``, its base score among them if it has one, and its features."""
    own, features = dict(one.columns), one.features
    if isinstance(one, FlatCandidate):
        own |= {name: value for name, value in one.numbers.items() if name in known or name in NUMBERS}
        features = {**{name: value for name, value in one.numbers.items() if name not in own}, **features}
    if one.score is not None:
        if own.setdefault(base, one.score) != one.score == one.score:  # one that is not a number is refused later
            message = f"found the score {one.score!r}, and another, {own[base]!r}, among its columns as {base!r}"
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
        raise GivenError(f"found {value!r:.60} as {what}; expected a string", field)
    if "\0" in value:
        raise GivenError(f"in {what}: {NUL}", field)
    return encoded(value)


def _scores(named: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], columns: ScoreColumns) -> np.ndarray:
    """float64 [N, K]: the columns of all candidates."""
    values = [own.get(name) for own, _ in named for name in columns.names]
    if None in values:  # something is missing, or is among the features
        values = [{**features, **own}.get(name) for own, features in named for name in columns.names]

    def wrong(i: int) -> GivenError:
        row, k = divmod(i, len(columns.names))
        name, found = columns.names[k], "no number" if values[i] is None else f"{values[i]!r:.60}"
        keys = ("score",) if name == (columns.base or SCORE) else ("columns", name)
        every = f"a finite number of every candidate as {', '.join(map(repr, columns.names))}"
        return _error(row + 1, f"found {found} as {name!r}; expected {every}", *keys)

    return _finite(values, wrong).reshape(len(named), len(columns.names))


def _finite(values: Sequence[Any], wrong: Callable[[int], GivenError]) -> np.ndarray:
    """``values`` as float64, or the error about the first that is no finite number, by its place."""
    numbers = array("d")
    with suppress(TypeError, OverflowError):
        numbers.extend(values)
    found = np.frombuffer(numbers)
    if len(found) < len(values) or not isfinite(sum(numbers)):
        finite = np.append(np.isfinite(found), False)
        if (place := int(np.argmin(finite))) < len(values):
            raise wrong(place)
    return found


def _sparse(features: Sequence[Mapping[str, Any]], columns: set[str]) -> SparseScores | None:
    """The features of all candidates, without those that are columns."""
    if not any(features):
        return None
    entries = [(k, str(name), value) for k, own in enumerate(features, start=1)
               for name, value in own.items() if name not in columns]  # fmt: skip

    def wrong(i: int) -> GivenError:
        k, name, value = entries[i]
        return _error(k, f"found {value!r:.60} as the feature {name!r}; expected a finite number", "features", name)

    sizes = np.bincount([k - 1 for k, *_ in entries], minlength=len(features))
    keys = [encoded(name) for _, name, _ in entries]
    return SparseScores(offsets(sizes), keys, _finite([value for *_, value in entries], wrong))
