"""Files of texts that go with lists, such as references and sources, or with one another: a text on each line.

A text is known by its place or, wherever it stands, by an id on its line, as b1 in each of these::

    {"id": "b1", "text": "it rains"}      or "reference", or a list of "references"
    {"audio_filepath": "a/b1.wav", "text": "it rains"}
    b1 ||| it rains
    it rains (b1)                         the transcripts of sclite (trn)
    b1<tab>it rains                       or it rains<tab>b1, where what is behind the text may be no id
    b1 it rains                           Kaldi's text
    b1,it rains                           below a line such as id,text (or path<tab>sentence)
    {"b1": "it rains", "b2": ...}         the file as a whole

The first word of a line is an id where no two lines have the same and at least half of the lists have such ids, or all
have letters and digits and none is a word of a text; the others are ids of themselves. What is found is said, and the
form overrules it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.readers.inputs import Side, in_step
from rerank.readers.lines import LineReader
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL, say_once
from rerank.readers.reader import Problem, Reader, check_choice, excerpt, lists_of
from rerank.readers.texts.forms import is_of
from rerank.readers.texts.json_lines import list_id, parse_object, text_of, texts_of
from rerank.readers.texts.jsonl import rows_of
from rerank.storage.documents import as_json
from rerank.storage.streams import PathLike, open_stream, stream_name

FORMS = ("auto", "lines", "tab", "id")
Texts = tuple[bytes, ...]  # those of a list: one, or several references
TextsById = dict[str, tuple[int, Texts]]  # texts by id, each with its line
JSON_OVER_LINES = re.compile(rb'\s*(?:\[\s*["{\[].*|[\[{]\s*$)')
FOREIGN = {  # how files begin that hold texts and more
    rb"S .*\nA -?\d+ -?\d+\|\|\|": "annotations in M2 (lines of S and A); expected texts: name the corrected sentences",
    rb"(\S+\s+){3}\d+(\.\d+)?\s+\d+(\.\d+)?\s+<[^<>]*>": "segments of STM (timed); expected texts, as 'ID it rains'",
    rb"<(\?xml|refset|srcset|tstset|doc|seg|tu)\b": "XML; expected its texts, one on each line",
}  # fmt: skip
TEXTS = "references", "reference", "text", "transcript", "sentence", "target", "ref"  # what keys and columns are called
IDS = "id", "utt_id", "uid", "key", "audio_filepath", "path", "file"  # the last three name files
_LIKE_IDS = re.compile(r"(?=.*\d).*[^\W\d]")  # all have letters and digits, and none is a word of a text


class Way(NamedTuple):
    """A way in which lines hold an id and a text."""

    where: str  # the id is
    line: re.Pattern[bytes]  # with the groups "id" and "text"
    sure: bool = True  # whether it tells ids of itself

    def split(self, line: bytes) -> tuple[str, Texts] | None:
        """The id, which may be empty, and the texts of a line; None if it is not written so. Raises Problem."""
        match = self.line.match(line)
        if match is None or self is not JSON:
            return match and (decoded(match["id"]), ((match["text"] or b"").strip(),))
        item = parse_object(line)
        value = next(filter(None, map(item.get, TEXTS)), item.get("text"))
        what = "a 'text' or a 'reference'"
        if value is None:
            raise Problem("text", f"found {excerpt(line)}; expected {what} in it: lists are no sentences")
        texts = texts_of(value, what) if isinstance(value, list) else (text_of(value, what),)
        names = ((list_id(item, key), key) for key in IDS)
        name, key = next(filter(itemgetter(0), names), ("", ""))
        return os.path.splitext(os.path.basename(name))[0] if name and key in IDS[-3:] else name or "", texts


JSON = Way("the id of each object", re.compile(rb'\{\s*"'))
BARS = Way("what is before '|||'", re.compile(rb"(?P<id>\S+)\s*\|\|\|(?P<text>(?:(?!\|\|\|).)*)$"))
COLUMNS = Way("", re.compile(rb"(?P<id>)(?P<text>.*\t.*)"))
FIRST_WORD = Way("the first word of each line", re.compile(rb"(?P<id>\S+)(?P<text>(?:(?!\|\|\|).)*)$"), sure=False)
WAYS = (
    JSON,
    BARS,
    Way("what is in brackets at the end of each line", re.compile(rb"(?P<text>.*\s)?\((?P<id>[^()\s]*\d[^()\s]*)\)$")),
    Way("the first column", re.compile(rb"(?P<id>\S+)\t(?P<text>[^\t]*)$")),
    Way("the second column", re.compile(rb"(?P<text>[^\t]*\s[^\t]*)\t(?P<id>\S+)$")),
    COLUMNS,
    FIRST_WORD,
)


def _lines_of(path: PathLike, *, look: bool) -> Iterator[tuple[int, bytes]]:
    """The numbers and texts of lines; look: whether they may be other than texts."""
    with open_stream(path) as stream:
        lines = LineReader(stream)
        first = lines.peek(2) if look else []
        for sign, what in FOREIGN.items():
            if re.match(sign, b"\n".join(map(bytes.strip, first))):
                raise DataError(f"found {what}", path=lines.path, line=1)
        header = decoded(first[0]).strip() if first else ""
        columns = {mark: {name.strip(' "').lower() for name in header.split(mark)} for mark in "\t,"}
        marks = (mark for mark, names in columns.items() if not (names.isdisjoint(TEXTS) or names.isdisjoint(IDS)))
        if mark := next(marks, ""):  # of a table whose first line names an id and a text
            for number, row in rows_of(lines.rest(), mark, lines.path):
                if isinstance(row, Problem):
                    raise DataError(row.message, path=lines.path, line=number)
                yield number, _line_of({key.strip().lower(): value for key, value in row.items()})
            return
        over_lines = first and first[0].strip() == b"{"
        if objects := _texts_by_id(first[0] if len(first) == 1 else lines.rest() if over_lines else b""):
            yield from enumerate(map(_line_of, objects), start=1)
            return
        if first and JSON_OVER_LINES.match(first[0]):
            message = f"found {excerpt(first[0])}, of one JSON value; expected a text, or an object, on each line"
            raise DataError(f"{message} (form: lines takes lines as they stand)", path=lines.path, line=1)
        for number, line in lines:
            if lines.nul and b"\0" in line:
                raise DataError(NUL, path=lines.path, line=number)
            yield number, line.strip()


def _texts_by_id(value: bytes) -> list[dict[str, Any]]:
    """The entries of a JSON object of ids with their texts, as an object of each; none for all else."""
    with suppress(Problem):
        texts = {} if value[:1] != b"{" else parse_object(value)
        if texts.keys().isdisjoint((*TEXTS, *IDS)) and all(
            isinstance(one, str) or is_of(one, [str]) for one in texts.values()
        ):
            return [{"id": key, "references": one if isinstance(one, list) else [one]} for key, one in texts.items()]
    return []


def _line_of(item: Mapping[str, Any]) -> bytes:
    return encoded(as_json(item, ensure_ascii=False))


class TextFile:
    """The texts of a file, which is read at once only as far as its lines may have ids.

    Parameters
    ----------
    form: "auto": texts on lines, which may have ids; "lines": texts on lines, as they stand; "tab": several texts on
        each line; "id": texts on lines that have ids, one or several for each.
    """

    def __init__(self, path: PathLike, form: str = "auto") -> None:
        self.path, self.form = stream_name(path), form
        check_choice("form", form, FORMS)
        self._lines, self._buffer = _lines_of(path, look=form != "lines"), list[tuple[int, bytes]]()
        self.ways = self._look() if form in ("auto", "id") else {}

    def _look(self) -> dict[Way, TextsById]:
        """The ways in which all lines are written, and what they hold by id."""
        ways = {way: TextsById() for way in WAYS if self.form == "auto" or way != COLUMNS}
        for number, line in self._lines:
            self._buffer.append((number, line))
            for way, entries in [*ways.items()] if line else ():
                try:
                    pair = way.split(line)
                except Problem as problem:
                    message = f"{problem.message} (form: lines takes lines as they stand)"
                    raise DataError(message, path=self.path, line=number) from None
                if pair is None or (not way.sure and pair[0] in entries and self.form == "auto"):
                    del ways[way]
                elif pair[0]:
                    entries[pair[0]] = number, present_texts((*entries.get(pair[0], (0, ()))[1], *pair[1]))
            if not ways and self.form == "id":
                message = f"found {excerpt(line)}; expected an id and a text, written as on the lines before"
                raise DataError(message, path=self.path, line=number)
            if not ways:
                return {}
        words = ways.pop(FIRST_WORD, {})
        if self.form == "id" or 2 * sum(any(texts) for _, texts in words.values()) > len(words):
            word_lists = (decoded(text).split() for _, texts in words.values() for text in texts)
            like = all(map(_LIKE_IDS.match, words)) and all(map(words.keys().isdisjoint, word_lists))
            ways[FIRST_WORD._replace(sure=len(words) > 1 and like)] = words
        rest = [*ways.items()] if any(line for _, line in self._buffer) else []
        return dict(rest[:1] if self.form == "id" else rest)

    def by_id(self, ids: Sequence[str], *, own: bool) -> TextsById | None:
        """The texts by the ids of lists, of which the first are given; None where places tell what goes together.

        own: whether these are ids of their own, and not the places of lists.

        Raises
        ------
        DataError: both have ids of their own, and none in common.
        """
        shared = {way: sum(name in named for name in ids) for way, named in self.ways.items()}
        if not own and 2 * (first := shared.pop(FIRST_WORD, 0)) >= len(ids) and first > max(shared.values(), default=0):
            message = "taken for text, though lists have these numbers (form: id takes it for their ids)"
            say_once(f"{self.path}: {FIRST_WORD.where} is {message}")
        way = max(shared, key=lambda way: shared[way], default=COLUMNS)
        if self.form == "id":
            return next(iter(self.ways.values()), {})
        always = own and way.sure and len(self.ways.get(way, ())) == sum(line != b"" for _, line in self._buffer) > 0
        if shared.get(way, 0) and (always or 2 * shared[way] >= len(ids)):
            say_once(f"{self.path}: {way.where} is taken for the id of a list (form: lines takes it for text)")
            return self.ways[way]
        if always:
            message = f"{way.where} is an id, as {next(iter(self.ways[way]))!r}, but none is that of a list, as "
            message += f"{ids[0]!r}: give both the same ids, or the file none, if its order is that of the lists"
            raise DataError(message, path=self.path, line=1)
        return None

    def in_order(self) -> Iterator[tuple[int, Texts]]:
        """The texts in their order, without ids, each with its line."""
        way = next((way for way in self.ways if way.sure or self.form == "id"), None)
        if way == COLUMNS:
            message = "a tab on every line: form: tab takes what is between tabs for several texts, form: lines the "
            raise DataError(f"{message}whole line for one", path=self.path, line=1)
        if way is not None and self.ways[way]:
            say_once(f"{self.path}: {way.where} is left out, as it is no text (form: lines takes it for text)")
        if way == BARS or self.form == "id":
            yield from self.ways.get(way or BARS, {}).values()
            return
        for number, line in chain(self._buffer, self._lines):
            if way is None:
                yield number, present_texts(map(bytes.strip, line.split(b"\t"))) if self.form == "tab" else (line,)
            elif line and (pair := way.split(line)) is not None:
                yield number, present_texts(pair[1])


def pair_texts(first: TextFile, others: Sequence[TextFile]) -> list[list[Texts]]:
    """The texts of all files in the order of the first: by ids where files have the same, else by their places.

    Raises
    ------
    DataError: an id, or a place, that one file has and another has not.
    """
    of_others = [own for file in others for way, own in file.ways.items() if way.sure]
    own_ids = (own for way, own in first.ways.items() if way.sure)
    pairs = ((own, sum(name in other for name in own)) for own in own_ids for other in of_others)
    ids = next(([*own] for own, shared in pairs if own and 2 * shared >= len(own)), [])
    rows = list[list[Texts]]()
    for file in (first, *others):
        own = file.by_id(ids, own=True) if ids else None
        if own is not None and (odd_id := min(own.keys() ^ {*ids}, default=None)) is not None:
            where = "this file" if odd_id in own else first.path
            message = f"the id {odd_id!r} is in {where} alone; expected it in both"
            raise DataError(message, path=file.path, line=own.get(odd_id, (None,))[0])
        rows.append([texts for _, texts in file.in_order()] if own is None else [own[name][1] for name in ids])
        if len(rows[-1]) != len(rows[0]):
            message = f"{len(rows[-1])} lines for {len(rows[0])} references of {first.path}; expected one for each"
            raise DataError(message, path=file.path)
    return rows


def present_texts(texts: Iterable[bytes]) -> Texts:
    """The references that are not missing."""
    return tuple(filter(None, texts)) or (b"",)


def complete(nbest: Lists, *, needs_references: bool = True) -> Lists:
    """The list, or a bad one ("no reference") if it lacks references that it needs."""
    if nbest.problem is None and nbest.missing is None and needs_references and not nbest.references:
        message = "no references: name their files with data.references, or use a format that holds them (jsonl); "
        message += "of lists in memory, give references or gains"
        return nbest.leave_out(Problem("no reference", message))
    return nbest


def lists_of_texts(reader: Reader, path: PathLike, **files: Any) -> Iterator[Lists]:
    """Every list of texts, usable or not, with its source and references, paired by ids or by order; in blocks where no
    ``files`` (see ``text_sides``) hold any.

    A bad list uses up its source and its references. For lists that are missing at the end there are empty lists,
    ``missing``.
    """
    if not (sides := text_sides(**files)):
        yield from lists_of(reader, path)
        return
    for nbest, entries in in_step(reader, path, sides, missing=True):
        yield with_texts(nbest, entries, sourced=files.get("sources") is not None)


def text_sides(
    references: Sequence[PathLike] | None = None, sources: PathLike | None = None, form: str = "auto"
) -> list[Side]:
    """The files of sources and references. references, form: files and their form, see ``TextFile``; by default those
    that the lists hold. sources: a file with one source per line; by default those that the lists hold."""
    sides = [] if sources is None else [source_lines(sources, form)]
    return [*sides, *(TextSide(path, ("line of references", "references"), form) for path in references or ())]


def with_texts(nbest: Lists, entries: Sequence[Any], *, sourced: bool) -> Lists:
    """A list with what the files of ``text_sides`` have for it; sourced: whether the first of these are sources."""
    if nbest.problem is not None:
        return nbest
    fields = {"source": entries[0][0]} if sourced and entries[0] is not None else {}
    if len(entries) > sourced:
        fields["references"] = present_texts(chain(*filter(None, entries[sourced:])))
    return text_list(nbest).replace(**fields)


class TextSide(Side):
    """A file of texts, an entry of which is the texts of a list."""

    def __init__(self, path: PathLike, what: tuple[str, str], form: str) -> None:
        super().__init__([path], (), what)
        check_choice("form", form, FORMS)
        self.form = form

    def pair_up(self, reader: Reader, ids: Callable[[], Sequence[str]]) -> None:
        file = TextFile(self.paths[0], self.form)
        first = ids() if file.ways else ()
        own = reader.order == "id" and any(name != str(k) for k, name in enumerate(first, start=reader.first_id))
        self.by_id = file.by_id(first, own=own) if first else None
        if self.by_id is None:
            self.entries = file.in_order()
            super().pair_up(reader, ids)


def source_lines(path: PathLike, form: str = "auto") -> Side:
    """The sources of lists, one per line, as a side file; form: that of references."""
    return TextSide(path, ("source", "sources"), "lines" if form == "lines" else "auto")


def text_list(nbest: Lists) -> Lists:
    """``nbest`` as a list of texts."""
    if not nbest.of_trees or nbest.problem is not None:
        return nbest
    message = "the reader gives lists of trees; name one of lists of texts: --reader (in a recipe: data.reader)"
    raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
