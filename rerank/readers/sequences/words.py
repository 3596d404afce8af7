"""A sentence per line, its words with blanks between them, without tags; what is written has these.

Words matter .
"""

from dataclasses import dataclass

from rerank.base.errors import RecipeError
from rerank.readers.sequences.base import LineBlock, TaggedSentence, sequence_readers
from rerank.readers.sequences.slash import SlashReader


@sequence_readers.add("words")
@dataclass(frozen=True)
class WordReader(SlashReader):
    """Words without tags, to be tagged; ``mark`` is for what is written."""

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        if width is None:
            raise RecipeError("the reader words gives sentences without labels; these need some", key="data.reader")
        return TaggedSentence(tuple((word,) for word in block.rows[0].split()), (), name, path, block.line)
