"""What a service takes on: so many requests at a time, bodies that arrive, work that somebody waits for."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from service import sample_model, samples

import rerank

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
import numpy as np
from starlette.applications import Starlette

from rerank.models.service import app as service

BODY = json.dumps({"candidates": samples(np.random.default_rng(3))}).encode()
WHOLE = {"type": "http.request", "body": BODY, "more_body": False}
GONE = {"type": "http.disconnect"}


SEEN: list[str | None] = []


@rerank.feature
def second(candidate: rerank.Candidate, nbest: rerank.NBest) -> dict[str, float]:
    """The length of what every candidate has after a bar."""
    SEEN.append(nbest.source)
    return {"second": float(len(candidate.text.split("|")[1]))}


@pytest.fixture(scope="module")
def model() -> rerank.Reranker:
    return sample_model()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as found:
        yield found


async def ask(app: Starlette, *messages: dict[str, Any]) -> tuple[int, str]:
    """The status and the body of the answer to a request whose client says ``messages`` and then nothing."""
    said, sent = iter(messages), list[Any]()

    async def receive() -> Any:
        return next(said, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/rank", "headers": [], "query_string": b"", "root_path": ""}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()


def test_a_body_that_does_not_arrive(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    app = service.make_app(model, most=1 << 20, threads=1, pool=pool)
    assert asyncio.run(ask(app)) == (408, '{"error":"the body did not arrive in 0.01 seconds"}')
    assert asyncio.run(ask(app, {**WHOLE, "more_body": True}))[0] == 408
    assert asyncio.run(ask(app, WHOLE))[0] == 200


def test_more_requests_than_it_holds(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "UNDER_WAY", 2)
    app = service.make_app(model, most=1 << 20, threads=1, pool=pool)

    async def crowd() -> tuple[int, str]:
        stalled = [asyncio.create_task(ask(app)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await ask(app, WHOLE)
        for task in stalled:
            task.cancel()
        await asyncio.wait(stalled)
        assert (await ask(app, WHOLE))[0] == 200
        return refused

    assert asyncio.run(crowd()) == (503, '{"error":"too many requests at a time; try again"}')


def test_work_that_nobody_waits_for_is_not_done(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def answer(*given: Any) -> tuple[str, int]:
        done.append(given)
        return "{}", 0

    monkeypatch.setattr(service, "answer", answer)
    app = service.make_app(model, most=1 << 20, threads=1, pool=pool)
    assert asyncio.run(ask(app, WHOLE, GONE))[0] == 400
    assert done == []
    assert asyncio.run(ask(app, WHOLE)) == (200, "{}")
    assert len(done) == 1


def test_a_model_that_cannot_rank_the_list_for_trial(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(sys.modules[__name__], "SEEN", seen := [])
    lists = [rerank.NBest(str(i), [("a|b", 1.0), ("b|aa", 0.0)], source="a", gains=[0.0, 1.0]) for i in range(6)]
    model = rerank.fit(lists, features=[second], epochs=1)
    seen.clear()
    service.warm_up(model)
    assert seen == ["a"]
    assert "the first request will wait for compiled code" in caplog.text
    assert model.rank(["a|b"], "a").best == "a|b"
