"""The service: POST /rank, those of DOCUMENTS, /health, /metrics, and at / a page to try it; of models of other tasks
what these answer, such as POST /tag."""

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from time import perf_counter
from typing import Any

from prometheus_client.exposition import choose_encoder

from rerank import __version__
from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RerankError
from rerank.base.interrupts import Deadline, GivenUpError
from rerank.contrib.serve import DEFAULTS, Limits
from rerank.contrib.serve.connections import LOOPBACK, OTHER, PATIENCE, Answer, Measures, RefusedError, check_caller
from rerank.contrib.serve.requests import answer, answer_as, answer_documents
from rerank.extraction.kinds import content_of
from rerank.models.provenance import Provenance
from rerank.models.reranker import Reranker
from rerank.readers.given.nbest import GivenError, row_of
from rerank.recipes.recipe import TextRecipe
from rerank.storage.documents import as_json

log = logging.getLogger("rerank")
SHOWN = 5  # lists that are examples, and candidates of each
AT_ONCE = 1 << 14  # bytes of a body that is not worth a thread where score columns are all that is looked at
UNDER_WAY = 64  # requests to rank that wait or are ranked at a time
DOCUMENTS = {"/v1/rerank": "1", "/v2/rerank": "2", "/rerank": "1"}  # addresses and their version of Cohere's interface
GONE = "the client has gone"  # which nobody reads
METHODS = {"GET": ("GET", "HEAD"), "POST": ("POST",)}
Receive = Callable[[], Awaitable[dict[str, Any]]]
Endpoint = Callable[[dict[bytes, bytes], Receive], Awaitable[Answer]]  # of the headers of a request, and its body
Work = Callable[..., tuple[bytes, int]]  # an answer as JSON, and how many candidates were ranked for it
PAGE = files(__package__).joinpath("page.html").read_text("utf-8")


def _hashed(kind: str) -> str:
    """The policy that allows the page's own style or script, and no other."""
    (text,) = re.findall(f"<{kind}>(.*?)</{kind}>", PAGE, re.DOTALL)
    return f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# The page holds all that it needs, and asks this service alone.
POLICY = (
    f"default-src 'none'; {_hashed('style')}; {_hashed('script')}; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


def make_app(
    model: Any, *, threads: int, pool: Executor, limits: Limits = DEFAULTS, hosts: Collection[str] = ()
) -> Callable[[dict[str, Any], Receive, Callable[[Any], Awaitable[None]]], Awaitable[None]]:
    """The application (ASGI) that serves a ``Reranker``, or one of ``models``, within ``limits``, in ``threads`` of a
    pool; ``hosts``: what clients call it beside the names of the machine itself."""
    measures, own = Measures(), {*LOOPBACK, *map(str.lower, hosts)}
    ranking = partial(_rank, model, measures, limits, threads, pool)

    async def metrics(headers: dict[bytes, bytes], _: Receive) -> Answer:
        encode, kind = choose_encoder(headers.get(b"accept", b"").decode("latin-1"))
        return Answer(encode(measures.registry), kind=kind.encode())

    endpoints: dict[str, tuple[str, Answer | Endpoint]] = {"/metrics": ("GET", metrics)}
    if isinstance(model, Reranker):
        about: dict[str, Any] = {"task": model.recipe.task, "predictor": model.predictor, "columns": model.columns}
        about |= {"source": model.sees_source, "trained": _trained(model)}
        policy = b"content-security-policy", POLICY.encode()
        endpoints["/"] = "GET", Answer(PAGE.encode(), kind=b"text/html; charset=utf-8", headers=[policy])
        alone = own <= {*LOOPBACK}  # others are not shown what the model was trained on
        endpoints["/examples"] = "GET", _examples(model, SHOWN if alone else 0)
        endpoints["/rank"] = "POST", ranking(answer)
        for path, version in DOCUMENTS.items():
            endpoints[path] = "POST", ranking(partial(answer_documents, version=version))
    else:
        about = model.health()
        for path, route in model.routes().items():
            endpoints[path] = "POST", ranking(partial(answer_as, route))
    endpoints["/health"] = "GET", _json({"status": "ok", "version": __version__, "model": about})

    async def app(scope: dict[str, Any], receive: Receive, send: Callable[[Any], Awaitable[None]]) -> None:
        start, path, headers = perf_counter(), scope["path"], dict(scope["headers"])
        try:
            check_caller(scope, headers, own)
            if path not in endpoints:
                raise RefusedError(404, "Not Found")
            method, endpoint = endpoints[path]
            if scope["method"] not in METHODS[method]:
                raise RefusedError(405, "Method Not Allowed", allow=", ".join(METHODS[method]))
            found = endpoint if isinstance(endpoint, Answer) else await endpoint(headers, receive)
        except RefusedError as error:
            found = _refusal(path, error)
        except Exception:
            log.exception("a request could not be answered")
            found = _refusal(path, RefusedError(500, "the request could not be answered; see the log of the service"))
        measures.count(path if path in endpoints else OTHER, found.status, perf_counter() - start)
        head = [(b"content-length", b"%d" % len(found.body)), (b"content-type", found.kind), *found.headers]
        await send({"type": "http.response.start", "status": found.status, "headers": head})
        await send({"type": "http.response.body", "body": found.body})

    return app


def warm_up(model: Any) -> None:
    """Rank and decode a list, or what else the model does, so that the first request need not wait for compiled code.
    Features of one's own may not take it."""
    if not isinstance(model, Reranker):
        model.warm_up()
        return
    text, source = ("a", "a") if isinstance(model.recipe, TextRecipe) else ("(S1 (S (NN a)))", None)
    columns = dict.fromkeys(model.columns[1:], 0.0)
    try:
        candidates = [{"text": text, "score": score, "columns": columns} for score in (0.0, 1.0)]
        model.rank(candidates, source).explain()
        if model.predictor == model.recipe.predictor:  # for whose scores decoding was tuned
            model.decode(candidates, source)
    except RerankError as error:
        log.warning("cannot rank a trial list, so the first request will wait for code to be compiled: %s", error)


def _rank(
    model: Any, measures: Measures, limits: Limits, threads: int, pool: Executor,
    answer: Work,
) -> Endpoint:  # fmt: skip
    """The route whose requests to rank are answered by ``answer``."""
    places, turns = asyncio.Semaphore(UNDER_WAY), asyncio.Semaphore(threads)
    at_once = isinstance(model, Reranker) and model.of_columns

    async def ranked(headers: dict[bytes, bytes], receive: Receive) -> tuple[bytes, int]:
        body = await _body(headers, receive, limits.bytes)  # a slow client takes no place
        if places.locked():
            raise RefusedError(503, "too many requests at a time; try again")
        deadline = Deadline(limits.seconds)
        if at_once and len(body) <= AT_ONCE:
            return answer(model, body, limits, deadline)
        gone = asyncio.create_task(_gone(receive, deadline, asyncio.current_task()))
        try:
            async with places, turns:
                await asyncio.sleep(0)  # for who has gone while this waited
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(pool, answer, model, body, limits, deadline)
        except GivenUpError:
            raise RefusedError(503, f"ranking took longer than {limits.seconds:g} seconds") from None
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            deadline.end()
            gone.cancel()
        raise RefusedError(400, GONE)

    async def rank(headers: dict[bytes, bytes], receive: Receive) -> Answer:
        try:
            ranking, candidates = await ranked(headers, receive)
        except DataError as error:
            raise RefusedError(400, str(error), error.field if isinstance(error, GivenError) else None) from None
        except asyncio.CancelledError:
            raise RefusedError(503, "the service is shutting down") from None
        measures.candidates.inc(candidates)
        return Answer(ranking)

    return rank


async def _gone(receive: Receive, deadline: Deadline, work: "asyncio.Task[Any] | None") -> None:
    """Wait until the client of a request that has arrived goes, and end its work."""
    while (await receive())["type"] != "http.disconnect":
        pass
    deadline.end()
    if work is not None:
        work.cancel()


async def _body(headers: dict[bytes, bytes], receive: Receive, most: int) -> bytes:
    """The body of a request."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":  # which pages of others cannot send unasked
        raise RefusedError(
            415,
            f"found the Content-Type {kind.decode('latin-1')!r}; expected application/json: send the header "
            "Content-Type: application/json (with curl: -H 'Content-Type: application/json')",
        )
    body, announced = bytearray(), int(headers.get(b"content-length", 0))
    try:
        async with asyncio.timeout(PATIENCE):
            while max(len(body), announced) <= most:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, GONE)
                body += message.get("body", b"")
                if len(body) <= most and not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive in {PATIENCE:g} seconds") from None
    raise RefusedError(413, f"the body has more than {most} bytes")


def _examples(model: Reranker, count: int) -> Answer:
    """So many of the lists that a model was trained on, as requests; none where their files are not on this machine."""
    found, data = list[dict[str, Any]](), model.recipe.data
    with suppress(RerankError, OSError):
        lists = content_of(model.recipe).read(data, data.train[0])
        for nbest in islice((each for each in lists if each.problem is None and len(each) > 1), count):
            rows = [{"columns": {}} | row_of(each, 1) for each in nbest.candidates[:SHOWN]]
            for row in rows:  # without gains
                row["columns"] = {name: row["columns"][name] for name in model.columns[1:] if name in row["columns"]}
            found.append({"candidates": rows, "source": None if nbest.source is None else decoded(nbest.source)})
    return _json(found)


def _trained(model: Reranker) -> dict[str, Any]:
    """When and from what a model was trained, as far as it knows, and the least and greatest value of each column."""
    provenance = Provenance.model_validate(model.model.about)
    ranges = {name: [seen.least, seen.greatest] for name, seen in provenance.columns.items()}
    about = provenance.model_dump(mode="json", include={"learner", "date", "dev", "lists"})
    return about | {"recipe": model.recipe.name, "ranges": ranges}


def _json(value: Any) -> Answer:
    return Answer(as_json(value).encode())


def _refusal(path: str, error: RefusedError) -> Answer:
    """The error as an answer; where documents are ranked, and below /v1, in the form of OpenAI's interface."""
    body: dict[str, Any] = {"error": error.message} | ({"field": error.field} if error.field else {})
    if path in DOCUMENTS or path.startswith("/v1/"):
        kind = "invalid_request_error"
        body = {"error": {"message": error.message, "type": kind, "param": error.field, "code": None}}
    return _json(body)._replace(status=error.status, headers=error.headers)
