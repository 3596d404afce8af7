"""The page of the service in a browser: what a person pastes is ranked, and the page says what decided."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from browser import assert_nothing_overflows, frames, look_at, needs_browser
from service import running, sample_model, samples

from rerank.contrib.serve.app import make_app

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
