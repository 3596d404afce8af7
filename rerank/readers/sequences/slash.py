"""A sentence per line, its words with their tags:

Words/NNS matter/VBP ./.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import RecipeError
from rerank.readers.lines import LineReader
from rerank.readers.problems import Problem
from rerank.readers.sequences.base import LineBlock, SequenceReader, TaggedSentence
from rerank.readers.streams import Writable


@dataclass(frozen=True)
class SlashReader(SequenceReader):
    """Words with tags behind a slash; if a word has several, the last.

    Parameters
    ----------
    mark: what stands between word and tag, as ``_``.
    """

    mark: str = "/"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mark or self.mark.split() != [self.mark]:
            raise RecipeError(f"found {self.mark!r}; expected a mark without blanks, as /", key="mark")

    def blocks(self, lines: LineReader) -> Iterator[LineBlock]:
        return (LineBlock(number, [decoded(line)]) for number, line in lines if line and not line.isspace())

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:  # noqa: ARG002
        pairs = [part.rpartition(self.mark) for part in block.rows[0].split()]
        for word, _, tag in pairs:
            if not (word and tag):
                found = f"found {(word + self.mark + tag if word else tag)[:40]!r}"
                raise Problem("label", f"{found}; expected a word and a tag with {self.mark!r} between them")
        return TaggedSentence(
            tuple((word,) for word, _, _ in pairs), tuple(tag for *_, tag in pairs), name, path, block.line
        )

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        out.write(encoded(slashed(sentence.words, labels, self.mark) + "\n"))


@dataclass(frozen=True)
class WordReader(SlashReader):
    """Lines of words without tags, to be tagged; ``mark`` is for what is written."""

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        if width is None:
            raise RecipeError("the reader words gives sentences without labels; these need some", key="data.reader")
        return TaggedSentence(tuple((word,) for word in block.rows[0].split()), (), name, path, block.line)


def slashed(words: Sequence[str], labels: Sequence[str], mark: str = "/") -> str:
    """Words with their labels, as a line has them."""
    return " ".join(f"{word}{mark}{label}" for word, label in zip(words, labels, strict=True))
