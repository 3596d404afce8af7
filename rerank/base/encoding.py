"""Texts: of files, as UTF-8; made safe to show; made into names of files.

Bytes that are not UTF-8 are surrogate escapes in a ``str``, and survive. Ids, words and names come from strangers:
printed raw, an escape sequence clears or retitles the screen, a line break forges a message, and a bidirectional
override changes what a reader sees. ``plain`` guards every way out: what commands print (``progress.PlainConsole``),
what is logged (``PlainMessages``), error messages, tables and pages of reports. ``hide_secrets`` keeps passwords
and tokens in URLs out of messages and logs.
"""

import logging
import os
import re
import unicodedata
import zlib

_HALF = re.compile("([\ud800-\udc7f\udd00-\udfff]+)")  # surrogates that do not escape a byte
# Most text is printable ASCII: one search for anything else is all that it costs.
_SUSPECT = re.compile(r"[^\x20-\x7e]")
LOGIN = re.compile(
    r"(?<=://)(?<!github://)[^/?#\s]*@"
)  # of a URL, a name and password; GitHub's has its repository there
_QUERY = re.compile(r"(://[^?\s]*\?)[^\s#\"'<>]+")
NAME_RULE = "letters, digits and _, with . + - and spaces between them"  # of names of splits and the like
MAX_NAME_BYTES = 100  # names made from it have to be file names too
_NAME = re.compile(r"\w([\w .+-]*[\w+-])?")
DECIMAL = rb"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"  # the expression of a decimal number


def decoded(text: bytes) -> str:
    """A text as it is shown and scored."""
    return text.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text; half a surrogate pair, which JSON can hold, becomes what UTF-8 would make of it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        errors = ("surrogateescape", "surrogatepass")
        return b"".join(part.encode("utf-8", errors[k % 2]) for k, part in enumerate(_HALF.split(text)))


def plain(text: str, safe: str = "") -> str:
    """``text`` with \\x1b, \\u202e and the like in place of unprintable characters, except for those in ``safe``.

    Unprintable are control characters, line ends, direction marks and other invisible format characters, halves of
    surrogate pairs, and code points that Unicode has not assigned. Spaces of all widths stay.
    """

    def escape(match: re.Match[str]) -> str:
        letter = match[0]
        good = letter.isprintable() or letter in safe or unicodedata.category(letter) == "Zs"
        return letter if good else ascii(letter)[1:-1]

    return _SUSPECT.sub(escape, text)


def excerpt(text: bytes, length: int = 40) -> str:
    """The start of ``text`` for a message, on one line and quoted."""
    start = repr(text[:length].decode("utf-8", "replace"))
    return start if len(text) <= length else f"{start}..."


def hide_secrets(text: str) -> str:
    """``text`` with its URLs as they may be shown and stored: without name and password, and ``...`` for their queries,
    which may hold a token."""
    return _QUERY.sub(r"\1...", LOGIN.sub("", text)) if "://" in text else text


class PlainMessages(logging.Filter):
    """Makes the arguments of a log message plain, so that it stays on one line, and tells no secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                plain(hide_secrets(str(value))) if isinstance(value, str | os.PathLike | BaseException) else value
                for value in record.args
            )
        return True


def is_name(text: str) -> bool:
    """Whether ``text`` can be part of a file's name as it is: it follows ``NAME_RULE``, is not empty nor too long."""
    return _NAME.fullmatch(text) is not None and len(os.fsencode(text)) <= MAX_NAME_BYTES


def file_name(name: str) -> str:
    """``name`` as (part of) the name of a file: as it is, or with a digest, so that two names never share a file."""
    if is_name(name):
        return name
    data = name.encode("utf-8", "surrogatepass")
    stem = re.sub(r"[^\w.+-]+", "_", name).strip("._+-")[: MAX_NAME_BYTES // 8]
    return f"{stem or '_'}-{zlib.crc32(data):08x}"


def check_split(name: str) -> str:
    """``name``, if it can be the name of a split; else a ``ValueError`` that says what to write instead."""
    if is_name(name):
        return name
    message = f"the name of a split may have {NAME_RULE}, and at most {MAX_NAME_BYTES} bytes"
    folder, slash, last = name.rpartition("/")
    if slash and is_name(last):
        message += f"; for files elsewhere, name the folder in data.root ({folder or '/'}) and the split {last!r}"
    elif slash:
        message += "; for files elsewhere, name the folder in data.root"
    raise ValueError(message)


def amount(count: int, thing: str) -> str:
    """A count of things, in the plural unless there is one.

    >>> amount(1, "list"), amount(1200, "list")
    ('1 list', '1,200 lists')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
