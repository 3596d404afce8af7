"""Connections to the service: how many there may be, how long they may wait, how often the log tells of them, and how
they end."""

import asyncio
import logging
import re
import signal
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from uvicorn.protocols.http.h11_impl import H11Protocol

from rerank.base.interrupts import SIGNALS

log = logging.getLogger("rerank.connections")
HEAD_SECONDS = 10.0  # seconds for the head of the first request to arrive
PATIENCE = 30.0  # seconds for an answer to be taken and the next head to arrive; for a body
MESSAGE_INTERVAL = 60.0  # seconds between two equal messages
FULL_RESPONSE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(H11Protocol):
    """A connection that ends in time, one of fewer than ``limit_concurrency``.

    uvicorn alone looks at that number when a request has come, and at the time only until the first byte of the next.
    """

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._ends_in(HEAD_SECONDS)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            log.warning("refused a connection: there are %d already", self.limit_concurrency - 1)
            self.connections.discard(self)  # others are not refused for it
            transport.write(FULL_RESPONSE)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ends_in(None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """As uvicorn does; a request whose head is there has all the time that the application gives it."""
        last = self.cycle
        super().handle_events()
        if self.cycle is not last and not self.cycle.response_complete:
            self._ends_in(None)

    def on_response_complete(self) -> None:
        """As uvicorn does, perhaps with the next request."""
        self._ends_in(PATIENCE)
        super().on_response_complete()

    def _ends_in(self, seconds: float | None) -> None:
        if self._end is not None:
            self._end.cancel()
        self._end = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


class RareMessages(logging.Filter):
    """Of messages that strangers can cause, one a minute, in a line: the system's errors without a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, what = time.monotonic(), str(record.msg).partition("\n")[0]
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OSError):
            record.msg, record.exc_info = f"{what}: {error.strerror}", None
        elif error is not None:
            return True
        seldom = now - self._last.get(what, -MESSAGE_INTERVAL) >= MESSAGE_INTERVAL
        if seldom:
            self._last[what] = now
        return seldom


class Server(uvicorn.Server):
    """A server for which a signal is the orderly end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Finish what is under way."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take over all signals that stop a command, and none that it was started to ignore."""
        signals = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
NO_ROUTE = "other"  # stands for all paths that are no route: strangers must not make names


class Measures:
    """Requests by route and status, their seconds, candidates ranked, and the process as it is."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        requests = Counter("rerank_requests", "Requests answered.", ["route", "status"], registry=self.registry)
        seconds = Histogram(
            "rerank_request_seconds", "Seconds to answer a request.", ["route"], buckets=BUCKETS, registry=self.registry
        )
        self.candidates = Counter("rerank_candidates", "Candidates ranked.", registry=self.registry)
        ProcessCollector(registry=self.registry)
        self._of = cache(lambda route, status: (requests.labels(route, status).inc, seconds.labels(route).observe))

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        count, observe = self._of(route, status)
        count()
        observe(seconds)


class Answer(NamedTuple):
    """An answer to a request: its body, and what kind of text that is."""

    body: bytes
    status: int = 200
    kind: bytes = b"application/json"
    headers: Sequence[tuple[bytes, bytes]] = ()


class RefusedError(Exception):
    """A request that is not answered; ``field`` says what of its body is wrong."""

    def __init__(self, status: int, message: str, field: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]


LOOPBACK = "localhost", "127.0.0.1", "::1"
HOST = re.compile(r"(?:\[([^\]]+)\]|([^:/@[\]]*))(?::\d*)?")  # a name or an address, and perhaps a port
FRAMING = {b"content-length", b"transfer-encoding"}


def check_caller(scope: dict[str, Any], headers: dict[bytes, bytes], names: Set[str]) -> None:
    """Refuse requests to others than ``names``, which are those of this machine, and the address that was called.

    A browser's pages can send requests here: those of other origins are known by their ``Origin``, and those whose own
    host's name has come to mean this machine (DNS rebinding) by their ``Host``.
    """
    host = headers.get(b"host", b"").decode("latin-1")
    name = match[match.lastindex or 0].lower() if (match := HOST.fullmatch(host)) else ""
    if name not in names and name != (scope.get("server") or ("",))[0].removeprefix("::ffff:"):
        message = f"found the host {host!r}; expected a name that --host or --allow-host gives this service"
        raise RefusedError(421, message)
    origin = headers.get(b"origin", b"").decode("latin-1")
    if b"origin" in headers and origin.lower().partition("://")[2] != host.lower():
        raise RefusedError(403, f"found a page of {origin!r}; expected one of this service")
    if headers.keys() >= FRAMING:  # which of them a proxy went by, nobody knows: what follows may be another's request
        message = "found Content-Length and Transfer-Encoding; expected one of them"
        raise RefusedError(400, message, connection="close")
