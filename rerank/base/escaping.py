"""Text from files made safe to show: nothing in it that a terminal would obey, or that looks like something else.

Ids, words and names come from strangers. Printed raw, an escape sequence clears or retitles the screen, a line break
forges a message, and a bidirectional override changes what a reader sees. ``plain`` guards every way out: what commands
print (``progress.PlainConsole``), what is logged (``PlainMessages``), error messages, tables and pages of reports.
``shown`` keeps passwords and tokens in URLs out of messages and logs.
"""

import logging
import os
import re
import unicodedata

# Most text is printable ASCII: one search for anything else is all that it costs.
_SUSPECT = re.compile(r"[^\x20-\x7e]")
_LOGIN = re.compile(r"(?<=://)(?<!github://)[^/?#\s]*@")  # a name and password; GitHub's has its repository there
_QUERY = re.compile(r"(://[^?\s]*\?)[^\s#\"'<>]+")


def plain(text: str, kept: str = "") -> str:
    """``text`` with \\x1b, \\u202e and the like in place of unprintable characters, except for those in ``kept``.

    Unprintable are control characters, line ends, direction marks and other invisible format characters, halves of
    surrogate pairs, and code points that Unicode has not assigned. Spaces of all widths stay.
    """
    return _SUSPECT.sub(lambda found: _shown(found[0], kept), text)


def _shown(letter: str, kept: str) -> str:
    if letter.isprintable() or letter in kept or unicodedata.category(letter) == "Zs":
        return letter
    return ascii(letter)[1:-1]


def has_login(text: str) -> bool:
    """Whether there is a URL with a user's name or password in ``text``."""
    return _LOGIN.search(text) is not None


def shown(text: str) -> str:
    """``text`` with its URLs as they may be shown and stored: without name and password, and ``...`` for their queries,
    which may hold a token."""
    return _QUERY.sub(r"\1...", _LOGIN.sub("", text)) if "://" in text else text


class PlainMessages(logging.Filter):
    """Makes the arguments of a log message plain, so that it stays on one line, and tells no secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                plain(shown(str(value))) if isinstance(value, str | os.PathLike | BaseException) else value
                for value in record.args
            )
        return True
