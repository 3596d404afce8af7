"""Runs of the program in child processes that meet their end, or a failing disk, at a chosen step.

A *step* is a change to the file system below a directory: a file opened for writing, a rename, a removal, a new
directory. Python reports each by an audit event just before it happens.
"""

import errno
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import small
from programs import PATIENCE

from rerank.cli import application as cli
from rerank.runs import results
from rerank.storage import files

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
MAKES = "open", "os.mkdir", "os.rename"  # what takes space on a disk
Fault = Callable[[str, int], None]  # called with the event and the number of every step


class Ended(NamedTuple):
    """How a child ended: exit code (negative: the signal that killed it), what it said on stderr, how many steps it
    took, and which was the last that made something."""

    code: int
    err: str
    steps: int
    made: int


def kill_at(step: int) -> Fault:
    """kill -9 just before a step."""

    def fault(_event: str, number: int) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def signal_at(step: int, sent: int) -> Fault:
    """A signal just before a step."""

    def fault(_event: str, number: int) -> None:
        if number == step:
            signal.raise_signal(sent)

    return fault


def full_from(step: int) -> Fault:
    """The disk is full from a step on: nothing can be made or renamed any more, but for log files."""

    def fault(event: str, number: int) -> None:
        if number >= step and event in MAKES:
            raise OSError(errno.ENOSPC, "No space left on device")

    return fault


def rerank(
    *arguments: object,
    below: Path,
    fault: Fault | None = None,
    largest: int | None = None,
) -> Ended:
    """A command in a child process, which is a copy of this one: with its compiled kernels.

    fault: called at every step below ``below``; largest: bytes of a file at most.
    """
    reading, said = os.pipe()  # it holds all that these runs say
    child = os.fork()
    if not child:
        _in_child([str(part) for part in arguments], below, fault, largest, said)
    os.close(said)
    latest = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > latest:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read()
    said_last, found, counts = text.rpartition("STEPS ")
    steps, made = map(int, counts.split()) if found else (-1, -1)
    return Ended(os.waitstatus_to_exitcode(ended[1]), said_last if found else text, steps, made)


def _in_child(arguments: list[str], below: Path, fault: Fault | None, largest: int | None, said: int) -> None:
    """Run the command and end the process."""
    count, made, code = 0, 0, 70
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for old, new in ((null, 0), (null, 1), (said, 2)):
            os.dup2(old, new)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        sys.argv = ["rerank", *arguments]
        # What takes most of the time and is not looked at here: no power fails, and a page is a text like others.
        files._sync = lambda _: None  # type: ignore[assignment]
        results.list_sections = lambda *_, **__: []
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

        def hook(event: str, details: tuple[Any, ...]) -> None:
            nonlocal count, made
            if _is_step(event, details, below):
                count += 1
                made = count if event in MAKES else made
                if fault is not None:
                    fault(event, count)

        sys.addaudithook(hook)
        cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        fault = None
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.write(2, f"STEPS {count} {made}".encode())
        os._exit(code)


def _is_step(event: str, details: tuple[Any, ...], below: Path) -> bool:
    if event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        return False
    path = details[0]
    if not isinstance(path, str | Path) or (event == "open" and not int(details[2]) & WRITES):
        return False
    # What is removed below a directory is named relative to it.
    return Path(path).is_relative_to(below) or (event in ("os.remove", "os.rmdir") and not os.path.isabs(path))


def artefacts(directory: Path) -> dict[str, Any]:
    """What the recipe determines of all that a finished run leaves, its cache included."""
    found: dict[str, Any] = {}
    cache = directory.parent / ".cache"
    for path in sorted([*directory.rglob("*"), *cache.rglob("*")]):
        name = str(path.relative_to(cache if path.is_relative_to(cache) else directory))
        if path.is_dir():
            found[name] = None
        elif path.suffix in (".gz", ".npz", ".npy", ".yaml", ".tsv", ".svg"):
            found[name] = path.read_bytes()
        elif path.name == "history.jsonl":
            found[name] = small.without_clock(small.epoch_lines(path))
        elif path.name == "checksums.json" and (path.parent / "split.json").exists():
            found[name] = "there"  # of a file that says how long it took
        elif path.suffix == ".json":
            # without dates, and without digests of what holds them
            found[name] = small.without_clock(json.loads(path.read_text()), (*small.VOLATILE, "date", "digest"))
        else:
            found[name] = "there"
    return found


def partial(directory: Path) -> list[str]:
    """Files and directories below one that have temporary names."""
    return [str(path) for path in directory.rglob(".*.rerank")]
