"""The n-best lists of the Charniak and BLLIP parsers: a header, then a score line and a tree line per candidate.

Three lines this reads::

    1	wsj_0001-1
    -81.52
    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))

The header is the number of candidates followed, on the rest of its line, by the list's id; if it has no id, the id is
the ordinal of the list in the file, from 0. Lines between lists may be blank, lines within a list may not. A score
line holds one or more numbers, the first of which is the base score; lists that were reranked have the new score
there and the old ones after it.

After a bad list, reading continues where the next one seems to start: at a line after a blank line that is neither
a score nor a tree, or at a header that is followed by a score line and a tree line.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import amount, decoded, encoded
from rerank.base.ranges import Range
from rerank.readers.base import Lists, Order, Problem, Scores, excerpt
from rerank.readers.lines import LineReader, ListReader, Record, numbers
from rerank.readers.problems import NUL
from rerank.readers.streams import Writable
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

_LOOK = 1 << 8  # lines looked at first, however many candidates a header claims


@dataclass(frozen=True)
class ParseReader(ListReader):
    """A reader of lists of parse trees.

    Parameters
    ----------
    score: which number of a candidate's scores is the base score, from 0.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: the ids of the "file", which must be unique, or the "ordinal" of the list, from 0.
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
            for i, text in enumerate(parts.texts):
                if lines.nul and b"\0" in text:
                    problems.setdefault(i, Problem("nul", NUL))
                elif text[:1] != b"(" and text.lstrip()[:1] != b"(":
                    message = f"found {excerpt(text)}; expected the candidate's tree, '(...)'"
                    problems.setdefault(i, Problem("tree", message))
            return every.without(problems)

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


def parse_scores(texts: list[bytes], lines: Sequence[int], column: int) -> tuple[np.ndarray, dict[int, Problem]]:
    """Score lines as float64 [N, K], and what is wrong with some of them, by place; the rows of these mean nothing.

    K > ``column`` whenever N > 0. If lines have different numbers of scores, the most frequent number is right.
    """
    problems = dict[int, Problem]()
    rows = [numbers(text) for text in texts]
    widths = Counter(len(row) for row in rows if row is not None and len(row) > column)
    width = widths.most_common(1)[0][0] if widths else column + 1
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
    sound = [[0.0] * width if i in problems else row for i, row in enumerate(rows)] if problems else rows
    return np.array(sound, np.float64).reshape(len(rows), width), problems


def score_text(nbest: Lists, i: int, scores: np.ndarray | None, *, old: bool = True) -> bytes:
    """Scores of candidate ``i`` for output, separated by tabs: the new one, if there is one, then the ``old`` ones."""
    new = [] if scores is None else [float(scores[i])]
    return "\t".join(map(repr, new + nbest.scores[i].tolist() if old else new)).encode()


_EXPECTED = "expected its header: number of candidates, list id"


@dataclass(frozen=True)
class CharniakReader(ParseReader):
    """Lists of the Charniak and BLLIP parsers. Options are those of ``ParseReader``.

    >>> (nbest,) = CharniakReader().parse(b"1\\twsj-1\\n-81.5\\n(S1 (NN Art))\\n")
    >>> nbest.id, nbest.texts, nbest.base
    ('wsj-1', [b'(S1 (NN Art))'], array([-81.5]))
    """

    def cut(self, data: bytes) -> int:
        """Behind the last blank line before which all lists are as long as their headers say."""
        rows, row, end = data.split(b"\n")[:-1], 0, 0
        while row < len(rows):
            if blank(rows[row]):
                end = row = row + 1
            elif _is_header(rows[row : row + 2]):
                body = rows[row + 1 : row + 1 + 2 * int(rows[row].split()[0])]
                if not all(body) or not all(map(_is_tree, body[1::2])):
                    break
                row += 1 + len(body)
            else:
                break
        return sum(len(text) + 1 for text in rows[:end])

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New and old scores share the score line, separated by tabs."""
        chosen = range(len(nbest)) if order is None else order
        parts = [encoded(f"{len(chosen)}\t{nbest.id}\n")]
        for i in chosen:
            parts += [score_text(nbest, i, scores), b"\n", nbest.texts[i], b"\n"]
        out.write(b"".join([*parts, b"\n"]))

    def _grammar(self, lines: LineReader) -> NextList:  # noqa: ARG002 - there is only one
        return self._next_list

    def _next_list(self, lines: LineReader) -> Record:
        head = lines.ahead(1)[0]
        lines.take(1)
        first = lines.number
        count, *rest = head.split(None, 1)
        message, foreign = f"found {excerpt(head)} where a list starts", ""
        if not _is_header([head]):
            return _bad(lines, None, Problem("header", f"{message}; {_EXPECTED}", first))
        if rest:
            foreign = "a tree" if _is_tree(rest[0]) else "'|||'" if rest[0].startswith(b"|||") else ""
        if foreign:
            message += f": {foreign} is not an id; is this of another program?"
            return _bad(lines, None, Problem("header", message, first))
        name, size = decoded(rest[0].strip()) if rest else None, 2 * int(count)
        if (problem := _find_problem(lines, size)) is not None:
            return _bad(lines, name, problem)
        body = lines.ahead(size)
        lines.take(size)
        end = first + size + 1
        texts, scores = range(first + 2, end, 2), range(first + 1, end, 2)
        return Record(name, first, Parts(head, body[0::2], body[1::2], texts, scores, "header"))


def _is_tree(line: bytes) -> bool:
    return line.lstrip()[:1] == b"("


def _is_header(look: list[bytes]) -> bool:
    """Whether ``look[0]`` is a header. If the second line is a tree, the first one is a whole-number score instead."""
    word = look[0].split(None, 1)[:1]
    return bool(word) and word[0].isdigit() and len(word[0]) < 10 and not (len(look) > 1 and _is_tree(look[1]))


def _is_start(look: list[bytes]) -> bool:
    """Whether the first three lines are a header and a candidate. Nothing within a list looks like that."""
    return len(look) > 2 and _is_header(look) and bool(numbers(look[1])) and _is_tree(look[2])


def _bad(lines: LineReader, name: str | None, problem: Problem) -> Record:
    """A bad list; advances ``lines`` past it, from the line of the problem on."""
    line = problem.line or lines.number
    lines.take(max(0, line - 1 - lines.number))
    while (look := lines.ahead(3)) and not _is_start(look):
        if not look[0].strip():
            if not lines.skip_blank():
                break
            look = lines.ahead(3)
            if _is_header(look) or not (_is_tree(look[0]) or numbers(look[0])):
                break
        lines.take(1)
    return Record(name, line, problem)


def _find_problem(lines: LineReader, size: int) -> Problem | None:
    """Why the next ``size`` lines are not pairs of score and tree that end at a blank line or a header.

    A header may claim any number; at most twice as many lines as are really there are looked at.
    """
    looked, first = _LOOK, lines.number + 1
    while True:
        look = lines.ahead(min(looked, size + 2))
        body, after, end = look[:size], look[size:], min(size, len(look))
        if not (all(text[:1] == b"(" for text in body[1::2]) and all(body)):
            starts = (i for i, line in enumerate(body) if not line.strip() or _is_start(look[i : i + 3]))
            end = next(starts, end)
        if end < len(body) or len(look) < looked:
            break
        looked *= 2
    if end < size:
        extra = " and a score without its tree" if end % 2 else ""
        message = f"the header says {amount(size // 2, 'candidate')}; found {end // 2}{extra}"
        return Problem("too few", message, first + end)
    if after and after[0].strip() and not _is_header(after):
        message = f"more follows than the {size // 2} candidates of the header: found {excerpt(after[0])}"
        return Problem("too many", f"{message}; expected a blank line or the next header", first + size)
    return None


_COUNTED, _GROUPS = "counted", "groups"
_SHOWN = 1 << 8  # lines that show whether trees have scores
_SCORED = " with scores"  # follows the variant
_HEADER = re.compile(rb"\s*(\d{1,9})(?:\s+([^\s(].*))?\s*$")


@dataclass(frozen=True)
class BareReader(ParseReader):
    """Lists of trees without scores: trees alone with a blank line after every list, or a count before its trees.

    Three lines of each variant this reads; the first line of a file tells which one it is::

        (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
        (S1 (S (NP (PRP It))
           (VP (VBN rained)) (. .)))

        2	wsj_0001-1
        (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
        (S1 (S (NP (PRP It)) (VP (VBN rained)) (. .)))

    A line that begins with white space continues the tree before it. The id is what follows the count, or else the
    ordinal of the list in the file, from 0. A failed parse, ``(())``, is not a candidate. All base scores are 0, unless
    the trees of the file have scores before them, as in lists that were reranked.

    >>> (nbest,) = BareReader().parse(b"1\\twsj-1\\n(S1 (NN Art))\\n")
    >>> nbest.id, nbest.texts
    ('wsj-1', [b'(S1 (NN Art))'])
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores come before the trees, with old ones where there are any."""
        chosen = range(len(nbest)) if order is None else order
        scored, parts = nbest.form.endswith(_SCORED), list[bytes]()
        if nbest.form.startswith(_COUNTED):
            parts.append(encoded(f"{len(chosen)}\t{nbest.id}\n"))
        for i in chosen:
            if scored or scores is not None:
                parts += [score_text(nbest, i, scores, old=scored), b"\t"]
            parts += [nbest.texts[i], b"\n"]
        out.write(b"".join(parts or [b"(())\n"]) + b"\n")

    def _grammar(self, lines: LineReader) -> NextList:
        scored = any(numbers(line.partition(b"(")[0]) for line in lines.ahead(_SHOWN) if b"(" in line)
        return partial(_next_counted if _HEADER.match(lines.ahead(1)[0]) else _next_group, scored=scored)


def _next_group(lines: LineReader, scored: bool) -> Record:
    """The trees up to the next blank line."""
    first, rows = lines.number + 1, block(lines, blank)
    if not scored and b"(" not in rows[0]:
        message = f"found {excerpt(rows[0])} where a list starts; expected its first tree, '(...)'"
        return Record(None, first, Problem("header", message, first))
    return Record(None, first, _parts(b"", _pieces(rows, first), _GROUPS, scored))


def _next_counted(lines: LineReader, scored: bool) -> Record:
    """A header and its trees, up to a blank line or the next header."""
    first = lines.number + 1
    head, *rest = block(lines, lambda line: blank(line) or _HEADER.match(line) is not None)
    header, pieces = _HEADER.match(head), _pieces(rest, first + 1)
    if header is None:
        message = f"found {excerpt(head)} where a list starts; expected its header: number of trees, list id"
        return Record(None, first, Problem("header", message, first))
    name, count = None if header[2] is None else decoded(header[2].strip()), int(header[1])
    if len(pieces) != count:
        message = f"the header says {amount(count, 'tree')}; found {len(pieces)} before the next blank line or header"
        return Record(name, first, Problem("too few" if len(pieces) < count else "too many", message, first))
    return Record(name, first, _parts(head, pieces, _COUNTED, scored))


def _pieces(lines: Sequence[bytes], first: int) -> list[tuple[int, bytes]]:
    """The candidates, each with its line, in lines the first of which has the number ``first``."""
    starts = [k for k, line in enumerate(lines) if not k or not line[:1].isspace()]
    spans = pairwise([*starts, len(lines)])
    return [(first + k, b" ".join(map(bytes.strip, lines[k:end]))) for k, end in spans]


def _parts(head: bytes, pieces: Sequence[tuple[int, bytes]], form: str, scored: bool) -> Parts:
    """The list of these candidates, without those that are failed parses."""
    kept = [(place, line) for place, line in pieces if not failed(line)]
    places, lines = [place for place, _ in kept], [line for _, line in kept]
    if not scored:
        return Parts(head, [b"0"] * len(kept), lines, places, places, form, unscored=True)
    return Parts(head, *apart(lines), places, places, form + _SCORED)
