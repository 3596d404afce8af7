"""Text of files as it is shown: nothing in it that a terminal would obey, and nothing that looks like something else.

Ids, words and names are strangers'. Raw, an escape sequence clears the screen or retitles it, a line break makes up a
message, and a bidirectional override swaps what a reader sees. ``plain`` stands at the doors: what commands print
(``progress.PlainConsole``), what is logged (``PlainMessages``), messages of errors, the tables and pages of reports.
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata

# Most text has neither: a look for what might be unprintable is all that it takes.
_SUSPECT = re.compile(r"[^\x20-\x7e]")


def plain(text: str, kept: str = "") -> str:
    """``text`` with \\x1b, \\u202e and the like for what cannot be printed as it is, but for the characters ``kept``.

    These are controls, line ends, marks of direction and other formats without a look of their own, halves of surrogate
    pairs, and what Unicode has not assigned. Spaces of all widths stay.
    """
    return _SUSPECT.sub(lambda found: _shown(found[0], kept), text)


def _shown(letter: str, kept: str) -> str:
    if letter.isprintable() or letter in kept or unicodedata.category(letter) == "Zs":
        return letter
    return ascii(letter)[1:-1]


class PlainMessages(logging.Filter):
    """Makes what a message is filled with plain: a message stays on its line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See ``logging.Filter``."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                plain(str(value)) if isinstance(value, str | os.PathLike | BaseException) else value
                for value in record.args
            )
        return True
