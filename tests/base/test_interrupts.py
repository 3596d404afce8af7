"""Signals: raised at once or where it is safe; the second one ends the process."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rerank.base import interrupts
from rerank.base.interrupts import Deadline, GivenUpError, Interrupted, check, deferred, handled, requested


def send(number: int = signal.SIGINT) -> None:
    """Send this process a signal; its handler has run when this returns."""
    signal.raise_signal(number)


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_a_signal_is_raised_with_its_number(number):
    with pytest.raises(Interrupted) as raised, handled():
        send(number)
    assert raised.value.number == number
    assert raised.value.exit_code == 128 + number
    assert isinstance(raised.value, KeyboardInterrupt)
    assert not requested()


def test_it_waits_for_the_end_of_the_outermost_block():
    reached = []
    with pytest.raises(Interrupted), handled(), deferred():  # noqa: PT012
        with deferred():
            send()
            reached.append("inner")
        assert requested()
        reached.append("outer")
    assert reached == ["inner", "outer"]


def test_or_for_a_check():
    reached = []
    with handled():
        check()
        with pytest.raises(Interrupted), deferred():  # noqa: PT012
            send()
            reached.append("before")
            check()
            reached.append("after")
        assert not requested()
        check()
    assert reached == ["before"]


def test_an_error_in_a_block_comes_first():
    with handled():
        with pytest.raises(ValueError, match="first"), deferred():  # noqa: PT012
            send()
            raise ValueError("first")
        with pytest.raises(Interrupted):
            check()


def test_other_threads_end_at_a_check():
    reached: list[str] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with deferred():
                reached.append("inner")
            reached.append("outer")  # the end of a block is no check: only the main thread meets signals
            check()
            reached.append("after")
        except BaseException as error:
            errors.append(error)

    with pytest.raises(Interrupted), handled(), deferred():  # noqa: PT012
        send()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert requested()  # the main thread is still to be told
    assert reached == ["inner", "outer"]
    assert [type(error) for error in errors] == [Interrupted]


def test_handlers_come_back_and_ignored_signals_stay_ignored():
    before, terminated = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        with handled():
            send()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not terminated
        assert signal.getsignal(signal.SIGTERM) is terminated
    finally:
        signal.signal(signal.SIGINT, before)


def test_two_signals_at_once_count_once(monkeypatch):
    left, times = [], iter([0.0, 0.9 * interrupts.AT_ONCE, 1.1 * interrupts.AT_ONCE])
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
from rerank.base.interrupts import deferred, handled

@numba.njit("void(int64[:])", nogil=True)
def forever(x):
    while x[0] == 0:
        x[1] += 1

import numpy as np
with handled(), deferred():
    print("ready", flush=True)
    forever(np.zeros(2, np.int64))
"""


def test_a_second_signal_ends_the_process_even_in_compiled_code():
    with subprocess.Popen(
        [sys.executable, "-c", TWICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as running:
        try:
            assert running.stderr is not None
            assert running.stdout.readline() == b"ready\n"
            running.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(1.5 * interrupts.AT_ONCE)
            while running.poll() is None:  # where the machine is busy the first may have been seen only now
                running.send_signal(signal.SIGINT)
                time.sleep(1.5 * interrupts.AT_ONCE)
            err = running.stderr.read()
        finally:
            running.kill()
    assert running.returncode == 128 + signal.SIGINT
    assert err == b"error: stopped at once\n"


def test_a_deadline_is_that_of_one_thread():
    over, ahead = Deadline(-1.0), Deadline(1e6)
    with ahead.held():
        check()
        ahead.end()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(check).result()
        with pytest.raises(GivenUpError):
            check()
    check()
    with over.held(), pytest.raises(GivenUpError):
        check()
