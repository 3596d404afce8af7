"""Text from files made safe to show: nothing in it that a terminal would obey, or that looks like something else.

Ids, words and names come from strangers. Printed raw, an escape sequence clears or retitles the screen, a line break
forges a message, and a bidirectional override changes what a reader sees. ``plain`` guards every way out: what commands
print (``progress.PlainConsole``), what is logged (``PlainMessages``), error messages, tables and pages of reports.
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata

# Most text is printable ASCII: one search for anything else is all that it costs.
_SUSPECT = re.compile(r"[^\x20-\x7e]")


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


class PlainMessages(logging.Filter):
    """Makes the arguments of a log message plain, so that it stays on one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See ``logging.Filter``."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                plain(str(value)) if isinstance(value, str | os.PathLike | BaseException) else value
                for value in record.args
            )
        return True
