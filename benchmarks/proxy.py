"""Processor time that `rerank serve --upstream` takes for a chat, in front of a server that answers from memory.

    python benchmarks/proxy.py [--chats 2000] [--at-a-time 100] [--samples 16] [--words 100] [--seconds 0.2]

The server answers after ``--seconds`` with samples of ``--words`` words, all in one response or, if it does not take
``n``, in one response each. The model ranks by templates of the samples' words, or by their log probabilities, which
make the responses longer. ``cpu_ms`` is processor time of the service, of all its threads, by chat; ``added_ms`` the
median time of a chat beyond ``--seconds``, while ``--at-a-time`` of them share the machine with their client and the
server.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import numpy as np
import psutil
from aiohttp import web

import rerank

CHAT = {"messages": [{"role": "user", "content": "w1 w2 w3"}], "logprobs": False}


def texts(rng: np.random.Generator, samples: int, words: int) -> list[str]:
    """Samples that share most of their words."""
    given = [f"w{word}" for word in rng.integers(0, 500, words)]
    return [" ".join([*given[: words // 2], *rng.permutation(given[words // 2 :])]) for _ in range(samples)]


def model(samples: int, words: int, *, scored: bool) -> rerank.Reranker:
    """A model of texts, or of log probabilities alone."""
    rng = np.random.default_rng(1)
    lists = []
    for name in map(str, range(60)):
        given = [
            {"text": text} | ({"score": float(rng.normal())} if scored else {}) for text in texts(rng, samples, words)
        ]
        lists.append(rerank.NBest(name, given, "w1 w2 w3", gains=rng.integers(0, 2, samples).tolist()))
    return rerank.fit(lists, features="dense" if scored else "text", epochs=2)


def serve(port: Any, samples: int, words: int, seconds: float) -> None:
    """The upstream server, which puts its port into a pipe."""
    rng, bodies = np.random.default_rng(2), dict[tuple[int, bool], bytes]()
    logprobs = {"content": [{"token": "w1", "logprob": -0.5, "bytes": [119, 49], "top_logprobs": []}] * words}
    for n in (1, samples):
        for scored in (False, True):
            choices = [
                {"index": k, "finish_reason": "stop", "message": {"role": "assistant", "content": text},
                 "logprobs": logprobs if scored else None}
                for k, text in enumerate(texts(rng, n, words))
            ]  # fmt: skip
            bodies[n, scored] = json.dumps({"id": "1", "object": "chat.completion", "choices": choices}).encode()

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(seconds)
        if asked["model"] == "alone" and "n" in asked:
            return web.json_response({"error": "n must be 1"}, status=400)
        body = bodies[asked.get("n", 1), asked.get("logprobs", False)]
        return web.Response(body=body, content_type="application/json")

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


async def ask(url: str, name: str, chats: int, at_a_time: int) -> list[float]:
    """Seconds of every chat with a model of the server's."""
    taken = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def some() -> None:
            for _ in range(chats // at_a_time):
                start = time.perf_counter()
                async with client.post(f"{url}/v1/chat/completions", json={**CHAT, "model": name}) as answer:
                    assert "rerank" in await answer.json()
                taken.append(time.perf_counter() - start)

        await asyncio.gather(*(some() for _ in range(at_a_time)))
    return taken


def measured(place: Path, upstream: str, name: str, given: argparse.Namespace) -> dict[str, float]:
    """What chats take by the service of the model at ``place``."""
    words = "serve", place, "--port", 0, "--upstream", upstream, "--n", given.samples, "--max-connections", 1024
    command = [sys.executable, "-m", "rerank", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        (url,) = re.findall(r"http://\S+", service.stdout.readline())
        asyncio.run(ask(url, name, given.at_a_time, given.at_a_time))  # connections, and what is compiled
        process = psutil.Process(service.pid)
        before = process.cpu_times()
        taken = asyncio.run(ask(url, name, given.chats, given.at_a_time))
        after = process.cpu_times()
        service.terminate()
    cpu = (after.user + after.system - before.user - before.system) / len(taken)
    added = float(np.median(taken)) - given.seconds
    return {"cpu_ms": round(1e3 * cpu, 3), "added_ms": round(1e3 * added, 1)}


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, value in (("chats", 2000), ("at-a-time", 100), ("samples", 16), ("words", 100)):
        parser.add_argument(f"--{option}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=0.2)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs, given.samples, given.words, given.seconds))
    server.start()
    try:
        upstream = f"http://127.0.0.1:{ours.recv()}/v1"
        found = {}
        with TemporaryDirectory() as folder:
            for kind, scored in (("templates of texts", False), ("log probabilities", True)):
                model(given.samples, given.words, scored=scored).save(Path(folder, kind))
                for name, how in (("many", "n in a request"), ("alone", "one to a request")):
                    found[f"{kind}, {how}"] = measured(Path(folder, kind), upstream, name, given)
        print(json.dumps(found, indent=1))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
