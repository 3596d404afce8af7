"""A list as users see it, whether they have made it or it was read from a file."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, TypeAlias, cast

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import OnBadList, SkipCount, counted, usable
from rerank.readers.lines import LineReader
from rerank.readers.lists import Candidates, Lists, one_by_one
from rerank.readers.problems import Problem
from rerank.readers.streams import InputStream
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.json_lines import JsonReader
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
            self._take("gains", _numbers(self.gains, self.id))

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


def _numbers(gains: Any, name: str) -> "array[float]":
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
