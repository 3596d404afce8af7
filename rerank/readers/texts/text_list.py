"""Lists of texts (translations, transcripts, samples of a language model), and drafts: the lists as their formats find
them, before columns are chosen and bad candidates left out.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from rerank.base.encoding import encoded
from rerank.data.corpus import offsets
from rerank.readers.lines import LineReader, ListReader, Record
from rerank.readers.lists import BLOCK_LISTS, OF_LIST, Lists, SparseScores, repeats_of, strip_texts
from rerank.readers.reader import Problem

PARTS = "segmentation", "alignment", "answer"
SCORE, BASE_SCORE = "score", "base_score"
NUMBERS = (SCORE, BASE_SCORE, "gain")  # never sparse features
OF_WORDS = "sum", "mean", "min", "length"  # the columns that the scores of a candidate's words give
COLUMN_SAMPLE_LISTS = 1000  # lists that tell the columns
MIN_COLUMN_SHARE = 0.9  # the share of lists in which all candidates have a number, from which on it is a column
MAX_BLOCK_BYTES = 1 << 22  # bytes of texts in a block
T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Pieces:
    """A list taken apart for writing it back: ``candidates`` can be reordered, or appended to those of another list."""

    head: Any  # what the list has once: its JSON object, or its lines before the first candidate
    candidates: Sequence[Any]  # N entries: what it has for every candidate

    def select(self, indices: Sequence[int]) -> "Pieces":
        """The pieces with only the candidates at ``indices``."""
        return Pieces(self.head, [self.candidates[y] for y in indices])


class Entry(NamedTuple):
    """A candidate as its format finds it: its text as it stands, its scores and sparse features by name, derivations,
    and what it comes to."""

    text: bytes
    numbers: Mapping[str, float]
    segmentation: bytes | None = None
    alignment: bytes | None = None
    answer: bytes | None = None  # None or empty: it has none


@dataclass(slots=True)
class Draft:
    """A list of N candidates as its format finds it; or several, of N in all, all sound and with the same numbers."""

    raws: Sequence[Pieces]  # what is needed to write each list back
    texts: list[bytes]  # N texts, as they stand; whatever there is for a candidate that is bad
    numbers: dict[str, list[float | None]]  # N numbers by name, None for a candidate without one
    features: Sequence[dict[str, float]] = ()  # N mappings of numbers by name that few have; () where there are none
    parts: dict[str, list[bytes | None]] = field(default_factory=dict)  # N texts by the names of PARTS, None for none
    bad: dict[int, Problem] = field(default_factory=dict)  # the problems of candidates, by place
    lines: Sequence[int] | None = None  # the line of each candidate; None: all are on that of the list
    names: tuple[str, ...] | None = None  # the columns, where the format decides on them; else the first lists do
    unscored: bool = False  # whether all base scores are 0 because there are none
    others: tuple[str, ...] = ()  # numbers that are no columns because they were not asked for
    sides: dict[str, Sequence[Any]] = field(default_factory=dict)  # what lists have besides, by the names of ``Lists``
    sizes: Sequence[int] = ()  # of several lists: how many candidates each has
    ids: Sequence[str] = ("",)
    starts: Sequence[int] = (0,)

    @staticmethod
    def of(items: Sequence[Any], make: Callable[[Any, int], Entry] | None = None, **fields: Any) -> "Draft":
        """The draft of entries and Problems, or of what ``make`` finds in items (of each, and its number from 1);
        ``fields`` are others. pieces: what writes the candidates back, by default items; head: their list."""
        results: Sequence[Entry | Problem] = each(items, make) if make else items
        entries = [Entry(b"", {}) if isinstance(one, Problem) else one for one in results]
        names = dict.fromkeys(chain.from_iterable(one.numbers for one in entries))
        numbers = {name: [one.numbers.get(name) for one in entries] for name in names}
        parts = {part: [getattr(one, part) for one in entries] for part in PARTS}
        bad = {k: one for k, one in enumerate(results) if isinstance(one, Problem)}
        sides: dict[str, Sequence[Any]] = {key: [value] for key, value in fields.pop("sides", {}).items()}
        raws = [Pieces(fields.pop("head", None), fields.pop("pieces", items))]
        return Draft(raws, [one.text for one in entries], numbers, (), parts, bad, sides=sides, **fields)

    def try_each(self, items: Sequence[T], make: Callable[[T, int], U], otherwise: U) -> list[U]:
        """The results of ``make`` for what candidates have; what raises a Problem makes its candidate bad."""
        results = each(items, make)
        for k, one in enumerate(results):
            if isinstance(one, Problem):
                self.bad.setdefault(k, one)
        return [otherwise if isinstance(one, Problem) else one for one in results]

    def put(self, rows: list[dict[str, float]], *, sparse: bool = False) -> None:
        """Give candidates N mappings of numbers by name; of those that are ``sparse``, what all have may be columns."""
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        if sparse:
            some = [one for k, one in enumerate(rows) if k not in self.bad]
            shared = {*self.numbers, *NUMBERS, *set(some[0] if some else ()).intersection(*some[1:])}
            self.features, names = rows, [name for name in names if name in shared]
        for name in names:
            values = self.numbers.get(name) or [None] * len(rows)
            self.numbers[name] = [one.get(name, value) for one, value in zip(rows, values, strict=True)]

    def shared(self, base: str) -> list[str]:
        """The names of the numbers that all candidates have, or all with a base score, if there are some."""
        scores = self.numbers.get(base, ())
        none = [k for k, score in enumerate(scores) if score is None] if any(scores) or 0 in scores else []
        gaps = {*none, *self.bad}
        return [name for name, values in self.numbers.items()
                if None not in values or all(one is not None or k in gaps for k, one in enumerate(values))]  # fmt: skip

    def settle_columns(self) -> "Draft":
        """The draft with the numbers that are not among ``names`` as features, and without parts that nobody has."""
        self.parts = {part: values for part, values in self.parts.items() if any(values)}
        names = dict.fromkeys(self.names or ())
        rest = [name for name in self.numbers if name not in names]
        if not rest and all(one.keys() <= names.keys() for one in self.features):
            self.features = ()
        else:
            rows = zip(*map(self.numbers.pop, rest), strict=True) if rest else [()] * len(self.texts)
            pairs = zip(rows, self.features or [{}] * len(self.texts), strict=True)
            self.features = [
                {name: value for name, value in zip(rest, row, strict=True) if value is not None and name not in one}
                | {name: value for name, value in one.items() if name not in names}
                for row, one in pairs
            ]
        return self

    def matches(self, other: "Draft") -> bool:
        """Whether both lists have the same columns, and derivations where the other has some."""
        parts = self.parts.keys() ^ other.parts.keys() <= {"answer"}
        return parts and (self.names, self.unscored, self.others) == (other.names, other.unscored, other.others)


def each(items: Sequence[T], make: Callable[[T, int], U]) -> list[U | Problem]:
    """The results of ``make`` (of an item and its number, from 1), or the problems that it raises."""
    results: list[U | Problem] = []
    for number, item in enumerate(items, start=1):
        try:
            results.append(make(item, number))
        except Problem as problem:
            results.append(problem)
    return results


def lists_of(drafts: Sequence[Draft], path: str, form: str, roles: Any = None) -> Lists:
    """The lists that settled drafts of the same columns describe, bad candidates among them."""

    def every(values: Iterable[Iterable[Any]]) -> list[Any]:
        return list(chain.from_iterable(values))

    names, counts = drafts[0].names or (), every(one.sizes or [len(one.texts)] for one in drafts)
    first, starts = offsets(counts), every(draft.starts for draft in drafts)
    scores, spans = np.zeros((int(first[-1]), len(names))), list(pairwise(first.tolist()))
    for k, name in enumerate(names):
        scores[:, k] = every(draft.numbers.get(name) or [np.nan] * len(draft.texts) for draft in drafts)
    texts, originals = strip_texts(every(draft.texts for draft in drafts))
    keys = {key for draft in drafts for key in draft.sides}
    sides: dict[str, Sequence[Any]] = {
        key: every(one.sides.get(key, [OF_LIST[key]] * len(one.ids)) for one in drafts) for key in keys
    }
    sides["raw"], sides["duplicates"] = every(one.raws for one in drafts), [repeats_of(texts[a:b]) for a, b in spans]
    alone = drafts[0].lines is None  # on the line of their list
    lines = np.repeat(starts, counts).tolist() if alone else every(draft.lines or () for draft in drafts)

    def part(name: str, nothing: Any) -> list[Any] | None:
        if not any(name in draft.parts for draft in drafts):
            return None
        return [text or nothing for draft in drafts for text in draft.parts.get(name) or [None] * len(draft.texts)]

    return Lists(
        every(draft.ids for draft in drafts), path, starts, texts, lines, scores, first, names=names, form=form,
        others=drafts[0].others, unscored=drafts[0].unscored, roles=roles, sparse=_sparse(drafts),
        originals=originals, sides=sides,
        segmentation=part("segmentation", b""), alignment=part("alignment", b""), answers=part("answer", None),
    )  # fmt: skip


def _sparse(drafts: Sequence[Draft]) -> SparseScores | None:
    """The numbers that belong to no column."""
    if not any(any(draft.features) for draft in drafts):
        return None
    numbers = [one for draft in drafts for one in draft.features or [{}] * len(draft.texts)]
    pairs = [pair for features in numbers for pair in features.items()]
    values = np.array([value for _, value in pairs], np.float64)
    return SparseScores(offsets(list(map(len, numbers))), [encoded(key) for key, _ in pairs], values)


class FileColumns(NamedTuple):
    """The columns of a file: the base score, whether candidates have it (or else it is 0), and what they have though it
    was not asked for."""

    names: tuple[str, ...]
    scored: bool
    others: tuple[str, ...]


@dataclass(frozen=True)
class TextReader(ListReader):
    """A reader of lists of texts. A format has ``records``, ``draft``, ``write`` and ``write_bad``."""

    holds: ClassVar[str] = "texts"
    form: ClassVar[str] = "lists"  # the name of the format, the source of its columns
    usual: ClassVar[tuple[str, ...]] = NUMBERS  # what is a column where half of the lists have it
    draft_lists: ClassVar[int] = 1  # lists in a draft

    @property
    def base(self) -> str:
        """The name of the number that is the base score; if it is "score", it is 0 where no candidate has it."""
        return SCORE

    @property
    def dense(self) -> tuple[str, ...] | None:
        """The names of the columns besides the base score; None: those of a model or, without one, what nearly all of
        the file's first lists have."""
        return None

    @property
    def look(self) -> int:
        """How many lists tell what all hold: one where a model says it, whose lists are answered as they come."""
        return 1 if self.live else COLUMN_SAMPLE_LISTS

    @abstractmethod
    def draft(self, content: Any) -> Draft:
        """The list that the content of a record describes."""

    def together(self, contents: Sequence[Any]) -> Draft:
        """Several lists as one draft, for formats that can. Raises Problem where it takes a draft for each."""
        (content,) = contents
        return self.draft(content)

    def build_lists(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        """Lists with the same columns, one after the other, are a block. Whoever asks a model may wait for an answer:
        what is there of a pipe is then one."""
        entries = self.with_ids(lines, records)
        head, run, full = list[Draft | Problem](), list[Draft](), 0.0
        nothing = FileColumns((self.base,), scored=False, others=())
        if "columns" not in lines.traits:
            head = list(self._drafts(lines, islice(entries, self.look)))
            lines.traits |= {"columns": columns} if (columns := self.columns_of(head)) else {}

        def block() -> Lists:
            lists = lists_of(run, lines.path, self.form, lines.traits.get("roles"))
            run.clear()
            return lists

        for draft in chain(head, self._drafts(lines, entries)):
            if "columns" not in lines.traits and isinstance(draft, Draft):  # the first list that can be used tells
                columns = self.columns_of([next(self._each(draft))])
                lines.traits |= {"columns": columns} if columns else {}
            for one in self._fit_lists(draft, lines.traits.get("columns") or nothing, lines):
                if run and (isinstance(one, Lists) or not one.matches(run[0])):
                    yield block()
                if isinstance(one, Lists):
                    yield one
                    continue
                full = (full if run else 0.0) + len(one.ids) / BLOCK_LISTS + sum(map(len, one.texts)) / MAX_BLOCK_BYTES
                run.append(one)
                if full >= 1 or (self.live and not lines.has_line):
                    yield block()
        if run:
            yield block()

    def _drafts(self, lines: LineReader, entries: Iterable[tuple[str, Record] | Problem]) -> Iterator[Draft | Problem]:
        """The lists of records, as many in a draft as the format allows."""
        group = list[tuple[str, Record]]()
        for one in chain(entries, [None]):
            if isinstance(one, tuple):
                group.append(one)
                if len(group) < self.draft_lists and (not self.live or lines.has_line):
                    continue
            if group:
                yield from self._draft_group(group, lines.path)
            group.clear()
            if isinstance(one, Problem):
                yield one

    def _draft_group(self, group: Sequence[tuple[str, Record]], path: str) -> Iterator[Draft | Problem]:
        try:
            draft = self.together([record.content for _, record in group])
        except Problem as problem:
            if len(group) == 1:
                yield problem.at(group[0][0], path, group[0][1].line)
            else:
                yield from chain.from_iterable(self._draft_group([one], path) for one in group)
        else:
            yield self._set_ids(draft, [name for name, _ in group], [record.line for _, record in group])

    def _set_ids(self, draft: Draft, ids: Sequence[str], starts: Sequence[int]) -> Draft:
        """A draft with the ids of its lists and the lines that these start at, without what a model has no use for."""
        draft.ids, draft.starts = ids, starts
        if self.live and self.model_columns is not None:  # gains, which some lists may have
            for name in {*NUMBERS} - {self.base, *self.model_columns.names}:
                draft.numbers.pop(name, None)
        return draft

    def _each(self, draft: Draft) -> Iterator[Draft]:
        """The lists of a draft one by one; several are drafted again, so that none depends on the others."""
        if not draft.sizes:
            yield draft
        for k in range(len(draft.sizes)):
            yield self._set_ids(self.draft(draft.raws[k].head), draft.ids[k : k + 1], draft.starts[k : k + 1])

    def columns_of(self, drafts: Iterable[Draft | Problem]) -> FileColumns | None:
        """The columns that lists show; None where they have no candidates."""
        lists = list[Draft]()
        for one in (one for one in drafts if isinstance(one, Draft) and len(one.texts) > len(one.bad)):
            few = any(None in values for values in one.numbers.values())  # of several lists have what others lack
            few = few or any(features.keys() - one.numbers.keys() for features in one.features)
            lists += self._each(one) if few and one.sizes else [one]
        if not lists:
            return None
        counts = Counter(key for one in lists for key in one.shared(self.base) * len(one.ids))
        total = sum(len(one.ids) for one in lists)
        shared = {key for key, n in counts.items() if n >= (0.5 if key in self.usual else MIN_COLUMN_SHARE) * total}
        names = [name for name in lists[0].numbers if name in shared.union(NUMBERS)]
        names, dense = [*names, *sorted(shared.difference(names))], self.dense
        others: tuple[str, ...] = ()
        if dense is None and self.model_columns is not None:
            dense = self.model_columns.names
            columns = {*dense, *NUMBERS, self.base}
            others = tuple(name for name in names if name not in columns)
        names = names if dense is None else [*dense, *(name for name in names if name in NUMBERS)]
        scored = self.base in shared and not self.live  # a model says whether it needs scores
        return FileColumns(tuple(dict.fromkeys([self.base, *names])), scored, others)

    def _fit_lists(self, draft: Draft | Problem, columns: FileColumns, lines: LineReader) -> Iterator[Draft | Lists]:
        """A draft that fits the columns or, where some of its lists do not, each of these, without bad candidates."""
        if isinstance(draft, Problem):
            yield Lists.of(draft)
        elif not (copy := self._fit(draft, columns)).bad:
            yield copy
        elif draft.sizes:
            yield from chain.from_iterable(self._fit_lists(one, columns, lines) for one in self._each(draft))
        else:
            yield lists_of([copy], lines.path, self.form, lines.traits.get("roles")).without(copy.bad)

    def _fit(self, draft: Draft, columns: FileColumns) -> Draft:
        """A draft with its numbers in columns. Candidates that lack some, or have what lists before had not, are bad;
        all of them where none has a base score."""
        draft = replace(draft, numbers={**draft.numbers}, bad={**draft.bad})
        if draft.names is not None:
            return draft.settle_columns()
        every, scores = range(len(draft.texts)), enumerate(draft.numbers.get(self.base, ()))
        draft.names, draft.others = columns.names, columns.others
        draft.unscored = all(score is None or k in draft.bad for k, score in scores)
        if draft.unscored and len(draft.bad) < len(every) and (self.base != SCORE or columns.scored):
            advice = "; the reader's option base names another" if self.offers("dense") else ""
            message = f"no candidate has a number {self.base!r}, the base score{advice}"
            draft.bad = dict.fromkeys(every, Problem("score", message))
        if draft.unscored:
            draft.numbers[self.base] = [0.0 for _ in every]
        for name in columns.names:
            if name not in draft.numbers:
                draft.numbers[name] = [one.get(name) for one in draft.features or [{}] * len(every)]
            if None in draft.numbers[name]:
                for k in (k for k in every if draft.numbers[name][k] is None):
                    draft.bad.setdefault(k, self._missing(name, k + 1))
        for name in NUMBERS:
            new = name == self.base and not (self.live or draft.unscored or columns.scored)
            if name in draft.numbers and (new or name not in columns.names):
                for k in (k for k in every if draft.numbers[name][k] is not None):
                    message = f"candidate {k + 1} has the number {name!r}, which the file's first lists do not have"
                    draft.bad.setdefault(k, Problem("columns", message))
        return draft.settle_columns()

    def _missing(self, name: str, k: int) -> Problem:
        """The problem of candidate ``k`` without a number."""
        if name == self.base:
            return Problem("score", f"candidate {k} has no number {name!r}, the base score")
        used = self.model_columns is not None
        like = "all of the training lists" if used else "nearly all of the file's first lists"
        advice = "; name the dense columns in the reader's option dense" if self.offers("dense") and not used else ""
        if name == "gain":
            like, advice = "others of the file", "; without it lists are ranked (rerank rank), not measured"
        return Problem("columns", f"candidate {k} does not have the number {name!r}, as {like} do{advice}")
