"""Connections that wait: for the head of a request, for the next one, for somebody to take an answer."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from programs import PATIENCE
from service import running

pytest.importorskip("uvicorn")
import uvicorn

from rerank.contrib.serve import connections

LARGE = 64 << 20  # more than sockets hold


async def answer(scope: Any, _: Any, send: Any) -> None:
    """A short answer, or a long one."""
    body = b"x" * (LARGE if scope["path"] == "/large" else 1)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def server() -> Iterator[uvicorn.Server]:
    """A service at work."""
    config = uvicorn.Config(answer, port=0, log_config=None, lifespan="off", http=connections.Connection)
    with running(uvicorn.Server(config)) as found:
        yield found


def connected(server: uvicorn.Server) -> socket.socket:
    """A connection to it."""
    return socket.create_connection(server.servers[0].sockets[0].getsockname(), PATIENCE)


def is_closed(client: socket.socket) -> bool:
    """Does the service close the connection, in whatever way, or does it say something?"""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_heads_that_do_not_arrive(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD", 0.05)
    for start in (b"", b"GET /small HTTP/1.1\r\nHost: a\r\n"):
        with connected(server) as client:
            client.sendall(start)
            assert is_closed(client)


def test_next_heads_that_do_not_arrive(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    with connected(server) as client:
        client.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\nGET /small HTTP/1.1\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")
        while not is_closed(client):
            pass


def test_answers_that_nobody_takes(server: uvicorn.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    with connected(server) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(1)
        end = time.monotonic() + PATIENCE
        while server.server_state.connections:
            assert time.monotonic() < end
            time.sleep(0.01)
