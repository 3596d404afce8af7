"""Progress: lines with rates and the time left, and bars that may be inside one another."""

import io
import logging
import time

import pytest
from rich.console import Console

from rerank.base import progress
from rerank.base.progress import Count, counting, track


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
    count = Count(None)
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
                count.advance(left=2 - k)
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
