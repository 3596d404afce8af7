"""What a service takes on: requests at a time, bodies that arrive, damaged ones, connections; and its page."""

import asyncio
import json
import logging
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import uvicorn
from browser import assert_nothing_overflows, frames, look_at, needs_browser
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import PATIENCE
from service import running, sample_model, samples
from strategies_damage import damaged

import rerank
from rerank.base.interrupts import Deadline, GivenUpError, check
from rerank.contrib.serve.app import make_app

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from rerank.contrib.serve import Limits, connections
from rerank.contrib.serve import app as service

BODY = json.dumps({"candidates": samples(np.random.default_rng(3))}).encode()
WHOLE = {"type": "http.request", "body": BODY, "more_body": False}
GONE = {"type": "http.disconnect"}
LIMITS = Limits(seconds=PATIENCE)
HEADERS = {"host": "localhost", "content-type": "application/json"}

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
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    """Threads that rank all lists, however short."""
    monkeypatch.setattr(service, "MAX_INLINE_BYTES", 0)
    with ThreadPoolExecutor(1) as found:
        yield found


async def ask(
    app: Any, *messages: Any, headers: dict[str, str] = HEADERS, server: str = "::1", path: str = "/rank"
) -> tuple[int, str]:
    """The status and the body of the answer to a request whose client says ``messages`` and then nothing."""
    said, sent = iter(messages), list[Any]()

    async def receive() -> Any:
        message = next(said, None) or asyncio.Event().wait()
        return await message if isawaitable(message) else message

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "query_string": b"", "root_path": ""}
    scope["server"] = server, 8000
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()


def test_few_candidates_with_columns_wait_for_no_thread(model: rerank.Reranker, pool: ThreadPoolExecutor) -> None:
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool)
    by_thread = asyncio.run(ask(app, WHOLE))
    pool.shutdown()
    assert asyncio.run(ask(app, WHOLE))[0] == 500
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "MAX_INLINE_BYTES", len(BODY))
        assert asyncio.run(ask(app, WHOLE)) == by_thread
        assert asyncio.run(ask(app, {**WHOLE, "body": BODY + b" "}))[0] == 500


def test_a_body_that_does_not_arrive(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool)
    assert asyncio.run(ask(app)) == (408, '{"error": "the body did not arrive in 0.01 seconds"}')
    assert asyncio.run(ask(app, {**WHOLE, "more_body": True}))[0] == 408
    assert asyncio.run(ask(app, WHOLE))[0] == 200


def test_slow_bodies_take_no_place(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_REQUESTS", 1)
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool)

    async def crowd() -> int:
        stalled = [asyncio.create_task(ask(app, {**WHOLE, "more_body": True})) for _ in range(5)]
        await asyncio.sleep(0)
        status, _ = await ask(app, WHOLE)
        for task in stalled:
            task.cancel()
        await asyncio.wait(stalled)
        return status

    assert asyncio.run(crowd()) == 200


class Work:
    """In place of ``answer``: it has ``begun``, and goes on until it is stopped, or may ``end``."""

    def __init__(self) -> None:
        self.begun, self.end, self.stopped = Event(), Event(), Event()

    def __call__(self, *given: Any) -> tuple[bytes, int]:
        deadline: Deadline = given[3]
        self.begun.set()
        try:
            with deadline:
                while not self.end.wait(0.001):
                    check()
        except GivenUpError:
            self.stopped.set()
            raise
        return b"{}", 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    own = Work()
    monkeypatch.setattr(service, "answer", own)
    return own


def test_more_requests_than_it_holds(
    model: rerank.Reranker, pool: ThreadPoolExecutor, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_REQUESTS", 2)
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool)

    async def crowd() -> list[tuple[int, str]]:
        waiting = [asyncio.create_task(ask(app, WHOLE)) for _ in range(2)]
        await asyncio.to_thread(work.begun.wait)
        refused = await ask(app, WHOLE)
        work.end.set()
        return [refused, *[await task for task in waiting], await ask(app, WHOLE)]

    refused, *others = asyncio.run(crowd())
    assert refused == (503, '{"error": "too many requests at a time; try again"}')
    assert others == [(200, "{}")] * 3


@pytest.mark.parametrize("how", ["gone", "cancelled", "too long"])
def test_work_nobody_waits_for_stops(how: str, model: rerank.Reranker, pool: ThreadPoolExecutor, work: Work) -> None:
    limits = LIMITS._replace(seconds=0.01) if how == "too long" else LIMITS
    app = service.make_app(model, limits=limits, threads=1, pool=pool)

    async def leave() -> tuple[int, str]:
        async def go() -> dict[str, Any]:
            await asyncio.to_thread(work.begun.wait)
            return GONE

        asked = asyncio.create_task(ask(app, WHOLE, *([go()] if how == "gone" else ())))
        await asyncio.to_thread(work.begun.wait)
        if how == "cancelled":
            asked.cancel()
        return await asked

    said = {
        "gone": "the client has gone",
        "cancelled": "the service is shutting down",
        "too long": "ranking took longer than 0.01 seconds",
    }[how]
    assert asyncio.run(leave()) == (400 if how == "gone" else 503, f'{{"error": "{said}"}}')
    assert work.stopped.wait(PATIENCE)


def test_work_that_nobody_waits_for_is_not_done(
    model: rerank.Reranker, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def answer(*given: Any) -> tuple[bytes, int]:
        done.append(given)
        return b"{}", 0

    monkeypatch.setattr(service, "answer", answer)
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool)
    assert asyncio.run(ask(app, WHOLE, GONE))[0] == 400
    assert done == []
    assert asyncio.run(ask(app, WHOLE)) == (200, "{}")
    assert len(done) == 1


def test_the_address_that_is_called_is_a_name(model: rerank.Reranker, pool: ThreadPoolExecutor) -> None:
    app = service.make_app(model, limits=LIMITS, threads=1, pool=pool, hosts=["0.0.0.0"])
    for server in ("10.1.2.3", "::ffff:10.1.2.3"):
        for host, status in (("10.1.2.3:8000", 200), ("10.1.2.4:8000", 421)):
            assert asyncio.run(ask(app, WHOLE, headers={**HEADERS, "host": host}, server=server))[0] == status


def test_a_model_that_fails_at_first(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(sys.modules[__name__], "SEEN", seen := [])
    lists = [rerank.NBest(str(i), [("a|b", 1.0), ("b|aa", 0.0)], source="a", gains=[0.0, 1.0]) for i in range(6)]
    model = rerank.fit(lists, features=[second], epochs=1)
    seen.clear()
    service.warm_up(model)
    assert seen == ["a"]
    assert "the first request will wait for code to be compiled" in caplog.text
    assert model.rank([("a|b", 0.0)], "a").best == ("a|b", 0.0)


LARGE = 64 << 20  # more than sockets hold


async def reply(scope: Any, _: Any, send: Any) -> None:
    """A short reply, or a long one."""
    body = b"x" * (LARGE if scope["path"] == "/large" else 1)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def server() -> Iterator[uvicorn.Server]:
    """A service at work."""
    config = uvicorn.Config(reply, port=0, log_config=None, lifespan="off", http=connections.Connection)
    with running(uvicorn.Server(config)) as found:
        yield found


def connected(server: uvicorn.Server) -> socket.socket:
    """A connection to it."""
    return socket.create_connection(server.servers[0].sockets[0].getsockname(), PATIENCE)


def is_closed(client: socket.socket) -> bool:
    """Does the service close the connection, in whatever way, or does it say something?"""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_heads_that_do_not_arrive(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.05)
    for start in (b"", b"GET /small HTTP/1.1\r\nHost: a\r\n"):
        with connected(server) as client:
            client.sendall(start)
            assert is_closed(client)


def test_next_heads_that_do_not_arrive(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    with connected(server) as client:
        client.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\nGET /small HTTP/1.1\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")
        while not is_closed(client):
            pass


def test_answers_that_nobody_takes(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    with connected(server) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(1)
        end = time.monotonic() + PATIENCE
        while server.server_state.connections:
            assert time.monotonic() < end
            time.sleep(0.01)


WORDS = [[("The", "DT"), ("dog", "NN")], [("Dogs", "NNS"), ("bark", "VBP")]]
CANDIDATES = samples(np.random.default_rng(3), 3)
REQUESTS: dict[str, list[Any]] = {
    "/rank": [
        {"id": "a", "candidates": CANDIDATES, "source": "w1 w2", "explain": 1, "decode": True},
        {"candidates": [{**CANDIDATES[0], "answer": "4", "alignment": "0-0", "tree": "(S (NN a))"}]},
        {"candidates": ["w1 w2", "w3"]},
    ],
    "/v2/rerank": [
        {"model": "m", "query": "w1 w2", "documents": ["w1", {"text": "w3"}], "top_n": 1, "return_documents": True},
        {"query": "w1 w2", "documents": [CANDIDATES[0]], "top_n": 0, "max_tokens_per_doc": 9},
    ],
    "/tag": [{"sentences": [["The", "dog"], ["bark"]]}, {"sentences": [["The", "dog"], []], "n": 2}],
}  # fmt: skip


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, Any]]:
    ranker = sample_model()
    tagger = rerank.tagger(WORDS, WORDS, epochs=2)
    with ThreadPoolExecutor(1) as pool:
        yield {path: service.make_app(tagger if path == "/tag" else ranker, threads=1, pool=pool) for path in REQUESTS}


def assert_sound(path: str, status: int, text: str) -> None:
    """An answer for all that was given, or an error of the client's."""
    answer = json.loads(text)
    assert status in (200, 400, 413), text
    if status != 200:
        assert set(answer) <= {"error", "field"}
        assert len(text) < 5000
        assert "Traceback" not in text
    elif path == "/rank":
        assert sorted(answer["order"]) == list(range(len(answer["scores"])))
        assert np.isfinite(answer["scores"]).all()
    elif path == "/v2/rerank":
        assert np.isfinite([each["relevance_score"] for each in answer["results"]]).all()


@pytest.mark.parametrize("path", REQUESTS)
@settings(max_examples=150)
@given(data=st.data())
def test_damaged_requests(services: dict[str, Any], path: str, data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(REQUESTS[path]))
    body = data.draw(damaged(json.dumps(request).encode(), ".json"))
    assert_sound(path, *asyncio.run(ask(services[path], {**WHOLE, "body": body}, path=path)))


LONG = "x" * 300  # has no place to break at
# Pastes arrays of candidates, one after the other, and waits each time for the ranking and what decided between the
# best and the second, or for an error; then looks at the first example.
PASTE = """
const wait = async (what) => { while (!what()) await new Promise((done) => setTimeout(done, 20)); };
const at = (selector) => page.querySelectorAll(selector);
const texts = (selector) => [...at(selector)].map((each) => each.textContent);
await wait(() => at("#form")[0].textContent);
const found = [];
for (const text of GIVEN) {
  const area = at("#candidates textarea")[0];
  area.value = text;
  area.dispatchEvent(new Event("input"));
  at("button")[0].click();
  await wait(() => at("li details table").length || at("#wrong")[0].textContent);
  found.push({texts: texts("li > p:first-child"), features: texts("li details table td:first-child"),
    bars: [...at(".bar span")].map((each) => parseFloat(each.style.width)), curl: texts("pre")[0],
    wrong: at("#wrong")[0].textContent, wide: page.documentElement.scrollWidth - page.documentElement.clientWidth});
}
at("#example")[0].click();
await wait(() => at("li").length);
found.push({name: at("h1")[0].textContent, texts: texts("li > p:first-child")});
return found;
"""


@needs_browser
def test_what_is_pasted_is_ranked(tmp_path: Path) -> None:
    model, given = sample_model(), samples(np.random.default_rng(3), 12)
    given[2]["text"] = LONG
    given[4]["text"] = "<b>no markup</b> &amp;"
    ranking = model.rank(given)
    features = [part.feature for part in ranking.explain()]
    assert "Dense|reward" in features
    texts = [
        json.dumps(given),
        json.dumps([given[0], {**given[1], "columns": {**given[1]["columns"], "reward": LONG}}]),
    ]
    app, page = (
        make_app(model, threads=1, pool=ThreadPoolExecutor(1)),
        frames('src="/"', PASTE.replace("GIVEN", json.dumps(texts))),
    )

    async def with_frames(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/look":
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": page.encode()})

    with running(uvicorn.Server(uvicorn.Config(with_frames, port=0, log_config=None, lifespan="off"))) as server:
        host, port = server.servers[0].sockets[0].getsockname()
        found = look_at(f"http://{host}:{port}/look", tmp_path)
    assert_nothing_overflows(found)
    for seen in found:
        right, wrong, example = seen["said"]
        assert right.pop("bars") == pytest.approx((100 * ranking.probabilities).tolist(), abs=1e-3)
        assert "/rank -H 'Content-Type: application/json' -d '{\"candidates\":[{" in right.pop("curl")
        assert right == {
            "texts": [each["text"] for each in ranking.candidates], "features": features, "wrong": "", "wide": 0
        }  # fmt: skip
        assert wrong["wrong"].startswith('candidates[1].columns.reward: candidate 2: found "xxx')
        assert (wrong["texts"], wrong["wide"]) == ([], 0)
        assert (example["name"], len(example["texts"])) == (model.recipe.name, 2)
