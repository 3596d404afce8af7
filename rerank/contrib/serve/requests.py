"""The requests of clients, as JSON: lists to rank, checked field by field, and their rankings."""

import difflib
import re
from collections.abc import Collection, Iterable
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.base.interrupts import Deadline
from rerank.base.ranges import Range
from rerank.contrib.serve import DEFAULTS, Limits
from rerank.data.trees import CLOSE, OPEN
from rerank.models.model import ModelRoute
from rerank.models.reranker import Reranker
from rerank.readers.given.nbest import KEYS, GivenError
from rerank.readers.lists import Candidate
from rerank.readers.texts.json_lines import plain_object
from rerank.recipes.recipe import TextRecipe
from rerank.recipes.settings import S, Section, first_fault
from rerank.storage.documents import as_json, parse_object

MOST = 100_000  # candidates of a request
LEAF = re.compile(r"[^\s()]\s*\)")
Several = Annotated[list[Any], Field(min_length=1, max_length=MOST)]  # texts and objects, which ``list_given`` checks


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
    keys, asked = as_asked(route.request, body)
    _check_names(keys, route.request.model_fields, route.request.model_fields.keys() - keys.keys())
    with deadline:
        answer, inputs = route.answer(model, asked, limits)
        return encoded_json(answer), inputs


def answer(
    model: Reranker, body: bytes, limits: Limits = DEFAULTS, deadline: Deadline | None = None
) -> tuple[bytes, int]:
    """The answer to a request to rank, as JSON, and how many candidates it has."""
    with deadline or Deadline(limits.seconds):
        keys, asked = as_asked(RankRequest, body)
        if asked.model_extra:
            _check_names(keys, RankRequest.model_fields, RankRequest.model_fields.keys() - keys.keys())
        ranking = None if asked.source is not None else model.rank_plain(asked.candidates, limits.words)
        if ranking is None:
            _check_candidates("candidates", asked.candidates, model, limits)
            _check_size("source", asked.source, limits)
            ranking = model.rank(asked.candidates, asked.source)
        if asked.explain >= max(2, len(ranking)):
            message = f"found {asked.explain}; the last place in the order is {len(ranking) - 1}"
            raise GivenError(message, "explain")
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
        if asked.explain:
            parts = ranking.explain(0, asked.explain)
            answer["decided"] = [part._asdict() | {"amount": part.amount} for part in parts]
        if asked.decode:
            answer["decoded"] = {"text": ranking.text, "place": ranking.place}
        return encoded_json(answer), len(ranking)


def answer_documents(
    model: Reranker, body: bytes, limits: Limits, deadline: Deadline, *, version: str
) -> tuple[bytes, int]:
    """The answer to a request to rank documents for a query; see ``answer``. It has what clients of Cohere (in a
    version of its interface), Jina and vLLM look for. Words count as tokens."""
    _, asked = as_asked(DocumentsRequest, body)
    for name, value in (asked.model_extra or {}).items():
        if value is not None and name not in UNUSED:
            raise GivenError(
                f"unknown field {name!r}; expected some of {', '.join(DocumentsRequest.model_fields)}", name
            )
    if not model.sees_source:
        raise GivenError("the model has no features that look at a source; it cannot rank for a query", "query")
    documents = asked.documents
    _check_candidates("documents", documents, model, limits)
    _check_size("query", asked.query, limits)
    try:
        with deadline:
            ranking = model.rank(documents, asked.query)
    except GivenError as error:
        field = re.sub("^source", "query", re.sub("^candidates", "documents", error.field))
        raise GivenError(error.message, field) from None
    results: list[dict[str, Any]] = [
        {"index": y, "relevance_score": score}
        for y, score in zip(ranking.order.tolist(), ranking.scores.tolist(), strict=True)
    ][: asked.top_n or None]
    texts = version == "1" if asked.return_documents is None else asked.return_documents
    for result in results if texts else ():
        document = documents[result["index"]]
        result["document"] = {"text": document} if isinstance(document, str) else document
    tokens = sum(len(text.split()) for text in (encoded(asked.query), *ranking.nbest.texts))
    answer = {
        "id": str(uuid4()),
        "model": asked.model or model.recipe.name,
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


def as_asked(kind: type[S], body: bytes) -> tuple[dict[str, Any], S]:
    """The object that a body holds, as it was given and as a request. Raises DataError."""
    try:
        request = plain_object(body) or parse_object(body)
    except ValueError as error:
        raise DataError(str(error)) from None
    try:
        return request, kind.model_validate(request)
    except ValidationError as error:
        place, message = first_fault(kind, error)
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
        raise (GivenError(message, field) if field else DataError(message)) from None


def _check_names(
    names: Collection[str], known: Collection[str], absent: Collection[str], place: str = "", more: str = ""
) -> None:
    """Refuse a name that is not ``known`` and looks like one that is ``absent``; others are of no interest."""
    for name in names:
        if name not in known and (near := difflib.get_close_matches(name, absent, n=1, cutoff=0.7)):
            raise GivenError(f"found {name!r}; did you mean {near[0]}?{more}", f"{place}{name}")


def _check_candidates(field: str, candidates: Iterable[Any], model: Reranker, limits: Limits) -> None:
    """Check what ranking does not: names of candidates beside those of columns, and sizes of their texts."""
    long, trees = 2 * min(limits.words, limits.depth), not isinstance(model.recipe, TextRecipe)
    known, checked = {*KEYS, *model.columns}, set[tuple[str, ...]]()
    for y, candidate in enumerate(candidates):
        text = candidate
        if isinstance(candidate, dict):
            given = candidate.get("columns")
            inner = given if isinstance(given, dict) else {}
            sound = known.issuperset(candidate) and known.issuperset(inner)
            if not sound and (names := (*candidate, *inner)) not in checked:
                checked.add(names)
                numbers = f" The numbers of this model are {', '.join(model.columns)}"
                absent = {*KEYS, *model.columns[1:]}.difference(names)
                _check_names(candidate, known, absent, f"{field}[{y}].", numbers)
                _check_names(inner, known, absent, f"{field}[{y}].columns.", numbers)
            text = candidate.get("tree") or candidate.get("text")
        if isinstance(text, str) and len(text) >= long:
            _check_size(f"{field}[{y}]", text, limits, trees=trees)


def _check_size(field: str, text: Any, limits: Limits, *, trees: bool = False) -> None:
    """Refuse a text, if it is one, whose work would grow as the square of its length, or more."""
    if not isinstance(text, str) or len(text) < 2 * min(limits.words, limits.depth):
        return
    words = len(LEAF.findall(text) if trees else text.split())
    if words > limits.words:
        raise GivenError(f"found {words:,} words; expected at most {limits.words:,} (--max-words)", field)
    data = np.frombuffer(encoded(text), np.uint8) if trees else np.zeros(0, np.uint8)
    levels = int(np.cumsum((data == OPEN).astype(np.int64) - (data == CLOSE)).max(initial=0))  # open at once
    if levels > limits.depth:
        message = f"found a tree of {levels:,} levels; expected at most {limits.depth:,} (--max-depth)"
        raise GivenError(message, field)
