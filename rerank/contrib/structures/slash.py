"""A sentence per line, its words with their tags:

Words/NNS matter/VBP ./.

A slash in a label has a backslash before it, ``a/NP\\/N``; it is written and read so.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import RecipeError
from rerank.contrib.structures.readers import LineBlock, SequenceReader, TaggedSentence
from rerank.readers.lines import LineReader
from rerank.readers.problems import Problem
from rerank.readers.streams import Writable

log = logging.getLogger("rerank")


@dataclass(frozen=True)
class SlashReader(SequenceReader):
    """Words with tags behind a slash.

    Parameters
    ----------
    mark: what stands between word and tag, as ``_``.
    at: which of several marks does, those behind a backslash aside: ``last``, as in and/or/CC, or ``first``, as in
        a/NP/N, where words have none.
    """

    labelled: ClassVar[bool] = True

    mark: str = "/"
    at: Literal["last", "first"] = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mark or self.mark.split() != [self.mark]:
            raise RecipeError(f"found {self.mark!r}; expected a mark without blanks, as /", key="mark")

    def blocks(self, lines: LineReader) -> Iterator[LineBlock]:
        told, mark = not self.labelled, rf"(?<!\\){re.escape(self.mark)}"
        for number, line in lines:
            row = decoded(line)
            if not told and (several := re.search(rf"\S+{mark}\S*{mark}\S+", row)):
                told, (word, label) = True, parted(several[0], self.mark, self.at)
                said = f"{several[0]} is read as {word} with the label {label}; the option at, last or first, chooses"
                log.info("%s:%d: %s", lines.path, number, said)
            if row and not row.isspace():
                yield LineBlock(number, [row])

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:  # noqa: ARG002
        pairs = [parted(part, self.mark, self.at) for part in block.rows[0].split()]
        for word, tag in pairs:
            if not (word and tag):
                found = f"found {(word + self.mark + tag if word else tag)[:40]!r}"
                raise Problem("label", f"{found}; expected a word and a tag with {self.mark!r} between them")
        tokens, tags = tuple((word,) for word, _ in pairs), tuple(tag for _, tag in pairs)
        return TaggedSentence(tokens, tags, name, path, block.line)

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        out.write(encoded(slashed(sentence.words, labels, self.mark, self.at) + "\n"))


@dataclass(frozen=True)
class WordReader(SlashReader):
    """Lines of words without tags, to be tagged; ``mark`` is for what is written."""

    labelled = False

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        if width is None:
            raise RecipeError("the reader words gives sentences without labels; these need some", key="data.reader")
        return TaggedSentence(tuple((word,) for word in block.rows[0].split()), (), name, path, block.line)


def slashed(words: Sequence[str], labels: Sequence[str], mark: str = "/", at: str = "last") -> str:
    """Words with their labels, as a line has them."""
    shown = labels if at == "first" else [label.replace(mark, f"\\{mark}") for label in labels]
    return " ".join(f"{word}{mark}{label}" for word, label in zip(words, shown, strict=True))


def parted(text: str, mark: str = "/", at: str = "last") -> tuple[str, str]:
    """The word and the label of what ``slashed`` joins; without a mark, one of them is empty.

    >>> parted("and/or/CC"), parted(r"a/NP\\/N"), parted("a/NP/N", at="first")
    (('and/or', 'CC'), ('a', 'NP/N'), ('a', 'NP/N'))
    """
    if at == "first":
        return text.partition(mark)[::2]
    found = re.fullmatch(rf"(.+)(?<!\\){re.escape(mark)}(.+)", text, re.DOTALL) if "\\" in text else None
    word, label = found.groups() if found else text.rpartition(mark)[::2]
    return word, label.replace(f"\\{mark}", mark)
