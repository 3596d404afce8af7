"""What the readers of parse lists share: their options, score lines, duplicates, ids."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.readers.base import BadCandidate, BadList, NBestList, Reader, check_choice, excerpt
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream
from rerank.readers.texts.pieces import first_places

_NUL = "a NUL byte; the file is damaged or not a text file"


class Fault(NamedTuple):
    """Why a list or a candidate is bad, and on which line of the file."""

    reason: str
    message: str
    line: int


class Parts(NamedTuple):
    """The pieces of a list before they are parsed."""

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
    ids: those of the "file", which must be unique, or the "ordinal" of the list, from 0.
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
        """The function that reads one list of this file, chosen by its first lines; it advances past bad lists too."""

    def _build(self, parts: Parts, lines: LineReader, form: str) -> NBestList | BadList:
        """The list made from ``parts``, or what is wrong with it."""
        if lines.nul and b"\0" in parts.head:
            return BadList(parts.id, lines.path, parts.line, "nul", _NUL, len(parts.texts))
        scores, faults = parse_scores(parts.scores, parts.score_lines, self.score)
        faults = _tree_faults(parts, lines.nul) | faults
        bad = [
            BadCandidate(parts.id, lines.path, fault.line, fault.reason, fault.message, place)
            for place, fault in sorted(faults.items())
        ]
        every = NBestList(parts.id, lines.path, parts.line, parts.texts, parts.lines, scores, self.score, form=form)
        found = every.without(bad) if bad else every
        if isinstance(found, BadList):
            return found
        repeated = len(found) - len(set(found.texts))
        if repeated and self.duplicates == "drop":
            found = found.some(first_places(found.texts))
        return replace(found, duplicates=repeated) if repeated else found


def _tree_faults(parts: Parts, nul: bool) -> dict[int, Fault]:
    """The candidates that are not trees, with their faults; ``nul``: whether there may be NUL bytes."""
    faults: dict[int, Fault] = {}
    for i, text in enumerate(parts.texts):
        if nul and b"\0" in text:
            faults[i] = Fault("nul", _NUL, parts.lines[i])
        elif text[:1] != b"(" and text.lstrip()[:1] != b"(":
            faults[i] = Fault("tree", f"found {excerpt(text)}; expected the candidate's tree, '(...)'", parts.lines[i])
    return faults


def parse_scores(texts: list[bytes], lines: Sequence[int], column: int) -> tuple[np.ndarray, dict[int, Fault]]:
    """Score lines as float64 [N, K], and what is wrong with some of them, by place; the rows of these mean nothing.

    K > ``column`` whenever N > 0. If lines have different numbers of scores, the most frequent number is right.
    """
    try:
        scores = np.array(list(map(float, texts)), dtype=np.float64).reshape(len(texts), 1)
        if column > 0 or b"_" in b"".join(texts):  # Python reads 1_000 as a number
            raise ValueError
    except ValueError:
        return _parse_rows(texts, lines, column)
    return scores, _infinite(texts, lines, scores)


def _parse_rows(texts: list[bytes], lines: Sequence[int], column: int) -> tuple[np.ndarray, dict[int, Fault]]:
    """``parse_scores`` line by line."""
    faults: dict[int, Fault] = {}
    rows = [numbers(text) for text in texts]
    widths = Counter(len(row) for row in rows if row is not None and len(row) > column)
    width = widths.most_common(1)[0][0] if widths else column + 1
    scores = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        if row is None:
            message = f"found {excerpt(texts[i])}; expected the candidate's score"
            advice = "" if texts[i].strip() else "; let the parser write one (-tree_likelihood, -confidence)"
            faults[i] = Fault("score", message + advice, lines[i])
        elif len(row) <= column:
            message = f"found {len(row)} scores; the reader's option score: {column} asks for one more at least"
            faults[i] = Fault("columns", message, lines[i])
        elif len(row) != width:
            message = f"found {len(row)} scores; most candidates of the list have {width}"
            faults[i] = Fault("columns", message, lines[i])
        else:
            scores[i] = row
    return scores, _infinite(texts, lines, scores) | faults


def _infinite(texts: list[bytes], lines: Sequence[int], scores: np.ndarray) -> dict[int, Fault]:
    """The lines whose scores are not finite."""
    return {
        i: Fault("infinite score", f"found {excerpt(texts[i])}; expected finite scores", lines[i])
        for i in np.flatnonzero(~np.isfinite(scores).all(axis=1)).tolist()
    }


def numbers(text: bytes) -> list[float] | None:
    """The white-space separated numbers of ``text``; None if there are none, or there is something else."""
    words = text.split()
    try:
        return [float(word) for word in words] if words and b"_" not in text else None
    except ValueError:
        return None


def score_text(nbest: NBestList, i: int, scores: np.ndarray | None) -> bytes:
    """Scores of candidate ``i`` for output, separated by tabs: the new one, if there is one, then the old ones."""
    values = list(map(float, nbest.scores[i]))
    if scores is not None:
        values.insert(0, float(scores[i]))
    return "\t".join(map(repr, values)).encode()
