"""The command that answers requests over HTTP."""

from __future__ import annotations

import logging
import socket
from types import FrameType
from typing import Annotated, Literal

import typer

from rerank.base.errors import RunError
from rerank.cli.answer import shown_as_json
from rerank.cli.application import ModelPlace, command

log = logging.getLogger("rerank")
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

    with _listening(host, port) as listener:
        served = load(model, predictor)
        warm_up(served)
        app = make_app(served, most=max_bytes, threads=threads or cores())
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=grace,
        )  # fmt: skip
        _tell(listener)
        server = Server(config)
        server.run([listener])
    log.info("stopped after %d requests", server.server_state.total_requests)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises
    ------
    RunError: it cannot; the port is taken, for example.
    """
    try:
        # With its protocol named, asyncio sends answers at once, and does not wait for more (TCP_NODELAY).
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        raise RunError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener


def _tell(listener: socket.socket) -> None:
    """Print the address of the service."""
    host, port, *_ = listener.getsockname()
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(f'{{"address": "{address}"}}' if shown_as_json() else f"serving at {address}", flush=True)
