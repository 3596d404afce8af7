"""Columns as in the shared tasks of CoNLL, a token per line:

    Boeing   NNP  B-NP
    's       POS  B-NP
    747      CD   I-NP

An empty line ends a sentence, lines of -DOCSTART- and comments are passed over (https://www.clips.uantwerpen.be/
conll2000/chunking/).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from rerank.base.encoding import encoded
from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.contrib.structures.readers import LineBlock, SequenceReader, TaggedSentence
from rerank.readers.problems import Problem
from rerank.readers.streams import Writable

DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True)
class ConllReader(SequenceReader):
    """Tokens as rows of columns; whatever precedes the tag that is written behind them stays as it is.

    Parameters
    ----------
    separator: the text between columns; null: any number of blanks and tabs.
    label: the column of labels, a number from 1, or the last.
    columns: those of tokens, numbers from 1, the word's first; empty: all but the label's.
    comments: what a line that is no token begins with, as ``#``; null: every line is a token.
    """

    separator: str | None = None
    label: Literal["last"] | Annotated[int, Range(1)] = "last"
    columns: tuple[int, ...] = field(default=())
    comments: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        super().__post_init__()
        if "" in (self.separator, self.comments):
            raise RecipeError("found an empty text; expected null, or one that lines hold", key="separator")
        if not all(type(column) is int and column > 0 for column in self.columns):
            raise RecipeError(f"found {list(self.columns)}; expected numbers of columns from 1", key="columns")

    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        rows, places = list[list[str]](), list[int]()
        for place, line in enumerate(block.rows):
            if self.comments is not None and line.startswith(self.comments):
                continue
            row = line.split(self.separator) if self.separator else line.replace("\t", " ").split(" ")
            row = row if self.separator else [part for part in row if part]
            if row[0] == DOCUMENT:
                continue
            if rows and len(row) != len(rows[0]):
                advice = "; if it is a comment, say so with comments: '#'" if line.startswith("#") else ""
                message = f"found {len(row)} columns, after {len(rows[0])} in the lines before{advice}"
                raise Problem("columns", message, block.line + place)
            rows.append(row)
            places.append(place)
        if not rows:
            return None
        count = len(rows[0])
        label = count - 1 if self.label == "last" else self.label - 1
        others = range(count) if count == width else [column for column in range(count) if column != label]
        used = [column - 1 for column in self.columns] or others
        labelled = label < count and label not in used
        if not used or max(used) >= count or width not in (None, len(used)) or (width is None and not labelled):
            more = f"{max([label + 1, *self.columns, 2])} or more"
            wanted = more if width is None or self.columns else f"{width} or {width + 1}"
            raise Problem("columns", f"found {count} columns; expected {wanted}", block.line + places[0])
        tokens = tuple(tuple(row[column] for column in used) for row in rows)
        labels = tuple(row[label] for row in rows) if labelled else ()
        if not all(labels) or not all(token[0] for token in tokens):
            raise Problem("columns", "found an empty column; expected a word and a label", block.line + places[0])
        return TaggedSentence(tokens, labels, name, path, block.line, tuple(block.rows), tuple(places))

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        rows = list(sentence.raw) or [" ".join(token) for token in sentence.tokens]
        for place, label in zip(sentence.places or range(len(rows)), labels, strict=True):
            rows[place] += (self.separator or ("\t" if "\t" in rows[place] else " ")) + label
        out.write(encoded("\n".join([*rows, "", ""])))
