"""The service: POST /rank, /health, /metrics, and at / a page to try it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from importlib.resources import files

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from rerank import __version__
from rerank.base.errors import DataError, RerankError
from rerank.models.reranker import Reranker
from rerank.models.service.measures import MeasuredApp, Measures
from rerank.models.service.requests import answer
from rerank.readers.given.errors import GivenError
from rerank.recipes.text_recipe import TextRecipe

log = logging.getLogger("rerank")
UNDER_WAY = 64  # requests to rank that are read, wait or are ranked at a time
PATIENCE = 30.0  # seconds for the body of a request to arrive
Endpoint = Callable[[Request], Awaitable[Response]]
# The page holds all that it needs, and asks this service alone.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


def make_app(model: Reranker, *, most: int, threads: int, pool: Executor) -> Starlette:
    """The application that serves ``model``: requests of at most ``most`` bytes, ranked in ``threads`` of a pool."""
    measures = Measures()
    endpoints: dict[str, tuple[str, Endpoint]] = {
        "/": ("GET", _page),
        "/health": ("GET", _health(model)),
        "/metrics": ("GET", _metrics(measures)),
        "/rank": ("POST", _rank(model, measures, most, threads, pool)),
    }
    app = Starlette(
        routes=[Route(path, endpoint, methods=[method]) for path, (method, endpoint) in endpoints.items()],
        middleware=[Middleware(MeasuredApp, measures, frozenset(endpoints))],
        exception_handlers={HTTPException: _refused},
    )
    app.router.redirect_slashes = False
    return app


def warm_up(model: Reranker) -> None:
    """Rank a list, so that the first request need not wait for compiled code. Features of one's own may not take it."""
    text, source = ("a", "a") if isinstance(model.recipe, TextRecipe) else ("(S1 (NN a))", None)
    columns = dict.fromkeys(model.columns[1:], 0.0)
    try:
        model.rank([{"text": text, "score": score, "columns": columns} for score in (0.0, 1.0)], source).explain()
    except RerankError as error:
        log.warning("the first request will wait for compiled code, as a list for trial cannot be ranked: %s", error)


def _rank(model: Reranker, measures: Measures, most: int, threads: int, pool: Executor) -> Endpoint:
    places, turns = asyncio.Semaphore(UNDER_WAY), asyncio.Semaphore(threads)

    async def ranked(request: Request) -> tuple[str, int]:
        if places.locked():
            raise HTTPException(503, "too many requests at a time; try again")
        async with places:
            body = await _body(request, most)
            await request.is_disconnected()  # lets the server read on, and see that the client goes while this waits
            async with turns:
                if await request.is_disconnected():  # while it waited for its turn
                    raise ClientDisconnect
                return await asyncio.get_running_loop().run_in_executor(pool, answer, model, body)

    async def rank(request: Request) -> Response:
        try:
            found, candidates = await ranked(request)
        except DataError as error:
            field = {"field": error.field} if isinstance(error, GivenError) else {}
            return JSONResponse({"error": str(error), **field}, 400)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        except HTTPException:
            raise
        except asyncio.CancelledError:
            return JSONResponse({"error": "the service ends"}, 503)
        except Exception:
            log.exception("a request could not be answered")
            return JSONResponse({"error": "the request could not be answered; the service's log says why"}, 500)
        measures.candidates.inc(candidates)
        return Response(found, media_type="application/json")

    return rank


async def _body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises
    ------
    HTTPException: it has more than ``most`` bytes, or does not arrive.
    """
    body, announced = bytearray(), int(request.headers.get("content-length", 0))
    if announced <= most:
        try:
            async with asyncio.timeout(PATIENCE):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        break
                else:
                    return bytes(body)
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive in {PATIENCE:g} seconds") from None
    raise HTTPException(413, f"the body has more than {most} bytes")


def _health(model: Reranker) -> Endpoint:
    about = {"task": model.recipe.task, "predictor": model.predictor, "columns": model.columns}
    found = {"status": "ok", "version": __version__, "model": about}

    async def health(_: Request) -> Response:
        return JSONResponse(found)

    return health


def _metrics(measures: Measures) -> Endpoint:
    async def metrics(request: Request) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(measures.registry), headers={"content-type": kind})

    return metrics


async def _page(_: Request) -> Response:
    page = files(__package__).joinpath("page.html").read_text("utf-8")
    return HTMLResponse(page, headers={"content-security-policy": POLICY})


async def _refused(_: Request, error: Exception) -> Response:
    """What is wrong with the request itself: its path, its method, its size."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
