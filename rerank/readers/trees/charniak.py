"""The n-best lists of the Charniak and BLLIP parsers: a header, then a score line and a tree line per candidate.

Three lines this reads::

    1	wsj_0001-1
    -81.52
    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))

The header is the number of candidates followed, on the rest of its line, by the list's id; if it has no id, the id is
the ordinal of the list in the file, from 0. Lines between lists may be blank, lines within a list may not. A score
line holds one or more numbers, the first of which is the base score; lists that were reranked have the new score
there and the old ones after it.

A list ends at a blank line or the next header. After a bad list, reading continues at the next header, or at a line
after a blank line that is neither a score nor a tree.
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
from rerank.data.trees import is_failed
from rerank.readers.lines import LineReader, ListReader, Record, numbers
from rerank.readers.lists import Candidate
from rerank.readers.problems import NUL
from rerank.readers.reader import Lists, Order, Problem, Scores, excerpt
from rerank.storage.streams import Writable

NextList = Callable[[LineReader], Record]  # of Parts
Piece = tuple[int, bytes]  # a line, or several that belong together, with the number of the first
PiecesOf = Callable[[Sequence[bytes], int], Iterable[Piece]]  # of lines, the first of which has the number
_FIRST_LINES, _MAX_LIST_LINES = 1 << 8, 1 << 22  # lines looked at first, and at most, whatever a header claims
_CANDIDATE_STARTS = b"(", b"-"  # how nearly all lines of candidates start
_HEADER = re.compile(rb"\s*(\d{1,9})(?:\s+(?!\(|\|\|\|)(\S.*))?\s*$")
_HEADERS, GROUPS = "counted", "groups"
_WITH_SCORES = " with scores"  # follows the variant
_SCORE_SAMPLE_LINES = 1 << 8  # lines that show whether trees have scores


class ScoredTree(NamedTuple):
    """A candidate before it is parsed."""

    scores: bytes
    score_line: int
    text: bytes
    line: int


class Parts(NamedTuple):
    """A list before it is parsed; ``form`` is the variant of the format, ``unscored`` whether its scores are 0 because
    there are none."""

    rows: Sequence[ScoredTree]
    form: str
    unscored: bool = False


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

    def build_lists(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        for item in self.with_ids(lines, records):
            if isinstance(item, Problem):
                yield Lists.of(item)
                continue
            (name, record), parts = item, item[1].content
            scores, problems = parse_scores(parts.rows, self.score)
            texts, line_numbers = [row.text for row in parts.rows], [row.line for row in parts.rows]
            fields = name, lines.path, record.line, texts, line_numbers, scores, self.score
            every = Lists.one(*fields, form=parts.form, unscored=parts.unscored, of_trees=True)
            for i, text in enumerate(texts):
                if lines.nul and b"\0" in text:
                    problems.setdefault(i, Problem("nul", NUL))
                elif text[:1] != b"(" and text.lstrip()[:1] != b"(":
                    message = f"found {excerpt(text)}; expected the candidate's tree, '(...)'"
                    problems.setdefault(i, Problem("tree", message))
            yield every.without(problems)


def block(lines: LineReader, ends: Callable[[bytes, bytes], bool]) -> list[bytes]:
    """Take the next line and those after it, up to the first that, given the line behind it, ``ends`` them."""
    piece = list_ahead(lines, ends)
    lines.take(len(piece))
    return piece


def list_ahead(lines: LineReader, ends: Callable[[bytes, bytes], bool]) -> list[bytes]:
    """The lines of ``block``; none is waited for behind an empty one, as a pipe may have no more before its answer."""
    look, size = lines.peek(1, _FIRST_LINES), 1
    while size < _MAX_LIST_LINES:
        if size + 1 >= len(look):
            look = lines.peek(size + 1, 2 * size + _FIRST_LINES)
            if len(look) == size + 1 and not blank(look[size]):
                look = lines.peek(size + 2, 2 * size + _FIRST_LINES)
        if size == len(look) or ends(look[size], look[size + 1] if size + 1 < len(look) else b""):
            break
        size += 1
    return look[:size]


def blank(line: bytes, _: bytes = b"") -> bool:
    """Whether the line is empty, or white space."""
    return not line or line.isspace()


def split_scores(line: bytes) -> tuple[bytes, bytes]:
    """The scores before and behind the tree of a line, and the tree, which is empty without a bracket."""
    start = line.find(b"(") % (len(line) + 1)
    end = line.rfind(b")", start) + 1 or len(line)
    return b" ".join(filter(None, (line[:start], line[end:]))), line[start:end]


def parse_scores(rows: Sequence[ScoredTree], column: int) -> tuple[np.ndarray, dict[int, Problem]]:
    """The scores of rows as float64 [N, K], and what is wrong with some of them, by place; those of these mean nothing.

    K > ``column`` whenever N > 0. If rows have different numbers of scores, the most frequent number is right.
    """
    problems, scores = dict[int, Problem](), [numbers(row.scores) for row in rows]
    widths = Counter(len(values) for values in scores if values is not None and len(values) > column)
    width = widths.most_common(1)[0][0] if widths else column + 1
    for i, (row, values) in enumerate(zip(rows, scores, strict=True)):
        if values is None:
            reason, message = "score", f"found {excerpt(row.scores)}; expected the candidate's score"
            message += "" if row.scores.strip() else "; let the parser write one (-tree_likelihood, -confidence)"
        elif len(values) != width:
            needs = f"the reader's option score: {column} needs at least one more"
            message = needs if len(values) <= column else f"most candidates of the list have {width}"
            reason, message = "columns", f"found {len(values)} scores; {message}"
        elif not all(map(isfinite, values)):
            reason, message = "infinite score", f"found {excerpt(row.scores)}; expected finite scores"
        else:
            continue
        problems[i], scores[i] = Problem(reason, message, row.score_line), [0.0] * width
    return np.array(scores, np.float64).reshape(len(rows), width), problems


def score_text(nbest: Lists, i: int, scores: np.ndarray | None, *, old: bool = True) -> bytes:
    """Scores of candidate ``i`` for output, separated by tabs: the new one, if there is one, then the ``old`` ones."""
    new = [] if scores is None else [float(scores[i])]
    return "\t".join(map(repr, new + nbest.scores[i].tolist() if old else new)).encode()


def _is_tree(line: bytes) -> bool:
    return line.lstrip()[:1] == b"("


def next_with_header(
    lines: LineReader, each: int, pieces_of: PiecesOf, parts_of: Callable[[Sequence[Piece]], Parts]
) -> Record:
    """A header and its list, up to a blank line or the next header; every candidate is of so many pieces. What follows
    a bad list without a header of its own goes with it."""
    header = _HEADER.match(lines.peek(1)[0])
    has_id = header is not None and header[2] is not None

    def is_header(line: bytes, after: bytes, has_id: bool) -> bool:
        """A number is a score before a tree, where candidates have one, and behind a header with an id."""
        match = _HEADER.match(line)
        return match is not None and (not has_id or match[2] is not None) and not (each == 2 and _is_tree(after))

    def ends(line: bytes, after: bytes) -> bool:
        return line[:1] not in _CANDIDATE_STARTS and (blank(line) or is_header(line, after, has_id))

    first, (head, *rest) = lines.number + 1, block(lines, ends)
    pieces = list(pieces_of(rest, first + 1))
    if header is None:
        message = f"found {excerpt(head)} where a list starts; expected its header: number of candidates, list id"
        name, problem = None, Problem("header", message, first)
    else:
        name, count = None if header[2] is None else decoded(header[2].strip()), int(header[1])
        size, extra = divmod(len(pieces), each)
        if (size, extra) == (count, 0):
            return Record(name, first, Problem("nul", NUL) if b"\0" in head else parts_of(pieces))
        if size < count:
            message = f"the header says {amount(count, 'candidate')}; found {size}"
            message += " and a score without its tree" * extra
            problem = Problem("too few", message, first + 1 + len(rest))
        else:
            number, text = pieces[each * count]
            message = f"more follows than the {count} candidates of the header: found {excerpt(text)}; expected a "
            problem = Problem("too many", f"{message}blank line or the next header", number)
    while lines.skip_blank():
        line, after = [*lines.peek(2), b""][:2]
        score = line if each == 2 else line.partition(b"(")[0]
        if is_header(line, after, has_id=False) or not (_is_tree(line) or numbers(score)):
            break
        block(lines, ends)
    return Record(name, problem.line or first, problem)


@dataclass(frozen=True)
class CharniakReader(ParseReader):
    """Lists of the Charniak and BLLIP parsers. Options are those of ``ParseReader``.

    >>> (nbest,) = CharniakReader().parse(b"1\\twsj-1\\n-81.5\\n(S1 (NN Art))\\n")
    >>> nbest.id, nbest.texts, nbest.base
    ('wsj-1', [b'(S1 (NN Art))'], array([-81.5]))
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New and old scores share the score line, separated by tabs."""
        indices = range(len(nbest)) if order is None else order
        parts = [encoded(f"{len(indices)}\t{nbest.id}\n")]
        for i in indices:
            parts += [score_text(nbest, i, scores), b"\n", nbest.texts[i], b"\n"]
        out.write(b"".join([*parts, b"\n"]))

    def _grammar(self, lines: LineReader) -> NextList:  # noqa: ARG002 - there is only one

        def with_scores(pieces: Sequence[Piece]) -> Parts:
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            return Parts([ScoredTree(scores, at, text, line) for (at, scores), (line, text) in pairs], "header")

        return partial(next_with_header, each=2, pieces_of=enumerate, parts_of=with_scores)


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
    trees have scores before or behind them, as in lists that were reranked.

    >>> (nbest,) = BareReader().parse(b"1\\twsj-1\\n(S1 (NN Art))\\n")
    >>> nbest.id, nbest.texts
    ('wsj-1', [b'(S1 (NN Art))'])
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores come before the trees, with old ones where there are any."""
        indices = range(len(nbest)) if order is None else order
        scored, parts = nbest.form.endswith(_WITH_SCORES), list[bytes]()
        if nbest.form.startswith(_HEADERS):
            parts.append(encoded(f"{len(indices)}\t{nbest.id}\n"))
        for i in indices:
            if scored or scores is not None:
                parts += [score_text(nbest, i, scores, old=scored), b"\t"]
            parts += [nbest.texts[i], b"\n"]
        out.write(b"".join(parts or [b"(())\n"]) + b"\n")

    def _grammar(self, lines: LineReader) -> NextList:
        header, count = _HEADER.match(lines.peek(1)[0]), _SCORE_SAMPLE_LINES
        if self.live:  # the first list: a pipe may have no more before its answer
            count = min(int(header[1]) + 1 if header else len(list_ahead(lines, blank)), _SCORE_SAMPLE_LINES)
        scored = any(numbers(split_scores(line)[0]) for line in lines.peek(count) if b"(" in line)
        if header is None:
            return partial(next_group, pieces_of=_pieces, form=GROUPS + _WITH_SCORES * scored, scored=scored)
        form = _HEADERS + _WITH_SCORES * scored
        return lambda lines: next_with_header(lines, 1, _pieces, partial(_parts, form=form, scored=scored))


def next_group(lines: LineReader, pieces_of: PiecesOf, form: str, *, scored: bool) -> Record:
    """The trees up to the next blank line; scored: whether they have scores."""
    first, rows = lines.number + 1, block(lines, blank)
    if not scored and b"(" not in rows[0]:
        message = f"found {excerpt(rows[0])} where a list starts; expected its first tree, '(...)'"
        return Record(None, first, Problem("header", message, first))
    parts = _parts(pieces_of(rows, first), form, scored)
    if first == 1 and not lines.peek(1) and len({(*Candidate(decoded(row.text)).tokens,) for row in parts.rows}) > 2:
        message = "trees of different words and no blank line; expected one behind the trees of each sentence"
        return Record(None, first, Problem("words", message, first))
    return Record(None, first, parts)


def _pieces(lines: Sequence[bytes], first: int) -> list[Piece]:
    """The candidates, each with its line, in lines the first of which has the number ``first``."""
    starts = [k for k, line in enumerate(lines) if not k or not line[:1].isspace()]
    spans = pairwise([*starts, len(lines)])
    return [(first + k, b" ".join(map(bytes.strip, lines[k:end]))) for k, end in spans]


def _parts(pieces: Iterable[Piece], form: str, scored: bool) -> Parts:
    """The list of these candidates, without failed parses, ``(())``, alone or with scores; a line without a bracket is
    scores and tree."""
    rows = list[ScoredTree]()
    for number, line in pieces:
        scores, tree = split_scores(line)
        alone = blank(scores) or numbers(scores) is not None
        if not (tree and alone and not tree.strip(b"() \t") and is_failed(tree)):
            fields = (scores, tree or scores) if scored else (b"0", line)
            rows.append(ScoredTree(fields[0], number, fields[1], number))
    return Parts(rows, form, unscored=not scored)
