"""Lists in JSON, one object per line: texts of any system, with any named numbers.

Three lines this reads::

    {"id": "a", "source": "Es regnet .", "references": ["It rains ."], "candidates": ["It rains .", "It rain ."]}
    {"id": "b", "candidates": [{"text": "Yes .", "score": -1.5, "features": {"lm": -2.0, "rare": 1}}]}
    {"reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1.0}, {"text": "5", "logprob": -0.9}]}

An object needs only ``candidates``. A candidate is a text, or an object with the key ``text``. Its numbers are
the values of its other keys that are numbers (``score``, ``gain``, whatever there is) and those under ``columns`` and
``features``. A number that all candidates have, in nearly all of a file's first 1,000 lists, is a dense column, which
all candidates of the file must then have; the others are sparse features. Texts under ``segmentation`` and
``alignment`` are derivations, the one under ``answer`` is what the candidate comes to.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from math import isfinite
from operator import itemgetter
from types import NoneType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import RecipeError
from rerank.data.corpus import offsets
from rerank.readers.base import Order, Reader, Scores
from rerank.readers.lines import LineReader, Place, Record
from rerank.readers.lists import MOST, Lists, answers_of, plain_texts, repeats_of, stripped
from rerank.readers.problems import Problem
from rerank.readers.score_columns import check_names
from rerank.readers.streams import Writable
from rerank.readers.texts.answers import check_rule, plain
from rerank.readers.texts.forms import Roles
from rerank.readers.texts.json_lines import (
    SampleReader,
    json_line,
    number_of,
    shown,
    stepped,
    text_of,
    texts_of,
    written,
)
from rerank.readers.texts.keys import MOSTLY
from rerank.readers.texts.roles import as_lists, check_roles
from rerank.readers.texts.text_list import BASE_SCORE, NUMBERS, SCORE, Draft, Entry, Pieces, each

LARGEST = 1 << 22  # bytes of texts in a block
# Keys of a candidate that say more than a number: whoever adds one names it here, or takes it to the rows of the block.
_SPECIAL = {"columns", "features", "segmentation", "alignment"}
_TEXT, _ANSWER, _NUMERIC = itemgetter("text"), itemgetter("answer"), {float, int, bool}


class ListShape(NamedTuple):
    """The build of the candidates of a list that was read: one with the same keys, with numbers where it has numbers
    and none where it has none, is read in the same way."""

    keys: tuple[str, ...]
    like: Lists
    places: tuple[int, ...]  # of its columns that candidates have; the others are 0
    numbers: Callable[[dict[str, Any]], tuple[Any, ...]]  # of a candidate: the first column, then all
    others: Callable[[dict[str, Any]], tuple[Any, ...]] | None  # its values besides
    answered: bool
    steps: tuple[str, ...]  # the keys of scores of steps
    derived: Callable[[dict[str, Any]], dict[str, float]] | None  # the columns that are not under keys of their own

    @staticmethod
    def of(nbest: Lists, reader: SampleReader) -> "ListShape | None":
        """That of a list, if its candidates have all keys in common and no other numbers than its columns."""
        keys = _shared_keys(nbest.raw.candidates)
        if keys is None or nbest.bad or nbest.sparse is not None:
            return None
        steps = stepped(nbest.raw.candidates)
        first = nbest.raw.candidates[0]
        derived = reader.derived(first, steps)
        places = tuple(k for k, name in enumerate(nbest.names) if first.get(name) is not None or name in derived)
        names = [nbest.names[k] for k in places]
        rest = [key for key in keys if key not in ("text", "answer", *names)]
        if not names or not _SPECIAL.union(NUMBERS, reader.labels).isdisjoint(rest):
            return None
        return ListShape(
            keys, nbest, places, itemgetter(names[0], *names), itemgetter(rest[0], *rest) if rest else None,
            "answer" in keys, steps, (lambda entry: reader.derived(entry, steps)) if derived else None,
        )  # fmt: skip


def _shared_keys(entries: Any) -> tuple[str, ...] | None:
    """The keys of candidates that are objects with the same ones in the same order; else None."""
    if type(entries) is not list or set(map(type, entries)) != {dict}:
        return None
    keys = set(map(tuple, entries))
    return keys.pop() if len(keys) == 1 else None


def _answers(entries: list[dict[str, Any]]) -> Sequence[bytes | None] | None:
    """The answers of candidates; None if one is no text."""
    answers = list(map(_ANSWER, entries))
    given = plain_texts([answer or "" for answer in answers]) if set(map(type, answers)) <= {str, NoneType} else None
    return given and stripped(given)[0]


class AlikeLists:
    """Lists of a file, one after the other, that are read as others before them were.

    shapes: those of lists before, by their keys; drop: whether repeated candidates are left out, so that a list which
    has some is none for a run.
    """

    def __init__(self, shapes: Mapping[tuple[str, ...], ListShape], *, drop: bool) -> None:
        self._shapes, self._drop, self._shape, self._size = shapes, drop, None, 0
        self._values, self._texts, self._ids = array("d"), list[bytes](), list[str]()
        self._answers = list[bytes | None]()
        self._lists = list[tuple[int, int, int, Pieces, bytes | None, tuple[bytes, ...]]]()

    _shape: ListShape | None

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def full(self) -> bool:
        """Whether it is large enough for a block."""
        return len(self._ids) == MOST or self._size >= LARGEST

    def take(
        self, name: str, line: int, item: dict[str, Any], source: bytes | None, references: tuple[bytes, ...]
    ) -> bool:
        """Take the next list, if it has a shape that is known, and that of the run."""
        entries = item["candidates"]
        keys = _shared_keys(entries)
        shape = None if keys is None else self._shapes.get(keys)
        if shape is None or (self._shape is not None and self._shape.places != shape.places):
            return False
        kinds = set() if shape.others is None else set(map(type, chain.from_iterable(map(shape.others, entries))))
        if not _NUMERIC.isdisjoint(kinds) or (list in kinds and stepped(entries) != shape.steps):
            return False
        try:
            rows = entries if shape.derived is None else [{**entry, **shape.derived(entry)} for entry in entries]
        except Problem:
            return False
        values = list(chain.from_iterable(map(shape.numbers, rows)))
        if not _NUMERIC.issuperset(map(type, values)):
            return False
        try:
            texts, numbers = plain_texts(list(map(_TEXT, entries))), array("d", values)
        except OverflowError:  # a whole number beyond all others
            return False
        if not isfinite(sum(numbers)):
            return False
        repeats = repeats_of(stripped(texts or [])[0])
        if texts is None or (repeats and self._drop):
            return False
        answers = _answers(entries) if shape.answered else [None] * len(texts)
        if answers is None:
            return False
        self._shape = shape
        self._answers += answers
        self._values += numbers
        self._texts += texts
        self._ids.append(name)
        self._lists.append((line, len(texts), repeats, Pieces(item, entries), source, references))
        self._size += sum(map(len, texts))
        return True

    def block(self) -> Lists:
        """The lists as a block."""
        assert self._shape is not None
        like, places = self._shape.like, self._shape.places
        scores = np.zeros((len(self._texts), len(like.names)))
        scores[:, places] = np.frombuffer(self._values).reshape(len(self._texts), len(places) + 1)[:, 1:]
        lines, sizes, repeats, raw, sources, references = zip(*self._lists, strict=True)
        texts, given = stripped(self._texts)
        sides = {"raw": raw, "source": sources, "references": references, "duplicates": repeats}
        return replace(
            like, ids=self._ids, starts=lines, first=offsets(sizes), texts=texts, given=given, scores=scores,
            lines=np.repeat(lines, sizes).tolist(), answers=answers_of(self._answers), sides=sides,
        )  # fmt: skip


@dataclass(frozen=True)
class JsonlReader(SampleReader):
    """Lists in JSON lines.

    >>> (nbest,) = JsonlReader().parse(b'{"candidates": [{"text": "Yes .", "score": -1.5, "lm": -2}]}')
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'Yes .'], ('score', 'lm'), array([[-1.5, -2. ]]))

    Parameters
    ----------
    duplicates, ids, steps, labels: see ``SampleReader``.
    base: the name of the number that is the base score; in a file without any "score", all base scores are 0.
    dense: the names of the dense columns in addition to the base score; by default the file's first lists decide.
    answer: the rule for answers where the right one is known; by default as that suggests.
    roles: what keys are, where their names and kinds do not tell: ``{samples: candidates, response: text, passed:
        gain, reward: column}``.
    """

    form: ClassVar[str] = "jsonl"
    general: ClassVar[bool] = True

    base: str = SCORE
    dense: tuple[str, ...] | None = None
    answer: str | None = None
    roles: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, str) or not self.base:
            raise RecipeError(f"found {self.base!r}; expected the name of a number", key="base")
        if self.dense is not None:
            check_names(self.dense, "dense")
        check_rule(self.answer)
        check_roles(self.roles)
        more = (key for key, role in (self.roles or {}).items() if role == "label")
        object.__setattr__(self, "labels", tuple(dict.fromkeys([*self.labels, *more])))

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A new score is "score", the old one "base_score" unless there is one already.

        Lists of other formats can be written too.
        """
        pieces = nbest.raw if isinstance(nbest.raw, Pieces) else None
        if pieces is None or not isinstance(pieces.head, dict) or "candidates" not in pieces.head:
            pieces = _described(nbest)
        chosen = range(len(nbest)) if order is None else order
        candidates = [
            pieces.candidates[i] if scores is None else rescored(pieces.candidates[i], float(nbest.base[i]), scores[i])
            for i in chosen
        ]
        out.write(json_line({**pieces.head, "candidates": candidates}, nbest))

    def objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        known = () if self.known is None else self.known.names
        named = [*dict.fromkeys([*(self.dense or ()), *known, *self.labels])]

        def told(roles: Roles) -> None:
            lines.roles = roles

        return as_lists(self.found(lines), self.roles or {}, told, self.answer, named, self.look, lines.path)

    def found(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The objects as they stand in a file."""
        return super().objects(lines)

    def records(self, lines: LineReader) -> Iterator[Record]:
        records = super().records(lines)
        head = list(islice(records, self.look))
        if self.known is None:
            lines.columns = columns_shown([record.content for record in head], self.base)
        return chain(head, records)

    def lists(
        self, lines: LineReader, records: Iterable[Record], seen: dict[str, Place] | None = None
    ) -> Iterator[Lists]:
        """In blocks where lists that are built alike follow one another. Whoever asks a model may wait for an answer:
        what is there of a pipe is then a block."""
        make, seen, asked = self.maker(lines), {} if seen is None else seen, self.known is not None
        shapes, drop = dict[tuple[str, ...], ListShape](), self.duplicates == "drop"
        run = AlikeLists(shapes, drop=drop)
        for ordinal, record in enumerate(records):
            name = self.name_of(record, ordinal)
            taken = name not in seen and _taken(run, name, record)
            if taken:
                seen[name] = lines.path, record.line
            if len(run) and (run.full or not taken or (asked and not lines.held)):
                yield run.block()
                run = AlikeLists(shapes, drop=drop)
            if not taken:
                nbest = self.list_of(record, name, lines, make, seen)
                if nbest.problem is None and (shape := ListShape.of(nbest, self)) is not None:
                    shapes[shape.keys] = shape
                yield nbest
        if len(run):
            yield run.block()

    def draft(self, content: dict[str, Any], names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        entries = content.get("candidates")
        if not isinstance(entries, list):
            raise Problem("text", f"found {shown(entries)} under 'candidates'; expected a list of texts or objects")
        source, references = _sides(content)
        made = each(entries, partial(self._candidate, stepped=stepped(entries)))
        return Draft(made, entries, content, source=source, references=references)

    def _candidate(self, entry: Any, k: int, stepped: tuple[str, ...]) -> Entry:
        """Candidate ``k``. Raises Problem."""
        if not isinstance(entry, dict):
            return Entry(written(entry, f"candidate {k}"), {})
        segmentation, alignment, answer = (_part(entry, key) for key in ("segmentation", "alignment", "answer"))
        if "text" not in entry:
            raise Problem("text", f"candidate {k} has no 'text'")
        numbers = _numbers(entry, k) | self.derived(entry, stepped, k)
        text = written(entry["text"], f"candidate {k}")
        return Entry(text, numbers, segmentation, alignment, answer, self.labelled(entry))


def _taken(run: AlikeLists, name: str, record: Record) -> bool:
    """Whether a run takes a list."""
    item = record.content
    try:
        return type(item) is dict and "candidates" in item and run.take(name, record.line, item, *_sides(item))
    except Problem:
        return False


def _sides(item: Mapping[str, Any]) -> tuple[bytes | None, tuple[bytes, ...]]:
    """The source and the references of an object. Raises Problem."""
    return None if item.get("source") is None else text_of(item["source"], "the source"), _references(item)


def _numbers(entry: dict[str, Any], k: int) -> dict[str, float]:
    """The named numbers of candidate ``k``, in their order; an answer is none, though it may look like one."""
    numbers: dict[str, float] = {}
    for name, value in entry.items():
        if name == "answer":
            continue
        if isinstance(value, float | int) or (name in NUMBERS and value is not None):
            numbers[name] = number_of(value, f"{name!r} of candidate {k}")
    for key in ("columns", "features"):
        nested = entry.get(key)
        if nested is None:
            continue
        if not isinstance(nested, dict):
            raise Problem("columns", f"found {shown(nested)} as {key!r} of candidate {k}; expected an object")
        what = key.removesuffix("s")
        for name, value in nested.items():
            if name in numbers:
                raise Problem("columns", f"candidate {k} has two numbers called {name!r}; rename one of them")
            numbers[name] = number_of(value, f"{what} {name!r} of candidate {k}", "columns")
    return numbers


def columns_shown(items: Iterable[Any], base: str) -> tuple[set[str], set[str]] | None:
    """The names of candidates' numbers in lists, and of those that are columns: nearly all lists have them for all
    candidates with a base score; what is never a sparse feature, half of the lists. None without lists."""
    names, lists, every = set[str](), Counter[str](), 0
    for item in items:
        entries = item.get("candidates") if isinstance(item, dict) else None
        if isinstance(entries, list) and entries:
            found = [_names(entry) for entry in entries]
            names.update(*found)
            lists.update(set.intersection(*([one for one in found if base in one] or found)))
            every += 1
    dense = {name for name, count in lists.items() if count >= (0.5 if name in NUMBERS else MOSTLY) * every}
    return (names, dense) if every else None


def _names(entry: Any) -> set[str]:
    """The names of a candidate's numbers."""
    if not isinstance(entry, dict):
        return set()
    nested = [entry[key] for key in ("columns", "features") if isinstance(entry.get(key), dict)]
    return {key for one in (entry, *nested) for key, value in one.items() if isinstance(value, float | int)} - {
        "answer"
    }


def _part(entry: dict[str, Any], key: str) -> bytes | None:
    """The text under ``key``, if there is one; an answer may be a number. Raises Problem."""
    value = entry.get(key)
    if key == "answer" and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < float("inf"):
            raise Problem("infinite score", f"found {shown(value)}; expected 'answer' as a string or a finite number")
        return plain(str(value)).encode()
    return None if value is None else text_of(value, f"'{key}'")


def _references(item: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The texts under "references", or the one under "reference"."""
    one, many = item.get("reference"), item.get("references")
    if one is not None and many is not None:
        raise Problem("text", "both 'reference' and 'references'; expected one of them")
    if one is not None:
        return (text_of(one, "the reference"),)
    return () if many is None else texts_of(many, "the references")


def rescored(candidate: Any, base: float, score: float) -> dict[str, Any]:
    """A candidate, an object or a text, with a new score; ``base`` is its old one."""
    entry: dict[str, Any] = dict(candidate) if isinstance(candidate, dict) else {"text": candidate}
    old = entry.get(SCORE, base)
    return {**entry, SCORE: float(score), **({} if BASE_SCORE in entry else {BASE_SCORE: old})}


def _described(nbest: Lists) -> Pieces:
    """The object for a list that was read in another format."""
    head: dict[str, Any] = {"id": nbest.id}
    head |= {} if nbest.source is None else {"source": decoded(nbest.source)}
    head |= {"references": [decoded(text) for text in nbest.references]} if nbest.references else {}
    names = nbest.names or [str(k) for k in range(nbest.scores.shape[1])]
    alignment = None if nbest.ended else nbest.alignment  # ends of sentences would be words
    parts = {"segmentation": nbest.segmentation, "alignment": alignment, "answer": nbest.answers}
    candidates: list[dict[str, Any]] = []
    for i in range(len(nbest)):
        values = dict(zip(names, nbest.scores[i].tolist(), strict=True))
        entry: dict[str, Any] = {"text": decoded(nbest.written(i)), SCORE: values.pop(names[nbest.column])}
        if nbest.sparse is not None:
            one = slice(nbest.sparse.first[i], nbest.sparse.first[i + 1])
            for key, value in zip(nbest.sparse.names[one], nbest.sparse.values[one].tolist(), strict=True):
                values[decoded(key)] = values.get(decoded(key), 0.0) + value
        if BASE_SCORE in values:
            entry[BASE_SCORE] = values.pop(BASE_SCORE)
        entry |= {"features": values} if values else {}
        candidates.append(
            entry | {key: decoded(text) for key, of in parts.items() if of and (text := of[i]) is not None}
        )
    return Pieces({**head, "candidates": []}, candidates)


class WrittenAsJsonl(Reader):
    """A reader whose lists are written in the format ``jsonl``, which holds whatever a list of texts has."""

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        JsonlReader().write(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        JsonlReader().write_bad(out, bad, None)
