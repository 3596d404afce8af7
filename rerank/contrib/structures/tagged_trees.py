"""Trees of a treebank, whose words have their tags, or base noun phrases, as labels:

(S1 (S (NP (DT The) (NN woman)) (VP (VBD ate) (NP (DT the) (NN soup))) (. .)))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rerank.base.encoding import encoded
from rerank.contrib.structures.readers import ADVICE, LineBlock, SequenceReader, TaggedSentence, Token
from rerank.contrib.structures.slash import slashed
from rerank.data.symbols import SymbolTable
from rerank.readers.problems import Problem, SkippedList
from rerank.readers.streams import PathLike, Writable, stream_name
from rerank.readers.trees.treebank import read_trees
from rerank.readers.trees.trees import TRACE, Trees, parse_brackets, without_features


@dataclass(frozen=True)
class TaggedTrees(SequenceReader):
    """Words of gold trees, without traces; what is written are words with labels behind a slash. Features, as in
    ``DET##lemma=le##``, are no part of tags.

    Parameters
    ----------
    label: ``tags``, those of the words; ``chunks``, B-NP, I-NP and O, the noun phrases that hold no other (as in
        Ramshaw & Marcus 1995), with the tags as a second column of tokens.
    """

    label: Literal["tags", "chunks"] = "tags"

    def read(self, path: PathLike, width: int | None = None) -> Iterator[TaggedSentence | SkippedList]:  # noqa: ARG002
        place, symbols = stream_name(path), SymbolTable()
        for ordinal, (text, line) in enumerate(read_trees(path)):
            tokens, labels = self._found(parse_brackets([text], symbols, path=place, lines=[line]), symbols)
            if tokens:
                yield TaggedSentence(tuple(tokens), tuple(labels), str(ordinal), place, line)
            else:
                yield SkippedList(str(ordinal), place, line, "tree", "found a tree without words", None, ADVICE)

    def _found(self, trees: Trees, symbols: SymbolTable) -> tuple[list[Token], list[str]]:
        """The tokens of a tree, and their labels."""
        labels = [without_features(symbols.text(j)) for j in trees.label.tolist()]
        size, start, end = trees.size.tolist(), trees.start.tolist(), trees.end.tolist()
        leaves = [k for k, word in enumerate(trees.word.tolist()) if word >= 0 and labels[k] != TRACE]
        words, tags = [symbols.text(int(trees.word[k])) for k in leaves], [labels[k] for k in leaves]
        if self.label == "tags":
            return [(word,) for word in words], tags
        phrases = [k for k, label in enumerate(labels) if label.partition("-")[0] == "NP" and trees.word[k] < 0]
        inside = dict[int, str]()
        for k, following in pairwise([*phrases, len(labels)]):
            if following >= k + size[k]:
                inside |= {place: "I-NP" if place > start[k] else "B-NP" for place in range(start[k], end[k])}
        return list(zip(words, tags, strict=True)), [inside.get(start[k], "O") for k in leaves]

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:  # noqa: ARG002
        raise Problem("tree", "expected a tree")

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        out.write(encoded(slashed(sentence.words, labels) + "\n"))
