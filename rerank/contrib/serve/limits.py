"""The limits of one request."""

from typing import NamedTuple


class Limits(NamedTuple):
    """The bytes of a request, words of a text and levels of a tree in it, and seconds to rank it."""

    bytes: int = 4 << 20
    words: int = 10_000
    depth: int = 500
    seconds: float = 30.0


DEFAULTS = Limits()
