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
"""

from dataclasses import dataclass
from functools import partial

from rerank.readers.base import Lists, Order, Scores
from rerank.readers.lines import LineReader, numbers
from rerank.readers.streams import Writable
from rerank.readers.trees.charniak import GROUPS, CharniakReader, NextList, next_group, score_text, single_lines


@dataclass(frozen=True)
class BerkeleyReader(CharniakReader):
    """Lists of the Berkeley parser. Options are those of ``ParseReader``.

    >>> (nbest,) = BerkeleyReader().parse(b"-81.5\\t( (NN Art) )\\n")
    >>> nbest.texts, nbest.base
    ([b'( (NN Art) )'], array([-81.5]))
    """

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A list is written in the variant it was read in."""
        if nbest.form != GROUPS:
            super().write(out, nbest, order, scores)
            return
        chosen = range(len(nbest)) if order is None else order
        parts = [score_text(nbest, i, scores) + b"\t" + nbest.texts[i] + b"\n" for i in chosen]
        out.write(b"".join(parts or [b"(())\n"]) + b"\n")

    def _grammar(self, lines: LineReader) -> NextList:
        first, *second = lines.ahead(2)
        words = first.split()
        grouped = b"(" in first and (not words[0].isdigit() or numbers(first.partition(b"(")[0]))
        damaged = bool(second) and b"(" in second[0] and numbers(second[0].partition(b"(")[0])  # a score and a tree
        group: NextList = partial(next_group, pieces_of=single_lines, form=GROUPS, scored=True)
        return group if grouped or damaged else super()._grammar(lines)
