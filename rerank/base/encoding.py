"""Texts in UTF-8 as files have them: bytes that are not UTF-8 are surrogate escapes in a ``str``, and survive."""

import re

_HALF = re.compile("([\ud800-\udc7f\udd00-\udfff]+)")  # surrogates that do not escape a byte


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
