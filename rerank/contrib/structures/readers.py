"""Sentences whose tokens have labels, and readers of them; bad ones are errors, or are counted.

A sentence with a row of other columns than those before it, or without a label where one is expected, is an error or,
with ``on_bad_list="skip"``, is left out and counted, as a list is: see ``rerank.readers.problems``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked, Count
from rerank.base.registry import Registry
from rerank.data.symbols import SymbolTable
from rerank.data.trees import TRACE, parse_brackets, without_features
from rerank.readers.lines import LineReader
from rerank.readers.problems import NUL, Problem, SkipCount
from rerank.readers.trees.treebank import read_trees
from rerank.storage.streams import PathLike, Writable, must_wait, open_stream, stream_name

Token = tuple[str, ...]  # the columns of a token, the word first
BATCH_SENTENCES = 500  # sentences that are tagged together
ADVICE = "fix or remove the sentence, or leave out such ones with --on-bad-list skip (in a recipe: data.on_bad_list)"


@dataclass(frozen=True)
class TaggedSentence:
    """Tokens with their labels, none where these are not known.

    raw: its lines, comments among them; token_rows: the indices of those that are its tokens, if a token has a line.
    """

    tokens: tuple[Token, ...]
    labels: tuple[str, ...] = ()
    id: str = ""
    path: str = ""
    line: int = 0
    raw: tuple[str, ...] = ()
    token_rows: tuple[int, ...] = ()

    @property
    def words(self) -> list[str]:
        """The first column of every token."""
        return [token[0] for token in self.tokens]


class SequenceReader(Checked, ABC):
    """A format of labelled sentences: a frozen dataclass whose fields are the options that a recipe can set."""

    def read(self, path: PathLike, width: int | None = None) -> Iterator[TaggedSentence | Problem]:
        """The sentences of ``path`` ("-": standard input), one at a time, bad ones in their places.

        width: how many columns tokens have; sentences without any more have no labels. None: all have labels.
        """
        name, number = stream_name(path), 0
        for line, rows in self.blocks(path):
            item: TaggedSentence | Problem | None
            try:
                if any("\0" in row for row in rows):
                    raise Problem("nul", f"found {NUL}")
                if (item := self.sentence(rows, line, width)) is not None:
                    item = replace(item, id=item.id or str(number), path=name, line=line)
            except Problem as problem:
                problem.advice = ADVICE
                item = problem.at(str(number), name, line)
            if item is not None:
                yield item
                number += 1

    def blocks(self, path: PathLike) -> Iterator[tuple[int, list[str]]]:
        """Yield the parts of a file that may be a sentence each, with the number of their first line: by default the
        parts between blank lines."""
        for is_blank, group in groupby(text_lines(path), lambda line: not line[1]):
            if not is_blank:
                numbers, rows = zip(*group, strict=True)
                yield numbers[0], list(rows)

    @abstractmethod
    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence | None:
        """The sentence of a block, None if it holds none; a ``Problem`` if it cannot be used."""

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        """Write a sentence with these labels: by default its words, with the labels behind slashes."""
        out.write(encoded(join_tags(sentence.words, labels) + "\n"))


def text_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers; one of white space alone is empty."""
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            yield number, decoded(line) if line.strip() else ""


sequence_readers: Registry[type[SequenceReader]] = Registry("sequence_reader", SequenceReader)


def sentences_of(items: Iterable[TaggedSentence | Problem], count: SkipCount) -> Iterator[TaggedSentence]:
    """Yield the usable sentences; bad ones are errors, or counted in ``count``, as it says."""
    for item in items:
        if isinstance(item, Problem):
            count.bad(item)
        else:
            count.lists += 1
            yield item


def batches_of(sentences: Iterable[TaggedSentence], path: PathLike) -> Iterator[list[TaggedSentence]]:
    """Yield sentences of ``path``, up to ``BATCH_SENTENCES`` at a time, fewer before a wait for more of them."""
    batch = list[TaggedSentence]()
    for sentence in sentences:
        batch.append(sentence)
        if len(batch) == BATCH_SENTENCES or must_wait(path):
            yield batch
            batch = []
    yield batch


@dataclass(frozen=True)
class SlashReader(SequenceReader):
    """A sentence per line, its words with tags behind a slash: ``Words/NNS matter/VBP ./.``. Of several slashes, as in
    and/or/CC, the last is before the tag, unless a backslash is before it: ``a/NP\\/N``. Tags are written so.

    Parameters
    ----------
    mark: what stands between word and tag, as ``_``.
    """

    mark: str = "/"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mark or self.mark.split() != [self.mark]:
            raise RecipeError(f"found {self.mark!r}; expected a mark without blanks, as /", key="mark")

    def blocks(self, path: PathLike) -> Iterator[tuple[int, list[str]]]:
        return ((number, [line]) for number, line in text_lines(path) if line.split())

    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence | None:  # noqa: ARG002
        pairs = split_tags(rows[0], self.mark)
        return TaggedSentence(tuple((word,) for word, _ in pairs), tuple(tag for _, tag in pairs))

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        out.write(encoded(join_tags(sentence.words, labels, self.mark) + "\n"))


@dataclass(frozen=True)
class WordReader(SlashReader):
    """Lines of words without tags, to be tagged; ``mark`` is for what is written."""

    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence | None:  # noqa: ARG002
        if width is None:
            raise RecipeError("the reader words gives sentences without labels; these need some", key="data.reader")
        return TaggedSentence(tuple((word,) for word in rows[0].split()))


def join_tags(words: Sequence[str], labels: Sequence[str], mark: str = "/") -> str:
    """Words with their labels, as a line has them."""
    texts = (label.replace(mark, f"\\{mark}") for label in labels)
    return " ".join(f"{word}{mark}{label}" for word, label in zip(words, texts, strict=True))


def split_tag(text: str, mark: str = "/") -> tuple[str, str]:
    """Split a word of ``join_tags`` into word and label; without a mark, the word is empty.

    >>> split_tag("and/or/CC"), split_tag(r"a/NP\\/N")
    (('and/or', 'CC'), ('a', 'NP/N'))
    """
    match = re.fullmatch(rf"(.+)(?<!\\){re.escape(mark)}(.+)", text, re.DOTALL) if "\\" in text else None
    word, label = match.groups() if match else text.rpartition(mark)[::2]
    return word, label.replace(f"\\{mark}", mark)


def split_tags(text: str, mark: str = "/") -> list[tuple[str, str]]:
    """The words of a text with their labels; a ``Problem`` if one has none."""
    pairs = [split_tag(part, mark) for part in text.split()]
    for word, tag in pairs:
        if not (word and tag):
            pair = f"found {(word + mark + tag if word else tag)[:40]!r}"
            raise Problem("label", f"{pair}; expected a word and a tag with {mark!r} between them")
    return pairs


DOCUMENT, _FIELD = "-DOCSTART-", re.compile("[^ \t]+")


@dataclass(frozen=True)
class ConllReader(SequenceReader):
    """Columns as in the shared tasks of CoNLL, a token per line:

        Boeing   NNP  B-NP
        's       POS  B-NP
        747      CD   I-NP

    An empty line ends a sentence, lines of -DOCSTART- and comments are passed over (https://www.clips.uantwerpen.be/
    conll2000/chunking/). Output keeps the lines of the input, and adds the tag as their last column.

    Parameters
    ----------
    separator: the text between columns; null: any number of blanks and tabs.
    label: the column of labels, a number from 1, or the last.
    columns: the columns of tokens, numbers from 1, the word's first; empty: all but the label's.
    comments: what a line that is no token begins with, as ``#``; null: every line is a token.
    """

    separator: str | None = None
    label: Literal["last"] | Count = "last"
    columns: tuple[int, ...] = ()
    comments: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if "" in (self.separator, self.comments):
            raise RecipeError("found an empty text; expected null, or one that lines hold", key="separator")
        columns: object = self.columns
        if not (isinstance(columns, list | tuple) and all(type(column) is int and column > 0 for column in columns)):
            raise RecipeError(f"found {columns!r}; expected a list of numbers of columns from 1", key="columns")

    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence | None:
        fields = dict[int, list[str]]()  # of tokens, by their rows
        for index, text in enumerate(rows):
            row = text.split(self.separator) if self.separator else _FIELD.findall(text)
            if (self.comments is not None and text.startswith(self.comments)) or row[0] == DOCUMENT:
                continue
            count = len(next(iter(fields.values()), row))
            if len(row) != count:
                advice = "; if it is a comment, say so with comments: '#'" if text.startswith("#") else ""
                message = f"found {len(row)} columns, after {count} in the lines before{advice}"
                raise Problem("columns", message, line + index)
            fields[index] = row
        if not fields:
            return None
        first_line = line + next(iter(fields))
        label = count - 1 if self.label == "last" else self.label - 1
        others = [column for column in range(count) if count == width or column != label]
        indices = [column - 1 for column in self.columns] or others
        has_labels = label < count and label not in indices
        fits = has_labels if width is None else width == len(indices)
        if not (fits and indices and max(indices) < count):
            more = f"{max([label + 1, *self.columns, 2])} or more"
            form = more if width is None or self.columns else f"{width} or {width + 1}"
            raise Problem("columns", f"found {count} columns; expected {form}", first_line)
        tokens = tuple(tuple(row[column] for column in indices) for row in fields.values())
        labels = tuple(row[label] for row in fields.values()) if has_labels else ()
        if not all(labels) or not all(token[0] for token in tokens):
            raise Problem("columns", "found an empty column; expected a word and a label", first_line)
        return TaggedSentence(tokens, labels, raw=tuple(rows), token_rows=tuple(fields))

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        rows = list(sentence.raw)
        for index, label in zip(sentence.token_rows, labels, strict=True):
            rows[index] += (self.separator or ("\t" if "\t" in rows[index] else " ")) + label
        out.write(encoded("\n".join([*rows, "", ""])))


FIELDS = "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"
NONE = "_"  # an unspecified field
_TOKEN, _OTHER = re.compile("[0-9]+"), re.compile(r"[0-9]+[-.][0-9]+")


@dataclass(frozen=True)
class ConlluReader(SequenceReader):
    """CoNLL-U, ten columns with tabs between them (https://universaldependencies.org/format.html):

        # sent_id = weblog-1
        1    Words    word    NOUN    NNS    Number=Plur    2    nsubj    _    _
        2    matter   matter  VERB    VBP    _              0    root     _    _

    Lines of multiword tokens (1-2) and of empty nodes (1.1) are no tokens, but are written back. The id of a sentence
    is its ``sent_id``, if it has one.

    Parameters
    ----------
    label: a field by name, as ``upos`` and ``xpos``.
    columns: the fields that tokens have, the word first.
    """

    label: str = "upos"
    columns: tuple[str, ...] = ("form",)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, name in (("label", self.label), *(("columns", name) for name in self.columns)):
            if name not in FIELDS:
                raise RecipeError(f"found {name!r}; expected one of {', '.join(FIELDS)}", key=key)
        if not self.columns:
            raise RecipeError("expected the fields that tokens have, as [form]", key="columns")

    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence | None:
        tokens, name = dict[int, dict[str, str]](), ""  # tokens by their rows, fields by name
        for index, text in enumerate(rows):
            if text.startswith("#"):
                key, _, value = text[1:].partition("=")
                name = value.strip() if key.strip() == "sent_id" else name
                continue
            fields = text.split("\t")
            if len(fields) != len(FIELDS):
                message = f"found {len(fields)} columns with tabs between them; expected {len(FIELDS)}"
                raise Problem("columns", message, line + index)
            if _TOKEN.fullmatch(fields[0]):
                tokens[index] = dict(zip(FIELDS, fields, strict=True))
                if width is None and tokens[index][self.label] == NONE:
                    message = f"found a word without {self.label}; expected one for every word"
                    raise Problem("label", message, line + index)
            elif not _OTHER.fullmatch(fields[0]):
                message = f"found the id {fields[0][:40]!r}; expected a number, as 3, 3-4 or 3.1"
                raise Problem("id", message, line + index)
        labels = tuple(token[self.label] for token in tokens.values())
        columns = tuple(tuple(token[column] for column in self.columns) for token in tokens.values())
        known = () if NONE in labels else labels
        return TaggedSentence(columns, known, name, raw=tuple(rows), token_rows=tuple(tokens)) if tokens else None

    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        rows = list(sentence.raw)
        for index, label in zip(sentence.token_rows, labels, strict=True):
            fields = rows[index].split("\t")
            fields[FIELDS.index(self.label)] = label
            rows[index] = "\t".join(fields)
        out.write(encoded("\n".join([*rows, "", ""])))


@dataclass(frozen=True)
class TaggedTrees(SequenceReader):
    """Words of gold trees, without traces; words with labels behind a slash are written. Features, as in
    ``DET##lemma=le##``, are no part of tags.

    Parameters
    ----------
    label: ``tags``, those of the words; ``chunks``, B-NP, I-NP and O, the noun phrases that hold no other (as in
        Ramshaw & Marcus 1995), with the tags as a second column of tokens.
    """

    label: Literal["tags", "chunks"] = "tags"

    @cached_property
    def symbols(self) -> SymbolTable:
        """The labels and words of all trees so far."""
        return SymbolTable()

    def blocks(self, path: PathLike) -> Iterator[tuple[int, list[str]]]:
        return ((line, [decoded(tree)]) for tree, line in read_trees(path))

    def sentence(self, rows: list[str], line: int, width: int | None) -> TaggedSentence:  # noqa: ARG002
        symbols = self.symbols
        try:
            trees = parse_brackets([encoded(rows[0])], symbols, lines=[line])
        except DataError as error:
            raise Problem("brackets", error.message, error.line) from None
        labels = [without_features(symbols.text(j)) for j in trees.label.tolist()]
        size, start, end = trees.size.tolist(), trees.start.tolist(), trees.end.tolist()
        leaves = [k for k, word in enumerate(trees.word.tolist()) if word >= 0 and labels[k] != TRACE]
        words, tags = [symbols.text(int(trees.word[k])) for k in leaves], tuple(labels[k] for k in leaves)
        if not words:
            raise Problem("tree", "found a tree without words")
        if self.label == "tags":
            return TaggedSentence(tuple((word,) for word in words), tags)
        phrases = [k for k, label in enumerate(labels) if label.partition("-")[0] == "NP" and trees.word[k] < 0]
        inside = dict[int, str]()
        for k, following in pairwise([*phrases, len(labels)]):
            if following >= k + size[k]:
                inside |= {t: "I-NP" if t > start[k] else "B-NP" for t in range(start[k], end[k])}
        return TaggedSentence(tuple(zip(words, tags, strict=True)), tuple(inside.get(start[k], "O") for k in leaves))
