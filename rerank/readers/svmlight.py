"""The svmlight format: one example per line, its label, then its features as id:value.

    +1 qid:3 2:0.5 17:1 # a comment
    -1 qid:3 1:1 2:0.25
    # blank lines and comment lines are ignored

Joachims (1999); also what libsvm, liblinear and Vowpal Wabbit's converters write.
"""

import re
from typing import Any, Literal

import numpy as np

from rerank.base.encoding import plain
from rerank.base.errors import DataError
from rerank.data.corpus import offsets
from rerank.data.labelled import MOST_COLUMNS, Labelled, canonical, canonical_order
from rerank.readers.lines import DECIMAL, LineReader
from rerank.readers.streams import InputStream, PathLike, open_stream

CHUNK = 1 << 18  # bytes that are read at a time
LONGEST = 1 << 20  # bytes of a label or a feature; a file with more is not an svmlight file
SHOWN = 40  # characters of what was found in a message
_DECIMAL, _QID = re.compile(DECIMAL), re.compile(rb"qid:-?\d{1,18}")
_ROW = re.compile(rb"\s*([^\s:]++)(?:\s+qid:(-?[0-9]{1,18})(?!\S))?((?:\s++[0-9]++:[-+.0-9eE]++)*+)\s*")
_NAMED = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_svmlight(
    path: PathLike, *, index_base: Literal["auto", 0, 1] = "auto", width: int | None = None, chunk: int = CHUNK
) -> Labelled:
    """Read a plain or compressed file or, as "-", standard input, in one pass.

    It takes up to twice the memory of the arrays that it returns; values take none as long as all of them are equal.

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
    stream: InputStream, highest: int, faults: dict[int, str] | None = None
) -> tuple[Labelled, np.ndarray]:
    """``read_svmlight`` of an open file, with the ids as columns, up to ``highest``, and its values before they are
    rounded to float32 (float64 [nnz]). ``faults`` gets the messages about malformed lines, which are then left out, by
    their numbers."""
    reading = _Reading(stream, 0, None, np.float64)
    reading.highest, reading.faults = highest, faults
    examples = reading.run(CHUNK)
    return examples, reading.all_values


def read_folds(path: PathLike, n: int) -> np.ndarray:
    """The fold numbers of ``n`` examples, one per line: int64 [n].

    Raises
    ------
    DataError: a line is not a whole number from 0, or there are not ``n`` lines.
    """
    folds = list[int]()
    with open_stream(path, strict=False) as stream:
        for line, text in LineReader(stream):
            if not re.fullmatch(rb"\s*\d{1,9}\s*", text):
                message = f"found {_shown(text) or 'a blank line'}; expected the number of a fold, 0 or higher"
                raise DataError(message, path=stream.path, line=line)
            folds.append(int(text))
    if len(folds) != n:
        message = f"found {len(folds):,} fold numbers for {n:,} examples; expected one for each, on a line of its own"
        raise DataError(message, path=stream.path)
    return np.array(folds, np.int64)


def _shown(token: bytes) -> str:
    """The beginning of a text for a message, without characters that a terminal would obey."""
    text = token.decode(errors="backslashreplace")
    return plain(text[:SHOWN]) + "..." * (len(text) > SHOWN)


def _label_fault(token: bytes) -> str:
    """What is wrong with a label; empty if it is fine."""
    if b":" in token:
        return f"found {_shown(token)} where the label is expected; expected LABEL ID:VALUE ..."
    try:
        label = token.decode()
    except UnicodeDecodeError:
        return "found a label that is not UTF-8; expected a number or a string, then id:value pairs"
    expected = ""
    if "," in label:
        expected = "one label; files with several labels per example are not read"
    elif _NAMED.fullmatch(label) or canonical(label) in ("inf", "-inf"):
        expected = "a finite number or a string"
    elif not label.isprintable() or re.search(r"\s", label):
        expected = "a number or a string without blanks, colons and control characters"
    return f"found label {_shown(token)}; expected {expected}" if expected else ""


class _Reading:
    """One file being read, in blocks of whole lines."""

    faults: dict[int, str] | None = None  # see ``parse_svmlight``

    def __init__(
        self, stream: InputStream, index_base: Literal["auto", 0, 1], width: int | None, kind: type[Any] = np.float32
    ) -> None:
        self.stream, self.index_base, self.width, self.kind = stream, index_base, width, kind
        self.lowest = 1 if index_base == 1 else 0
        most = MOST_COLUMNS if width is None else width
        self.highest = most - 1 if index_base == 0 else most - (width is None)
        self.least, self.largest, self.largest_line = 1, -1, 0  # of the ids so far
        self.classes, self.class_of = dict[str, int](), dict[bytes, int]()
        self.sizes, self.labels, self.groups = list[int](), list[int](), list[int]()
        self.columns, self.values = list[np.ndarray](), list[np.ndarray]()

    def run(self, chunk: int) -> Labelled:
        """Read to the end."""
        left, line = b"", 1
        while piece := self.stream.read(max(chunk, len(left))):
            *lines, left = (left + piece).split(b"\n")
            self._read(lines, line)
            line += len(lines)
            if len(left) - max(left.rfind(b" "), left.rfind(b"\t")) > LONGEST:
                message = f"found {_shown(left.split()[-1])}, without a blank for {LONGEST >> 20} MiB; "
                raise DataError(f"{message}expected an svmlight file", path=self.stream.path, line=line)
        self._read([left], line)
        return self._finish()

    def _read(self, lines: list[bytes], first: int) -> None:
        """Read lines, the first of which has the number ``first``."""
        bare = ((number, line.partition(b"#")[0]) for number, line in enumerate(lines, first))
        found = {number: line for number, line in bare if line and not line.isspace()}
        if self._add(found):
            return
        faults = self._faults(found)
        if self.faults is None:
            number = min(faults)
            raise DataError(faults[number], path=self.stream.path, line=number)
        self.faults |= faults
        self._add({number: line for number, line in found.items() if number not in faults})

    def _add(self, lines: dict[int, bytes]) -> bool:
        """Add the examples on lines, by their numbers; False if anything is wrong with one."""
        matches = list(map(_ROW.fullmatch, lines.values()))
        rows = [match.groups() for match in matches if match]
        if len(rows) < len(lines) or not all(self._knows(label) for label in dict.fromkeys(row[0] for row in rows)):
            return False
        grouped = {qid is not None for _, qid, _ in rows} | ({bool(self.groups)} if self.labels else set())
        try:
            ids, numbers = _pairs(b"".join([features for _, _, features in rows]) + b" ")
        except ValueError:  # something like 1e or +.
            return False
        sizes = [features.count(b":") for _, _, features in rows]
        owner = np.repeat(np.arange(len(rows)), sizes)
        inside = np.diff(owner) == 0
        if (inside & (np.diff(ids) <= 0)).any():
            order = np.lexsort((ids, owner))
            ids, numbers = ids[order], numbers[order]
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32)
        least, largest = ids.min(initial=self.highest), ids.max(initial=-1)
        sound = np.isfinite(single).all() and self.lowest <= least and largest <= self.highest and len(grouped) < 2
        if not sound or (inside & (np.diff(ids) == 0)).any():
            return False
        if largest > self.largest:
            self.largest, self.largest_line = int(largest), list(lines)[owner[np.argmax(ids)]]
        self.least = min(self.least, int(least))
        self.sizes += sizes
        self.labels += [self.class_of[label] for label, _, _ in rows]
        self.groups += [int(qid) for _, qid, _ in rows if qid is not None]
        self.columns.append(ids.astype(np.int32))
        values = single if self.kind is np.float32 else numbers
        equal = not (values != values[:1]).any()  # then they take no memory
        self.values.append(np.broadcast_to(values[:1].copy(), values.shape) if equal else values)
        return True

    def _knows(self, label: bytes) -> bool:
        """Whether a label is fine; it gets its class."""
        if label not in self.class_of and not _label_fault(label):
            self.class_of[label] = self.classes.setdefault(canonical(label.decode()), len(self.classes))
        return label in self.class_of

    def _faults(self, lines: dict[int, bytes]) -> dict[int, str]:
        """What is wrong with lines, by their numbers."""
        faults, grouped = dict[int, str](), bool(self.groups) if self.labels else None
        for number, line in lines.items():
            label, *tokens = line.split()
            has = bool(tokens) and tokens[0].startswith(b"qid:")
            if fault := _label_fault(label) or self._feature_fault(tokens, has):
                faults[number] = fault
            elif grouped is not None and has != grouped:
                with_, others = ("with", "without") if has else ("without", "with")
                faults[number] = f"found an example {with_} a qid after others {others}; expected all or none"
            else:
                grouped = has
        return faults

    def _feature_fault(self, tokens: list[bytes], has_qid: bool) -> str:
        """What is wrong with what follows a label; empty if nothing is."""
        seen = set[int]()
        if has_qid and not _QID.fullmatch(tokens[0]):
            return f"found {_shown(tokens[0])}; expected qid: and a whole number of at most 18 digits"
        for token in tokens[has_qid:]:
            name, colon, value = token.partition(b":")
            found = f"found {_shown(token)}; expected"
            if not name.isdigit() or not colon:
                return f"{found} ID:VALUE, the id a number from {self.lowest}"
            if not _DECIMAL.fullmatch(value):
                return f"{found} a finite decimal number after the colon"
            with np.errstate(over="ignore"):
                if not np.isfinite(np.float32(float(value))):
                    return f"{found} a value of at most {np.finfo(np.float32).max:.4g} (single precision)"
            feature = int(name.lstrip(b"0")[:12] or b"0")  # more digits are too high in any case
            if feature < self.lowest:
                return f"{found} ids from 1, or read the file with index base 0"
            if feature > self.highest:
                columns = "" if self.width is None else f", as there are {self.width:,} columns"
                return f"{found} ids up to {self.highest:,}{columns}"
            if feature in seen:
                return f"found id {feature} twice; expected every id once in an example"
            seen.add(feature)
        return ""

    def _finish(self) -> Labelled:
        """The arrays of all blocks together."""
        if not self.labels and self.faults is None:
            raise DataError("no examples; expected a line LABEL ID:VALUE ... for each", path=self.stream.path)
        base = min(self.least, 1) if self.index_base == "auto" else self.index_base
        width = max(self.largest + 1 - base, 0)
        if self.width is not None and width > self.width:
            message = f"found id {self.largest} in a file with the id 0; expected ids up to {self.width - 1:,}"
            raise DataError(message, path=self.stream.path, line=self.largest_line)
        columns = np.concatenate(self.columns or [np.zeros(0, np.int32)])
        self.columns.clear()
        columns -= np.int32(base)
        firsts = {float(values[0]) for values in self.values if values.size}
        if len(firsts) < 2 and all(values.strides == (0,) for values in self.values):
            self.all_values = np.broadcast_to(self.kind(min(firsts, default=0)), columns.size)
        else:
            self.all_values = np.concatenate(self.values)
        self.values.clear()
        classes = canonical_order(self.classes)
        place = {name: c for c, name in enumerate(classes)}
        order = np.array([place[name] for name in self.classes], dtype=np.int64)
        return Labelled(
            rows=offsets(self.sizes), columns=columns, values=self.all_values, label=order[self.labels],
            classes=classes, group=np.array(self.groups, np.int64), weight=np.ones(len(self.labels)),
            width=self.width or width,
        )  # fmt: skip


def _pairs(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The ids and the values (float64) of ``id:value id:value ``, with any white space."""
    first = re.search(rb":\S+\s", text)
    if first and text.count(first[0]) == text.count(b":"):  # all values are that of the first, which is often 1
        ids = np.array(text.replace(first[0], b" ").split(), np.float64)
        return ids, np.full(ids.size, float(first[0][1:]))
    ids, values = np.array(text.replace(b":", b" ").split(), np.float64).reshape(-1, 2).T
    return ids, values
