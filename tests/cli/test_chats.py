"""`rerank serve --upstream` in front of a server that does what the name of its model says; documents for a query."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from commands import Command
from programs import PATIENCE
from service import Served, sample_model, serving

import rerank
from rerank.base.errors import ModelError, RecipeError

pytest.importorskip("openai")
import openai
from starlette.responses import Response

from rerank.base.interrupts import Deadline
from rerank.contrib.serve.chat import ChatRequest, Chats, summed
from rerank.contrib.serve.limits import DEFAULTS
from rerank.contrib.serve.upstream import Reply, Upstream

KEY, WORDS = "sk-very-secret", [f"w{k}" for k in range(8)]
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "say w4"}], "seed": 0}
CALL = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


ODD: dict[str, Callable[[Any], Any]] = {  # what a server may make of its answer
    "usage": lambda content: {**content, "usage": "abc"},
    "value": lambda content: {**content, "choices": [*content["choices"], "x", {"message": 1}]},
    "more": lambda content: {**content, "choices": content["choices"] * 3},
    "list": lambda _: [1],
    "nothing": lambda _: {"choices": None},
}


class Server(BaseHTTPRequestHandler):
    """The upstream server: sample k of a model is word k."""

    protocol_version, asked, gone = "HTTP/1.1", list[tuple[dict[str, Any], dict[str, str]]](), Event()

    def do_GET(self) -> None:
        self.answer(200, {"object": "list", "data": [{"id": "takes", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body, {name.lower(): value for name, value in self.headers.items()}))
        n, first, kind = body.get("n", 1), body["seed"], body["model"]
        if kind == "slow":
            assert self.connection.recv(1) == b""  # until the client goes
            self.gone.set()
        elif (kind == "refuses" and "n" in body) or (kind in ("broken", "half") and ("n" in body or first % 2)):
            status = {"refuses": 422, "half": 400, "broken": 429}[kind]
            self.answer(status, {"error": {"message": f"no, not {n}", "code": "limit"}})
        else:
            words = WORDS[first : first + (1 if kind == "ignores" else n)]
            choices = [{"index": 0, "message": CALL if kind == "tools" else {"content": word}} for word in words]
            content = {"id": "1", "choices": choices, "usage": {"prompt_tokens": 2, "total_tokens": 3}}
            self.answer(200, ODD[kind](content) if kind in ODD else content)

    def answer(self, status: int, content: Any) -> None:
        body = json.dumps(content, indent=1).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), "X-Request-Id": "r1", "Set-Cookie": "a=b"}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def copying(**score: float) -> rerank.Reranker:
    """A model for which the text is best that says what its source does."""
    given = [{"text": word, **score} for word in WORDS]
    gains = {word: [float(word == other) for other in WORDS] for word in WORDS}
    lists = [rerank.NBest(word, given, f"say {word}", gains=gains[word]) for word in WORDS]
    return rerank.fit(lists, features={"set": None, "templates": ["Copy", "Dense"], "min_lists": 1}, epochs=3)


@pytest.fixture(scope="module")
def served(upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("chats")
    copying().save(place / "model")
    with serving(place / "model", place, "--upstream", upstream, "--n", 6, "--temperature", 0.5) as service:
        yield service
    assert not [word for word in ("Traceback", "Unclosed", KEY) if word in (place / "log.txt").read_text()]


@pytest.mark.parametrize(("kind", "requests"), [("takes", [6]), ("ignores", [6, *[1] * 5]), ("refuses", [6, *[1] * 6])])
def test_the_best_sample_is_the_answer(served: Served, kind: str, requests: list[int]) -> None:
    ranking, given = copying().rank(WORDS[:6], "say w4"), {**CHAT, "model": kind}
    for expected in (requests, requests if kind == "takes" else [1] * 6):  # the second time it is known
        Server.asked.clear()
        headers = {"Authorization": f"Bearer {KEY}", "Cookie": "c=d", "TE": "trailers"}
        answer = served.client.post("/v1/chat/completions", json=given, headers=headers)
        content, good = answer.json(), 1 if kind == "takes" else 6
        assert [(choice["index"], choice["message"]["content"]) for choice in content["choices"]] == [(0, "w4")]
        assert content["usage"] == {"prompt_tokens": 2 * good, "total_tokens": 3 * good}
        told = {"n": 6, "samples": 6, "ranked": 6, "place": 4, "order": ranking.order.tolist()}
        assert content["rerank"] == {**told, "scores": ranking.scores.tolist()}
        assert ("set-cookie" in answer.headers, answer.headers["x-request-id"]) == (False, "r1")
        assert [body.pop("n", 1) for body, _ in Server.asked] == expected
        for body, sent in Server.asked:
            assert {**body, "seed": 0} == {**given, "temperature": 0.5}
            assert (sent["authorization"], {"cookie", "te"} & sent.keys()) == (f"Bearer {KEY}", set())


def test_the_client_of_openai(served: Served) -> None:
    client = openai.OpenAI(api_key=KEY, base_url=f"{served.client.base_url}/v1", max_retries=0, timeout=PATIENCE)
    ask: Any = client.chat.completions.create
    assert [model.id for model in client.models.list()] == ["takes"]
    best = ask(model="takes", n=2, temperature=0, extra_body={"best_of": 8}, **CHAT)
    told = best.choices[0].message.content, len(best.choices), best.rerank["n"], Server.asked[-1][0]["temperature"]
    assert told == ("w4", 2, 8, 0)
    (piece,) = ask(model="takes", stream=True, **CHAT)
    assert (piece.choices[0].delta.content, piece.usage.total_tokens) == ("w4", 3)
    half = ask(model="half", **CHAT)
    assert (half.choices[0].message.content, half.rerank["samples"]) == ("w4", 3)
    assert next(iter(ask(model="tools", stream=True, **CHAT))).choices[0].delta.tool_calls[0].index == 0
    with pytest.raises(openai.RateLimitError, match="no, not 6") as failed:
        ask(model="broken", **CHAT)
    assert (failed.value.code, failed.value.response.headers["x-request-id"]) == ("limit", "r1")
    with pytest.raises(openai.BadRequestError, match="found 7; expected at most 6"):
        ask(model="takes", n=7, **CHAT)
    for kind in ("usage", "value", "more"):
        odd = ask(model=kind, **CHAT)
        assert (odd.choices[0].message.content, odd.rerank["samples"]) == ("w4", 6), kind
    for kind in ("list", "nothing"):
        with pytest.raises(openai.InternalServerError, match="no response to a chat"):
            ask(model=kind, **CHAT)
    Server.asked.clear()
    with pytest.raises(openai.BadRequestError, match="NUL"):
        ask(model="takes", messages=[{"role": "user", "content": "a\0"}])
    assert not Server.asked  # nothing was paid for
    with pytest.raises(openai.APITimeoutError):
        ask(model="slow", timeout=0.5, **CHAT)
    assert Server.gone.wait(PATIENCE)  # the upstream request has ended too


def test_what_is_refused(upstream: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    caplog.set_level(logging.DEBUG)

    async def ask(url: str, seconds: float) -> int:
        server = Upstream(url, seconds, 2)
        (reply,) = await server.samples({**CHAT, "model": "slow"}, {"authorization": KEY}, 3)
        await server.close()
        return reply.response.status_code

    assert [asyncio.run(ask(upstream, 0.05)), asyncio.run(ask("http://127.0.0.1:1/v1", PATIENCE))] == [504, 502]
    assert ("does not answer" in caplog.text, KEY in caplog.text) == (True, False)
    for url in ("host/v1", f"https://me:{KEY}@host/v1", "http://host/v1?key=a"):
        with pytest.raises(
            RecipeError, match=r"^--upstream: expected where a server's paths begin, as https://host/v1;"
        ):
            Upstream(url, 1, 1)
    server = Upstream(upstream, 1, 1)
    assert [Chats(model, server, 2, None).scored for model in (copying(), copying(score=1.0))] == [False, True]
    with pytest.raises(ModelError, match=r"cannot rank samples of a server: .*reward"):
        Chats(sample_model(), server, 2, None)
    assert summed([{"a": 1, "b": {"c": 2}, "d": None}, {"a": 2, "b": {"c": 1}}, {"b": None}]) == {"a": 3, "b": {"c": 3}}


def test_no_answer_is_a_refusal(upstream: str) -> None:
    candidates = [{"text": f"{k}", "answer": f"{k}", "gain": k % 2} for k in range(4)]
    model = rerank.fit(
        [{"candidates": candidates}] * 40,
        recipe={"decode": {"kinds": ["mbr"], "use": "mbr", "margin": 0.9}},
        answer="text",
    )
    choices = [{"message": {"content": text}} for text in "1133"]
    reply = Reply(Response("{}"), choices, {"choices": choices})
    asked, deadline = ChatRequest(model="m", messages=[{"content": "q"}]), Deadline(PATIENCE)
    response, _ = Chats(model, Upstream(upstream, 1, 1), 4, None).answer(
        model, (asked, [reply]), DEFAULTS, deadline, model.drift()
    )
    content = json.loads(bytes(response.body))
    (choice,) = content["choices"]
    assert (choice["message"]["content"], "do not agree" in choice["message"]["refusal"]) == (None, True)
    assert (content["rerank"]["place"], [answer for answer, _ in content["rerank"]["answers"]]) == (None, ["1", "3"])


@pytest.mark.parametrize("option", ["--n", "--temperature"])
def test_what_is_of_chats_alone_needs_a_server_of_them(option: str, rerank: Command) -> None:
    result = rerank("serve", "model", option, "1")
    assert (result.code, "need --upstream" in result.err) == (2, True)


def test_documents_are_ranked_for_a_query(served: Served) -> None:
    asked = {"query": "say w5", "documents": ["w1 w2", {"text": "w5"}, "w3"], "top_n": 1, "return_documents": True}
    score = copying().rank(["w1 w2", "w5", "w3"], "say w5").scores[0]
    result = {"index": 1, "relevance_score": score, "document": {"text": "w5"}}
    expected = {"model": None, "results": [result], "usage": {"total_tokens": 6}}
    assert served.client.post("/v1/rerank", json=asked).json() == expected
    for change, field in (
        ({"query": "a " * 10_001}, "query"), ({"query": "a\0"}, "query"), ({"documents": ["a", "b\0"]}, "documents[1]"),
        ({"documents": [{"tx": "a"}]}, "documents[0].text"),
    ):  # fmt: skip
        answer = served.client.post("/v1/rerank", json=asked | change)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
