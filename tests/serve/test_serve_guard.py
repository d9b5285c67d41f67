"""Before any route: hosts, origins, sizes, slow bodies, headers, and mistakes that stay inside."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import openai
import pytest
from fastapi import APIRouter
from serving import SECONDS, Served, error_of, eventually, running

from app.session import Session
from serve.access.guard import HEADERS
from serve.access.network import HostRule, OriginRule
from serve.app import ROUTERS
from serve.errors import Refused
from serve.services import make_app_state
from serve.telemetry.logs import JsonLines, log

BODY = {"question": "How high is the flame?", "collection": "guide"}


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/runs", "/nothing", "/api/v1/chat"])
def test_every_response_has_the_safe_headers(served: Served, path: str) -> None:
    response = httpx.get(served.url + path)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert response.headers["cache-control"] == "no-store"
    assert "server" not in response.headers
    assert "access-control-allow-origin" not in response.headers
    if response.status_code != 200:
        assert error_of(response)


def test_what_is_not_there_and_what_is_not_done(served: Served) -> None:
    with served.client() as client:
        assert error_of(client.get("/docs"))["code"] == "not_found"
        assert error_of(client.delete("/api/v1/chat"))["code"] == "wrong_method"
        for path in ("/api/v1/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/runs/%00"):
            assert client.get(path).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_another_name_is_not_served(served: Served, host: str) -> None:
    response = httpx.get(f"{served.url}/api/v1/health", headers={"Host": host})
    assert response.status_code == 400
    if response.headers["content-type"] == "application/json":  # else h11 has refused it
        assert error_of(response)["code"] == "wrong_host"


def test_names_of_this_machine_are_served(served: Served) -> None:
    port = urlsplit(served.url).port
    for host in (f"localhost:{port}", "LOCALHOST", f"127.0.0.1:{port}", "[::1]"):
        got = httpx.get(f"{served.url}/api/v1/health", headers={"Host": host})
        assert got.status_code == 200, host


def test_a_server_on_all_addresses_is_called_by_any_of_them() -> None:
    rule = HostRule("0.0.0.0", ["docs.example"])
    for host in ("192.0.2.7:8400", "[2001:db8::1]:80", "docs.example", "localhost"):
        rule.check(host)
    for host in ("evil.example", "docs.example.evil.example"):
        with pytest.raises(Refused, match="names this server"):
            rule.check(host)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_may_not_write(served: Served, headers: dict[str, str]) -> None:
    with served.client() as client:
        response = client.post("/api/v1/chat", json=BODY, headers=headers)
        assert response.status_code == 403
        assert error_of(response)["code"] == "wrong_origin"


def test_the_servers_own_page_may_write(served: Served) -> None:
    own = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
    with served.client() as client:
        assert client.post("/api/v1/chat", json=BODY, headers=own).status_code == 200
    OriginRule(["https://app.example/"]).check("POST", {"origin": "https://app.example"})


def test_named_origins_alone_get_cors(session: Session) -> None:
    settings = session.settings.model_copy(update={"serve_origins": ["https://app.example"]})
    services = make_app_state(session, allow_anonymous=True)
    object.__setattr__(services, "settings", settings)
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type, x-carrel-events",
    }
    with running(services) as url:
        for origin, allowed in (
            ("https://app.example", "https://app.example"),
            ("https://b", None),
        ):
            answer = httpx.options(f"{url}/api/v1/chat", headers={"Origin": origin, **asks})
            assert answer.headers.get("access-control-allow-origin") == allowed
            assert (answer.status_code == 200) == (allowed is not None)


def test_without_keys_a_client_that_must_send_one_sends_any_word(session: Session) -> None:
    with (
        running(make_app_state(session, allow_anonymous=True)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none", max_retries=0) as client,
    ):
        assert [one.id for one in client.models.list().data] == ["carrel"]
        with (
            pytest.raises(openai.AuthenticationError),
            client.with_options(api_key=f"carrel_{'0' * 12}_{'0' * 64}") as wrong,
        ):
            wrong.models.list()


SIZES = {"serve_body_bytes": 2000, "serve_upload_bytes": 3000}
HASTE = {"serve_body_seconds": 1.5, "serve_header_seconds": 1.5, "serve_idle_seconds": 2}


@contextmanager
def limited(session: Session, changes: dict[str, float]) -> Iterator[str]:
    """Serve with other limits, and a route that is broken."""
    services = make_app_state(session, allow_anonymous=True)
    object.__setattr__(services, "settings", session.settings.model_copy(update=changes))
    broken = APIRouter()

    @broken.get("/broken")
    async def fail() -> None:
        raise RuntimeError("secret place /home/me")

    with running(services, routers=[*ROUTERS, broken]) as url:
        yield url


@pytest.fixture
def small(session: Session) -> Iterator[str]:
    """Serve small bodies only."""
    with limited(session, SIZES) as url:
        yield url


@pytest.fixture
def hasty(session: Session) -> Iterator[str]:
    """Serve only those who send at once."""
    with limited(session, HASTE) as url:
        yield url


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // 100):
        yield b" " * 100


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_large(small: str, declared: bool) -> None:
    content = b" " * 100_000 if declared else pieces(100_000)
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{small}/api/v1/chat", content=content, headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")
    assert response.headers["connection"] == "close"


def test_an_upload_has_a_limit_of_its_own(small: str) -> None:
    where = f"{small}/api/v1/documents?collection=limits&name=a.txt"
    assert httpx.post(where, content=pieces(100_000)).status_code == 413
    assert httpx.post(where, content=b"x" * 3001).status_code == 413
    assert httpx.post(where, content=b"").status_code == 400
    between = where.replace("a.txt", "a.exe")  # more than another body may have
    assert httpx.post(between, content=b"x" * 2500).status_code == 422


@pytest.mark.parametrize("path", ["/api/v1/chat", "/api/v1/documents?name=a.txt"])
def test_a_body_that_never_ends_is_cut(hasty: str, path: str) -> None:
    parts = urlsplit(hasty)
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as raw:
        raw.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        answer = b""
        while piece := raw.recv(65536):  # until the server hangs up
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"too_slow" in answer


@pytest.mark.parametrize("sent", ["", "GET /api/v1/health HT", "GET / HTTP/1.1\r\nHost: local"])
def test_a_head_that_never_ends_is_cut(hasty: str, sent: str) -> None:
    parts = urlsplit(hasty)
    whole = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as raw:
        raw.sendall(sent.encode())
        assert raw.recv(1) == b""  # the server has hung up
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as raw:
        raw.sendall(whole.encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 200")
        raw.sendall(sent.encode())
        while raw.recv(65536):
            pass


def test_a_mistake_inside_is_an_id_outside(small: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "carrel.serve"):
        response = httpx.get(f"{small}/broken")
        eventually(lambda: bool(caplog.records))
    assert response.status_code == 500
    error = error_of(response)
    assert error["code"] == "internal"
    assert "secret place" not in response.text
    (line,) = [one for one in caplog.records if one.name == "carrel.serve"]
    assert line.id == error["id"]
    assert "secret place" in str(line.exc_info)


def test_the_log_strikes_out_keys() -> None:
    key = f"carrel_{'a' * 12}_{'b' * 64}"
    record = log.makeRecord(
        log.name, logging.INFO, "", 0, "sent %s\nand", (f"Bearer {key}",), None, extra={"id": key}
    )
    line = JsonLines().format(record)
    assert "\n" not in line
    assert "bbbb" not in line
    assert json.loads(line)["id"] == "[key]"


def test_requests_are_logged_without_what_was_asked(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with caplog.at_level(logging.INFO, "carrel.serve"), served.client() as client:
        client.post("/api/v1/search", json={"query": "walrus sighting", "collection": "guide"})
        client.get("/api/v1/runs/abc?token=walrus")
        eventually(lambda: len(caplog.records) == 2)  # a line is written after its response
    lines = [JsonLines().format(one) for one in caplog.records]
    assert [json.loads(line)["route"] for line in lines] == [
        "/api/v1/search",
        "/api/v1/runs/{run_id}",
    ]
    assert json.loads(lines[0])["user"] == "ann"
    assert "walrus" not in "".join(lines) and "Bearer" not in "".join(lines)


def test_metrics_count_by_route_and_name_nobody(served: Served) -> None:
    with served.client("admin") as client:
        client.get("/api/v1/runs/walrus")
        counted = 'carrel_requests_total{method="GET",route="/api/v1/runs/{run_id}",status="404"}'
        eventually(lambda: counted in client.get("/metrics").text)
        text = client.get("/metrics").text
    assert 'carrel_running{pool="ask"} 0.0' in text
    assert "walrus" not in text and "acme" not in text
