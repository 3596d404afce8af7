"""What a command prints: tables and lines for people or, with --json, one object for programs that holds the same."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rerank.base.progress import PlainConsole

if TYPE_CHECKING:
    from rich.console import RenderableType

# Trees, features and names are shown as they are, whatever brackets and colons they hold. Without a terminal there
# is no width to fit: tables keep their natural one.
out = PlainConsole(
    markup=False,
    emoji=False,
    highlight=False,
    soft_wrap=True,
    width=None if sys.stdout and sys.stdout.isatty() else 200,
)


class Answer:
    """What the command under way has found, by name, if it is to be printed as one object; else None."""

    found: dict[str, Any] | None = None


def shown_as_json() -> bool:
    """Does the command under way print an object?"""
    return Answer.found is not None


def show(*lines: "RenderableType", **found: Any) -> None:
    """Print lines and tables; with --json, keep in their place what they show: values by name, in full precision."""
    if Answer.found is not None:
        Answer.found |= found
        return
    for line in lines:
        out.print(line)


@contextmanager
def answering(as_object: bool) -> Iterator[None]:
    """Print what the block finds as lines, as it comes, or when the block has ended, as an object."""
    Answer.found = {} if as_object else None
    try:
        yield
        if Answer.found:
            print_object(Answer.found)
    finally:
        Answer.found = None


def print_object(found: dict[str, Any]) -> None:
    """Print an object as JSON (RFC 8259), in ASCII."""
    from rerank.storage.strict_json import as_json

    sys.stdout.write(f"{as_json(found, indent=2, default=_plain_value)}\n")


def _plain_value(value: Any) -> Any:
    """A number of numpy's, or a path, as JSON knows it."""
    return value.item() if hasattr(value, "item") else str(value)
