"""What all commands have in common: how they end, whatever happens, and that they leave the process as it was."""

import inspect
import signal
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import get_type_hints

import pytest
import typer.main
from commands import COMMANDS, Command, failed
from typer.models import OptionInfo

from rerank.base import interrupts

FAILURES: dict[str, tuple[BaseException, str]] = {
    "key": (KeyError("a"), "unexpected KeyError: 'a'"),
    "memory": (MemoryError(), "out of memory; use fewer lists"),
    "recursion": (RecursionError("too deep"), "unexpected RecursionError: too deep"),
    "full": (OSError(28, "No space left on device"), "No space left on device"),
    "permission": (PermissionError(13, "Permission denied", "lists.gz"), "lists.gz: Permission denied"),
    "unicode": (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "unexpected UnicodeDecodeError: 'utf-8' codec"),
    "pipe": (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
    "end of file": (EOFError(), "unexpected EOFError"),
    "exit": (SystemExit(0), "unexpected SystemExit: 0"),
    "terminal": (ValueError("\x1b[2J"), "unexpected ValueError: \\x1b[2J"),
}


def instead(monkeypatch: pytest.MonkeyPatch, name: str, action: Callable[[], None]) -> list[str]:
    """Have a command do something else, and give the words that call it."""
    command = COMMANDS[name]
    callback = command.callback
    assert callback is not None

    @wraps(callback)
    def replaced(*_: object, **__: object) -> None:
        action()

    monkeypatch.setattr(command, "callback", replaced)
    monkeypatch.setattr(typer.main, "get_command", typer.main.get_command.__wrapped__)  # see conftest.py
    words, kinds = name.split(), get_type_hints(callback, include_extras=True)
    for parameter in inspect.signature(callback).parameters.values():
        if parameter.default is parameter.empty:
            (about,) = kinds[parameter.name].__metadata__
            named = about.default if isinstance(about.default, str) else f"--{parameter.name}"
            words += [named, "x"] if isinstance(about, OptionInfo) else ["x"]
    return words


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "key") for name in COMMANDS), *(("run", kind) for kind in FAILURES if kind != "key")]
)
def test_what_nobody_foresaw_is_one_message(
    rerank: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, kind: str
) -> None:
    error, said = FAILURES[kind]

    def fail() -> None:
        raise error

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = instead(monkeypatch, name, fail)
    result = rerank(*words)
    (kept,) = tmp_path.iterdir()
    failed(result, 1, said, f"This ended `{' '.join(['rerank', *words])}`; the traceback is in {kept}")
    assert kept.read_text().startswith(f"{' '.join(['rerank', *words])}\nTraceback (most recent call last):\n")
    assert type(error).__name__ in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_tracebacks_are_shown_to_developers(rerank: Command, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail() -> None:
        raise KeyError("a")

    monkeypatch.setenv("RERANK_TRACEBACK", "1")
    with pytest.raises(KeyError):
        rerank(*instead(monkeypatch, name, fail))


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *((name, signal.SIGTERM) for name in COMMANDS),
        *(("run", number) for number in interrupts.SIGNALS if number != signal.SIGTERM),
    ],
)
def test_signals_are_taken_for_the_time_of_the_command_and_passed_on(
    rerank: Command, monkeypatch: pytest.MonkeyPatch, name: str, sent: signal.Signals
) -> None:
    seen: list[int] = []

    def own(number: int, _: object) -> None:
        seen.append(number)

    before = {number: signal.signal(number, own) for number in interrupts.SIGNALS}
    try:
        failed(rerank(*instead(monkeypatch, name, lambda: signal.raise_signal(sent))), 128 + sent, "interrupted")
        assert [signal.getsignal(number) for number in interrupts.SIGNALS] == [own] * len(interrupts.SIGNALS)
        assert seen == [sent]  # by the fixture: a command that takes it all the same lets it go no further
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
