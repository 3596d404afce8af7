"""`rerank serve` as a program of its own, and clients that speak to it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import httpx
import numpy as np
from programs import PATIENCE, program

import rerank

JSON = {"Content-Type": "application/json"}
COLUMNS = "reward", "length"


class Served(NamedTuple):
    """A service and a client of it."""

    running: subprocess.Popen[bytes]
    client: httpx.Client
    log: Path

    def ended(self) -> int:
        """The exit code of a service that was told to stop."""
        return self.running.wait(PATIENCE)


@contextmanager
def serving(model: Path, place: Path, *options: object) -> Iterator[Served]:
    """The service of a model at a free port, for the time of the block; its log is in the directory ``place``."""
    log = place / "log.txt"
    words = (sys.executable, "-m", "rerank", "serve", model, "--port", "0", *map(str, options))
    with log.open("wb") as errors, program(*words, cwd=place, stdout=subprocess.PIPE, stderr=errors) as running:
        found = re.fullmatch(rb".*(http://127\.0\.0\.1:\d+).*\n", running.stdout.readline())
        assert found is not None, log.read_text()
        with httpx.Client(base_url=found[1].decode(), headers=JSON, timeout=PATIENCE) as client:
            yield Served(running, client, log)


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """Uvicorn's server at work in a thread, for the time of the block."""
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield server
    finally:
        server.should_exit = True
        thread.join()


def samples(rng: np.random.Generator, size: int = 8) -> list[dict[str, Any]]:
    """Texts with scores, COLUMNS and now and then a feature."""
    return [
        {
            "text": " ".join(f"w{word}" for word in rng.integers(0, 200, 12)),
            "score": float(rng.normal()),
            "columns": dict(zip(COLUMNS, map(float, rng.normal(size=2)), strict=True)),
            "features": {f"f{rng.integers(5)}": 1.0},
        }
        for _ in range(size)
    ]


def sample_model() -> rerank.Reranker:
    """A model of the columns of samples, the best of which has the largest reward."""
    rng = np.random.default_rng(1)
    lists = []
    for i in range(30):
        given = samples(rng)
        rewards = [each["columns"]["reward"] for each in given]
        gains = [float(reward == max(rewards)) for reward in rewards]
        lists.append(rerank.NBest(str(i), given, gains=gains))
    return rerank.fit(lists, features="dense", epochs=2)
