"""The svmlight format: one example per line, its label, then its features as id:value.

    +1 qid:3 2:0.5 17:1 # a comment
    -1 qid:3 1:1 2:0.25
    # blank lines and comment lines are ignored

Joachims (1999); also what libsvm, liblinear and Vowpal Wabbit's converters write.
"""

import re
from typing import Any, Literal, NoReturn

import numpy as np

from rerank.base.encoding import plain
from rerank.base.errors import DataError
from rerank.data.labelled import MOST_COLUMNS, Labelled, canonical, canonical_order
from rerank.data.symbols import SymbolTable
from rerank.readers.decimal_kernel import FLOAT32_MAX, POWERS
from rerank.readers.examples import svmlight_kernel as stop
from rerank.readers.examples.svmlight_kernel import parse
from rerank.readers.lines import LineReader
from rerank.readers.streams import InputStream, PathLike, open_stream

CHUNK = 1 << 18  # bytes that are read at a time: a chunk stays in the cache while it is parsed
LONGEST = 1 << 20  # bytes of a label or a feature; a file with more is not an svmlight file
SHOWN = 40  # characters of what was found in a message
_MARGIN = 8  # bytes after the text that the kernel may look at
_NAMED = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_svmlight(
    path: PathLike, *, index_base: Literal["auto", 0, 1] = "auto", width: int | None = None, chunk: int = CHUNK
) -> Labelled:
    """Read a plain or compressed file or, as "-", standard input, in one pass.

    It takes the memory of the arrays that it returns; values take none as long as all of them are equal.

    Parameters
    ----------
    index_base: the id of the first column; "auto" is 0 if the id 0 is used and 1 if not.
    width: the number of columns D; by default just enough for the highest id.
    chunk: bytes that are read at a time.

    Raises
    ------
    DataError: the file cannot be read, has no example or has a malformed line; says path and line.
    """
    if index_base not in ("auto", 0, 1):
        raise DataError(f"found index base {index_base!r}; expected auto, 0 or 1")
    if width is not None and not 0 < width <= MOST_COLUMNS:
        raise DataError(f"found a width of {width}; expected 1 to {MOST_COLUMNS:,} columns")
    with open_stream(path, strict=False) as stream:
        return _Reading(stream, index_base, width).run(chunk)


def parse_svmlight(
    stream: InputStream, room: int, highest: int, faults: dict[int, str] | None = None
) -> tuple[Labelled, np.ndarray]:
    """``read_svmlight`` of an open file, with the ids as columns, up to ``highest``, and its values before they are
    rounded to float32 (float64 [nnz]; of more than 15 digits, the last may differ). ``room``: how many nonzeros there
    are, about; ``faults`` gets the messages about malformed lines, which are then left out, by their numbers."""
    reading = _Reading(stream, 0, None, room, np.float64)
    reading.highest, reading.faults = highest, faults
    examples = reading.run(CHUNK)
    values = np.full(examples.nonzeros, reading.constant[0]) if reading.state[stop.UNIFORM] else reading.values.array
    return examples, values


def read_folds(path: PathLike, n: int) -> np.ndarray:
    """The fold numbers of ``n`` examples, one per line: int64 [n].

    Raises
    ------
    DataError: a line is not a whole number from 0, or there are not ``n`` lines.
    """
    folds = np.empty(n, np.int64)
    with open_stream(path, strict=False) as stream:
        count = 0
        for line, text in LineReader(stream):
            if not re.fullmatch(rb"\s*\d{1,9}\s*", text):
                message = (
                    f"found {_shown(text.decode(errors='replace')) or 'a blank line'}; expected the number of a fold"
                )
                raise DataError(f"{message}, 0 or higher", path=stream.path, line=line)
            if count < n:
                folds[count] = int(text)
            count += 1
    if count != n:
        message = f"found {count:,} fold numbers for {n:,} examples; expected one for each, on a line of its own"
        raise DataError(message, path=stream.path)
    return folds


def _shown(text: str) -> str:
    """The beginning of a text for a message, without characters that a terminal would obey."""
    start = plain(text[:SHOWN])
    return start if len(text) <= SHOWN else f"{start}..."


def _label_fault(label: str) -> str:
    """The label that is expected instead; empty if it is fine."""
    if "," in label:
        return "one label; files with several labels per example are not read"
    if _NAMED.fullmatch(label) or canonical(label) in ("inf", "-inf"):
        return "a finite number or a string"
    if not label or not label.isprintable() or re.search(r"[\s:#]", label):
        return "a number or a string without blanks, colons and control characters"
    return ""


class _Growing:
    """A one-dimensional array that grows in place.

    ``resize`` moves memory by pages where the system can, so that the old and the new array do not exist at the same
    time; it clears what it adds, so spare room has a cost and is kept small.
    """

    def __init__(self, dtype: type, size: int) -> None:
        self.array: np.ndarray = np.zeros(size, dtype)

    def grow(self) -> None:
        """Make room for an eighth more."""
        self.resize(self.array.size + self.array.size // 8 + (1 << 16))

    def resize(self, size: int) -> None:
        """Give it exactly ``size`` entries; nobody else may hold the array."""
        self.array.resize(size, refcheck=False)


class _Reading:
    """One file being read: what the kernel fills, and what it asks for when it stops."""

    faults: dict[int, str] | None = None  # see ``parse_svmlight``

    def __init__(
        self,
        stream: InputStream,
        index_base: Literal["auto", 0, 1],
        width: int | None,
        room: int = 0,
        kind: type[np.floating[Any]] = np.float32,
    ) -> None:
        self.stream, self.index_base, self.width = stream, index_base, width
        self.lowest = 1 if index_base == 1 else 0
        most = MOST_COLUMNS if width is None else width
        self.highest = most - 1 if index_base == 0 else most - (width is None)
        self.state = np.zeros(stop.STATE, np.int64)
        self.state[[stop.LINE, stop.UNIFORM, stop.LOWEST]] = 1, 1, 1 << 40
        self.state[[stop.QIDS, stop.HIGHEST, stop.GIVEN]] = -1
        self.constant, self.given = np.zeros(1, kind), np.zeros(1, kind)
        self.symbols, self.classes = SymbolTable(), dict[str, int]()
        self.class_of_symbol = np.zeros(0, np.int64)  # from 1; 0: no label, but one in lower case that the table adds
        self.rows, self.labels = _Growing(np.int64, 1 << 12), _Growing(np.int64, 1 << 12)
        self.columns, self.values = _Growing(np.int32, max(room, 1 << 16)), _Growing(kind, 0)
        self.groups = _Growing(np.int64, 0)
        self.data = np.zeros(1, np.uint8)

    def run(self, chunk: int) -> Labelled:
        """Read to the end."""
        left = b""
        while True:
            piece = self.stream.read(chunk)
            end = len(left) + len(piece)
            if self.data.size < end + _MARGIN:
                self.data = np.zeros(end + _MARGIN, np.uint8)
            self.data[: len(left)] = np.frombuffer(left, np.uint8)
            self.data[len(left) : end] = np.frombuffer(piece, np.uint8)
            self.data[end] = stop.LINE_FEED
            self.state[stop.POSITION], self.state[stop.GIVEN] = 0, -1
            self._parse(end, not piece)
            if not piece:
                return self._finish()
            left = self.data[self.state[stop.POSITION] : end].tobytes()
            if len(left) > LONGEST:
                message = f"found {_shown(self._token())}, without a blank for {LONGEST >> 20} MiB; expected an "
                self._fail(f"{message}svmlight file")

    def _parse(self, end: int, final: bool) -> None:
        """Parse data[:end], except for a last token that may be incomplete."""
        while True:
            index = self.symbols.index
            reason = parse(
                self.data, end, final, self.lowest, self.highest, self.state, self.constant, self.given,
                index.keys, index.number, self.class_of_symbol,
                self.rows.array, self.labels.array, self.groups.array, self.columns.array, self.values.array, POWERS,
            )  # fmt: skip
            if reason == stop.MORE:
                return
            self._provide(reason)

    def _provide(self, reason: int) -> None:
        """Provide what the kernel stopped for; a DataError if that is impossible."""
        if reason == stop.GROW_ROWS:
            self.rows.grow()
            self.labels.resize(self.rows.array.size)
        elif reason == stop.GROW_GROUPS:
            self.groups.resize(self.rows.array.size)
        elif reason == stop.GROW_NONZEROS:
            self.columns.grow()
            if not self.state[stop.UNIFORM]:
                self.values.resize(self.columns.array.size)
        elif reason == stop.NOT_UNIFORM:
            self.state[stop.UNIFORM] = 0
            self.values = _Growing(self.constant.dtype.type, self.columns.array.size)
            self.values.array[: self.state[stop.NONZEROS]] = self.constant[0]
        elif reason == stop.NEW_LABEL:
            first, last = self.state[stop.POSITION], self.state[stop.FOUND]
            self._new_label(self.data[first:last])
        elif reason == stop.ROUND:
            value = float(self._token().partition(":")[2])
            with np.errstate(over="ignore"):
                self.given[0], single = value, np.float32(value)
            if not np.isfinite(single):
                return self._stop(stop.OVERFLOW)
            self.state[stop.GIVEN] = self.state[stop.POSITION]
        else:
            self._stop(reason)

    def _new_label(self, token: np.ndarray) -> None:
        try:
            label = token.tobytes().decode()
        except UnicodeDecodeError:
            self._fail("found a label that is not UTF-8; expected a number or a string, then id:value pairs")
        fault = _label_fault(label)
        if fault:
            self._fail(f"found label {_shown(label)}; expected {fault}")
        symbol, room = self.symbols.intern(label), self.class_of_symbol.size
        if len(self.symbols) > room:
            more = np.zeros(room + len(self.symbols), np.int64)
            self.class_of_symbol = np.concatenate([self.class_of_symbol, more])
        self.class_of_symbol[symbol] = self.classes.setdefault(canonical(label), len(self.classes)) + 1

    def _stop(self, reason: int) -> None:
        """An error about a line, or a note, with the rest of it passed over as a comment."""
        token, state = _shown(self._token()), self.state
        last = f"{self.highest:,}"
        if self.width is not None:
            last += f", as there are {self.width:,} columns"
        messages = {
            stop.BAD_LABEL: f"found {token} where the label is expected; expected LABEL ID:VALUE ...",
            stop.BAD_FEATURE: f"found {token}; expected ID:VALUE, the id a number from {self.lowest}",
            stop.BAD_VALUE: f"found {token}; expected a finite decimal number after the colon",
            stop.BAD_QID: f"found {token}; expected qid: and a whole number of at most 18 digits",
            stop.OVERFLOW: f"found {token}; expected a value of at most {FLOAT32_MAX:.4g} (single precision)",
            stop.LOW_ID: f"found {token}; expected ids from 1, or read the file with index base 0",
            stop.HIGH_ID: f"found {token}; expected ids up to {last}",
            stop.DUPLICATE: f"found id {state[stop.FOUND]} twice; expected every id once in an example",
            stop.MIXED_QID: f"found an example {'with' if state[stop.HAS_QID] else 'without'} a qid after others "
            f"{'without' if state[stop.HAS_QID] else 'with'}; expected all or none",
        }
        if self.faults is None:
            self._fail(messages[reason])
        self.faults[int(state[stop.LINE])] = messages[reason]
        state[stop.IN_ROW], state[stop.IN_COMMENT] = 0, 1
        state[stop.NONZEROS] = self.rows.array[state[stop.ROWS]]

    def _token(self) -> str:
        """The text at which the kernel stopped, up to a blank."""
        text = self.data[self.state[stop.POSITION] :][: LONGEST + CHUNK].tobytes()
        match = re.match(rb"[^\s#]*", text)
        return match[0].decode(errors="backslashreplace") if match else ""

    def _fail(self, message: str) -> NoReturn:
        raise DataError(message, path=self.stream.path, line=int(self.state[stop.LINE]))

    def _finish(self) -> Labelled:
        """The arrays at their true sizes."""
        state = self.state
        n, nnz = int(state[stop.ROWS]), int(state[stop.NONZEROS])
        if not n and self.faults is None:
            raise DataError("no examples; expected a line LABEL ID:VALUE ... for each", path=self.stream.path)
        base = (0 if state[stop.LOWEST] == 0 else 1) if self.index_base == "auto" else self.index_base
        width = max(int(state[stop.HIGHEST]) + 1 - base, 0)
        if self.width is not None and width > self.width:
            message = f"found id {state[stop.HIGHEST]} in a file with the id 0; expected ids up to {self.width - 1:,}"
            raise DataError(message, path=self.stream.path, line=int(state[stop.HIGHEST_LINE]))
        for growing, size in ((self.rows, n + 1), (self.labels, n), (self.columns, nnz)):
            growing.resize(size)
        columns = self.columns.array
        columns -= np.int32(base)
        if state[stop.UNIFORM]:
            values = np.broadcast_to(self.constant[0], nnz)
        else:
            self.values.resize(nnz)
            values = self.values.array
        self.groups.resize(n if state[stop.QIDS] == 1 else 0)
        classes = canonical_order(self.classes)
        place = {name: c for c, name in enumerate(classes)}
        order = np.array([place[name] for name in self.classes], dtype=np.int64)
        return Labelled(
            rows=self.rows.array,
            columns=columns,
            values=values,
            label=order[self.labels.array],
            classes=classes,
            group=self.groups.array,
            weight=np.ones(n),
            width=width if self.width is None else self.width,
        )
