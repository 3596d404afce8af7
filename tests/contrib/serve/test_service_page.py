"""The page of the service in a browser: what a person pastes is ranked, and the page says what decided."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import uvicorn
from browser import assert_nothing_overflows, frames, look_at, needs_browser
from service import COLUMNS, running, sample_model, samples
from starlette.responses import HTMLResponse
from starlette.routing import Route

from rerank.contrib.serve.app import make_app

LONG = "x" * 300  # has no place to break at
# Pastes candidates, one text of them after the other, and waits each time for the ranking and what decided between the
# best and the second, or for an error.
PASTE = """
const wait = async (what) => { while (!what()) await new Promise((done) => setTimeout(done, 20)); };
const at = (selector) => page.querySelectorAll(selector);
const texts = (selector) => [...at(selector)].map((each) => each.textContent);
await wait(() => at("#form")[0].textContent);
const found = [];
for (const text of GIVEN) {
  at("#candidates")[0].value = text;
  at("button")[0].click();
  await wait(() => at("li details table").length || at("#wrong")[0].textContent);
  found.push({texts: texts("li > p:first-child"), features: texts("li details table td:first-child"),
    wrong: at("#wrong")[0].textContent, wide: page.documentElement.scrollWidth - page.documentElement.clientWidth});
}
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
    lines = [[each["text"], each["score"], *(each["columns"][name] for name in COLUMNS)] for each in given]
    texts = [
        "\n".join("\t".join(map(str, line)) for line in lines),
        f"a\t1\t2\t3\n{LONG}\t1\t{LONG}\t3",
        json.dumps(given),
    ]
    app, page = (
        make_app(model, threads=1, pool=ThreadPoolExecutor(1)),
        frames('src="/"', PASTE.replace("GIVEN", json.dumps(texts))),
    )
    app.router.routes.append(Route("/look", lambda _: HTMLResponse(page)))
    with running(uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))) as server:
        host, port = server.servers[0].sockets[0].getsockname()
        found = look_at(f"http://{host}:{port}/look", tmp_path)
    assert_nothing_overflows(found)
    for seen in found:
        by_lines, wrong, by_json = seen["said"]
        assert by_lines == by_json == {
            "texts": [each["text"] for each in ranking.candidates], "features": features, "wrong": "", "wide": 0
        }  # fmt: skip
        assert wrong["wrong"].startswith('candidates[1].columns.reward: candidate 2: found "xxx')
        assert (wrong["texts"], wrong["wide"]) == ([], 0)
