"""Connections to the service: how many there may be, how long they may wait, how often the log tells of them, and how
they end."""

import asyncio
import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rerank.base.interrupts import SIGNALS

log = logging.getLogger("rerank.connections")
HEAD = 10.0  # seconds for the head of the first request to arrive
PATIENCE = 30.0  # seconds for an answer to be taken and the next head to arrive; for a body
SELDOM = 60.0  # seconds between two equal messages
FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(H11Protocol):
    """A connection that ends in time, one of fewer than ``limit_concurrency``.

    uvicorn alone looks at that number when a request has come, and at the time only until the first byte of the next.
    """

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._ends_in(HEAD)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            log.warning("refused a connection: there are %d already", self.limit_concurrency - 1)
            self.connections.discard(self)  # others are not refused for it
            transport.write(FULL)
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


class Seldom(logging.Filter):
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
        seldom = now - self._last.get(what, -SELDOM) >= SELDOM
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
        taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
