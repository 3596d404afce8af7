"""What the readers of parse lists share: their options, score lines, duplicates, ids."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rerank.errors import RecipeError
from rerank.readers.base import BadList, NBestList, Reader, check_choice, excerpt
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream


class Fault(NamedTuple):
    """Why a list is bad, and at which line of the file."""

    reason: str
    message: str
    line: int


class Parts(NamedTuple):
    """The pieces of a list before anybody has looked into them."""

    id: str
    line: int
    head: bytes
    scores: list[bytes]
    texts: list[bytes]
    lines: Sequence[int]  # of the texts
    score_lines: Sequence[int]


NextList = Callable[[LineReader, int], NBestList | BadList]


@dataclass(frozen=True)
class ParseReader(Reader):
    """A reader of lists of parse trees.

    Parameters
    ----------
    score: which number of a candidate's scores is the base score, from 0.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: the "file"'s own, which must be unique, or the "ordinal" of the list, from 0.
    """

    score: int = 0
    duplicates: Literal["keep", "drop"] = "keep"
    ids: Literal["file", "ordinal"] = "file"

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, ("keep", "drop"))
        check_choice("ids", self.ids, ("file", "ordinal"))
        if type(self.score) is not int or self.score < 0:
            raise RecipeError(f"found {self.score!r}; expected the number of a score column, from 0", key="score")

    def read(self, path: PathLike) -> Iterator[NBestList | BadList]:
        """See ``Reader.read``."""
        with open_stream(path) as stream:
            lines, seen, ordinal = LineReader(stream), dict[str, int](), 0
            if not lines.skip_blank():
                return
            next_list = self._grammar(lines)
            while lines.skip_blank():
                found = next_list(lines, ordinal)
                ordinal += 1
                if isinstance(found, NBestList) and found.id in seen:
                    message = (
                        f"the id is also that of the list at line {seen[found.id]}; "
                        "the reader's option ids: ordinal numbers the lists instead"
                    )
                    found = BadList(found.id, found.path, found.line, "duplicate id", message)
                seen.setdefault(found.id, found.line)
                yield found

    @abstractmethod
    def _grammar(self, lines: LineReader) -> NextList:
        """What reads one list of this file, judged by its first lines; it goes past the list, good or bad."""

    def _build(self, parts: Parts, lines: LineReader, form: str) -> NBestList | BadList:
        """The list made of ``parts``, or what is wrong with it."""
        scores, fault = parse_scores(parts.scores, parts.score_lines, self.score)
        if lines.nul and any(b"\0" in text for text in (parts.head, *parts.texts)):
            fault = Fault("nul", "a NUL byte; the file is damaged or not a text file", parts.line)
        if fault is not None:
            return BadList(parts.id, lines.path, fault.line, fault.reason, fault.message)
        texts, numbers = parts.texts, parts.lines
        repeated = len(texts) - len(set(texts))
        if repeated and self.duplicates == "drop":
            first: dict[bytes, int] = {}
            for i, text in enumerate(texts):
                first.setdefault(text, i)
            kept = list(first.values())
            texts, numbers, scores = list(first), [numbers[i] for i in kept], scores[kept]
        return NBestList(parts.id, lines.path, parts.line, texts, numbers, scores, self.score, repeated, form)


def parse_scores(texts: list[bytes], lines: Sequence[int], column: int) -> tuple[np.ndarray, Fault | None]:
    """Score lines as float64 [N, K], or the first fault among them; K > ``column`` wherever N > 0."""
    try:
        scores = np.array(list(map(float, texts)), dtype=np.float64).reshape(len(texts), 1)
        if column > 0 or b"_" in b"".join(texts):  # Python reads 1_000 as a number
            raise ValueError
    except ValueError:
        rows: list[list[float]] = []
        for text, line in zip(texts, lines, strict=True):
            row = numbers(text)
            if row is None:
                return np.empty((0, 1)), Fault("score", f"found {excerpt(text)}; expected the candidate's score", line)
            if len(row) <= column:
                message = f"found {len(row)} scores; the reader's option score: {column} asks for one more at least"
                return np.empty((0, 1)), Fault("columns", message, line)
            if rows and len(row) != len(rows[0]):
                message = f"found {len(row)} scores; the first candidate of the list has {len(rows[0])}"
                return np.empty((0, 1)), Fault("columns", message, line)
            rows.append(row)
        scores = np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else column + 1)
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        i = int(np.argmin(finite))
        return scores, Fault("infinite score", f"found {excerpt(texts[i])}; expected finite scores", lines[i])
    return scores, None


def numbers(text: bytes) -> list[float] | None:
    """The white-space separated numbers of ``text``; None where there are none or something else."""
    words = text.split()
    try:
        return [float(word) for word in words] if words and b"_" not in text else None
    except ValueError:
        return None


def score_text(nbest: NBestList, i: int, scores: np.ndarray | None) -> bytes:
    """Scores of candidate ``i`` for output, separated by tabs: the new one, where there is one, then the old ones."""
    values = list(map(float, nbest.scores[i]))
    if scores is not None:
        values.insert(0, float(scores[i]))
    return "\t".join(map(repr, values)).encode()
