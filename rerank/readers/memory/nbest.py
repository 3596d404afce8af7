"""A list as users see it, whether they have made it or it was read from a file, and candidates in memory as lists.

A candidate that is a dict is what a JSON line holds for one: its numbers stand under their names, and those that are no
score columns are sparse features. Where they are sorted already, under ``columns`` and ``features``, columns that are
not asked for are left out. Bad candidates are errors that say which one it is.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import isfinite
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.data.corpus import FLOAT32_MAX
from rerank.readers.lines import LineReader
from rerank.readers.lists import GAIN, Candidate, Candidates, Lists, one_by_one, plain_texts, repeats_of, strip_texts
from rerank.readers.problems import Problem
from rerank.readers.reader import OnBadList, ScoreColumns, SkipCount, count_usable, filter_usable
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.forms import as_number
from rerank.readers.texts.json_lines import JSON_TYPES, MAPPINGS, JsonReader, plain_value, text_of
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.keys import ID, all_keys
from rerank.readers.texts.text_list import NUMBERS, SCORE, Draft, Pieces, lists_of
from rerank.readers.trees.treebank import SentenceText
from rerank.storage.streams import InputStream

# A text, (text, score), a dict (text or tree and what else a Candidate has), an ``nltk.Tree`` or a Candidate.
CandidateLike: TypeAlias = Any
# The keys of a candidate that is a dict.
KEYS = "text", "tree", "score", "columns", "features", "segmentation", "alignment", "answer"
JSON = JsonlReader()  # whose candidates those in memory are
TWO_GAINS = f"the column {GAIN!r} does not hold the gains of the list; rename it"
_KEY_OF_STEM = {key.rstrip("s"): key for key in KEYS}
_NO_COLUMNS = {*KEYS} - {SCORE}
_FLOAT32 = Annotated[float, msgspec.Meta(ge=-FLOAT32_MAX, le=FLOAT32_MAX)]


class InputError(DataError):
    """The input that a program has given cannot be used; ``field`` says where that is, as "candidates[3].score"."""

    def __init__(self, message: str, field: str, *, list_id: str | None = None) -> None:
        super().__init__(message, list_id=list_id)
        self.field = field


def iterate(items: Any, what: str, field: str, *, list_id: str | None = None) -> Iterator[Any]:
    """Go through what is given, ``what`` as the ``field``; it is an error if that is one thing."""
    with suppress(TypeError):
        if not isinstance(items, str | bytes | Mapping):
            return iter(items)
    raise InputError(f"found {type(items).__name__}; expected {what}", field, list_id=list_id)


def files_only(source: str, **options: Any) -> None:
    """Raises a ``RecipeError`` that names what only files can have, where ``source`` was given in place of one."""
    for name, value in options.items():
        if value is not None:
            raise RecipeError(f"found {value!r}, which is for files, and {source}; leave one of them out", key=name)


def as_error(problem: Problem) -> InputError:
    """A list or a candidate that was given and cannot be used, as an error."""
    k = 0 if problem.path else problem.line or 0  # the lines of a list that has no file are its candidates
    k = k if problem.index is None else problem.index + 1
    has_name = not k or re.search(rf"\bcandidate {k}\b", problem.message)
    message = problem.message if has_name else f"candidate {k}: {problem.message}"
    return InputError(message, f"candidates[{k - 1}]" if k else "candidates", list_id=problem.list_id or None)


@contextmanager
def error_context(list_id: str | None = None) -> Iterator[None]:
    """Within the block, errors in lists that have no file name the list and the candidate."""
    try:
        yield
    except DataError as error:
        if error.path:
            raise
        error = as_error(error) if isinstance(error, Problem) else error
        name = error.list_id or list_id
        if isinstance(error, InputError):
            raise InputError(error.message, error.field, list_id=name) from None
        raise DataError(error.message, list_id=name) from None


@dataclass(frozen=True, eq=False, repr=False)
class NBest:
    """Candidates for one input.

    Parameters
    ----------
    id: the list's name; a whole number becomes one.
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
        if not isinstance(self.id, str | int | np.integer) or isinstance(self.id, bool):
            raise InputError(f"found {self.id!r:.60} as the id; expected a name or a whole number", "id")
        object.__setattr__(self, "id", str(self.id))
        for name in ("candidates", "references"):
            values = getattr(self, name)
            if name == "references" and (isinstance(values, str) or is_tree(values)):
                values = (values,)
            if not isinstance(values, Sequence) or isinstance(values, str | bytes):
                values = tuple(iterate(values, f"{name}, in a list", name, list_id=self.id))
            object.__setattr__(self, name, values)
        if self.gains is None:
            return
        gains = list(iterate(self.gains, "gains, in a list", "gains", list_id=self.id))
        for k, gain in enumerate(gains):  # numbers of any library
            try:
                gains[k] = float(gain)
            except (TypeError, ValueError, OverflowError):
                gains[k] = float("nan")
            if not isfinite(gains[k]) or isinstance(gain, str):
                message = f"found {gain!r:.60} as the gain of candidate {k + 1}; expected a finite number"
                raise InputError(message, f"gains[{k}]", list_id=self.id)
        object.__setattr__(self, "gains", tuple(gains))

    @property
    def rows(self) -> Lists | None:
        """The list as its reader gave it; None if its candidates are the user's own."""
        return self.candidates.nbest if isinstance(self.candidates, Candidates) else None

    def __len__(self) -> int:
        return len(self.candidates)

    def __repr__(self) -> str:
        return f"<NBest {self.id}: {len(self)} candidates>"


def is_tree(value: Any) -> bool:
    """Whether it is an ``nltk.Tree``. nltk is not imported to tell."""
    return hasattr(value, "pformat") and hasattr(value, "leaves")


def skip_bad(items: Iterable[Lists], on_bad_list: OnBadList) -> Iterator[Lists]:
    """The lists that can be used; the others are errors, or are left out and logged."""
    count = SkipCount(on_bad_list)
    yield from filter_usable(items, count_usable, count)
    count.warn()


def nbests(items: Iterable[Lists], on_bad_list: OnBadList, rule: str | None) -> Iterator[NBest]:
    """The usable lists as users see them, with the answers that ``rule`` finds."""
    for rows in one_by_one(skip_bad(items, on_bad_list)):
        rows = with_answers(rows, rule)
        right = rows.references if rows.gold is None else (rows.gold.text,)
        gains = tuple(rows.scores[:, rows.names.index(GAIN)].tolist()) if GAIN in rows.names else None
        nbest = object.__new__(NBest)  # with nothing to check
        vars(nbest).update(
            id=rows.id, candidates=rows.candidates, source=None if rows.source is None else decoded(rows.source),
            references=tuple(map(decoded, right)), gains=gains,
        )  # fmt: skip
        yield nbest


@dataclass(frozen=True)
class ObjectLists:
    """Objects as lists, read by the reader of lines like them; they begin again if the objects do. answer: the rule for
    answers."""

    objects: Iterable[Mapping[str, Any]]
    reader: JsonReader
    on_bad_list: OnBadList = "error"
    answer: str | None = None

    def __iter__(self) -> Iterator[NBest]:
        with error_context():
            yield from nbests(self.blocks(), self.on_bad_list, self.answer)

    def blocks(self) -> Iterator[Lists]:
        """The lists, bad ones in their places, in blocks where the reader gives some."""
        lines = LineReader(InputStream(BytesIO(), ""))

        def objects() -> Iterator[dict[str, Any]]:
            for index, item in enumerate(self.objects):
                if not isinstance(item, Mapping):
                    raise DataError(f"found {type(item).__name__}; expected a dict like the first", list_id=str(index))
                try:
                    yield plain_value(item)
                except (TypeError, RecursionError) as error:
                    raise DataError(f"a dict that is no JSON object: {error}", list_id=str(index)) from None

        lines.objects = objects()
        records = (record._replace(line=0) for record in self.reader.records(lines))  # they have no lines
        return self.reader.lists(lines, records)


def row_of(candidate: CandidateLike, k: int) -> dict[str, Any]:
    """Candidate number ``k`` (from 1) of a list as a line of JSON holds one, whatever it was given as; an InputError if
    it can be none."""
    if isinstance(candidate, str):
        return {"text": candidate}
    if isinstance(candidate, Candidate):
        return {key: value for key in KEYS if key != "tree" and (value := getattr(candidate, key)) not in (None, {})}
    if not isinstance(candidate, MAPPINGS):
        choice, score = candidate if isinstance(candidate, tuple) and len(candidate) == 2 else (candidate, None)
        if is_tree(choice):
            return {"text": str(choice), "score": plain_value(score)}
        if choice is None or choice is candidate:
            forms = "a text, a pair (text, score), a dict, an nltk.Tree or a Candidate"
            raise _error(k, f"found {type(candidate).__name__}; expected {forms}")
        return {"text": choice, "score": plain_value(score)}
    if mistake := _mistake(tuple(candidate)):
        raise _error(k, mistake)
    row = dict[str, Any]()
    for key, value in candidate.items():
        if isinstance(key, str):
            with suppress(TypeError):  # what JSON does not have is not used
                row[key] = value if type(value) in JSON_TYPES else plain_value(value)
    key = "text" if "text" in candidate else "tree"
    if candidate[key] is None:
        raise _error(k, f"found None as its {key}; expected a string", key)
    if key == "tree":
        del row[key]
        row["text"] = str(candidate[key])
    return row


def _error(k: int, message: str, *keys: str) -> InputError:
    """The error about candidate number ``k``, or what it has under ``keys``."""
    return InputError(f"candidate {k}: {message}", ".".join([f"candidates[{k - 1}]", *keys]))


@lru_cache(maxsize=256)
def _mistake(keys: tuple[Any, ...]) -> str:
    """The mistake in the keys of a candidate; empty if there is none."""
    for key in keys:
        if (spelling := _KEY_OF_STEM.get(str(key).lower().rstrip("s"), key)) != key:
            return f"found the key {key!r}; did you mean {spelling!r}?"
    if ("text" in keys) == ("tree" in keys):
        return f"expected either 'text' or 'tree' among its keys, which are {', '.join(map(repr, keys)) or 'none'}"
    return ""


def as_list(
    candidates: Iterable[CandidateLike], columns: ScoreColumns | None = None, *, name: str, texts: bool,
    source: str | None = None, scored: bool = False, gains: Sequence[float] | None = None,
) -> Lists:  # fmt: skip
    """Candidates as a list of texts or of parses with ``columns``, by default "score" and those that they show; a
    InputError where one lacks a column, has something that is not a finite number, or is not a text.

    texts: whether they are texts. source: of a list of texts. scored: whether they must have base scores; if not, these
    are 0 where no candidate has one and they have no name of their own. gains: those of the candidates, where they are
    known; no column "gain" may say anything else.
    """
    with error_context(name or None):
        source_text = source and _source(source)
        if texts and gains is None and columns and (plain := Plain.of(candidates, columns, name)) is not None:
            return plain.lists().replace(source=source_text)
        rows = [row_of(candidate, k) for k, candidate in enumerate(candidates, start=1)]
        columns = columns if columns is None or gains is None else columns.without({GAIN})
        base = SCORE if columns is None else columns.base or SCORE
        first = rows[0].get("columns", ()) if rows else ()
        others = _keep_columns(rows, {base, *(first if columns is None else columns.names)}, base)
        keys = [key for key in (rows[0] if rows else {}) if key not in KEYS and not ID.search(key)]
        table = all_keys(rows) if keys else {}
        numeric_keys = tuple(key for key in keys if table[key].is_numeric())  # as numbers, or as texts
        draft = JSON.for_columns(columns or ScoreColumns(numeric_keys)).draft({"candidates": rows})
        if columns is None:
            sparse = {name for row in rows for name in row.get("features") or ()}
            shared = [key for key, of in draft.numbers.items() if key in NUMBERS or not (None in of or key in sparse)]
            columns = ScoreColumns(tuple(dict.fromkeys((SCORE, *first, *shared))), SCORE)
        for k, problem in sorted(draft.bad.items()):
            raise _error(k + 1, problem.message, *problem.keys)
        for k, (gain, own) in enumerate(zip(gains or (), draft.numbers.get(GAIN, ()), strict=False), start=1):
            if own not in (None, gain):
                raise _error(k, TWO_GAINS)
        others |= {number: None for number in NUMBERS if number not in columns.names and draft.numbers.pop(number, [])}
        draft.unscored = base == SCORE and not any(score is not None for score in draft.numbers.get(base, ()))
        if draft.unscored and not scored and base in columns.names:
            draft.numbers[base] = [0.0] * len(rows)
        _require_numbers(draft, columns.names, base)
        draft.ids, draft.lines, draft.names = [name], range(1, len(rows) + 1), columns.names
        draft.settle_columns()
        lists = lists_of([draft], "", "jsonl" if texts else "")
        has_names = texts or len(columns.names) > 1 or bool(columns.sources)  # parsers give a single score no name
        return lists.replace(
            column=columns.names.index(base) if has_names else 0, names=columns.names if has_names else (),
            sources=columns.sources, others=tuple(others), of_trees=not texts,
            sparse=lists.sparse if texts else None, sides={"source": [source_text]} if texts else {},
        )  # fmt: skip


def _keep_columns(rows: list[dict[str, Any]], names: Set[str], base: str) -> dict[str, None]:
    """Leave each candidate the columns ``names``, its score among them as ``base``; returns the names of the others."""
    others = dict[str, None]()
    for k, row in enumerate(rows, start=1):
        own = row.get("columns", {})
        if not isinstance(own, dict):
            continue
        others |= dict.fromkeys(unknown := [name for name in own if name not in names])
        row["columns"] = own = {name: own[name] for name in own if name in names} if unknown else dict(own)
        score = as_number(row.get(SCORE) if base == SCORE else row.pop(SCORE, None))
        if score is not None and own.get(base, score) != score == score:
            message = f"found the score {score!r}, and another, {own[base]!r}, among its columns as {base!r}"
            raise _error(k, f"{message}; give one", "score")
        if score is not None:
            own.pop(SCORE, None) if base == SCORE else own.setdefault(base, score)
    return others


def _require_numbers(draft: Draft, names: Sequence[str], base: str) -> None:
    """Take columns from the sparse numbers if need be; an InputError where a candidate lacks one."""
    for column in names:
        sparse = (one.get(column) for one in draft.features or [{}] * len(draft.texts))
        draft.numbers[column] = values = draft.numbers.get(column) or list(sparse)
        if None in values:
            what = f"a finite number of every candidate as {', '.join(map(repr, names))}"
            path = ("score",) if column == base else ("columns", column)
            raise _error(values.index(None) + 1, f"found no number as {column!r}; expected {what}", *path)


class Plain(NamedTuple):
    """A list of dicts of a text, a number for each score column and nothing else."""

    id: str
    rows: list[dict[str, Any]]
    texts: list[bytes]
    numbers: list[tuple[float, ...]]  # of each candidate, by column
    columns: ScoreColumns
    base: int  # the column of the base score

    @staticmethod
    def of(candidates: Iterable[CandidateLike], columns: ScoreColumns, name: str) -> "Plain | None":
        """None for others, which ``as_list`` looks at one by one, and beyond what float32 holds."""
        rows, names, base = candidates if type(candidates) is list else [], columns.names, columns.base or SCORE
        if not rows or type(rows[0]) is not dict or base not in names or not _NO_COLUMNS.isdisjoint(names):
            return None
        form, numbers = _form(names, base, nested="columns" in rows[0])
        try:
            every = [*map(numbers, msgspec.convert(rows, form))]
        except msgspec.ValidationError:
            return None
        texts = plain_texts([row["text"] for row in rows])
        return None if texts is None else Plain(name, rows, texts, every, columns, names.index(base))

    def lists(self) -> Lists:
        """The list as readers give lists."""
        texts, originals = strip_texts(self.texts)
        return Lists.one(
            self.id, "", 0, texts, range(1, len(texts) + 1), np.array(self.numbers), self.base, form="jsonl",
            names=self.columns.names, sources=self.columns.sources, originals=originals,
            raw=Pieces({"candidates": self.rows}, self.rows.copy()), duplicates=repeats_of(texts),
        )  # fmt: skip


@lru_cache(maxsize=64)
def _form(names: tuple[str, ...], base: str, *, nested: bool) -> tuple[Any, Callable[[Any], tuple[float, ...]]]:
    """The type of dicts that have a text and these numbers, those but the base score under "columns" if ``nested``; and
    what takes the numbers from one."""
    paths = {name: f"column{k}" for k, name in enumerate(names)}
    fields: list[Any] = [(path, _FLOAT32, msgspec.field(name=name)) for name, path in paths.items()]
    if nested:
        inner = msgspec.defstruct("Columns", [f for f in fields if f[0] != paths[base]], forbid_unknown_fields=True)
        paths = {name: f"columns.{path}" for name, path in paths.items()} | {base: SCORE}
        fields = [(SCORE, _FLOAT32), ("columns", inner)]
    row = msgspec.defstruct("Row", [("text", str), *fields], forbid_unknown_fields=True)
    numbers: Callable[[Any], Any] = attrgetter(*paths.values())
    return list[row], numbers if len(names) > 1 else lambda row: (numbers(row),)  # type: ignore[valid-type]


def _source(source: Any) -> bytes:
    try:
        return text_of(source, "the source")
    except Problem as problem:
        raise InputError(problem.message, "source") from None


def check_nbest(nbest: Any) -> NBest:
    if not isinstance(nbest, NBest):
        raise DataError(f"found a list of the type {type(nbest).__name__}; expected rerank.NBest")
    return nbest


def nbest_rows(nbest: NBest, texts: bool, columns: ScoreColumns | None) -> Lists:
    rows = nbest.rows
    if rows is None:
        rows = as_list(nbest.candidates, columns, texts=texts, name=nbest.id, gains=nbest.gains)
        if unknown := set(rows.others) - {GAIN}:
            message = f"a candidate has the column {min(unknown)!r}, which the very first candidate lacks"
            raise DataError(f"{message}; numbers that few candidates have are 'features'")
    elif rows.of_trees == texts:
        message = "found a list of trees; expected lists of texts" if texts else "found a list of texts, not trees"
        raise DataError(message)
    if not rows.of_trees:
        source = None if nbest.source is None else encoded(nbest.source).strip()
        return rows.replace(source=source, references=tuple(_text(reference) for reference in nbest.references))
    if len(nbest.references) > 1:
        raise DataError(f"found {len(nbest.references)} gold trees as references; expected one")
    if rows.gold is None and nbest.references:
        return rows.replace(gold=SentenceText(_text(nbest.references[0]), 0, ""))
    return rows


def with_gains(rows: Lists, nbest: NBest) -> Lists:
    """The list with its gains as the column "gain"."""
    if nbest.gains is None:
        return rows
    gains = np.array(nbest.gains, np.float64)
    if gains.size != len(rows):
        raise DataError(f"found {gains.size} gains for {len(rows)} candidates; expected one for each")
    if GAIN in rows.names:
        if not np.array_equal(rows.scores[:, rows.names.index(GAIN)], gains):
            raise DataError(TWO_GAINS)
        return rows
    table = rows.with_names()
    sources = {source: (*names, GAIN) for source, names in table.by_source.items()}
    return table.replace(names=(*table.names, GAIN), scores=np.column_stack([table.scores, gains]), sources=sources)


def _text(reference: Any) -> bytes:
    if not isinstance(reference, str) and not is_tree(reference):
        raise DataError(f"found {reference!r} as a reference; expected a text or a tree")
    return encoded(str(reference)).strip()
