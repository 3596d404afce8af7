"""Data frames of any library (pandas, polars, pyarrow and what else narwhals knows) as lists: a row is a candidate, and
rows with the same value in a column are those of one list, wherever they stand.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from rerank.base.errors import DataError
from rerank.data.answers import check_rule
from rerank.readers.base import ScoreColumns, check_names
from rerank.readers.given.nbest import GAIN, NBest, ObjectLists, each_of, list_given
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.forms import as_number
from rerank.readers.texts.jsonl import EXTRA, JsonlReader
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

    frame: a ``narwhals.DataFrame``; names: its columns, see ``FrameNames``; known: the score columns by the names that
    a model has for them; answer: the rule for answers, where no column holds them.
    """

    frame: Any
    names: Mapping[str, Any]
    known: ScoreColumns | None = None
    answer: str | None = None

    @staticmethod
    def of(
        given: Any, names: Mapping[str, Any], known: ScoreColumns | None = None, *, complete: bool = True
    ) -> "FrameLists":
        """A data frame of any library as lists; one that is lazy is collected.

        complete: whether ``names`` say all; if not, the base score may have the name that a model has for it.
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
        names = dict(names)
        base = known.base if known and not complete and "score" not in names else None
        if base and (base != SCORE or base in present):
            names["score"] = base
        if "columns" in names:
            columns = names["columns"]
            names["columns"] = columns if isinstance(columns, str) else list(each_of(columns, "names", "columns"))
            check_names(names["columns"], "columns")
        rule = None if names.get("answer") in present else names.pop("answer", None)
        _check(names, present, named=known is not None)
        return FrameLists(frame, names, known, check_rule(rule))

    @property
    def pairs(self) -> ObjectLists | None:
        """The lists, where a row is what was chosen and what was rejected; else None."""
        if "chosen" not in self.names:
            return None
        keys = {"prompt": "source", "chosen": "chosen", "rejected": "rejected"}
        columns = {key: self._column(self.names[name]) for key, name in keys.items() if name in self.names}
        if "group" in self.names:
            columns["id"] = list(map(str, self._groups()))
        rows = zip(*columns.values(), strict=True)
        return ObjectLists([dict(zip(columns, row, strict=True)) for row in rows], JsonlReader())

    def __iter__(self) -> Iterator[NBest]:
        """The lists one by one."""
        if (pairs := self.pairs) is not None:
            yield from pairs
            return
        kind, numbers = "tree" if "tree" in self.names else "text", self.names.get("columns", ())
        columns = self.known or ScoreColumns((SCORE, *numbers), SCORE)
        of_key = {key: self._column(name, numeric=key in (SCORE, GAIN)) for key, name in self.names.items()
                  if key != "columns"}  # fmt: skip
        of_key["columns"] = [
            dict(zip(numbers, row, strict=True))
            for row in zip(*(self._column(name, numeric=True) for name in numbers), strict=True)
        ] or [{}] * len(self.frame)
        keys = [key for key in (kind, SCORE, "columns", "answer") if key in of_key]
        every = [dict(zip(keys, row, strict=True)) for row in zip(*(of_key[key] for key in keys), strict=True)]
        for name, rows in self.places.items():
            source, right = (self._shared(name, key, [of_key[key][row] for row in rows]) if key in of_key else None
                             for key in ("source", "references"))  # fmt: skip
            gains = [of_key[GAIN][row] for row in rows] if GAIN in of_key else None
            given = list_given([every[row] for row in rows], columns, name=name, texts=kind == "text")
            candidates = with_answers(given, self.answer).candidates
            yield NBest(name, candidates, source, () if right is None else right, gains)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The rows of every list, in their order, by its name."""
        places = dict[str, list[int]]()
        for row, group in enumerate(self._groups()):
            places.setdefault(str(group), []).append(row)
        return places

    def unused(self) -> list[str]:
        """The columns of numbers that hold nothing of the lists."""
        used = {*self.names.get("columns", ()), *(name for key, name in self.names.items() if key != "columns")}
        return [name for name, kind in self.frame.schema.items() if kind.is_numeric() and name not in used]

    def with_columns(self, columns: Mapping[str, np.ndarray]) -> Any:
        """The data frame in its own library with further columns, whose names it must not have yet."""
        import narwhals

        made = []
        for name, values in columns.items():
            if name in self.frame.columns:
                raise DataError(f"the data frame has a column {name!r} already; choose other names, as into=('a', 'b')")
            made.append(narwhals.new_series(name, values, backend=self.frame.implementation))
        return self.frame.with_columns(*made).to_native()

    def _groups(self) -> list[Any]:
        """The group of every row; all of one type, so that no two lists have one name."""
        groups = self._column(self.names["group"])
        for row, group in enumerate(groups):
            kind, first = type(group), type(groups[0])
            if group is None or group != group or kind is not first or kind.__hash__ is None:
                message = f"found {group!r}, {kind.__name__}; expected a name or a number, as str or int in all rows"
                raise DataError(f"row {row} (from 0) of the column {self.names['group']!r}: {message}")
        return groups

    def _column(self, name: str, *, numeric: bool = False) -> list[Any]:
        """The values of a column, None where one is missing; numeric: numbers, which may be written as texts."""
        series = self.frame[name]
        try:
            values, missing = series.to_list(), np.asarray(series.is_null().to_numpy(), bool).tolist()
        except UnicodeDecodeError as error:
            raise DataError(f"the column {name!r} holds {error.object[:40]!r}, which is not UTF-8") from None
        values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
        return list(map(as_number, values)) if numeric and not series.dtype.is_numeric() else values

    def _shared(self, name: str, key: str, values: Sequence[Any]) -> Any:
        """The value that all rows of a list have."""
        first, *others = (list(value) if isinstance(value, np.ndarray) else value for value in values)
        if unlike := [value for value in others if value != first]:
            message = f"found {first!r} and {unlike[0]!r} in the column {self.names[key]!r}; expected one {key}"
            raise DataError(message, list_id=name)
        return first


def _check(names: Mapping[str, Any], present: Sequence[str], *, named: bool) -> None:
    """Refuse names of columns that are not there, and those that leave open what the candidates are.

    named: whether a model has named the columns to learn from.
    """
    single = {key: name for key, name in names.items() if key != "columns"}
    pairs = {"chosen", "rejected"} & single.keys()
    needed = ("chosen", "rejected") if pairs else ("group", *(() if {"text", "tree"} & single.keys() else ("text",)))
    listed = ", ".join(map(repr, present)) or "none"
    if missing := " and ".join(f"{key}=" for key in needed if key not in single):
        raise DataError(f"a data frame needs {missing}, the names of columns; it has {listed}")
    if pairs and (unwanted := {"text", "tree", "score", "gain", "columns", "references"} & names.keys()):
        raise DataError(f"found {min(unwanted)}= beside chosen= and rejected=; a row is a candidate, or a pair")
    if {"text", "tree"} <= names.keys():
        raise DataError("found text= and tree=; expected one of them")
    for name in (*single.values(), *names.get("columns", ())):
        if name not in present:
            near = difflib.get_close_matches(str(name), map(str, present), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {listed}"
            raise DataError(f"the data frame has no column {name!r}; {hint}")
    for name in names.get("columns", ()):
        if key := next((key for key in (SCORE, GAIN) if name in {single.get(key), None if named else key}), ""):
            message = f"the column {name!r} is, or is called like, the {key}: leave it out of columns, or rename it"
            raise DataError(message)
