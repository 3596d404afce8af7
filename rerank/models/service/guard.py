"""Who may ask the service: clients that call it by a name of its own, and its own page, but no other page."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = "localhost", "127.0.0.1", "::1"
BOTH = {"content-length", "transfer-encoding"}


class GuardedApp:
    """An application that gets only requests to ``hosts``, this machine's own names and the address that was called.

    A browser's pages can send requests here: those of other origins are known by their ``Origin``, and those whose own
    host's name has come to mean this machine (DNS rebinding) by their ``Host``.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app, self.hosts = app, {*LOOPBACK, *map(str.lower, hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        await (self._refusal(scope) or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """What is answered in place of the application."""
        headers, called = Headers(scope=scope), str((scope.get("server") or [""])[0]).removeprefix("::ffff:")
        host, origin = headers.get("host", ""), headers.get("origin")
        if _name(host) not in self.hosts | {called}:
            message = f"found the host {host!r}; expected a name that --host or --allow-host gives this service"
            return JSONResponse({"error": message}, 421)
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return JSONResponse({"error": f"found a page of {origin!r}; expected one of this service"}, 403)
        if set(headers) >= BOTH:  # which of them a proxy went by, nobody knows: what follows may be another's request
            message = "found Content-Length and Transfer-Encoding; expected one of them"
            return JSONResponse({"error": message}, 400, headers={"connection": "close"})
        return None


def _name(host: str) -> str:
    """The name, or address, in a ``Host``; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
