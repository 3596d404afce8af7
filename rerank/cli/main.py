"""``rerank COMMAND``: what it loads, and how it ends.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the run failed, 2 wrong usage, recipe,
model or data, 130 interrupted (128 plus the number of the signal).
"""

import gc
import io
import logging
import os
import sys

from rich.markup import escape

from rerank.base.errors import RecipeError, RerankError
from rerank.base.interrupts import Interrupted, handled
from rerank.base.progress import console
from rerank.base.registry import Registry
from rerank.cli.answer import unforeseen
from rerank.cli.application import app

__all__ = ["app", "load_commands", "main"]
commands = Registry[object]("command")  # their modules
log = logging.getLogger("rerank")
COLLECTED = 50_000  # objects made until Python looks for cycles again: a tenth of the start went into that, in vain


def load_commands(wanted: str | None = None) -> None:
    """Import the module of the command ``wanted``, or those of all, which add them to ``app``."""
    names = commands.names()
    for name in [wanted] if wanted in names else names:
        try:
            commands.get(name)
        except RecipeError as error:
            log.warning("%s", error)


def main() -> None:
    """Run the command line; whatever goes wrong is one message without a traceback."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - a stream that is closed has no file: None
    if sys.stdout is None:
        _fail("standard output is closed: redirect it, to a file or /dev/null", 2)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names may have bytes that are not text; stderr is like this anyway
        sys.stdout.reconfigure(errors="backslashreplace")
    gc.set_threshold(COLLECTED, 20, 50)
    try:
        with handled():
            load_commands(next(iter(sys.argv[1:]), None))  # an interrupt may come meanwhile
            try:
                app(standalone_mode=True)
            finally:
                sys.stdout.flush()  # a full disk shows here, not when Python exits
    except RerankError as error:
        _fail(str(error), error.exit_code)
    except Interrupted as stop:  # before a command has started
        _fail("interrupted", stop.exit_code)
    except BrokenPipeError:
        # The reader of our output is gone: there is nothing more to say, and nothing must be flushed at exit.
        _drop_output()
        sys.exit(1)
    except Exception as error:  # before a command has started, or when its output is flushed
        _drop_output()
        _fail(str(unforeseen(error)), 1)


def _drop_output() -> None:
    """Discard what is left for a stdout that cannot be written: Python would try again when it exits, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> None:
    console.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    raise SystemExit(code)
