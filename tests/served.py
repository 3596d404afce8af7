"""A server of files for tests of inputs by URL: it can misbehave."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class Served:
    """The files below a folder, at ``url``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.status = 200
        self.cut = 0  # bytes that are promised and not sent
        self.delay = 0.0  # seconds before an answer
        self.tagged = True  # whether it says of files what changes with them
        self.logins = set[str | None]()  # what clients have said of themselves
        self.url = ""


class _Handler(BaseHTTPRequestHandler):
    served: Served

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(None)

    def _answer(self, body: bytes | None) -> None:
        own, path = self.served, self.served.root / self.path.lstrip("/").partition("?")[0]
        own.logins.add(self.headers["Authorization"])
        time.sleep(own.delay)
        if path.name == "loop":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if own.status != 200 or not path.is_file():
            self.send_error(own.status if own.status != 200 else 404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        if own.tagged:
            self.send_header("ETag", hashlib.sha256(data).hexdigest())
        self.end_headers()
        if body is None:
            with suppress(OSError):  # the client has enough
                self.wfile.write(data[: len(data) - own.cut])

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    """The files below ``root`` by HTTP on a free port of this machine."""
    served = Served(root)
    handler = type("Handler", (_Handler,), {"served": served})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
