"""The service: POST /rank, those of DOCUMENTS, /health, /metrics, and at / a page to try it; of models of other tasks
what these answer, such as POST /tag. Requests are JSON, checked field by field.
"""

import asyncio
import difflib
import logging
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from time import perf_counter
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import numpy as np
from prometheus_client.exposition import choose_encoder
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from rerank import __version__
from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RerankError
from rerank.base.interrupts import Deadline, GivenUpError
from rerank.base.ranges import Range
from rerank.contrib.serve import DEFAULTS, Limits
from rerank.contrib.serve.connections import LOOPBACK, NO_ROUTE, PATIENCE, Answer, Measures, RefusedError, check_caller
from rerank.data.trees import CLOSE, OPEN
from rerank.extraction.kinds import content_of
from rerank.models.model import ModelRoute
from rerank.models.provenance import Provenance
from rerank.models.reranker import Reranker
from rerank.readers.lists import Candidate
from rerank.readers.memory.nbest import KEYS, InputError, row_of
from rerank.readers.texts.json_lines import plain_object
from rerank.recipes.recipe import TextRecipe
from rerank.recipes.settings import S, Section, first_fault
from rerank.storage.documents import as_json, parse_object

log = logging.getLogger("rerank")
MAX_EXAMPLES = 5  # lists, and candidates of each
MAX_INLINE_BYTES = 1 << 14  # bytes of a body that is not worth a thread where score columns are all that is looked at
MAX_REQUESTS = 64  # requests to rank that wait or are ranked at a time
DOCUMENTS = {"/v1/rerank": "1", "/v2/rerank": "2", "/rerank": "1"}  # addresses and their version of Cohere's interface
GONE = "the client has gone"  # which nobody reads
METHODS = {"GET": ("GET", "HEAD"), "POST": ("POST",)}
Receive = Callable[[], Awaitable[dict[str, Any]]]
Endpoint = Callable[[dict[bytes, bytes], Receive], Awaitable[Answer]]  # of the headers of a request, and its body
Work = Callable[..., tuple[bytes, int]]  # an answer as JSON, and how many candidates were ranked for it
PAGE = files(__package__).joinpath("page.html").read_text("utf-8")
MAX_CANDIDATES = 100_000  # candidates of a request
LEAF = re.compile(r"[^\s()]\s*\)")
Several = Annotated[list[Any], Field(min_length=1, max_length=MAX_CANDIDATES)]  # texts, objects; see ``as_list``


class RankRequest(Section):
    """Candidates to rank, for a source, called ``id``. explain: the place (1 for the second, 2 for the third, ...) of
    the candidate in the order that the best one is compared with; 0 for none. decode: whether to give the text of the
    answer, which may be a tree that is no candidate."""

    model_config = ConfigDict(strict=True, extra="allow")

    candidates: Several
    source: str | None = None
    id: Annotated[str | None, BeforeValidator(lambda value: str(value) if type(value) is int else value)] = None
    explain: Annotated[int, Range(0)] = 0
    decode: bool = False


# Fields of Cohere, Jina and vLLM for limits and orders that this service does without: no document is cut.
UNUSED = "max_tokens_per_doc", "max_chunks_per_doc", "truncation", "truncate_prompt_tokens", "priority", "user"


class DocumentsRequest(Section):
    """Documents to rank for a query, as Cohere, Jina and vLLM ask. top_n: how many of them are in the answer, 0 or null
    for all; return_documents: whether it has them, as by default in Jina's and vLLM's, not in Cohere's second version;
    ``model`` is repeated."""

    model_config = ConfigDict(strict=True, extra="allow")

    query: str
    documents: Several
    model: str | None = None
    top_n: Annotated[int, Range(0)] | None = None
    return_documents: bool | None = None


def answer_as(route: ModelRoute, model: Any, body: bytes, limits: Limits, deadline: Deadline) -> tuple[bytes, int]:
    """The answer to a request to a model that is not one of lists, as JSON, and how many inputs it has."""
    keys, request = parse_request(route.request, body)
    _check_names(keys, route.request.model_fields, route.request.model_fields.keys() - keys.keys())
    with deadline:
        answer, inputs = route.answer(model, request, limits)
        return encoded_json(answer), inputs


def answer(
    model: Reranker, body: bytes, limits: Limits = DEFAULTS, deadline: Deadline | None = None
) -> tuple[bytes, int]:
    """The answer to a request to rank, as JSON, and how many candidates it has."""
    with deadline or Deadline(limits.seconds):
        keys, request = parse_request(RankRequest, body)
        if request.model_extra:
            _check_names(keys, RankRequest.model_fields, RankRequest.model_fields.keys() - keys.keys())
        ranking = None if request.source is not None else model.rank_plain(request.candidates, limits.words)
        if ranking is None:
            _check_candidates("candidates", request.candidates, model, limits)
            _check_size("source", request.source, limits)
            ranking = model.rank(request.candidates, request.source)
        if request.explain >= max(2, len(ranking)):
            message = f"found {request.explain}; the last place in the order is {len(ranking) - 1}"
            raise InputError(message, "explain")
        best = ranking.best
        answer = {
            "id": keys.get("id"),
            **ranking.as_object(),
            "best": {"tree": best.text} if isinstance(best, Candidate) else best,
            "place": ranking.place,
            "predictor": ranking.predictor,
            "unknown": ranking.unknown,
        }
        answer |= {"answers": answers, "margin": ranking.margin} if (answers := ranking.answers) else {}
        if request.explain:
            parts = ranking.explain(0, request.explain)
            answer["decided"] = [part._asdict() | {"amount": part.amount} for part in parts]
        if request.decode:
            answer["decoded"] = {"text": ranking.text, "place": ranking.place}
        return encoded_json(answer), len(ranking)


def answer_documents(
    model: Reranker, body: bytes, limits: Limits, deadline: Deadline, *, version: str
) -> tuple[bytes, int]:
    """The answer to a request to rank documents for a query; see ``answer``. It has what clients of Cohere (in a
    version of its interface), Jina and vLLM look for. Words count as tokens."""
    _, request = parse_request(DocumentsRequest, body)
    for name, value in (request.model_extra or {}).items():
        if value is not None and name not in UNUSED:
            raise InputError(
                f"unknown field {name!r}; expected some of {', '.join(DocumentsRequest.model_fields)}", name
            )
    if not model.sees_source:
        raise InputError("the model has no features that look at a source; it cannot rank for a query", "query")
    documents = request.documents
    _check_candidates("documents", documents, model, limits)
    _check_size("query", request.query, limits)
    try:
        with deadline:
            ranking = model.rank(documents, request.query)
    except InputError as error:
        field = re.sub("^source", "query", re.sub("^candidates", "documents", error.field))
        raise InputError(error.message, field) from None
    results: list[dict[str, Any]] = [
        {"index": y, "relevance_score": score}
        for y, score in zip(ranking.order.tolist(), ranking.scores.tolist(), strict=True)
    ][: request.top_n or None]
    texts = version == "1" if request.return_documents is None else request.return_documents
    for result in results if texts else ():
        document = documents[result["index"]]
        result["document"] = {"text": document} if isinstance(document, str) else document
    tokens = sum(len(text.split()) for text in (encoded(request.query), *ranking.nbest.texts))
    answer = {
        "id": str(uuid4()),
        "model": request.model or model.recipe.name,
        "results": results,
        "meta": {"api_version": {"version": version}, "tokens": {"input_tokens": tokens}},
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return encoded_json(answer), len(ranking)


def encoded_json(answer: Any) -> bytes:
    """An answer as JSON."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:  # half a surrogate pair, which was given so
        return as_json(answer).encode()


def parse_request(kind: type[S], body: bytes) -> tuple[dict[str, Any], S]:
    """The object that a body holds, as it was given and as a request. Raises DataError."""
    try:
        request = plain_object(body) or parse_object(body)
    except ValueError as error:
        raise DataError(str(error)) from None
    try:
        return request, kind.model_validate(request)
    except ValidationError as error:
        path, message = first_fault(kind, error)
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
        raise (InputError(message, field) if field else DataError(message)) from None


def _check_names(
    names: Collection[str], fields: Collection[str], absent: Collection[str], prefix: str = "", more: str = ""
) -> None:
    """Refuse a name that is none of ``fields`` and looks like one that is ``absent``; others are of no interest."""
    for name in names:
        if name not in fields and (near := difflib.get_close_matches(name, absent, n=1, cutoff=0.7)):
            raise InputError(f"found {name!r}; did you mean {near[0]}?{more}", f"{prefix}{name}")


def _check_candidates(field: str, candidates: Iterable[Any], model: Reranker, limits: Limits) -> None:
    """Check what ranking does not: names of candidates beside those of columns, and sizes of their texts."""
    long, trees = 2 * min(limits.words, limits.depth), not isinstance(model.recipe, TextRecipe)
    vocabulary, combinations = {*KEYS, *model.columns}, set[tuple[str, ...]]()
    for y, candidate in enumerate(candidates):
        text = candidate
        if isinstance(candidate, dict):
            columns = candidate.get("columns")
            inner = columns if isinstance(columns, dict) else {}
            sound = vocabulary.issuperset(candidate) and vocabulary.issuperset(inner)
            if not sound and (names := (*candidate, *inner)) not in combinations:
                combinations.add(names)
                numbers = f" The numbers of this model are {', '.join(model.columns)}"
                absent = {*KEYS, *model.columns[1:]}.difference(names)
                _check_names(candidate, vocabulary, absent, f"{field}[{y}].", numbers)
                _check_names(inner, vocabulary, absent, f"{field}[{y}].columns.", numbers)
            text = candidate.get("tree") or candidate.get("text")
        if isinstance(text, str) and len(text) >= long:
            _check_size(f"{field}[{y}]", text, limits, trees=trees)


def _check_size(field: str, text: Any, limits: Limits, *, trees: bool = False) -> None:
    """Refuse a text, if it is one, whose work would grow as the square of its length, or more."""
    if not isinstance(text, str) or len(text) < 2 * min(limits.words, limits.depth):
        return
    words = len(LEAF.findall(text) if trees else text.split())
    if words > limits.words:
        raise InputError(f"found {words:,} words; expected at most {limits.words:,} (--max-words)", field)
    data = np.frombuffer(encoded(text), np.uint8) if trees else np.zeros(0, np.uint8)
    levels = int(np.cumsum((data == OPEN).astype(np.int64) - (data == CLOSE)).max(initial=0))  # open at once
    if levels > limits.depth:
        message = f"found a tree of {levels:,} levels; expected at most {limits.depth:,} (--max-depth)"
        raise InputError(message, field)


def _policy(kind: str) -> str:
    """The policy that allows the page's own style or script, and no other."""
    (text,) = re.findall(f"<{kind}>(.*?)</{kind}>", PAGE, re.DOTALL)
    return f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# The page holds all that it needs, and asks this service alone.
POLICY = (
    f"default-src 'none'; {_policy('style')}; {_policy('script')}; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


def make_app(
    model: Any, *, threads: int, pool: Executor, limits: Limits = DEFAULTS, hosts: Collection[str] = ()
) -> Callable[[dict[str, Any], Receive, Callable[[Any], Awaitable[None]]], Awaitable[None]]:
    """The application (ASGI) that serves a ``Reranker``, or one of ``models``, within ``limits``, in ``threads`` of a
    pool; ``hosts``: what clients call it beside the names of the machine itself."""
    measures, host_names = Measures(), {*LOOPBACK, *map(str.lower, hosts)}
    ranking = partial(_rank, model, measures, limits, threads, pool)

    async def metrics(headers: dict[bytes, bytes], _: Receive) -> Answer:
        encode, kind = choose_encoder(headers.get(b"accept", b"").decode("latin-1"))
        return Answer(encode(measures.registry), kind=kind.encode())

    endpoints: dict[str, tuple[str, Answer | Endpoint]] = {"/metrics": ("GET", metrics)}
    if isinstance(model, Reranker):
        about: dict[str, Any] = {"task": model.recipe.task, "predictor": model.predictor, "columns": model.columns}
        about |= {"source": model.sees_source, "trained": _training_facts(model)}
        policy = b"content-security-policy", POLICY.encode()
        endpoints["/"] = "GET", Answer(PAGE.encode(), kind=b"text/html; charset=utf-8", headers=[policy])
        alone = host_names <= {*LOOPBACK}  # others are not shown what the model was trained on
        endpoints["/examples"] = "GET", _examples(model, MAX_EXAMPLES if alone else 0)
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
            check_caller(scope, headers, host_names)
            if path not in endpoints:
                raise RefusedError(404, "Not Found")
            method, endpoint = endpoints[path]
            if scope["method"] not in METHODS[method]:
                raise RefusedError(405, "Method Not Allowed", allow=", ".join(METHODS[method]))
            reply = endpoint if isinstance(endpoint, Answer) else await endpoint(headers, receive)
        except RefusedError as error:
            reply = _refusal(path, error)
        except Exception:
            log.exception("a request could not be answered")
            reply = _refusal(path, RefusedError(500, "the request could not be answered; see the log of the service"))
        measures.count(path if path in endpoints else NO_ROUTE, reply.status, perf_counter() - start)
        head = [(b"content-length", b"%d" % len(reply.body)), (b"content-type", reply.kind), *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": head})
        await send({"type": "http.response.body", "body": reply.body})

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
    slots, turns = asyncio.Semaphore(MAX_REQUESTS), asyncio.Semaphore(threads)
    at_once = isinstance(model, Reranker) and model.of_columns

    async def ranked(headers: dict[bytes, bytes], receive: Receive) -> tuple[bytes, int]:
        body = await _body(headers, receive, limits.bytes)  # a slow client takes no place
        if slots.locked():
            raise RefusedError(503, "too many requests at a time; try again")
        deadline = Deadline(limits.seconds)
        if at_once and len(body) <= MAX_INLINE_BYTES:
            return answer(model, body, limits, deadline)
        watcher = asyncio.create_task(_gone(receive, deadline, asyncio.current_task()))
        try:
            async with slots, turns:
                await asyncio.sleep(0)  # for who has gone while this waited
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(pool, answer, model, body, limits, deadline)
        except GivenUpError:
            raise RefusedError(503, f"ranking took longer than {limits.seconds:g} seconds") from None
        except asyncio.CancelledError:
            if not watcher.done():
                raise
        finally:
            deadline.end()
            watcher.cancel()
        raise RefusedError(400, GONE)

    async def rank(headers: dict[bytes, bytes], receive: Receive) -> Answer:
        try:
            ranking, candidates = await ranked(headers, receive)
        except DataError as error:
            raise RefusedError(400, str(error), error.field if isinstance(error, InputError) else None) from None
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


async def _body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The body of a request."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":  # which pages of others cannot send unasked
        raise RefusedError(
            415,
            f"found the Content-Type {kind.decode('latin-1')!r}; expected application/json: send the header "
            "Content-Type: application/json (with curl: -H 'Content-Type: application/json')",
        )
    body, length = bytearray(), int(headers.get(b"content-length", 0))
    try:
        async with asyncio.timeout(PATIENCE):
            while max(len(body), length) <= limit:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, GONE)
                body += message.get("body", b"")
                if len(body) <= limit and not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive in {PATIENCE:g} seconds") from None
    raise RefusedError(413, f"the body has more than {limit} bytes")


def _examples(model: Reranker, count: int) -> Answer:
    """So many of the lists that a model was trained on, as requests; none where their files are not on this machine."""
    requests, data = list[dict[str, Any]](), model.recipe.data
    with suppress(RerankError, OSError):
        lists = content_of(model.recipe).read(data, data.train[0])
        for nbest in islice((each for each in lists if each.problem is None and len(each) > 1), count):
            rows = [{"columns": {}} | row_of(each, 1) for each in nbest.candidates[:MAX_EXAMPLES]]
            for row in rows:  # without gains
                row["columns"] = {name: row["columns"][name] for name in model.columns[1:] if name in row["columns"]}
            requests.append({"candidates": rows, "source": None if nbest.source is None else decoded(nbest.source)})
    return _json(requests)


def _training_facts(model: Reranker) -> dict[str, Any]:
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
