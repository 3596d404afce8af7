"""The server of the service: how it is stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from rerank.base.interrupts import SIGNALS


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
