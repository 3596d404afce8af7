"""Lists as lines of Moses: as they were read, with other totals, or composed from those of other formats."""

import re

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.moses.layout import BAR, Layout, as_number, layout_of, parts_of
from rerank.readers.texts.text_list import Pieces

OLD = b"BaseScore"  # the label of the total that a list had before it was reranked

_OLD_LABEL = re.compile(rb"(?:^|[\s;])BaseScore[=:]")


def line_of(nbest: Lists, i: int) -> bytes:
    """The line of candidate i: as it was read or, for a list of another format, composed."""
    known = _known_layout(nbest)
    return _composed(nbest, i) if known is None else bytes(nbest.raw.candidates[i])


def _known_layout(nbest: Lists) -> Layout | None:
    """The layout of a list's own file; None if it is of another format."""
    head = nbest.raw.head if isinstance(nbest.raw, Pieces) else None
    return head if isinstance(head, Layout) else None


def rescored(nbest: Lists, line: bytes, score: float) -> bytes:
    """``line`` with another total; the old one is added to the features, unless they hold an earlier one."""
    parts = parts_of(line)
    layout = _layout(nbest, parts)
    new = repr(score).encode()
    if layout.score < 0:
        parts.insert(layout.features + 1, b" " + new + b" " * (layout.features + 1 < len(parts)))
        parts[layout.features] = parts[layout.features].rstrip() + b" "
        return b"|||".join(parts)
    old = parts[layout.score].strip()
    last = layout.score == len(parts) - 1
    if layout.features < 0:
        new = OLD + b"= " + old + b" ||| " + new
    elif not _OLD_LABEL.search(parts[layout.features]):
        features = parts[layout.features].strip()
        features += _separator(features) + OLD + _mark(features) + old
        parts[layout.features] = _padded(parts[layout.features], features, layout.features == len(parts) - 1)
    parts[layout.score] = _padded(parts[layout.score], new, last)
    return b"|||".join(parts)


def _layout(nbest: Lists, parts: list[bytes]) -> Layout:
    """The layout of the file that the line is from; lists of several files may have several layouts."""
    fields = [part.strip() for part in parts]
    known = _known_layout(nbest)
    if known is None or known.fields != len(fields):
        return layout_of(fields)
    return known if known.score < 0 or as_number(fields[known.score]) is not None else layout_of(fields)


def _padded(part: bytes, text: bytes, last: bool) -> bytes:
    """``text`` with the white space around ``part``."""
    if not part.strip():
        return b" " + text + b" " * (not last)
    body = part.strip()
    at = part.index(body)
    return part[:at] + text + part[at + len(body) :]


def _separator(features: bytes) -> bytes:
    """The separator of labelled values: a blank or, as cdec writes them, a semicolon."""
    if not features:
        return b""
    return b";" if b";" in features and len(features.split()) == 1 else b" "


def _mark(features: bytes) -> bytes:
    """The separator of a label from its value."""
    mark = b":" if b":" in features and b"=" not in features else b"="
    joined = mark in features and not any(word.endswith(mark) for word in features.split())
    return mark if joined else mark + b" "


def _composed(nbest: Lists, i: int) -> bytes:
    """A line for a candidate of another format: all scores except the base score become labelled values."""
    names = nbest.names or tuple(map(str, range(nbest.scores.shape[1])))
    values = list(zip(map(encoded, names), nbest.scores[i].tolist(), strict=True))
    del values[nbest.column]
    if nbest.sparse is not None:
        begin, end = nbest.sparse.first[i : i + 2].tolist()
        values += zip(nbest.sparse.names[begin:end], nbest.sparse.values[begin:end].tolist(), strict=True)
    derivations = [column[i] for column in (nbest.segmentation, nbest.alignment) if column is not None]
    features = b" ".join((b"_".join(name.split()) or b"_") + b"= " + repr(value).encode() for name, value in values)
    base = repr(float(nbest.base[i])).encode()
    fields = [encoded(nbest.id), nbest.written(i), features, base, *derivations]
    if any(b"\n" in field or BAR.search(field) for field in fields):
        message = f"candidate {i + 1} cannot be written on a line: there is a line break or '|||' in it"
        raise DataError(message, path=nbest.path, line=nbest.lines[i], list_id=nbest.id)
    return b" ||| ".join(fields)


def marker(name: str) -> bytes:
    """The line that stands for a list without candidates."""
    return encoded(f"{name} |||\n")
