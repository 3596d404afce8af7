"""What every part and every command must do."""

import dataclasses
import doctest
import inspect
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest
import typer.main
from commands import COMMANDS, Command, failed
from typer.models import OptionInfo

from rerank.base import interrupts
from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.features.extract import fired
from rerank.features.template import templates
from rerank.learn.learner import Learner, learners
from rerank.metrics.metric import metrics
from rerank.readers.reader import readers

every_registry = pytest.mark.parametrize(
    "registry", [learners, templates, readers, metrics], ids=lambda registry: registry.kind
)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a user's."""
    module = ModuleType("parts_of_mine")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def open_members(base: type) -> list[str]:
    """What a contract leaves open: abstract members, and class variables without a value but for the name, which is
    taken from where a part is named."""
    hints = [(name, hint) for each in base.__mro__ for name, hint in inspect.get_annotations(each).items()]
    return [
        *getattr(base, "__abstractmethods__", ()),
        *(name for name, hint in hints if "ClassVar" in str(hint) and not hasattr(base, name) and name != "name"),
    ]


@pytest.mark.parametrize("registry", [templates, readers, metrics], ids=lambda registry: registry.kind)
def test_every_member_that_is_missing_is_named(registry: Registry[Any], own: Any) -> None:
    base = registry.contract
    members = open_members(base)
    assert members
    for missing in (*members, None):
        rest = {name: property(lambda part: part) for name in members if name != missing}
        own.Mine = dataclass(frozen=True)(type("Mine", (base,), {**rest, "__module__": own.__name__}))
        if missing is None:
            assert registry.get("parts_of_mine:Mine") is own.Mine
            continue
        with pytest.raises(RecipeError, match=rf"^{registry.kind} 'parts_of_mine:Mine' does not define {missing};"):
            registry.get("parts_of_mine:Mine")
    own.Mine = type("Mine", (base,), {**rest, "__annotations__": {"size": int}, "size": 1})  # its settings are lost
    with pytest.raises(RecipeError, match="'parts_of_mine:Mine' is not a dataclass"):
        registry.get("parts_of_mine:Mine")


@every_registry
def test_what_is_something_else_is_refused(registry: Registry[Any], own: Any) -> None:
    own.Mine, own.function, own.number = type("Mine", (), {}), len, 3
    for name in ("Mine", "function", "number"):
        with pytest.raises(RecipeError, match=rf"^{registry.kind} 'parts_of_mine:{name}' is not a class derived from"):
            registry.get(f"parts_of_mine:{name}")


@every_registry
def test_registered_parts_fulfil_the_contract(registry: Registry[Any]) -> None:
    for name, part in registry:
        assert issubclass(part, registry.contract), name
        assert not inspect.isabstract(part), name


@pytest.mark.parametrize(
    ("cls", "option"),
    [
        pytest.param(cls, field.name, id=f"{name} {field.name}")
        for name, cls in [*metrics, *readers]
        for field in dataclasses.fields(cls)
        if isinstance(field.default, bool | int | float) or str(field.type).startswith("Literal")
    ],
)
def test_every_metric_and_reader_refuses_values_of_another_kind(cls: type[Any], option: str) -> None:
    with pytest.raises(RecipeError, match=f"{option}: found \\['x'\\]; expected "):
        cls(**{option: ["x"]})


PARTS = {
    f"{registry.kind} {name}": part for registry in (learners, metrics, readers, templates) for name, part in registry
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", PARTS)
def test_the_example_in_a_docstring_prints_what_it_shows(name: str) -> None:
    part: Any = PARTS[name]
    names = {"fired": fired} | vars(sys.modules[part.__module__])
    example = doctest.DocTestParser().get_doctest(part.__doc__ or "", dict(names), name, None, None)
    assert example.examples or not name.startswith("metric"), "no example"
    result = doctest.DocTestRunner(optionflags=FLAGS).run(example)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "learner"), list(learners))
def test_learners_have_an_example_a_reference_and_their_memory(name: str, learner: type[Learner]) -> None:
    first = (learner.__doc__ or "").split("\n\n")[1]
    assert (">>> LambdaMart(" if name == "lambdamart" else ">>> weights_after(") in first, name  # trees need lists
    assert "Reference: " in (learner.__doc__ or "")
    assert "Memory: " in (learner.__doc__ or "")


FAILURES: dict[str, tuple[BaseException, str]] = {
    "key": (KeyError("a"), "unexpected KeyError: 'a'"),
    "memory": (MemoryError(), "out of memory; use fewer lists"),
    "recursion": (RecursionError("too deep"), "unexpected RecursionError: too deep"),
    "disk": (OSError(5, "Input/output error"), "Input/output error"),
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
        ended = rerank(*instead(monkeypatch, name, lambda: signal.raise_signal(sent)))
        failed(ended, 128 + sent, "interrupted")
        assert ("--resume" in ended.err) == (name in ("run", "tune"))
        assert [signal.getsignal(number) for number in interrupts.SIGNALS] == [own] * len(interrupts.SIGNALS)
        assert seen == [sent]  # by the fixture: a command that takes it all the same lets it go no further
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
