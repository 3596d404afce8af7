"""What a command in this process leaves, for tests of the command line."""

import signal
from collections.abc import Callable
from typing import NamedTuple

from rerank.base.interrupts import Interrupted
from rerank.cli.application import app, load_commands

load_commands()
COMMANDS = {
    (command.name or command.callback.__name__): command for command in app.registered_commands if command.callback
}


class Result(NamedTuple):
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


def pass_on(ended: BaseException | None) -> None:
    """A signal that a command in this process took for its own was meant for the tests."""
    while ended is not None:
        if isinstance(ended, Interrupted):
            signal.raise_signal(ended.number)
        ended = ended.__context__


def failed(result: Result, code: int, *parts: str) -> None:
    """The command failed with exactly one message, which holds all ``parts``."""
    assert result.code == code, result
    assert "Traceback" not in result.err
    assert result.err.count("error:") == 1, result.err
    assert result.out == ""
    for part in parts:
        assert part in result.err


def refused(result: Result, *parts: str) -> None:
    """It failed because of what the user gave it."""
    failed(result, 2, *parts)
