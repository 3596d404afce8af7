"""The layers around the application: who may ask, and what is counted and measured of requests."""

import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from time import perf_counter
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rerank.models.drift import COMPARED, Drift

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"  # stands for all paths that are no route: strangers must not make names


class Measures:
    """Requests by route and status, their seconds, candidates ranked, score columns beside those of training, and the
    process as it is."""

    def __init__(self, drift: Drift) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("rerank_requests", "Requests answered.", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "rerank_request_seconds", "Seconds to answer a request.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.candidates = Counter("rerank_candidates", "Candidates ranked.", registry=self.registry)
        ProcessCollector(registry=self.registry)
        told = "Mean, standard deviation and correlation with the base score of a column in a list, on average."
        columns = Gauge("rerank_column", told, ["column", "measure", "lists"], registry=self.registry)
        for name, histogram in drift.known.items():
            for measure in COMPARED:
                columns.labels(name, measure, "training").set(getattr(histogram, measure))
                value = partial(lambda *of: drift.of(of[0]).get(of[1], math.nan), name, measure)
                columns.labels(name, measure, "requests").set_function(value)


def measured(app: ASGIApp, measures: Measures, routes: Collection[str]) -> ASGIApp:
    """The application, whose answers are measured; ``routes`` are its paths."""

    async def measure(scope: Scope, receive: Receive, send: Send) -> None:
        start, route = perf_counter(), scope["path"] if scope["path"] in routes else OTHER

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                measures.requests.labels(route, message["status"]).inc()
                measures.seconds.labels(route).observe(perf_counter() - start)
            await send(message)

        await app(scope, receive, counted)

    return measure


LOOPBACK = "localhost", "127.0.0.1", "::1"
BOTH = {"content-length", "transfer-encoding"}


def guarded(app: ASGIApp, hosts: Iterable[str]) -> ASGIApp:
    """The application, which gets only requests to ``hosts``, this machine's own names and the address that was called.

    A browser's pages can send requests here: those of other origins are known by their ``Origin``, and those whose own
    host's name has come to mean this machine (DNS rebinding) by their ``Host``.
    """

    names = {*LOOPBACK, *map(str.lower, hosts)}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        await (_refusal(scope, names) or app)(scope, receive, send)

    return guard


def _refusal(scope: Scope, names: set[str]) -> JSONResponse | None:
    """The answer in place of the application."""
    headers, called = Headers(scope=scope), str((scope.get("server") or [""])[0]).removeprefix("::ffff:")
    host, origin = headers.get("host", ""), headers.get("origin")
    name = None
    with suppress(ValueError):
        name = urlsplit(f"//{host}").hostname
    if (name or "") not in names | {called}:
        message = f"found the host {host!r}; expected a name that --host or --allow-host gives this service"
        return JSONResponse({"error": message}, 421)
    if origin is not None and origin.lower().partition("://")[2] != host.lower():
        return JSONResponse({"error": f"found a page of {origin!r}; expected one of this service"}, 403)
    if set(headers) >= BOTH:  # which of them a proxy went by, nobody knows: what follows may be another's request
        message = "found Content-Length and Transfer-Encoding; expected one of them"
        return JSONResponse({"error": message}, 400, headers={"connection": "close"})
    return None
