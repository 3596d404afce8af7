"""The command that answers requests over HTTP."""

import gc
import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Annotated

import typer

from rerank.base.errors import RunError
from rerank.cli import application as cli
from rerank.contrib.serve import DEFAULTS, Limits

log = logging.getLogger("rerank")
BACKLOG = 64  # connections that wait to be accepted, and are at a time
WORKER = "rank"  # what the threads that rank are called
PACKAGES = "uvicorn", "prometheus_client"
RARE_OPTIONS = "allow_host max_connections max_bytes max_words max_depth max_seconds threads grace"


@cli.command("serve", "Serve", "rerank serve runs/quickstart/model --port 8000", seldom=RARE_OPTIONS, as_object=False)
def serve(
    model: cli.ModelPlace,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for one that is free.")] = 8000,
    predictor: cli.Predictor = None,
    trust: cli.Trust = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name by which clients call it; may be repeated.")
    ] = None,
    max_connections: Annotated[int, typer.Option(min=1, help="The most connections at a time.")] = 256,
    max_bytes: Annotated[int, typer.Option(min=1, help="The longest request, in bytes.")] = DEFAULTS.bytes,
    max_words: Annotated[int, typer.Option(min=1, help="The longest text or source, in words.")] = DEFAULTS.words,
    max_depth: Annotated[int, typer.Option(min=1, help="The deepest tree, in levels.")] = DEFAULTS.depth,
    max_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds that ranking a request may take.")
    ] = DEFAULTS.seconds,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads that rank.", show_default="one per core")] = None,
    grace: Annotated[
        int, typer.Option(min=1, help="Seconds that requests under way have to finish when the service is stopped.")
    ] = 30,
) -> None:
    """Answer requests to rank over HTTP.

    POST /rank, /v1/rerank, /v2/rerank, /rerank, GET /health, /metrics, and at / a page to try it. A model that tags
    words answers POST /tag, with a body such as {"sentences": [["The", "dog"]]}.

    It prints its address when it is ready. SIGTERM, SIGHUP or Ctrl-C ends it, with the exit code 0, once the requests
    under way are answered. There are neither passwords nor encryption: let a proxy see to both before strangers can
    reach it.
    """
    try:
        import uvicorn

        from rerank.contrib.serve.app import make_app, warm_up
        from rerank.contrib.serve.connections import Connection, RareMessages, Server
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise RunError(f"rerank serve needs {error.name}: pip install 'rerank-nbest[serve]'") from None
    from rerank.models.reranker import Reranker, load
    from rerank.pool import cores

    threads = threads or cores()
    pool = ThreadPoolExecutor(threads, WORKER)
    with _bind(host, port) as listener:
        ranker = load(model, predictor, trust=trust)
        if not isinstance(ranker, Reranker) and predictor is not None:
            raise typer.BadParameter(f"--predictor is for models that rank; this one {ranker.use}")
        warm_up(ranker)
        gc.freeze()  # the model and the modules stay: collections need not look at them
        limits = Limits(max_bytes, max_words, max_depth, max_seconds)
        hosts, files = [host, *(allow_host or ())], resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        limit = max_connections if files == resource.RLIM_INFINITY else min(max_connections, files // 2)
        app = make_app(ranker, limits=limits, threads=threads, pool=pool, hosts=hosts)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none", http=Connection,
            limit_concurrency=limit + 1, backlog=BACKLOG, timeout_graceful_shutdown=grace,
            headers=[("x-content-type-options", "nosniff")],
        )  # fmt: skip
        for name in ("rerank.connections", "uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(RareMessages())
        with _listening_errors(host, port):
            listener.listen()  # whoever can connect is answered at once
        name, number, *_ = listener.getsockname()
        address = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        server = Server(config)
        with server.capture_signals():  # whoever reads the address may end the service at once
            print(f"serving at {address}", flush=True)
            server.run([listener])
    log.info("stopped after %d requests", server.server_state.total_requests)
    _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    """Let threads go that wait for work; if one still ranks, end the process, which would wait for it."""
    pool.shutdown(wait=False, cancel_futures=True)
    workers = [thread for thread in threading.enumerate() if thread.name.startswith(f"{WORKER}_")]
    for thread in workers:
        thread.join(0.5)
    if any(thread.is_alive() for thread in workers):
        log.warning("left requests that took longer than --grace")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


@contextmanager
def _listening_errors(host: str, port: int) -> Iterator[None]:
    """Within the block, what goes wrong is a ``RunError``: an address that is none, or is taken."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "this is not the name of a machine"
        raise RunError(f"cannot listen on {host}, port {port}: {reason}") from None


def _bind(host: str, port: int) -> socket.socket:
    """A socket that will listen there."""
    with _listening_errors(host, port):
        # Naming the protocol makes asyncio send answers immediately (TCP_NODELAY).
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    return listener
