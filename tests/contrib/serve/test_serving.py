"""`rerank serve` over real sockets: the answers of the library, what is refused, limits, memory, and the end."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from commands import Command, failed, refused
from programs import PATIENCE, program
from service import JSON, Served, sample_model, samples, serving

import rerank

CONNECTIONS, REQUESTS = 16, 1_500
MOST = 100_000  # bytes of a request
ALLOWED = "--allow-host", "Ranker.example", "--allow-host", "b"
HEAD = b"POST /rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GOOD: list[Any] = samples(np.random.default_rng(7))
RIGHT = "(S1 (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))"
WRONG = "(S1 (S (NP (DT the) (NN cat) (NNS sleeps)) (. .)))"
DEEP = f"(S1 {'(S ' * 500}(NN a){')' * 501}"
LONG = f"(S1 {'(NN a)' * 10_001})"


@pytest.fixture(scope="module")
def model() -> rerank.Reranker:
    """A model of samples."""
    return sample_model()


@pytest.fixture(scope="module")
def saved(model: rerank.Reranker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's directory."""
    place = tmp_path_factory.mktemp("served") / "model"
    model.save(place)
    return place


@pytest.fixture(scope="module")
def served(saved: Path) -> Iterator[Served]:
    """Its service."""
    with serving(saved, saved.parent, "--max-bytes", MOST, "--threads", 2, *ALLOWED) as service:
        yield service


def test_many_clients_get_the_answers_of_the_library_and_leave_nothing(served: Served, model: rerank.Reranker) -> None:
    rng = np.random.default_rng(2)
    lists = [samples(rng, 24) for _ in range(40)]
    rankings = [model.rank(each) for each in lists]
    expected = [(each.order.tolist(), each.scores.tolist(), each.best, each.unknown) for each in rankings]
    bodies = [json.dumps({"candidates": each, "id": str(i)}) for i, each in enumerate(lists)]
    process = psutil.Process(served.running.pid)

    def ask(count: int) -> int:
        """As one client of several, each with a connection of its own."""
        with httpx.Client(base_url=served.client.base_url, headers=JSON, timeout=PATIENCE) as client:
            for k in range(count):
                found = client.post("/rank", content=bodies[k % len(lists)]).json()
                assert found["id"] == str(k % len(lists))
                own = found["order"], found["scores"], found["best"], found["unknown"]
                assert own == expected[k % len(lists)]
        return count

    def ask_all(requests: int) -> None:
        shares = [requests // CONNECTIONS + (k < requests % CONNECTIONS) for k in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            assert sum(pool.map(ask, shares)) == requests

    ask_all(500)
    before = process.memory_info().rss
    ask_all(REQUESTS - 500)
    # A list alone takes 10 kB as JSON and as Python's objects: 10 MB, were they kept.
    assert process.memory_info().rss - before < 6 << 20


def test_what_decided_is_told_on_request(served: Served, model: rerank.Reranker) -> None:
    ranking = model.rank(GOOD)
    for place in (1, 5):
        found = served.client.post("/rank", json={"candidates": GOOD, "explain": place}).json()
        assert found["decided"] == [part._asdict() | {"amount": part.amount} for part in ranking.explain(0, place)]
        assert found["decided"][0]["amount"] != 0.0
    assert "decided" not in served.client.post("/rank", json={"candidates": GOOD}).json()
    assert served.client.post("/rank", json={"candidates": GOOD[:1], "explain": 1}).json()["decided"] == []


def test_parses_and_their_errors(small_run: Path, tmp_path: Path) -> None:
    model = rerank.load(small_run / "model")
    with serving(small_run / "model", tmp_path) as service:
        about = service.client.get("/health").json()["model"]
        trained, seen = about.pop("trained"), model.model.about["columns"]["score"]
        assert about == {"task": "parse", "predictor": model.predictor, "columns": ["score"], "source": False}
        assert trained["ranges"] == {"score": [seen["least"], seen["greatest"]]}
        assert (trained["lists"], trained["date"]) == (150, model.model.about["date"])
        assert seen["lists"] < 150  # those with two candidates or more
        right = {"tree": RIGHT, "score": 0.0}
        wrong = {"tree": WRONG, "score": -1.0}
        for given in ([right, {**wrong, "score": 0.5}], [wrong, {"text": RIGHT, "score": -1.5}]):
            found, expected = service.client.post("/rank", json={"candidates": given}).json(), model.rank(given)
            assert (found["order"], found["scores"]) == (expected.order.tolist(), expected.scores.tolist())
            assert found["best"] == expected.best
        for given, field, said in (
            ({"candidates": [right, {**right, "tree": "(S1 (NN never closed)"}]}, "candidates[1]", "candidate 2: "),
            ({"candidates": [right, {**right, "tree": "(S1 (NN other))"}]}, "candidates[1]", "have different words"),
            ({"candidates": [RIGHT, WRONG]}, "candidates[0].score", "found no number as 'score'"),
            ({"candidates": [right], "source": "a"}, "source", "which have no source"),
            ({"candidates": [right, {**right, "tree": DEEP}]}, "candidates[1]", "found a tree of 502 levels; expected"),
            ({"candidates": [{"tree": LONG}]}, "candidates[0]", "found 10,001 words; expected at most 10,000"),
        ):
            answer = service.client.post("/rank", json=given)
            assert (answer.status_code, answer.json()["field"]) == (400, field)
            assert said in answer.json()["error"]
        service.running.send_signal(signal.SIGHUP)
        assert service.ended() == 0
        assert "stopped after 9 requests" in service.log.read_text()
        assert "Traceback" not in service.log.read_text()


def changed(place: int, **own: Any) -> dict[str, Any]:
    """A request with another candidate at a place."""
    return {"candidates": [*GOOD[:place], {**GOOD[place], **own}, *GOOD[place + 1 :]]}


BAD: list[tuple[Any, str | None, str]] = [
    (b"", None, "not valid JSON"),
    (b'{"candidates": ["a"], "\\ud800": 1}', None, "input should be a valid string"),
    (b'{"candidates": ["a"], "candidates": ["b"]}', None, "'candidates' appears twice"),
    (b'{"candidates": [{"text": "a", "score": NaN}]}', None, "NaN is not a number"),
    (b'{"candidates": [{"text": "a", "meta": {"x": -1e400}}]}', None, "-1e400 is not a number"),
    (b'{"candidates": ' + b"[" * 50_000, None, "nested too deep"),
    ({}, "candidates", "is missing"),
    ({"candidates": GOOD, "sauce": "a"}, "sauce", "did you mean source?"),
    ({"candidates": "a"}, "candidates", "found 'a'; expected a list"),
    ({"candidates": []}, "candidates", "expected a list of one entry or more"),
    ({"candidates": [*GOOD, 5]}, "candidates[8]", "candidate 9: found int; expected a text"),
    ({"candidates": GOOD, "source": "a\0"}, "source", "a NUL byte"),
    ({"candidates": GOOD, "id": 5.5}, "id", "found 5.5"),
    ({"candidates": GOOD, "explain": True}, "explain", "found True; expected a whole number from 0"),
    ({"candidates": GOOD, "explain": 8}, "explain", "found 8; the last place in the order is 7"),
    (b'{"candidates": [{"text": "a", "score": 1, "score": 2}]}', None, "'score' appears twice"),
    (b'{"candidates": [{"text": "a", "columns": {"length": 1, "length": 1}}]}', None, "'length' appears twice"),
    (b'{"candidates": [{"text": "a: b", "columns": {"length": 1, "length": 1}}]}', None, "'length' appears twice"),
    (changed(3, score="high"), "candidates[3].score", "found \"high\"; expected 'score' of candidate 4"),
    (changed(3, score=None), "candidates[3].score", "candidate 4: found no number as 'score'"),
    (changed(3, score=10**400), "candidates[3].score", "as a finite number"),
    (changed(3, score=1e300), "candidates[3]", "exceeds"),
    (changed(3, columns={"reward": 1}), "candidates[3].columns.length", "found no number as 'length'"),
    ({"candidates": [*GOOD, {"text": "a", "scoer": 1.0}]}, "candidates[8].scoer", "did you mean score?"),
    (
        changed(3, columns={"reward": 1, "lenght": 2}),
        "candidates[3].columns.lenght",
        "found 'lenght'; did you mean length? The numbers of this model are score, reward, length",
    ),
    (changed(3, text="a " * 10_001), "candidates[3]", "found 10,001 words; expected at most 10,000"),
    (changed(3, tree="(a)"), "candidates[3]", "expected either 'text' or 'tree'"),
]


@pytest.mark.parametrize(("given", "field", "said"), BAD)
def test_bad_requests_are_refused_with_their_field(served: Served, given: Any, field: str | None, said: str) -> None:
    body = given if isinstance(given, bytes) else json.dumps(given)
    answer = served.client.post("/rank", content=body)
    found = answer.json()
    assert answer.status_code == 400
    assert found.get("field") == field
    assert said in found["error"]
    assert "Traceback" not in answer.text + served.log.read_text()


def test_odd_texts_are_answered(served: Served) -> None:
    given = [{**GOOD[0], "text": text} for text in ("\ud800", "\x1b[2J\r\n", "", "ä" * 1000)]
    answer = served.client.post("/rank", content=json.dumps({"candidates": given}))
    assert answer.status_code == 200
    assert json.loads(answer.text)["best"] in given


@pytest.mark.parametrize("announced", [True, False])
def test_long_requests_are_refused_and_the_connection_goes_on(served: Served, announced: bool) -> None:
    body = b" " * (20 * MOST)
    answer = served.client.post("/rank", content=body if announced else iter([body[:MOST]] * 20))
    assert (answer.status_code, answer.json()) == (413, {"error": f"the body has more than {MOST} bytes"})
    filled = json.dumps({"candidates": GOOD}).ljust(MOST)
    assert served.client.post("/rank", content=filled).status_code == 200
    assert served.client.post("/rank", content=f"{filled} ").status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/rank", 405), ("DELETE", "/", 405), ("POST", "/health", 405), ("GET", "/rank/", 404), ("GET", "/x", 404)],
)
def test_unknown_routes_and_methods(served: Served, method: str, path: str, status: int) -> None:
    answer = served.client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert ("allow" in answer.headers) == (status == 405)


@pytest.fixture(scope="module")
def copying() -> rerank.Reranker:
    """A model for which the text is best that its source says."""
    words = [f"w{k}" for k in range(8)]
    lists = [rerank.NBest(word, words, f"say {word}", gains=[float(word == w) for w in words]) for word in words]
    return rerank.fit(lists, features={"set": None, "templates": ["Copy", "Dense"], "min_lists": 1}, epochs=3)


def test_documents_are_ranked_for_a_query(copying: rerank.Reranker, tmp_path: Path) -> None:
    copying.save(tmp_path / "model")
    asked = {"query": "say w5", "documents": ["w1 w2", {"text": "w5 ", "title": "W"}, "w3"], "model": "m"}
    scores = copying.rank(["w1 w2", "w5", "w3"], "say w5").scores.tolist()
    order = copying.rank(["w1 w2", "w5", "w3"], "say w5").order.tolist()
    shown = [{"text": "w1 w2"}, {"text": "w5 ", "title": "W"}, {"text": "w3"}]
    pairs = [{"index": y, "relevance_score": score} for y, score in zip(order, scores, strict=True)]
    whole = [pair | {"document": shown[pair["index"]]} for pair in pairs]
    usage = {"prompt_tokens": 6, "total_tokens": 6}
    with serving(tmp_path / "model", tmp_path) as served:
        for path, version, usual in (("/v1/rerank", "1", whole), ("/v2/rerank", "2", pairs), ("/rerank", "1", whole)):
            for change, expected in (
                ({}, usual), ({"top_n": None, "return_documents": None}, usual), ({"top_n": 0}, usual),
                ({"top_n": 1}, usual[:1]), ({"top_n": 9, "return_documents": False}, pairs),
                ({"top_n": 2, "return_documents": True}, whole[:2]),
                ({"max_tokens_per_doc": 4096, "priority": 1, "rank_fields": None}, usual),
            ):  # fmt: skip
                answer = served.client.post(path, json=asked | change).json()
                assert isinstance(answer.pop("id"), str)
                meta = {"api_version": {"version": version}, "tokens": {"input_tokens": 6}}
                assert answer == {"model": "m", "results": expected, "meta": meta, "usage": usage}
            for change, field in (
                ({"query": "a " * 10_001}, "query"), ({"query": "a\0"}, "query"), ({"top_n": -1}, "top_n"),
                ({"documents": ["a", "b\0"]}, "documents[1]"), ({"documents": [{"tx": "a"}]}, "documents[0]"),
                ({"top_k": 1}, "top_k"), ({"return_document": True}, "return_document"),
                ({"rank_fields": ["title"]}, "rank_fields"),
                ({"documents": [{"text": "a", "scor": 1.0}]}, "documents[0].scor"),
            ):  # fmt: skip
                answer = served.client.post(path, json=asked | change)
                assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
            message = served.client.post(path, json=asked | {"top_k": 1}).json()["error"]["message"]
            assert all(name in message for name in ("'top_k'", "top_n", "return_documents", "query", "documents"))


def test_numbers_of_documents_are_their_columns(tmp_path: Path) -> None:
    words = [f"w{k}" for k in range(8)]
    given = [{"text": word, "bm25": number} for word in words for number in (0.0, 1.0)]
    lists = [
        rerank.NBest(word, given, f"say {word}", gains=[(each["text"] == word) + each["bm25"] / 2 for each in given])
        for word in words
    ]
    features = {"set": None, "templates": ["Copy", "Dense"], "min_lists": 1}
    rerank.fit(lists, features=features, epochs=3).save(tmp_path / "model")
    documents = [{"text": "w1", "bm25": 0}, {"text": "w1", "columns": {"bm25": 1.0}}, {"text": "w3", "bm25": 0.5}]
    with serving(tmp_path / "model", tmp_path) as served:
        for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
            answer = served.client.post(path, json={"query": "say w1", "documents": documents}).json()
            assert [found["index"] for found in answer["results"]] == [1, 0, 2]
            assert answer["model"] == "fit"
            missing = served.client.post(path, json={"query": "say w1", "documents": [documents[0], "w2"]})
            assert (missing.status_code, missing.json()["error"]["param"]) == (400, "documents[1].columns.bm25")


def test_metrics_count_requests_and_candidates(served: Served) -> None:
    def read() -> dict[str, float]:
        text = served.client.get("/metrics").text
        return {
            name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        }

    before = read()
    served.client.post("/rank", json={"candidates": GOOD})
    served.client.post("/rank", json={})
    served.client.get("/nothing/of/the/kind")
    after = read()
    for name, more in {
        'rerank_requests_total{route="/rank",status="200"}': 1,
        'rerank_requests_total{route="/rank",status="400"}': 1,
        'rerank_requests_total{route="other",status="404"}': 1,
        'rerank_request_seconds_count{route="/rank"}': 2,
        'rerank_request_seconds_bucket{le="+Inf",route="/rank"}': 2,
        "rerank_candidates_total": len(GOOD),
    }.items():
        assert after[name] - before.get(name, 0.0) == more, name
    assert "nothing" not in "".join(after)


def test_the_page_holds_all_that_it_needs(served: Served) -> None:
    answer = served.client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("; frame-ancestors 'self'")
    assert "unsafe" not in policy
    assert "<textarea" in answer.text
    assert "//" not in answer.text.replace("  // ", "").replace("\n// ", "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "rebound.example"}, 421),
        ({"Host": "localhost.rebound.example:8000"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "https://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, 403),
        ({"Origin": "http://page.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "application/JSON; charset=utf-8"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": ""}, 415),
    ],
)
def test_pages_of_others_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    answer = served.client.post("/rank", content=json.dumps({"candidates": GOOD}), headers=headers)
    assert (answer.status_code, "error" in answer.json()) == (status, status != 200)
    if status in (421, 403):
        for path in ("/", "/health", "/metrics", "/nothing"):
            assert served.client.get(path, headers=headers).status_code == status


def test_names_of_ones_own_are_allowed(served: Served) -> None:
    hosts = "ranker.example", "RANKER.example:80", "b", "127.0.0.1", "other.ranker.example", "rebound.example"
    found = [served.client.get("/health", headers={"Host": host}).status_code for host in hosts]
    assert found == [200] * 4 + [421] * 2


def sent(served: Served, data: bytes) -> bytes:
    """All that the service answers to some bytes before it closes the connection."""
    address = served.client.base_url
    with socket.create_connection((address.host, address.port), PATIENCE) as client:
        client.sendall(data)
        return client.makefile("rb").read()


def test_two_lengths_of_a_body_end_the_connection(served: Served) -> None:
    both = HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    found = sent(served, both + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1") == 1


def test_the_log_tells_of_bad_lines_once(served: Served) -> None:
    for _ in range(20):
        assert sent(served, b"\x16\x03\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert served.log.read_text().count("Invalid HTTP request") == 1


def test_more_connections_than_there_may_be(saved: Path, tmp_path: Path) -> None:
    with serving(saved, tmp_path, "--max-connections", 8) as service, ExitStack() as held:
        assert service.client.get("/health").status_code == 200  # by a connection that stays
        address = service.client.base_url
        for _ in range(7):
            held.enter_context(socket.create_connection((address.host, address.port), PATIENCE))
        for _ in range(20):
            assert sent(service, b"").startswith(b"HTTP/1.1 503 ")
        assert service.client.post("/rank", json={"candidates": GOOD}).status_code == 200
        assert service.log.read_text().count("refused a connection: there are 8 already") == 1


def test_a_service_without_files_to_open_says_so_in_a_line(saved: Path, tmp_path: Path) -> None:
    with serving(saved, tmp_path) as service, ExitStack() as held:
        assert service.client.get("/health").status_code == 200
        process, address = psutil.Process(service.running.pid), service.client.base_url
        process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 8, process.rlimit(psutil.RLIMIT_NOFILE)[1]))
        for _ in range(20):
            held.enter_context(socket.create_connection((address.host, address.port), PATIENCE))
        wait_for(lambda: "Too many open files" in service.log.read_text())
        assert service.client.get("/health").status_code == 200
        assert service.log.read_text().count("\n") < 10
        assert "Traceback" not in service.log.read_text()


SLOW = """
import pathlib, time

def slow(candidate):
    pathlib.Path("begun").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return {"length": float(len(candidate.text))}
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a model that waits until there is a file ``go``, and tells by ``begun`` that it waits."""
    (tmp_path / "slow_feature.py").write_text(SLOW)
    (tmp_path / "go").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    lists = [rerank.NBest(str(i), [("a", 1.0), ("bb", 0.0)], gains=[0.0, 1.0]) for i in range(6)]
    features = {"set": None, "templates": ["Dense"], "user": {"slow": "slow_feature:slow"}}
    rerank.fit(lists, features=features, epochs=1).save("model")
    return tmp_path


def wait_for(what: Any) -> None:
    """Until it is so."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def answers(address: httpx.URL) -> bool:
    """Does somebody listen there?"""
    with socket.socket() as client:
        return client.connect_ex((address.host, address.port or 0)) == 0


def test_a_long_request_holds_up_neither_others_nor_is_lost_at_the_end(slow: Path) -> None:
    with serving(slow / "model", slow, "--trust", "--threads", 1) as service, ThreadPoolExecutor(1) as pool:
        for name in ("go", "begun"):
            (slow / name).unlink()
        with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as other:
            waiting = pool.submit(other.post, "/rank", json={"candidates": [{"text": "a", "score": 1.0}]})
            try:
                wait_for((slow / "begun").exists)
                assert service.client.get("/health").json()["status"] == "ok"
                service.running.send_signal(signal.SIGTERM)
                wait_for(lambda: not answers(service.client.base_url))
                assert service.running.poll() is None
            finally:
                (slow / "go").touch()
            answer = waiting.result()
            assert (answer.status_code, answer.json()["order"]) == (200, [0])
        assert service.ended() == 0
        assert "stopped after" in service.log.read_text()


def test_what_still_ranks_holds_up_the_end_for_a_while_only(slow: Path) -> None:
    with (
        serving(slow / "model", slow, "--trust", "--threads", 1, "--grace", 1) as service,
        ThreadPoolExecutor(1) as pool,
    ):
        for name in ("go", "begun"):
            (slow / name).unlink()
        waiting = pool.submit(service.client.post, "/rank", json={"candidates": [{"text": "a", "score": 1.0}]})
        try:
            wait_for((slow / "begun").exists)
            service.running.send_signal(signal.SIGTERM)
            assert service.ended() == 0  # while there is no "go"
        finally:
            (slow / "go").touch()
        assert waiting.result().status_code == 503


def test_it_listens_when_it_is_ready(slow: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for name in ("go", "begun"):
        (slow / name).unlink()
    words = sys.executable, "-m", "rerank", "serve", slow / "model", "--trust", "--port", str(port)
    with program(*words, cwd=slow, stdout=subprocess.PIPE) as running:
        try:
            wait_for((slow / "begun").exists)
            assert not answers(httpx.URL(f"http://127.0.0.1:{port}"))
        finally:
            (slow / "go").touch()
        assert str(port) in running.stdout.readline().decode()
        assert answers(httpx.URL(f"http://127.0.0.1:{port}"))


def test_half_a_request_holds_up_the_end_for_a_while_only(saved: Path, tmp_path: Path) -> None:
    with serving(saved, tmp_path, "--grace", 1) as service:
        address = service.client.base_url
        with socket.create_connection((address.host, address.port)) as client:
            client.sendall(HEAD + b"Content-Length: 10\r\n\r\n{")
            wait_for(lambda: service.client.get("/health").status_code == 200)
            service.running.send_signal(signal.SIGINT)
            assert service.ended() == 0
            assert b" 503 " in client.makefile("rb").readline()
        assert "Traceback" not in service.log.read_text()


def test_missing_libraries_are_named(rerank: Command, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    failed(rerank("serve", saved), 1, "rerank serve needs uvicorn: pip install 'rerank-nbest[serve]'")


def test_ports_that_are_taken_are_named(rerank: Command, saved: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"cannot listen on 127.0.0.1, port {port}: Address already in use"
        failed(rerank("serve", saved, "--port", port), 1, said)


def test_a_signal_as_soon_as_it_is_ready_ends_it(rerank: Command, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.print", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    assert rerank("serve", saved, "--port", 0).code == 0


def test_bad_hosts_models_and_predictors_are_refused(rerank: Command, saved: Path, tmp_path: Path) -> None:
    failed(rerank("serve", saved, "--host", "a..b"), 1, "cannot listen on a..b, port 8000: this is not the name of a")
    refused(rerank("serve", tmp_path, "--port", 0), "model.json")
    refused(rerank("serve", saved, "--port", 0, "--predictor", "mert"), "no predictor 'mert'")
