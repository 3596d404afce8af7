"""The server of the service: how it is stopped."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from rerank.base.interrupts import SIGNALS
from rerank.contrib.serve.upstream import Upstream


class Server(uvicorn.Server):
    """A server for which a signal is the orderly end; ``upstream``: what its connections are ended after."""

    def __init__(self, config: uvicorn.Config, upstream: Upstream | None) -> None:
        super().__init__(config)
        self._upstream = upstream

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End connections: those of clients, then those to the upstream server."""
        await super().shutdown(sockets)
        if self._upstream is not None:
            await self._upstream.close()
