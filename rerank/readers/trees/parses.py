"""The common part of the readers of parse lists: their options, score lines, duplicates, ids."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.ranges import Range
from rerank.readers.base import Lists, Problem, excerpt
from rerank.readers.lines import LineReader, ListReader, Record, numbers
from rerank.readers.problems import NUL
from rerank.readers.trees.trees import is_failed


class Parts(NamedTuple):
    """The pieces of a list before they are parsed; ``form`` is the variant of the format, ``unscored`` whether its
    scores are 0 because there are none."""

    head: bytes
    scores: list[bytes]
    texts: list[bytes]
    lines: Sequence[int]  # of the texts
    score_lines: Sequence[int]
    form: str
    unscored: bool = False


NextList = Callable[[LineReader], Record]  # of Parts

_LOOK = 1 << 8  # lines looked at first


@dataclass(frozen=True)
class ParseReader(ListReader):
    """A reader of lists of parse trees.

    Parameters
    ----------
    score: which number of a candidate's scores is the base score, from 0.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: those of the "file", which must be unique, or the "ordinal" of the list, from 0.
    """

    holds: ClassVar[str] = "trees"

    score: Annotated[int, Range(0)] = 0
    ids: Literal["file", "ordinal"] = "file"

    def records(self, lines: LineReader) -> Iterator[Record]:
        if lines.skip_blank():
            next_list = self._grammar(lines)
            while lines.skip_blank():
                yield next_list(lines)

    @abstractmethod
    def _grammar(self, lines: LineReader) -> NextList:
        """The function that reads one list of this file, chosen by its first lines; it advances past bad lists too."""

    def made(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        def make(name: str, record: Record) -> Lists:
            parts: Parts = record.content
            if lines.nul and b"\0" in parts.head:
                raise Problem("nul", NUL)
            scores, problems = parse_scores(parts.scores, parts.score_lines, self.score)
            fields = name, lines.path, record.line, parts.texts, parts.lines, scores, self.score
            every = Lists.one(*fields, form=parts.form, unscored=parts.unscored, of_trees=True)
            return every.without(_tree_problems(parts.texts, lines.nul) | problems)

        for found in self.of_records(lines, records, make):
            yield Lists.of(found) if isinstance(found, Problem) else found


def block(lines: LineReader, ends: Callable[[bytes], bool]) -> list[bytes]:
    """Take the next line and those after it, up to the first that ``ends`` them."""
    size, looked = 0, _LOOK
    while size == 0:
        look = lines.ahead(looked)
        size = next((i for i, line in enumerate(look) if i and ends(line)), len(look) if len(look) < looked else 0)
        looked *= 2
    lines.take(size)
    return look[:size]


def blank(line: bytes) -> bool:
    """Whether the line is empty, or white space."""
    return not line or line.isspace()


def failed(line: bytes) -> bool:
    """Whether a line has what parsers write where they found no tree, ``(())``, alone or behind scores."""
    before, bracket, tree = line.partition(b"(")
    alone = blank(before) or numbers(before) is not None
    return bool(bracket) and alone and not tree.strip(b"() \t") and is_failed(bracket + tree)


def apart(lines: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """What precedes the trees of lines, their scores, and the trees; what has no bracket stands for both."""
    parted = [line.partition(b"(") for line in lines]
    return [before for before, *_ in parted], [bracket + tree or before for before, bracket, tree in parted]


def _tree_problems(texts: list[bytes], nul: bool) -> dict[int, Problem]:
    """The candidates that are not trees, with their problems; ``nul``: whether there may be NUL bytes."""
    problems: dict[int, Problem] = {}
    for i, text in enumerate(texts):
        if nul and b"\0" in text:
            problems[i] = Problem("nul", NUL)
        elif text[:1] != b"(" and text.lstrip()[:1] != b"(":
            problems[i] = Problem("tree", f"found {excerpt(text)}; expected the candidate's tree, '(...)'")
    return problems


def parse_scores(texts: list[bytes], lines: Sequence[int], column: int) -> tuple[np.ndarray, dict[int, Problem]]:
    """Score lines as float64 [N, K], and what is wrong with some of them, by place; the rows of these mean nothing.

    K > ``column`` whenever N > 0. If lines have different numbers of scores, the most frequent number is right.
    """
    problems = dict[int, Problem]()
    rows = [numbers(text) for text in texts]
    widths = Counter(len(row) for row in rows if row is not None and len(row) > column)
    width = widths.most_common(1)[0][0] if widths else column + 1
    scores = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        if row is None:
            message = f"found {excerpt(texts[i])}; expected the candidate's score"
            advice = "" if texts[i].strip() else "; let the parser write one (-tree_likelihood, -confidence)"
            problems[i] = Problem("score", message + advice, lines[i])
        elif len(row) != width:
            needs = f"the reader's option score: {column} needs at least one more"
            message = needs if len(row) <= column else f"most candidates of the list have {width}"
            problems[i] = Problem("columns", f"found {len(row)} scores; {message}", lines[i])
        elif not all(map(isfinite, row)):
            problems[i] = Problem("infinite score", f"found {excerpt(texts[i])}; expected finite scores", lines[i])
        else:
            scores[i] = row
    return scores, problems


def score_text(nbest: Lists, i: int, scores: np.ndarray | None, *, old: bool = True) -> bytes:
    """Scores of candidate ``i`` for output, separated by tabs: the new one, if there is one, then the ``old`` ones."""
    new = [] if scores is None else [float(scores[i])]
    return "\t".join(map(repr, new + nbest.scores[i].tolist() if old else new)).encode()
