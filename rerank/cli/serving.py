"""The command that answers requests over HTTP."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Literal

import typer

from rerank.base.errors import RunError
from rerank.cli.answer import shown_as_json
from rerank.cli.application import ModelPlace, Trusted, command

log = logging.getLogger("rerank")
WORKER = "rank"  # what the threads that rank are called
EXTRA = "starlette", "uvicorn", "prometheus_client"
MISSING = "rerank serve needs {}: pip install 'rerank-nbest[serve]'"


@command()
def serve(
    model: ModelPlace,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for one that is free.")] = 8000,
    predictor: Annotated[
        Literal["last", "average", "voted", "mert"] | None,
        typer.Option("--predictor", help="Which of the model's predictors to use.", show_default="the recipe's"),
    ] = None,
    trust: Trusted = False,
    max_bytes: Annotated[int, typer.Option(min=1, help="The longest request, in bytes.")] = 4 << 20,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads that rank.", show_default="one per core")] = None,
    grace: Annotated[
        int, typer.Option(min=1, help="Seconds that requests under way have to finish when the service is stopped.")
    ] = 30,
) -> None:
    """Answer requests to rank over HTTP: POST /rank, /health, /metrics, and at / a page to try it.

    It prints its address when it is ready. SIGTERM or Ctrl-C ends it, with the exit code 0, once the requests under way
    are answered. There are neither passwords nor encryption: let a proxy see to both before strangers can reach it.
    """
    try:
        import uvicorn

        from rerank.models.service.app import make_app, warm_up
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        raise RunError(MISSING.format(error.name)) from None
    from rerank.engines.settings import cores
    from rerank.models.reranker import load

    class Server(uvicorn.Server):
        """The server, for which a signal is the orderly end."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
            """Finish what is under way."""
            self.should_exit = True

    threads = threads or cores()
    pool = ThreadPoolExecutor(threads, WORKER)
    with _bound(host, port) as listener:
        served = load(model, predictor, trust=trust)
        warm_up(served)
        app = make_app(served, most=max_bytes, threads=threads, pool=pool)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=grace,
        )  # fmt: skip
        with _refused(host, port):
            listener.listen()  # whoever can connect is answered at once
        _tell(listener)
        server = Server(config)
        server.run([listener])
    log.info("stopped after %d requests", server.server_state.total_requests)
    _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    """Let threads go that wait for work; if one still ranks, end the process, which would wait for it."""
    pool.shutdown(wait=False, cancel_futures=True)
    workers = [each for each in threading.enumerate() if each.name.startswith(f"{WORKER}_")]
    for each in workers:
        each.join(0.5)
    if any(each.is_alive() for each in workers):
        log.warning("left requests that took longer than --grace")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


@contextmanager
def _refused(host: str, port: int) -> Iterator[None]:
    """Within the block, what goes wrong is a ``RunError``: an address that is none, or is taken."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or "this is not the name of a machine"
        raise RunError(f"cannot listen on {host}, port {port}: {said}") from None


def _bound(host: str, port: int) -> socket.socket:
    """A socket that will listen there.

    Raises
    ------
    RunError: it cannot; the port is taken, for example.
    """
    with _refused(host, port):
        # With its protocol named, asyncio sends answers at once, and does not wait for more (TCP_NODELAY).
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    return listener


def _tell(listener: socket.socket) -> None:
    """Print the address of the service."""
    host, port, *_ = listener.getsockname()
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(f'{{"address": "{address}"}}' if shown_as_json() else f"serving at {address}", flush=True)
