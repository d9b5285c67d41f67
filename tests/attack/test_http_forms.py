"""Requests in forms that two readers may understand differently are refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from serving import SECONDS, running

from app.session import Session
from core.settings import load_settings
from serve.access.network import HostRule, host_name
from serve.services import make_app_state

HEALTH = "GET /api/v1/health HTTP/1.1\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
END = "Connection: close\r\n\r\n"
CHUNKS = "0\r\n\r\n"
POST = "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Serve an empty directory without models."""
    data = tmp_path_factory.mktemp("forms") / "data"
    flags = {"data": data, "reasoner": "rules", "embedder": "nowhere/none", "serve.rate": 0}
    with (
        Session(load_settings(flags)[0], create=True) as session,
        running(make_app_state(session, allow_anonymous=True)) as url,
    ):
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 0)


def statuses(address: tuple[str, int], *sent: str) -> list[int]:
    """Send texts on one connection until the server ends it; return the statuses it answered."""
    answer = b""
    with socket.create_connection(address, timeout=SECONDS) as connection:
        for text in sent:
            connection.sendall(text.encode("latin-1"))
        while piece := connection.recv(65536):
            answer += piece
    return [int(one[:3]) for one in answer.decode("latin-1").split("HTTP/1.1 ")[1:]]


ONE = f"{HEALTH}Host: localhost\r\n\r\n"
NEXT = f"{HEALTH}Host: localhost\r\n{END}"


def test_two_requests_on_one_connection_are_answered(address: tuple[str, int]) -> None:
    assert statuses(address, ONE + NEXT) == [200, 200]
    assert statuses(address, f"{POST}{CHUNKED}\r\n{CHUNKS}", NEXT) == [422, 200]


@pytest.mark.parametrize(
    "head",
    [
        f"{POST}Content-Length: 5\r\n{CHUNKED}\r\n",
        f"{POST}{CHUNKED}Content-Length: 5\r\n\r\n",
        f"{POST}content-length:0\r\nTRANSFER-ENCODING:chunked\r\n\r\n",
        f"{POST}{CHUNKED}\r\n".replace("HTTP/1.1", "HTTP/1.0"),
        f"{HEALTH}Host: localhost\r\nContent-Length: 5\r\n{CHUNKED}\r\n",
    ],
)
def test_a_body_with_two_ends_ends_the_connection(address: tuple[str, int], head: str) -> None:
    assert statuses(address, head + CHUNKS + NEXT) == [400]


@pytest.mark.parametrize(
    "folded",
    [
        "Host: localhost\r\nX-One: a\r\n b\r\n",
        "Host: localhost\r\nX-One: a\r\n\tb\r\n",
        "Host:\r\n localhost\r\n",
        "Host: localhost\nX-One: a\n b\n",
        " Host: localhost\r\n",
    ],
)
def test_a_folded_header_is_refused(address: tuple[str, int], folded: str) -> None:
    assert statuses(address, f"{HEALTH}{folded}\r\n{NEXT}") == [400]
    assert statuses(address, f"{ONE}{HEALTH}{folded}\r\n{NEXT}") == [200, 400]


def test_a_head_in_pieces_and_a_body_that_looks_folded_are_taken(address: tuple[str, int]) -> None:
    assert statuses(address, *NEXT) == [200]
    body = '{"query":\n "a"}'
    assert statuses(address, f"{POST}Content-Length: {len(body)}\r\n\r\n{body}", NEXT) == [400, 200]


ODD = [
    "evil.com@127.0.0.1",
    "127.0.0.1/evil.com",
    "",
    " ",
    "localhost evil.com",
    "localhost,evil.com",
    "localhost, localhost",
    "user:pass@localhost",
    "localhost:80:80",
    "localhost:8a",
    "localhost:",
    "localhost?x",
    "localhost#x",
    "localhost\\evil.com",
    "http://localhost",
    "[::1",
    "[localhost]",
    "::1",
    "[::1]evil.com",
    "127.0.0.1%00",
    "lоcalhost".encode().decode("latin-1"),  # a Cyrillic о
]


@pytest.mark.parametrize("host", ODD)
def test_an_odd_host_is_refused(address: tuple[str, int], host: str) -> None:
    assert statuses(address, f"{HEALTH}Host: {host}\r\n{END}") == [400]


def test_no_host_and_several_are_refused(address: tuple[str, int]) -> None:
    assert statuses(address, f"{HEALTH}{END}") == [400]
    assert statuses(address, f"{HEALTH}{END}".replace("1.1", "1.0")) == [400]
    assert statuses(address, f"{HEALTH}Host: localhost\r\nHost: evil.com\r\n\r\n") == [400]
    assert statuses(address, f"{HEALTH}Host: localhost\r\nHost: localhost\r\n\r\n") == [400]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8400", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8400"]
)
def test_a_plain_host_is_taken(address: tuple[str, int], host: str) -> None:
    assert statuses(address, f"{HEALTH}Host: {host}\r\n{END}") == [200]


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.com/api/v1/health",
        "http://evil.com",
        "http://evil.com@127.0.0.1/api/v1/health",
        "https://127.0.0.1.evil.com/",
        "evil.com:443",
        "http:///api/v1/health",
    ],
)
def test_a_target_of_another_host_is_refused(address: tuple[str, int], target: str) -> None:
    for method in ("GET", "POST", "CONNECT", "OPTIONS"):
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{END}"
        assert statuses(address, head) == [400], method


def test_a_target_may_name_this_host(address: tuple[str, int]) -> None:
    head = f"GET http://localhost/nothing HTTP/1.1\r\nHost: localhost\r\n{END}"
    assert statuses(address, head) == [404]


def test_names_with_every_form_of_a_machine() -> None:
    assert host_name("docs_2.Example-a.org:65535") == "docs_2.example-a.org"
    rule = HostRule("0.0.0.0", [])
    for host in ("192.0.2.7", "[2001:DB8::1]:443"):
        rule.check(host)
