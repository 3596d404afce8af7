"""The output of a command, for people or with --json for programs, and how it ends after an unforeseen error."""

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rerank.base.errors import RerankError, RunError, UnforeseenError
from rerank.base.progress import PlainConsole

if TYPE_CHECKING:
    from rich.console import RenderableType

# Trees, features and names are shown as they are, whatever brackets and colons they hold. Without a terminal there
# is no width to fit: tables keep their natural one.
_width = None if sys.stdout and sys.stdout.isatty() else 200
out = PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True, width=_width)


class Answer:
    """The findings of the command under way, by name, if it is to be printed as one object; else None."""

    found: dict[str, Any] | None = None


def shown_as_json() -> bool:
    """Whether the command under way prints an object."""
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
            from rerank.storage.strict_json import as_json

            def plain(value: Any) -> Any:
                """A number of numpy's, or a path, as JSON knows it."""
                return value.item() if hasattr(value, "item") else str(value)

            sys.stdout.write(f"{as_json(Answer.found, indent=2, default=plain)}\n")
    finally:
        Answer.found = None


DEVELOPER = "RERANK_TRACEBACK"  # where it is set, tracebacks are shown


class Command:
    """The command under way. output: the directory of its results, where it has one; sets: its options --set."""

    output: Path | None = None
    sets: ClassVar[list[str]] = []


def command_line() -> list[str]:
    """The words that started this process, as a user would type them."""
    program = Path(sys.argv[0])
    return [*(["python", "-m", "rerank"] if program.name == "__main__.py" else [program.name]), *sys.argv[1:]]


def unforeseen(error: BaseException) -> RunError:
    """The message about ``error``: what happened, in which command, with which file, and where its traceback is.

    The traceback is added to log.txt of the output directory, or written to a temporary file of its own.
    """
    if os.environ.get(DEVELOPER):
        raise error
    report = UnforeseenError.of(error)
    command = shlex.join(word if word.isprintable() else ascii(word) for word in command_line())
    kept = _kept(f"{command}\n{report.traceback}".encode("utf-8", "backslashreplace"))
    return RunError(f"{report}\nThis ended `{command}`; {kept}, or set {DEVELOPER}=1 to see it.")


def _kept(text: bytes) -> str:
    """Store the traceback ``text``; returns where it is."""
    from rerank.storage.outputs import LOG, noted

    try:
        log = None if Command.output is None else Command.output / LOG
        if log is not None and LOG in noted(log.parent) and log.is_file():
            with log.open("ab") as out:
                out.write(text)
            return f"the traceback is in {log}"
        number, name = tempfile.mkstemp(prefix="rerank-traceback-", suffix=".txt")
        with os.fdopen(number, "wb") as out:
            out.write(text)
        return f"the traceback is in {name}"
    except (OSError, RerankError) as error:
        return f"the traceback cannot be written ({getattr(error, 'strerror', None) or error})"
