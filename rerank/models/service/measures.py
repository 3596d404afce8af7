"""What is counted and measured of requests, for Prometheus."""

import math
from functools import partial
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
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
        for name, own in drift.known.items():
            for measure in COMPARED:
                columns.labels(name, measure, "training").set(getattr(own, measure))
                columns.labels(name, measure, "requests").set_function(partial(_measured, drift, name, measure))


def _measured(drift: Drift, column: str, measure: str) -> float:
    return drift.of(column).get(measure, math.nan)


class MeasuredApp:
    """An application whose answers are measured; ``routes`` are its paths."""

    def __init__(self, app: ASGIApp, measures: Measures, routes: frozenset[str]) -> None:
        self.app, self.measures, self.routes = app, measures, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        start, route = perf_counter(), scope["path"] if scope["path"] in self.routes else OTHER

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.measures.requests.labels(route, message["status"]).inc()
                self.measures.seconds.labels(route).observe(perf_counter() - start)
            await send(message)

        await self.app(scope, receive, counted)
