"""Requests to rank 8 dense candidates: processor microseconds of `rerank serve` for one, beside a bare ASGI handler,
of one process and of two.

    python benchmarks/serving.py [--rounds 7] [--seconds 2] [--batch 1]

The handler takes the body apart and answers with a line of JSON, under the same uvicorn with the same settings. Clients
keep their connections and send prepared requests: ``batch`` at a time, each client the next when all are answered. The
cases are measured in turn, and their processor time is the median of the rounds. Two processes are two services, each
at a port of its own.

``two_to_one`` is how many requests two processes answer for one of a single process, each with a processor to itself:
twice the processor time of a request to one, by that of a request to two. Requests a second, the most of any round,
show it only where clients leave the processors to the two: on a machine with two of them with ``--batch 16``.
"""

import argparse
import json
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import psutil
from latency import samples

import rerank

BARE = """
import msgspec, socket, uvicorn

async def app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    count = len(msgspec.json.decode(body)["candidates"])
    answer = msgspec.json.encode({"candidates": count})
    headers = [(b"content-length", str(len(answer)).encode()), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(64)
print("serving at http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(
    app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none", http="h11",
    limit_concurrency=257, backlog=64, timeout_graceful_shutdown=30, headers=[("x-content-type-options", "nosniff")],
)).run([listener])
"""
CLIENTS = 4  # connections to a process, so that it never waits for a request


class Service(NamedTuple):
    """A process that answers at a port."""

    process: psutil.Process
    port: int


def seconds_of(*processes: psutil.Process) -> float:
    """Their processor seconds so far."""
    return sum(used.user + used.system for used in (each.cpu_times() for each in processes))


@contextmanager
def served(*words: str) -> Iterator[Service]:
    """The service that a Python command starts, for the time of the block."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        found = re.search(r":(\d+)$", running.stdout.readline().strip())
        assert found is not None, words
        yield Service(psutil.Process(running.pid), int(found[1]))
        running.terminate()


def connected(port: int, request: bytes, batch: int) -> tuple[socket.socket, int]:
    """A connection that has been answered once, and the bytes of ``batch`` answers."""
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(request)
    answer = client.recv(1 << 16)
    while (whole := re.search(rb"content-length: (\d+)\r\n.*?\r\n\r\n", answer, re.DOTALL)) is None or (
        len(answer) < whole.end() + int(whole[1])
    ):
        answer += client.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, batch * len(answer))  # woken by the last answer alone
    return client, batch * len(answer)


def asked(services: Sequence[Service], request: bytes, batch: int, seconds: float) -> int:
    """The number of requests that are answered within some seconds."""
    with ExitStack() as held, selectors.DefaultSelector() as ready:
        for service in services * CLIENTS:
            client, size = connected(service.port, request, batch)
            held.enter_context(client)
            ready.register(
                client, selectors.EVENT_READ, [size, size]
            )  # of a batch of answers: bytes, and those to come
            client.sendall(request * batch)
        answered, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            for key, _ in ready.select(1.0):
                key.data[1] -= len(key.fileobj.recv(1 << 20))
                if not key.data[1]:
                    answered, key.data[1] = answered + batch, key.data[0]
                    key.fileobj.sendall(request * batch)
    return answered


def main() -> None:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--batch", type=int, default=1, help="requests that a client sends at a time")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    lists = [rerank.NBest(str(i), samples(rng, columns=True), gains=[1.0] + [0.0] * 7) for i in range(60)]
    body = json.dumps({"candidates": samples(rng, columns=True)}).encode()
    head = f"POST /rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    request = f"{head}\r\n\r\n".encode() + body
    with TemporaryDirectory() as place, ExitStack() as running:
        rerank.fit(lists, features="dense", epochs=2).save(Path(place, "model"))
        ours, other = [
            running.enter_context(served("-m", "rerank", "serve", str(Path(place, "model")), "--port", "0"))
            for _ in range(2)
        ]
        bare = running.enter_context(served("-c", BARE))
        cases = {"rerank serve": [ours], "bare handler": [bare], "two processes": [ours, other]}
        used: dict[str, list[float]] = {name: [] for name in cases}
        clients: dict[str, list[float]] = {name: [] for name in cases}
        rates: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(arguments.rounds):
            for name, services in cases.items():
                processes, own = [each.process for each in services], psutil.Process()
                before, start = (seconds_of(*processes), seconds_of(own)), time.perf_counter()
                count = asked(services, request, arguments.batch, arguments.seconds)
                rates[name].append(count / (time.perf_counter() - start))
                used[name].append(1e6 * (seconds_of(*processes) - before[0]) / count)
                clients[name].append(1e6 * (seconds_of(own) - before[1]) / count)
    cost = {name: median(each) for name, each in used.items()}
    found = {"cpu_us_a_request": {name: round(each, 1) for name, each in cost.items()},
             "ratio_to_bare": round(cost["rerank serve"] / cost["bare handler"], 2),
             "two_to_one": round(2 * cost["rerank serve"] / cost["two processes"], 2),
             "cpu_us_a_request_of_clients": {name: round(median(each), 1) for name, each in clients.items()},
             "requests_a_second": {name: round(max(each)) for name, each in rates.items()}}  # fmt: skip
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
