"""Files of trees whose order tells which sentence they are of, with failed parses in their places, as EVALB reads them.

Three lines of each kind of file this reads; in the first every line is a sentence, so that an empty line is a failed
parse, and several trees on a line are one sentence::

    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))

    (NP (NN Art)) (NP (NN Life))

    ( (S (NP (PRP It))
         (VP (VBD rained)) (. .)) )
    (())

A file with a tree that is spread over lines is of the second kind: there every tree is a sentence, and nothing but
brackets without words, such as ``(())`` or ``(S1)``, is a failed parse.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from rerank.readers.streams import PathLike
from rerank.readers.trees.brackets import CHUNK, read_trees
from rerank.readers.trees.treebank import read_treebank
from rerank.readers.trees.trees import FOREST


class SentenceText(NamedTuple):
    """The tree of a sentence before it is parsed, or its trees; empty for an empty line."""

    text: bytes
    line: int


def read_sentences(path: PathLike, *, chunk: int = CHUNK) -> Iterator[SentenceText]:
    """The sentences of a file ("-": standard input) in order; what tells its kind apart is held until it is known.

    Raises
    ------
    DataError: see ``read_trees``.
    """
    held: list[SentenceText] = []  # one tree, or what is read differently in files of the other kind, and all after it
    found = (SentenceText(*each) for each in read_trees(path, chunk=chunk, empty_lines=True))
    for one in found:
        held.append(one)
        if b"\n" in one.text:
            yield from (each for each in chain(held, found) if each.text)
            return
        if len(held) == 2 and all(each.text for each in held) and held[0].line < held[1].line:
            yield held.pop(0)
    yield from by_line(held)


def gold_sentences(paths: Sequence[PathLike]) -> Iterator[SentenceText | bytes]:
    """The sentences of a treebank: of one file as ``read_sentences`` gives them; of several, every tree is one.

    Raises
    ------
    DataError: see ``read_trees``.
    """
    if len(paths) == 1:
        return read_sentences(paths[0])
    return (gold.text for gold in read_treebank(paths))


def by_line(found: Iterable[SentenceText]) -> Iterator[SentenceText]:
    """The trees of every line as one sentence."""
    for line, trees in groupby(found, lambda each: each.line):
        texts = [each.text for each in trees]
        whole = texts[0] if len(texts) == 1 else b"(%s %s)" % (FOREST.encode(), b" ".join(texts))
        yield SentenceText(whole, line)
