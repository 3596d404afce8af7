"""Lists of trees without scores: trees alone with a blank line after every list, or a count before its trees.

Three lines of each variant this reads; the first line of a file tells which one it is::

    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
    (S1 (S (NP (PRP It))
       (VP (VBN rained)) (. .)))

    2	wsj_0001-1
    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
    (S1 (S (NP (PRP It)) (VP (VBN rained)) (. .)))

A line that begins with white space continues the tree before it. The id is what follows the count, or else the ordinal
of the list in the file, from 0. A failed parse, ``(())``, is not a candidate.

All base scores are 0, unless the trees of the file have scores before them, as in lists that were reranked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from rerank.base.encoding import amount, decoded, encoded
from rerank.readers.base import Lists, Order, Problem, Scores, excerpt
from rerank.readers.lines import LineReader, Record, numbers
from rerank.readers.streams import Writable
from rerank.readers.trees.parses import NextList, ParseReader, Parts, apart, blank, block, failed, score_text

_COUNTED, _GROUPS = "counted", "groups"
_LOOK = 1 << 8  # lines that show whether trees have scores
_SCORED = " with scores"  # follows the variant
_HEADER = re.compile(rb"\s*(\d{1,9})(?:\s+([^\s(].*))?\s*$")


@dataclass(frozen=True)
class BareReader(ParseReader):
    """Lists of trees without scores. Options are those of ``ParseReader``.

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
        scored = any(numbers(line.partition(b"(")[0]) for line in lines.ahead(_LOOK) if b"(" in line)
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
