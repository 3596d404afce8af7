"""Damaged requests to a service: an answer for all that was given, or an error of the client's in JSON."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service import JSON, sample_model, samples
from strategies_damage import damaged

import rerank

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")
import httpx

from rerank.contrib.serve.app import make_app

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
        yield {path: make_app(tagger if path == "/tag" else ranker, threads=1, pool=pool) for path in REQUESTS}


async def ask(app: Any, path: str, body: bytes) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=JSON) as client:
        return await client.post(path, content=body)


def check(path: str, found: httpx.Response) -> None:
    answer = found.json()
    assert found.status_code in (200, 400, 413), found.text
    if found.status_code != 200:
        assert set(answer) <= {"error", "field"}
        assert len(found.text) < 5000
        assert "Traceback" not in found.text
    elif path == "/rank":
        assert sorted(answer["order"]) == list(range(len(answer["scores"])))
        assert np.isfinite(answer["scores"]).all()
    elif path == "/v2/rerank":
        assert np.isfinite([each["relevance_score"] for each in answer["results"]]).all()


@pytest.mark.parametrize("path", REQUESTS)
@settings(max_examples=150)
@given(data=st.data())
def test_damaged(services: dict[str, Any], path: str, data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(REQUESTS[path]))
    body = data.draw(damaged(json.dumps(request).encode(), ".json"))
    check(path, asyncio.run(ask(services[path], path, body)))
