"""The lists of parsers: Berkeley's and Stanford's."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import cast

from rerank.readers.lines import LineReader, Record, numbers
from rerank.readers.reader import Lists, Order, Problem, Scores, excerpt
from rerank.readers.trees.charniak import (
    GROUPS,
    CharniakReader,
    NextList,
    ParseReader,
    Parts,
    ScoredTree,
    blank,
    block,
    next_group,
    score_text,
)
from rerank.storage.streams import Writable


@dataclass(frozen=True)
class BerkeleyReader(CharniakReader):
    """The n-best lists of the Berkeley parser, and lists with several scores per candidate.

    Three lines of each variant this reads; the first line of a file tells which one it is::

        1	wsj_0001-1
        -81.52 -79.3 0.25
        (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))

        -81.52	( (S (NP (PRP It)) (VP (VBD rained)) (. .)) )
        -85.01	( (S (NP (PRP It)) (VP (VBN rained)) (. .)) )
        -Infinity	(())

    The first variant is ``charniak``'s, header included. The second is the parser's own k-best output: scores and
    tree of a candidate on one line, a blank line after every list, the ordinal of the list as its id. A failed parse,
    ``(())``, is not a candidate; a list of nothing else has no candidates.

    >>> (nbest,) = BerkeleyReader().parse(b"-81.5\\t( (NN Art) )\\n")
    >>> nbest.texts, nbest.base
    ([b'( (NN Art) )'], array([-81.5]))
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A list is written in the variant it was read in."""
        if nbest.form != GROUPS:
            super().write(out, nbest, order, scores)
            return
        indices = range(len(nbest)) if order is None else order
        parts = [score_text(nbest, i, scores) + b"\t" + nbest.texts[i] + b"\n" for i in indices]
        out.write(b"".join(parts or [b"(())\n"]) + b"\n")

    def _grammar(self, lines: LineReader) -> NextList:
        first, *second = lines.peek(2)
        words = first.split()
        in_groups = b"(" in first and (not words[0].isdigit() or numbers(first.partition(b"(")[0]))
        no_header = bool(second) and b"(" in second[0] and numbers(second[0].partition(b"(")[0])  # a score and a tree
        group: NextList = partial(next_group, pieces_of=enumerate, form=GROUPS, scored=True)
        return group if in_groups or no_header else super()._grammar(lines)


_FAILED = b"SENTENCE_SKIPPED_OR_UNPARSABLE"
_STARTS = (b"# Parse ", _FAILED, b"(())")
_MARK = re.compile(rb"(# Parse |%s(?: Parse #)?|\(\(\)\)\s*$)(\d{0,9})(?: with score(.*))?$" % _FAILED)


@dataclass(frozen=True)
class StanfordReader(ParseReader):
    """The k-best lists of the Stanford parser (``-printPCFGkBest``): a line with number and score, then the tree.

    Three lines this reads::

        # Parse 1 with score -38.31
        (ROOT
          (S (NP (PRP It)) (VP (VBD rained)) (. .)))

    The tree is on one line (``-outputFormat oneline``) or on several (``penn``), from the first line that begins with a
    bracket to the one that closes it; what else the parser prints for a candidate, such as tagged words or
    dependencies, is not read, and neither is the best parse, which it prints by itself before every list. A list starts
    at parse 1; its id is its ordinal in the file, from 0. A sentence without a parse,
    ``SENTENCE_SKIPPED_OR_UNPARSABLE`` or ``(())``, is a list without candidates.

    >>> (nbest,) = StanfordReader().parse(b"# Parse 1 with score -38.5\\n(ROOT (NN Art))\\n")
    >>> nbest.texts, nbest.base
    ([b'(ROOT (NN Art))'], array([-38.5]))
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A tree to a line, numbered anew; old scores follow the new one after a tab."""
        indices = range(len(nbest)) if order is None else order
        parts = [
            b"# Parse %d with score %s\n%s\n" % (number, score_text(nbest, i, scores), nbest.texts[i])
            for number, i in enumerate(indices, start=1)
        ]
        out.write(b"".join(parts or [_FAILED + b"\n"]))

    def _grammar(self, lines: LineReader) -> NextList:  # noqa: ARG002 - there is only one
        return self._next_list

    def _next_list(self, lines: LineReader) -> Record:
        """The parses up to one that is not the next of a list."""
        first, last = lines.number + 1, 0
        rows, problem = list[ScoredTree](), cast(Problem | None, None)
        while lines.skip_blank():
            line = lines.peek(1)[0]
            mark = _MARK.match(line)
            number = int(mark[2] or b"1") if mark else 0
            if last and (number <= 1 or (number != last + 1 and problem is None)):
                break
            place = lines.number + 1
            rest = block(lines, lambda line, _: line.startswith(_STARTS))
            if not mark and not last and line[:1] == b"(" and lines.skip_blank():
                continue  # the best parse
            if number != last + 1 and problem is None:
                message = f"found {excerpt(line)} where a list starts; expected '# Parse 1 with score ...'"
                problem = Problem("header", message, place)
            last = max(number, 1)
            if mark is not None and mark[1][:1] == b"#":
                start, text = _tree(rest)
                rows.append(ScoredTree((mark[3] or b"").strip(), place, text, place + start))
        return Record(None, first, problem or Parts(rows, "stanford"))


def _tree(lines: Sequence[bytes]) -> tuple[int, bytes]:
    """The line of a candidate at which the tree starts, and the tree on one line; whatever is there if it is none."""
    start = next((k for k, line in enumerate(lines) if line[:1] == b"("), min(1, len(lines) - 1))
    depths = accumulate(line.count(b"(") - line.count(b")") for line in lines[start:])
    size = next(
        k for k, depth in enumerate(depths, 1) if depth <= 0 or start + k == len(lines) or blank(lines[start + k])
    )
    return start, b" ".join(line.strip() for line in lines[start : start + size])
