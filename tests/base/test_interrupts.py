"""Signals, and what is said of work under way."""

import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from rerank.base import interrupts, progress
from rerank.base.interrupts import (
    Deadline,
    GivenUpError,
    Interrupted,
    check,
    defer_signals,
    signal_pending,
    take_signals,
)
from rerank.base.progress import Count, counting, track


def send(number: int = signal.SIGINT) -> None:
    """Send this process a signal; its handler has run when this returns."""
    signal.raise_signal(number)


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_a_signal_is_raised_with_its_number(number):
    with pytest.raises(Interrupted) as raised, take_signals():
        send(number)
    assert raised.value.number == number
    assert raised.value.exit_code == 128 + number
    assert isinstance(raised.value, KeyboardInterrupt)
    assert not signal_pending()


def test_it_waits_for_the_end_of_the_outermost_block():
    reached = []
    with pytest.raises(Interrupted), take_signals(), defer_signals():  # noqa: PT012
        with defer_signals():
            send()
            reached.append("inner")
        assert signal_pending()
        reached.append("outer")
    assert reached == ["inner", "outer"]


def test_or_for_a_check():
    reached = []
    with take_signals():
        check()
        with pytest.raises(Interrupted), defer_signals():  # noqa: PT012
            send()
            reached.append("before")
            check()
            reached.append("after")
        assert not signal_pending()
        check()
    assert reached == ["before"]


def test_an_error_in_a_block_comes_first():
    with take_signals():
        with pytest.raises(ValueError, match="first"), defer_signals():  # noqa: PT012
            send()
            raise ValueError("first")
        with pytest.raises(Interrupted):
            check()


def test_other_threads_end_at_a_check():
    reached: list[str] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with defer_signals():
                reached.append("inner")
            reached.append("outer")  # the end of a block is no check: only the main thread meets signals
            check()
            reached.append("after")
        except BaseException as error:
            errors.append(error)

    with pytest.raises(Interrupted), take_signals(), defer_signals():  # noqa: PT012
        send()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert signal_pending()  # the main thread is still to be told
    assert reached == ["inner", "outer"]
    assert [type(error) for error in errors] == [Interrupted]


def test_handlers_come_back_and_ignored_signals_stay_ignored():
    before, terminated = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        with take_signals():
            send()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not terminated
        assert signal.getsignal(signal.SIGTERM) is terminated
    finally:
        signal.signal(signal.SIGINT, before)


def test_two_signals_at_once_count_once(monkeypatch):
    left, times = [], iter([0.0, 0.9 * interrupts.ONE_SIGNAL_SECONDS, 1.1 * interrupts.ONE_SIGNAL_SECONDS])
    monkeypatch.setattr(interrupts, "_leave", left.append)
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: next(times))
    reading, writing = os.pipe()
    os.write(writing, bytes([signal.SIGTERM, signal.SIGTERM, signal.SIGWINCH, signal.SIGINT]))
    os.close(writing)
    interrupts._watch(reading, list(interrupts.SIGNALS))
    assert left == [signal.SIGINT]


TWICE = """
import signal, sys
import numba
from rerank.base.interrupts import defer_signals, take_signals

@numba.njit("void(int64[:])", nogil=True)
def forever(x):
    while x[0] == 0:
        x[1] += 1

import numpy as np
with take_signals(), defer_signals():
    print("ready", flush=True)
    forever(np.zeros(2, np.int64))
"""


def test_a_second_signal_ends_the_process_even_in_compiled_code():
    with subprocess.Popen(
        [sys.executable, "-c", TWICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as running:
        try:
            assert running.stdout.readline() == b"ready\n"
            running.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(1.5 * interrupts.ONE_SIGNAL_SECONDS)
            while running.poll() is None:  # where the machine is busy the first may have been seen only now
                running.send_signal(signal.SIGINT)
                time.sleep(1.5 * interrupts.ONE_SIGNAL_SECONDS)
            err = running.stderr.read()
        finally:
            running.kill()
    assert running.returncode == 128 + signal.SIGINT
    assert err == b"error: stopped at once\n"


def test_a_deadline_is_that_of_one_thread():
    over, ahead = Deadline(-1.0), Deadline(1e6)
    with ahead:
        check()
        ahead.end()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(check).result()
        with pytest.raises(GivenUpError):
            check()
    check()
    with over, pytest.raises(GivenUpError):
        check()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests set."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What is logged where there is no terminal."""
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(progress, "console", Console(file=io.StringIO()))
    caplog.set_level(logging.INFO, logger="rerank")
    return caplog


def test_lines_now_and_then(clock, lines):
    for _ in track(iter(range(5)), "read", total=5):
        clock[0] += 10
    assert lines.messages == [
        "read: 2 of 5 lists, 10 s each, 0:00:30 left",
        "read: 4 of 5 lists, 10 s each, 0:00:10 left",
        "read: 5 lists in 50.0 s",
    ]


def test_without_a_total(clock, lines):
    for _ in track(iter(range(4000)), "read", unit="examples"):
        clock[0] += 0.005
    assert lines.messages[0] == "read: 3,001 examples, 200 per second"


@pytest.mark.parametrize(
    ("left", "text"), [(0, ""), (1, "0:00:01 left"), (90, "0:01:30 left"), (7260, "2:01:00 left"), (None, "")]
)
def test_the_time_left(clock, left, text):
    count = Count()
    assert count.remaining == ""
    clock[0] += 1
    count.advance(left)
    assert count.remaining == text


def test_what_is_stopped_says_nothing_at_its_end(lines):
    with pytest.raises(ValueError, match="bad"), counting("work"):
        raise ValueError("bad")
    assert lines.messages == []


def test_bars_inside_bars(monkeypatch, lines):
    out = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=out, force_terminal=True, width=100))
    monkeypatch.setattr(progress.log, "handlers", [])
    for _ in track(range(2), "outer", total=2, unit="runs"):
        with counting("inner", total=3, unit="epochs", lines=False) as count:
            for k in range(3):
                count.advance(rest=2 - k)
            Count.display.refresh()
    assert Count.display is None
    assert "outer" in out.getvalue()
    assert "inner" in out.getvalue()
    assert "3/3" in out.getvalue()
    assert [text.split(" in ")[0] for text in lines.messages] == ["outer: 2 runs"]


def test_no_bar_is_shown_to_the_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=out, force_terminal=True, width=100))
    handler = logging.StreamHandler(out)
    handler.setLevel(logging.ERROR)
    monkeypatch.setattr(progress.log, "handlers", [handler])
    assert list(track(range(3), "work")) == [0, 1, 2]
    assert out.getvalue() == ""
