"""How a command ends after an unforeseen error: one message, and the traceback in a file."""

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from rerank.base.errors import RunError, UnforeseenError

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
    found = UnforeseenError.of(error)
    command = shlex.join(word if word.isprintable() else ascii(word) for word in command_line())
    kept = _kept(f"{command}\n{found.traceback}".encode("utf-8", "backslashreplace"))
    return RunError(f"{found}\nThis ended `{command}`; {kept}, or set {DEVELOPER}=1 to see it.")


def _kept(text: bytes) -> str:
    """Store the traceback ``text``; returns where it is."""
    from rerank.storage.written import has_written

    try:
        log = None if Command.output is None else Command.output / "log.txt"
        if log is not None and Command.output is not None and has_written(Command.output, log.name):
            with log.open("ab") as out:
                out.write(text)
            return f"the traceback is in {log}"
        number, name = tempfile.mkstemp(prefix="rerank-traceback-", suffix=".txt")
        with os.fdopen(number, "wb") as out:
            out.write(text)
        return f"the traceback is in {name}"
    except OSError as error:
        return f"the traceback cannot be written ({error.strerror})"
