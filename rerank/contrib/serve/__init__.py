"""``rerank serve``: a model that answers over HTTP."""

from typing import NamedTuple

from rerank.base.registry import Add


class Limits(NamedTuple):
    """The limits of one request: its bytes, words of a text and levels of a tree in it, and seconds to rank it."""

    bytes: int = 4 << 20
    words: int = 10_000
    depth: int = 500
    seconds: float = 30.0


DEFAULTS = Limits()


def register(add: Add) -> None:
    """Make the command known."""
    add("command", "serve", f"{__name__}.command")
