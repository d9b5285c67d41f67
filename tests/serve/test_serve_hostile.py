"""Requests that mean harm: bodies of every wrong kind, endless heads, other names and pages."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from serving import SECONDS, Served, error_of

QUESTION = {"question": "How high is the flame of a candle?", "collection": "guide"}
BODIES = {
    "/api/v1/chat": QUESTION,
    "/api/v1/search": {"query": "flame", "collection": "guide"},
    "/api/v1/recommend": {"need": "flame", "collection": "guide"},
    "/api/v1/feedback": {"run_id": "0" * 12, "rating": "up"},
    "/agent/invoke": {"input": QUESTION},
    "/agent/batch": {"inputs": [QUESTION]},
    "/agent/stream": {"input": QUESTION},
    "/v1/chat/completions": {
        "model": "carrel:guide",
        "messages": [{"role": "user", "content": "flame?"}],
    },
}
JSON = {"Content-Type": "application/json"}
DEEP = 200_000


def says_why(response: httpx.Response) -> str:
    """Return what an error says after checking that it has the shape of its protocol."""
    assert 400 <= response.status_code < 500, response.text[:300]
    assert "x-request-id" in response.headers
    assert len(response.content) < 5000 and "Traceback" not in response.text
    path = response.request.url.path
    if path.startswith("/agent") and response.headers["content-type"] == "application/json":
        body = response.json()
        return str(body.get("detail") or body["error"]["message"])
    if path.startswith("/v1"):
        return str(response.json()["error"]["message"])
    return str(error_of(response)["message"])


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{'question': 1}",
        b"null",
        b"[]",
        b'"question"',
        b"\xff\xfe",
        b"NaN",
        b'{"question": "a", }',
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b"1" * 5000,
    ],
    ids=lambda content: content[:8].decode("latin-1") + str(len(content)),
)
def test_a_body_that_is_no_request(served: Served, path: str, content: bytes) -> None:
    with served.client() as client:
        assert says_why(client.post(path, content=content, headers=JSON))


@pytest.mark.parametrize("path", BODIES)
def test_wrong_types_and_unknown_fields(served: Served, path: str) -> None:
    good = BODIES[path]
    wrong: list[Any] = [None, 7, [], {}, [[]], {"a": []}]
    with served.client() as client:
        for name in good:
            for value in wrong:
                response = client.post(path, json={**good, name: value})
                if response.status_code >= 400:
                    assert says_why(response)
                assert response.status_code < 500
        if path.startswith("/api"):  # clients of other protocols send more than is known here
            assert says_why(client.post(path, json={**good, "walrus": 1}))


def hundred_megabytes() -> Iterator[bytes]:
    for _ in range(100):
        yield b" " * 1_000_000


@pytest.mark.parametrize("path", [*BODIES, "/api/v1/documents?name=a.txt&collection=big"])
def test_a_hundred_megabytes_are_refused_early(served: Served, path: str) -> None:
    sent = 0

    def counted() -> Iterator[bytes]:
        nonlocal sent
        for piece in hundred_megabytes():
            sent += len(piece)
            yield piece

    header = "\r\n".join(f"{name}: {value}" for name, value in served.headers["writer"].items())
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\nContent-Length: {10**8}\r\n\r\n"
    assert raw(served, head).startswith(b"HTTP/1.1 413")
    with served.client("writer") as client:
        try:
            assert client.post(path, content=counted(), headers=JSON).status_code == 413
        except (httpx.WriteError, httpx.ReadError):
            pass  # the server has hung up while we sent
    assert sent < 10**8


def raw(served: Served, head: str, *, more: bytes = b"") -> bytes:
    """Send a head as it is and return all that comes back."""
    parts = urlsplit(served.url)
    answer = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as connection:
        try:
            connection.sendall(head.encode() + more)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass  # it has hung up, which is an answer
    return answer


def test_endless_heads_are_refused_and_others_go_on(served: Served) -> None:
    start = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n"
    heads = [
        start + "".join(f"X-{number}: 1\r\n" for number in range(100_000)) + "\r\n",
        start + f"X-Long: {'a' * 200_000}\r\n\r\n",
        f"GET /{'a' * 200_000} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        start + "Content-Length: -5\r\n\r\n",
        start + "Content-Length: 99999999999999999999999\r\n\r\n",
        "GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x00\x01\x02\r\n\r\n",
    ]
    for head in heads:
        answer = raw(served, head)
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 2")), answer[:200]
    assert not raw(served, heads[0]).startswith(b"HTTP/1.1 2")
    assert httpx.get(f"{served.url}/api/v1/health").status_code == 200


@pytest.mark.parametrize("ranges", ["bytes=0-", "bytes=" + ",".join(["0-1"] * 5000), "x=1"])
def test_ranges_are_not_served(served: Served, ranges: str) -> None:
    with served.client() as client:
        response = client.get("/api/v1/runs", headers={"Range": ranges})
    assert response.status_code == 200 and "content-range" not in response.headers


HOSTS = {"localhost": True, "127.0.0.1": True, "evil.example": False, "localhost.evil": False}
ORIGINS = {None: True, "own": True, "http://evil.example": False, "null": False}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_every_host_with_every_origin(
    served: Served, method: str, host: str, origin: str | None
) -> None:
    port = urlsplit(served.url).port
    headers = {"Host": f"{host}:{port}", **served.headers["reader"]}
    if origin:
        headers["Origin"] = f"http://{host}:{port}" if origin == "own" else origin
    if method == "OPTIONS":
        headers["Access-Control-Request-Method"] = "POST"
    body = QUESTION if method == "POST" else None
    path = "/api/v1/runs" if method == "GET" else "/api/v1/chat"
    response = httpx.request(method, served.url + path, headers=headers, json=body)
    if not HOSTS[host]:
        assert error_of(response)["code"] == "wrong_host"
    elif method in ("POST", "DELETE") and not ORIGINS[origin]:
        assert error_of(response)["code"] == "wrong_origin"
    else:
        assert response.status_code == {"GET": 200, "POST": 200}.get(method, 405)
    for name in response.headers:
        assert not name.startswith("access-control-")
    assert "set-cookie" not in response.headers  # nothing a browser would send by itself
