"""Data frames of any library (pandas, polars, pyarrow and what else narwhals knows) as lists: a row is a candidate, and
rows with the same value in a column are those of one list, wherever they stand.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import count, pairwise
from operator import eq
from typing import Any, TypedDict

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.data.corpus import offsets
from rerank.readers.given.nbest import GAIN, NBest, ObjectLists, checked_text, each_of, is_tree, list_of
from rerank.readers.lists import Lists, answers_of, plain_texts, repeats_of
from rerank.readers.score_columns import ScoreColumns, check_names
from rerank.readers.texts.answers import check_rule, with_answers
from rerank.readers.texts.forms import as_number
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.table import EXTRA
from rerank.readers.texts.text_list import SCORE


class FrameNames(TypedDict, total=False):
    """The columns of a data frame, by what they hold.

    | key              | the column |
    |------------------|------------|
    | group            | what the rows of a list have in common, such as the prompt; becomes the list's id |
    | text, or tree    | the candidates: texts, or parses in brackets |
    | score            | the base score, the generator's own; without it all base scores are 0 |
    | gain             | how good a candidate is: numbers (float64: whole ones up to 2^53), or true and false |
    | source           | the input, the same in all rows of a list |
    | columns          | several: the numbers to learn from |
    | answer           | what each text comes to, missing where it has none; or the rule that finds it in the text |
    | chosen, rejected | in place of text or tree: a row is a list of what was chosen and of what was rejected |
    """

    group: str
    text: str
    tree: str
    score: str
    gain: str
    source: str
    columns: Sequence[str]
    answer: str
    chosen: str
    rejected: str


class FrameColumns(FrameNames, total=False):
    """``FrameNames``, and the column of what is right, the same in all rows of a list: a text, a list of texts, or a
    gold tree.
    """

    references: str


def check_keys(function: str, names: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that are not those of a data frame, as Python does, with a TypeError."""
    for name in names:
        if name not in FrameColumns.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def is_frame(given: Any) -> bool:
    """Whether it is a data frame, or something like one. No library is imported to tell."""
    kind = type(given)
    return hasattr(kind, "columns") and (hasattr(kind, "__dataframe__") or hasattr(kind, "schema"))


@dataclass(frozen=True)
class FrameLists:
    """The lists of a data frame, which begin again whenever they are gone through.

    frame: a ``narwhals.DataFrame``; names: its columns; known: the score columns of the lists, where a model asks for
    them, by the names that it knows them by; answer: the rule for answers, where no column holds them.
    """

    frame: Any
    names: Mapping[str, Any]
    known: ScoreColumns | None = None
    answer: str | None = None

    def __post_init__(self) -> None:
        for name in (SCORE, GAIN) if self.known is None else ():
            if name in self.names.get("columns", ()):
                message = f"the column {name!r} has the name of what lists have besides the columns to learn from"
                raise DataError(f"{message}; name it {name}=, or rename it")

    @staticmethod
    def of(
        given: Any, names: Mapping[str, Any], known: ScoreColumns | None = None, *, told: bool = True
    ) -> "FrameLists":
        """A data frame of any library as lists; one that is lazy is collected.

        told: whether ``names`` say all; if not, the base score may have its own name.
        """
        try:
            import narwhals
        except ImportError:
            raise DataError(f"data frames need narwhals: {EXTRA}") from None
        try:
            frame = narwhals.from_native(given)
            frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
            present = list(frame.columns)
        except TypeError:
            message = f"found {type(given).__name__}; expected a data frame, as of pandas, polars or pyarrow"
            raise DataError(message) from None
        except narwhals.exceptions.NarwhalsError as error:
            raise DataError(f"a data frame that cannot be used: {error}") from None
        base = known.base if known and not told and "score" not in names else None
        if base and (base != SCORE or base in present):
            names = {**names, "score": base}
        if "columns" in names:
            columns = names["columns"]
            if not isinstance(columns, str):
                columns = list(each_of(columns, "names of columns, in a list", "columns"))
            check_names(columns, "columns")
            names = {**names, "columns": columns}
        rule = None if names.get("answer") in present else names.get("answer")
        if rule is not None:
            names = {key: name for key, name in names.items() if key != "answer"}
        _check(names, present)
        return FrameLists(frame, names, known, check_rule(rule))

    @property
    def pairs(self) -> bool:
        """Whether a row is a list of what was chosen and what was rejected."""
        return "chosen" in self.names

    def __len__(self) -> int:
        return len(self.frame) if self.pairs else len(self._groups[0])

    def __iter__(self) -> Iterator[NBest]:
        """The lists one by one."""
        if self.pairs:
            yield from self._of_pairs
            return
        _, order, lists = self._groups
        gains = None if self._gains is None else self._gains[order]
        places = pairwise(lists.tolist())
        for nbest, source, right, (first, last) in zip(self.block.each(), *self._sides, places, strict=True):
            of_list = None if gains is None else gains[first:last].tolist()
            yield NBest(nbest.id, with_answers(nbest, self.answer).candidates, source, right, of_list)

    def blocks(self, *, gains: bool) -> Iterator[Lists]:
        """The lists; with their ``gains``, if there are some, as the column "gain"."""
        if self.pairs:
            return self._of_pairs.blocks()
        block, columns = self.block, self.score_columns
        if gains and self._gains is not None:
            scores = np.column_stack([block.scores, self._gains[self._groups[1]]])
            block = block.changed(names=(*columns.names, GAIN), scores=scores)
        return block.parts()

    @cached_property
    def block(self) -> Lists:
        """All lists; with their sources and references, if they are texts."""
        names, order, lists = self._groups
        columns, values, texts, answers = self.score_columns, self._values[order], self._texts, self._answers
        texts = list(map(texts.__getitem__, order.tolist()))
        rows = list_of(
            texts, values, columns, "", texts="tree" not in self.names,
            answers=answers and answers_of([answers[row] for row in order.tolist()]),
        )  # fmt: skip
        numbers = np.arange(1, order.size + 1) - np.repeat(lists[:-1], np.diff(lists))
        cuts = list(pairwise(lists.tolist()))
        sides: dict[str, Sequence[Any]] = {}
        if not rows.of_trees:
            sources, references = self._sides
            sides["source"] = [None if source is None else encoded(source).strip() for source in sources]
            sides["references"] = [tuple(encoded(str(text)).strip() for text in right) for right in references]
        sides["duplicates"] = [repeats_of(rows.texts[first:last]) for first, last in cuts]
        starts = [0] * len(names)
        return replace(rows, ids=names, starts=starts, first=lists, lines=numbers.tolist(), sides=sides)

    @property
    def places(self) -> list[np.ndarray]:
        """The rows of every list, in their order."""
        _, order, lists = self._groups
        return np.split(order, lists[1:-1]) if len(self) else []

    def unused(self) -> list[str]:
        """The columns of numbers that hold nothing of the lists."""
        used = {*self.names.get("columns", ()), *(name for key, name in self.names.items() if key != "columns")}
        return [name for name, kind in self.frame.schema.items() if kind.is_numeric() and name not in used]

    @cached_property
    def _groups(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The names of the lists, in the order of their first rows; all rows, list by list (int64 [N]); where each list
        begins among these (int64 [L + 1])."""
        values = self._group_values()
        first_row: dict[Any, int] = {}
        firsts = np.fromiter(map(first_row.setdefault, values, count()), np.int64, len(values))
        rows, of_list, sizes = np.unique(firsts, return_inverse=True, return_counts=True)
        return [str(values[row]) for row in rows.tolist()], np.argsort(of_list, kind="stable"), offsets(sizes)

    def _group_values(self) -> list[Any]:
        """The group of every row; all of one type, so that no two lists have one name."""
        groups = self._column("group")
        kinds = set(map(type, groups))
        plain = len(kinds) == 1 and kinds <= {str, int}
        for row, value in enumerate(() if plain else groups):
            kind, first = type(value), type(groups[0])
            if kind.__hash__ is None:
                raise DataError(f"{self._at('group', row)}: found {kind.__name__}; expected a name or a number")
            if value != value:
                raise DataError(f"{self._at('group', row)} is missing; fill it in, or drop the row")
            if kind is not first:
                message = f"found {value!r}, {kind.__name__}; row 0 has {groups[0]!r}, {first.__name__}"
                raise DataError(f"{self._at('group', row)}: {message}; expected groups of one type, such as str")
        return groups

    def with_columns(self, columns: Mapping[str, np.ndarray]) -> Any:
        """The data frame in its own library with further columns, whose names it must not have yet."""
        import narwhals

        made = []
        for name, values in columns.items():
            if name in self.frame.columns:
                raise DataError(f"the data frame has a column {name!r} already; choose other names, as into=('a', 'b')")
            made.append(narwhals.new_series(name, values, backend=self.frame.implementation))
        return self.frame.with_columns(*made).to_native()

    @cached_property
    def score_columns(self) -> ScoreColumns:
        """The score columns of the lists."""
        return self.known or ScoreColumns((SCORE, *self.names.get("columns", ())), SCORE)

    @cached_property
    def _texts(self) -> list[bytes]:
        key = "tree" if "tree" in self.names else "text"
        values = self._column(key)
        texts = plain_texts(values)
        return texts or [checked_text(value, self._at(key, row), key) for row, value in enumerate(values)]

    @cached_property
    def _answers(self) -> list[bytes | None] | None:
        if "answer" not in self.names:
            return None
        missing = np.asarray(self.frame[self.names["answer"]].is_null().to_numpy(), bool).tolist()
        return [
            None if missing[row] else checked_text(value, self._at("answer", row), "answer").strip()
            for row, value in enumerate(self._list(self.names["answer"]))
        ]

    @cached_property
    def _values(self) -> np.ndarray:
        """float64 [rows, K]: the score columns of all rows."""
        names, base = self.score_columns.names, self.score_columns.base or SCORE
        values = np.zeros((len(self.frame), len(names)))
        for k, name in enumerate(names):
            column = self.names.get("score") if name == base else name
            if column is not None:
                values[:, k] = self._numbers(column)
        return values

    def _numbers(self, name: str) -> np.ndarray:
        """float64 [rows]: a column of numbers."""
        import narwhals

        series = self.frame[name]
        self._refuse_missing(name)
        if series.dtype == narwhals.Boolean or (series.dtype.is_numeric() and series.dtype != narwhals.Decimal):
            values = np.asarray(series.cast(narwhals.Float64).to_numpy(), np.float64)
        else:
            rows = enumerate(self._list(name))
            values = np.array([self._number(value, name, row) for row, value in rows], np.float64)
        if (wrong := np.flatnonzero(~np.isfinite(values))).size:
            place, value = _place(wrong[0], name), values[wrong[0]]
            raise DataError(f"{place}: found {value}; expected a finite number: fill it in, or drop the row")
        return values

    def _number(self, value: Any, name: str, row: int) -> float:
        number = as_number(value)
        if isinstance(number, bool | int | float | Decimal | np.number | np.bool_):
            with suppress(OverflowError):
                return float(number)
        raise DataError(f"{_place(row, name)}: found {value!r}; expected a number")

    def _column(self, key: str) -> list[Any]:
        """The values of a column, none of them missing."""
        name = self.names[key]
        self._refuse_missing(name)
        return self._list(name)

    def _list(self, name: str) -> list[Any]:
        try:
            return list(self.frame[name].to_list())
        except UnicodeDecodeError as error:
            raise DataError(f"the column {name!r} holds {error.object[:40]!r}, which is not UTF-8") from None

    def _refuse_missing(self, name: str) -> None:
        missing = np.flatnonzero(np.asarray(self.frame[name].is_null().to_numpy(), bool))
        if missing.size:
            message = f"{_place(missing[0], name)} is missing; fill it in, or drop the row"
            raise DataError(f"{message} (so are {missing.size - 1:,} others)" if missing.size > 1 else message)

    def _at(self, key: str, row: int) -> str:
        return _place(row, self.names[key])

    @cached_property
    def _gains(self) -> np.ndarray | None:
        """float64 [rows]: the gains, if there are some."""
        return self._numbers(self.names["gain"]) if "gain" in self.names else None

    @cached_property
    def _sides(self) -> tuple[list[Any], list[tuple[Any, ...]]]:
        """The sources and the references of all lists."""
        references = self._side("references")
        right = [tuple(one) if isinstance(one, list | tuple) else () if one is None else (one,) for one in references]
        return self._side("source"), right

    def _side(self, key: str) -> list[Any]:
        """The value of a column for every list, the same in all of its rows; None where there is no such column."""
        names, order, lists = self._groups
        if key not in self.names:
            return [None] * len(names)
        values = [list(value) if isinstance(value, np.ndarray) else value for value in self._column(key)]
        firsts = [values[row] for row in order[lists[:-1]].tolist()]
        for first, row in zip(firsts, order[lists[:-1]].tolist(), strict=True):
            for text in first if key == "references" and isinstance(first, list | tuple) else (first,):
                if key == "source" or not is_tree(text):
                    checked_text(text, self._at(key, row), key)
        of_row = np.repeat(np.arange(len(names)), np.diff(lists)).tolist()
        told = map(eq, map(values.__getitem__, order.tolist()), map(firsts.__getitem__, of_row))
        if (wrong := np.flatnonzero(~np.fromiter(map(bool, told), np.bool_, len(values)))).size:
            row, k = int(order[wrong[0]]), of_row[int(wrong[0])]
            message = f"{self._at(key, row)}: found another value than in row {order[lists[k]]} of the same list"
            raise DataError(f"{message}, {names[k]!r}; expected one {key} for each list")
        return firsts

    @cached_property
    def _of_pairs(self) -> ObjectLists:
        """A list for every row."""
        keys = {"id": "group", "prompt": "source", "chosen": "chosen", "rejected": "rejected"}
        columns = {key: self._column(name) for key, name in keys.items() if name in self.names}
        if "id" in columns:
            columns["id"] = list(map(str, self._group_values()))
        items = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return ObjectLists(items, JsonlReader())


def _place(row: int, name: str) -> str:
    return f"row {row} (from 0) of the column {name!r}"


def _check(names: Mapping[str, Any], present: Sequence[str]) -> None:
    """Refuse names of columns that are not there, and those that leave open what the candidates are."""
    given = {key: value for key, value in names.items() if key != "columns"}
    pairs = {"chosen", "rejected"} & given.keys()
    needed = ("chosen", "rejected") if pairs else ("group", *(() if {"text", "tree"} & given.keys() else ("text",)))
    if missing := [key for key in needed if key not in given]:
        told = " and ".join(f"{key}=" for key in missing)
        raise DataError(f"a data frame needs {told}, the names of columns; it has {_listed(present)}")
    if pairs and (unwanted := {"text", "tree", "score", "gain", "columns", "references"} & names.keys()):
        raise DataError(f"found {min(unwanted)}= beside chosen= and rejected=; a row is a candidate, or a pair")
    if {"text", "tree"} <= names.keys():
        raise DataError("found text= and tree=; expected one of them")
    for name in (*given.values(), *names.get("columns", ())):
        if not isinstance(name, str):
            raise DataError(f"found {name!r}; expected the name of a column, a string")
        if name not in present:
            near = difflib.get_close_matches(str(name), map(str, present), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {_listed(present)}"
            raise DataError(f"the data frame has no column {name!r}; {hint}")
    for key in ("score", "gain"):
        if given.get(key) in names.get("columns", ()):
            raise DataError(f"the column {given[key]!r} is the {key}; leave it out of the columns to learn from")


def _listed(present: Sequence[str]) -> str:
    return ", ".join(map(repr, present)) or "none"
