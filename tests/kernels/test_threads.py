"""Rows shared out among threads: each is done once, whatever their sizes; in a worker, by one thread."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_corpus

from rerank.kernels import threads
from rerank.kernels.threads import share_rows
from rerank.learn.scoring import Weights, scores
from rerank.pool import THREADS


@given(lengths=st.lists(st.integers(0, 9), max_size=30), count=st.integers(1, 5), start=st.integers(0, 7))
def test_every_row_is_done_once(lengths, count, start):
    rows = start + np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    done = np.zeros(len(lengths), np.int64)

    def work(first, last):
        done[first:last] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LEAST", 1)
        patch.setattr(threads, "thread_count", lambda: count)
        share_rows(work, rows)
    assert np.array_equal(done, np.ones(len(lengths)))


def test_threads_are_as_many_as_there_is_work_for(monkeypatch):
    names = list[str]()
    monkeypatch.setattr(threads, "thread_count", lambda: 8)
    rows = np.arange(11) * threads.LEAST // 5  # twice the least
    share_rows(lambda first, last: names.append(f"{threading.current_thread().name} {first} {last}"), rows)
    assert sorted(name.split(" ", 1)[1] for name in names) == ["0 5", "5 10"]


def test_what_a_thread_raises_is_raised(monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 2)

    def fail(first, _last):
        raise ValueError(f"from row {first}")

    with pytest.raises(ValueError, match="from row 0"):
        share_rows(fail, np.arange(5))


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("3", 3), ("many", None)])
def test_threads_are_as_many_as_numba_is_to_have(given, expected):
    """Workers are told to have one; what is no number is numba's to warn of."""
    command = [sys.executable, "-c", "from rerank.kernels.threads import thread_count; print(thread_count())"]
    others = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    found, own = (
        int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        for environment in (others | {"NUMBA_NUM_THREADS": given}, others)
    )
    assert found == (expected or own)
    assert THREADS["NUMBA_NUM_THREADS"] == "1"


def test_scores_have_the_same_bits(monkeypatch):
    corpus = random_corpus(1)
    weights = Weights(np.random.default_rng(1).normal(size=corpus.width), 0.3)
    alone = scores(corpus, weights)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    assert np.array_equal(scores(corpus, weights), alone)
