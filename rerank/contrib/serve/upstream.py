"""A server of OpenAI's interface: what it is asked for, and what it answers."""

import asyncio
import json
import logging
import re
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import aiohttp
from starlette.responses import JSONResponse, Response

from rerank.base.errors import RecipeError

log = logging.getLogger("rerank.connections")
CONNECT = 10.0  # seconds to connect
KEPT = 4.0  # seconds that a connection waits for the next request: uvicorn closes it after 5
REFUSALS = 400, 422, 501  # what servers say of an ``n`` that they do not take
# Headers of one connection or of a body that is written anew, and what is between a client and one of the servers.
UNKEPT = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "expect", "host", "cookie", "set-cookie", "date", "server", "accept-encoding", "content-encoding",
    "content-length", "content-type",
}  # fmt: skip


class Reply(NamedTuple):
    """The answer of a server; if it is a response with choices, these, and all that it holds."""

    response: Response
    choices: Sequence[dict[str, Any]] = ()
    item: Mapping[str, Any] = {}


class Upstream:
    """The server whose paths begin with ``url``, as https://host/v1. It gets at most this many ``connections``, and has
    so many ``seconds`` for an answer.

    Raises
    ------
    RecipeError: no such URL, or one with a password.
    """

    def __init__(self, url: str, seconds: float, connections: int) -> None:
        if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url):
            message = "expected where a server's paths begin, as https://host/v1; keys come with the requests"
            raise RecipeError(message, key="--upstream")
        self.url, self.seconds, self.connections = url.rstrip("/"), seconds, connections
        self._alone = deque[int](maxlen=64)  # hashes of names of models that give one sample at a time

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.connections, keepalive_timeout=KEPT),
            cookie_jar=aiohttp.DummyCookieJar(),  # those of one client are not for others
            timeout=aiohttp.ClientTimeout(self.seconds, sock_connect=CONNECT),
            skip_auto_headers=["User-Agent"],
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def samples(self, asked: dict[str, Any], headers: Mapping[str, str], n: int) -> list[Reply]:
        """Answers to a chat that have ``n`` samples or, if some fail, fewer; an answer that says why there are none.

        A server that does not take ``n``, or gives fewer, is asked for those that are missing one by one.
        """

        async def alone(numbers: range) -> list[Reply]:
            seeds = [{"seed": asked["seed"] + k} if type(asked.get("seed")) is int else {} for k in numbers]
            return await asyncio.gather(*(self.send("/chat/completions", headers, asked | seed) for seed in seeds))

        model = hash(asked["model"])
        if n == 1 or model in self._alone:
            replies = await alone(range(n))
        else:
            replies = [await self.send("/chat/completions", headers, {**asked, "n": n})]
            if replies[0].response.status_code in REFUSALS:  # if not for n, a single sample is refused too
                replies = await alone(range(1))
            if len(replies[0].choices) == 1:
                self._alone.append(model)
            if replies[0].choices:
                replies += await alone(range(len(replies[0].choices), n))
        return [reply for reply in replies if reply.choices] or replies[:1]

    async def send(self, path: str, headers: Mapping[str, str], asked: dict[str, Any] | None = None) -> Reply:
        """The server's answer when ``asked``, or to GET if it is None."""
        method, url = "GET" if asked is None else "POST", self.url + path
        try:
            sending = self._session.request(method, url, json=asked, headers=kept(headers), allow_redirects=False)
            async with sending as answer:
                body = await answer.read()
        except aiohttp.ClientError as error:
            log.warning("the upstream server does not answer: %s", error)
            return Reply(JSONResponse({"error": {"message": "the upstream server does not answer"}}, 502))
        except TimeoutError:
            message = f"the upstream server did not answer in {self.seconds:g} seconds (--upstream-seconds)"
            return Reply(JSONResponse({"error": {"message": message}}, 504))
        response = Response(body, answer.status, kept(answer.headers), answer.headers.get("content-type"))
        try:
            item = json.loads(body) if answer.status == 200 else {}
            choices = item["choices"] if answer.status == 200 else []
            return Reply(response, [choice for choice in choices if _holds_message(choice)], item)
        except (ValueError, TypeError, LookupError, RecursionError):
            if path == "/models":
                return Reply(response)
            message = "the upstream server answered with what is no response to a chat"
            log.warning("%s", message)
            return Reply(JSONResponse({"error": {"message": message}}, 502))


def _holds_message(choice: Any) -> bool:
    """Whether a choice is one, and not some other value."""
    return isinstance(choice, dict) and isinstance(choice.get("message"), dict)


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are passed on."""
    dropped = UNKEPT.union(re.split(r"[\s,]+", headers.get("connection", "").lower()))
    passed = {name: value for name, value in headers.items() if name.lower() not in dropped}
    return {name: value for name, value in passed.items() if (name + value).isascii()}
