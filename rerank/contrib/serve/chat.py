"""Chats in OpenAI's interface: of the samples that a server gives for one, the best is the answer."""

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rerank.base.encoding import decoded
from rerank.base.errors import ModelError, RerankError
from rerank.base.interrupts import Deadline
from rerank.base.ranges import Range
from rerank.contrib.serve.limits import Limits
from rerank.contrib.serve.requests import as_asked
from rerank.contrib.serve.upstream import Reply, Upstream, kept
from rerank.models.drift import Drift
from rerank.models.ranking import Ranking
from rerank.models.reranker import Reranker
from rerank.readers.base import SkippedList
from rerank.readers.given.nbest import GivenError, refusal
from rerank.readers.lines import LineReader, Record
from rerank.readers.streams import InputStream
from rerank.readers.texts.openai import OpenAiReader
from rerank.readers.texts.text_list import SCORE
from rerank.recipes.settings import Section
from rerank.storage.strict_json import as_json

Choices = list[dict[str, Any]]
MOST = 128  # samples of a chat
HERE = {"n", "best_of", "stream", "stream_options", "logprobs"}  # settings of a chat that are not the server's
SAMPLE = {"message": {"content": "a"}, "logprobs": {"content": [{"logprob": -1.0}]}}
READER = OpenAiReader(ids="ordinal")
# What is handed back where the model gives no answer, in the field in which OpenAI's models say that they give none.
UNSURE = {
    "message": {"role": "assistant", "content": None, "refusal": "the samples do not agree enough for an answer"},
    "finish_reason": "stop",
}


class ChatRequest(Section):
    """A chat. n: how many choices are handed back, best first; best_of: how many samples they are chosen from."""

    model_config = ConfigDict(strict=True, extra="allow")

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    n: Annotated[int, Range(1)] | None = None
    best_of: Annotated[int, Range(1, MOST)] | None = None
    stream: bool | None = None
    logprobs: bool | None = None


class Chats:
    """Answers chats by what ``model`` finds the best of ``n`` samples of ``upstream``; both n, as ``best_of``, and the
    ``temperature`` (None: the server's) are for chats that name none.

    Raises
    ------
    ModelError: the model cannot rank samples: they lack columns that it needs.
    """

    def __init__(self, model: Reranker, upstream: Upstream, n: int, temperature: float | None) -> None:
        self.model, self.upstream, self.n, self.temperature = model, upstream, n, temperature
        for self.scored in (False, True):  # whether the model ranks nothing without log probabilities
            try:
                self._rank([SAMPLE, SAMPLE], "a")
            except GivenError as error:
                lacking = error
            except RerankError:  # of features of one's own, which may not take this text
                break
            else:
                break
        else:
            raise ModelError(f"the model cannot rank samples of a server: {lacking}")

    async def models(self, request: Request) -> Response:
        """The server's list of models."""
        return (await self.upstream.send("/models", request.headers)).response

    async def samples(self, request: Request, body: bytes) -> tuple[ChatRequest, list[Reply]]:
        """A chat, and the answers of the server that hold its samples. Raises DataError."""
        given, asked = as_asked(ChatRequest, body)
        samples, sent = asked.best_of or self.n, {name: value for name, value in given.items() if name not in HERE}
        if (asked.n or 1) > samples:
            raise GivenError(f"found {asked.n}; expected at most {samples}, the samples there are (best_of, --n)", "n")
        if self.temperature is not None and given.get("temperature") is None:
            sent["temperature"] = self.temperature
        if self.scored or asked.logprobs:
            sent["logprobs"] = True
        if "\0" in (_source(asked) or ""):
            raise GivenError("found a NUL byte; expected a text", "messages[-1].content")
        return asked, await self.upstream.samples(sent, request.headers, samples)

    def answer(
        self, _: Reranker, given: tuple[ChatRequest, list[Reply]], __: Limits, deadline: Deadline, drift: Drift
    ) -> tuple[Response, int]:
        """The response to a chat, and how many samples were ranked for it; see ``requests.answer``. Where no sample has
        a text, as with calls of tools, it is the first."""
        asked, replies = given
        n = asked.best_of or self.n
        choices = [choice for reply in replies for choice in reply.choices][:n]
        if not choices:
            return replies[0].response, 0
        details: dict[str, Any] = {"n": n, "samples": len(choices)}
        texts = [choice for choice in choices if choice["message"].get("content") and not _calls(choice)]
        if texts:
            try:
                with deadline.held():
                    ranking, texts = self._rank(texts, _source(asked))
            except GivenError as error:
                raise HTTPException(502, f"the samples of the upstream server cannot be ranked: {error}") from None
            drift.watch(ranking.nbest)
            order = ranking.order.tolist()
            choices = [UNSURE] if ranking.place is None else [texts[y] for y in order]
            details |= {"place": ranking.place, "order": order, "scores": ranking.scores.tolist()}
            details |= {"answers": ranking.answers, "margin": ranking.margin} if ranking.answers else {}
        more = {} if asked.logprobs else {"logprobs": None}
        choices = [{**choice, "index": k, **more} for k, choice in enumerate(choices[: asked.n or 1])]
        usage = summed(usage for reply in replies if isinstance(usage := reply.item.get("usage"), dict))
        response = {**replies[0].item, "choices": choices, "usage": usage, "rerank": {**details, "ranked": len(texts)}}
        kind, headers = "application/json", kept(replies[0].response.headers)
        if asked.stream:
            kind, response["object"] = "text/event-stream", "chat.completion.chunk"
            for choice in choices:
                calls = [{"index": k, **call} for k, call in enumerate(_calls(choice))]
                choice["delta"] = {**choice.pop("message"), **({"tool_calls": calls} if calls else {})}
        text = as_json(response, allow_nan=True)
        return Response(f"data: {text}\n\ndata: [DONE]\n\n" if asked.stream else text, 200, headers, kind), len(texts)

    def _rank(self, choices: Choices, source: str | None) -> tuple[Ranking, Choices]:
        """The ranking of the choices that can be used, and these."""
        record = Record(None, 0, {"choices": choices})
        (nbest,) = READER.lists(LineReader(InputStream(BytesIO(), "")), [record])
        if isinstance(nbest, SkippedList):
            raise refusal(nbest.problem)
        known = set(self.model.columns) - {SCORE} | ({SCORE} if self.scored and not nbest.unscored else set())
        columns = {name: nbest.scores[:, k].tolist() for k, name in enumerate(nbest.names) if name in known}
        candidates = [
            {"text": decoded(text), **{name: values[y] for name, values in columns.items()}}
            for y, text in enumerate(nbest.texts)
        ]
        return self.model.rank(candidates, source), nbest.raw.candidates


def summed(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of numbers under their names, which may be nested."""
    total = dict[str, Any]()
    for usage in usages:
        for name, value in usage.items():
            known = total.get(name)
            if isinstance(value, dict):
                total[name] = summed([known if isinstance(known, dict) else {}, value])
            elif isinstance(value, int | float) and not isinstance(known, dict):
                total[name] = (known or 0) + value
    return total


def _source(asked: ChatRequest) -> str | None:
    """The text of the last message, if it is one."""
    last = asked.messages[-1].get("content")
    return last if isinstance(last, str) else None


def _calls(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of tools in a choice."""
    calls = choice["message"].get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
