"""Every route for every kind of caller; a route without a row fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from serving import Served, error_of

from serve.app import make_api

Access = Literal["all", "callers", "writers", "admins"]
NOBODY = ("no key", "wrong key", "revoked", "expired")
CODES = {401: "not_authenticated", 403: "forbidden"}
CALLERS = ("reader", "editor", "writer", "admin", "other tenant")
ALLOWED: dict[Access, tuple[str, ...]] = {
    "all": (*NOBODY, *CALLERS),
    "callers": CALLERS,
    "writers": ("writer", "admin"),
    "admins": ("admin",),
}


@dataclass(frozen=True)
class Row:
    """Say who may call a route, with what, and which status they get."""

    access: Access
    status: int = 200
    path: str = ""
    sends: dict[str, Any] = field(default_factory=dict)


QUESTION = {"question": "How high is the flame of a candle?", "collection": "guide"}
LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = {"Accept": "application/json, text/event-stream"}
COMPLETION = {
    "model": "carrel:guide",
    "messages": [{"role": "user", "content": QUESTION["question"]}],
}
AGENT: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: ("POST", {"json": {"input": QUESTION}})
        for name in ("invoke", "stream", "stream_log", "stream_events")
    },
    "batch": ("POST", {"json": {"inputs": [QUESTION]}}),
    **{f"{name}_schema": ("GET", {}) for name in ("input", "output", "config")},
}
# A path with an id names one of the reader "ann" of acme in OWNED; others find nothing there.
ROWS = {
    ("GET", "/api/v1/health"): Row("all"),
    ("GET", "/api/v1/ready"): Row("all"),
    ("GET", "/api/v1/openapi.json"): Row("all"),
    ("GET", "/"): Row("all"),
    ("GET", "/page/{name}"): Row("all", path="/page/app.js"),
    ("GET", "/page/{folder}/{name}"): Row("all", path="/page/views/ask.js"),
    # Of who signs in with a browser, where the operator has named no provider: test_oidc.py.
    ("GET", "/login"): Row("all", 404),
    ("GET", "/login/callback"): Row("all", 404),
    ("POST", "/logout"): Row("all", 404),
    ("DELETE", "/api/v1/sessions"): Row("admins", 404, sends={"params": {"user": "ann"}}),
    ("GET", "/api/v1/me"): Row("callers"),
    ("GET", "/metrics"): Row("admins"),
    ("GET", "/api/v1/audit"): Row("admins"),
    ("GET", "/api/v1/metrics"): Row("admins"),
    ("POST", "/api/v1/settings/reload"): Row("admins", 403),  # of no tenant, unless one is named
    ("POST", "/api/v1/chat"): Row("callers", sends={"json": QUESTION}),
    ("POST", "/api/v1/search"): Row(
        "callers", sends={"json": {"query": "flame", "collection": "guide"}}
    ),
    ("POST", "/api/v1/recommend"): Row(
        "callers", sends={"json": {"need": "flame", "collection": "guide"}}
    ),
    ("GET", "/api/v1/recommend/ratings"): Row("callers", sends={"params": {"collection": "guide"}}),
    ("PUT", "/api/v1/recommend/ratings"): Row(
        "callers",
        404,
        sends={"json": {"document_id": "absent", "collection": "guide", "rating": "up"}},
    ),  # fmt: skip
    ("DELETE", "/api/v1/recommend/ratings"): Row("callers", 204),
    ("GET", "/api/v1/recommend/figures"): Row("admins"),
    ("GET", "/api/v1/examples"): Row("callers", sends={"params": {"collection": "guide"}}),
    ("GET", "/api/v1/report"): Row("callers", sends={"params": {"collection": "guide"}}),
    ("GET", "/api/v1/runs"): Row("callers"),
    ("GET", "/api/v1/runs/{run_id}"): Row("callers", 404, "/api/v1/runs/000000000000"),
    ("GET", "/api/v1/graph.svg"): Row("callers"),
    **{
        ("GET", f"/api/v1/runs/{{run_id}}/{name}.svg"): Row(
            "callers", 404, f"/api/v1/runs/000000000000/{name}.svg"
        )
        for name in ("graph", "plan")
    },
    ("POST", "/api/v1/feedback"): Row(
        "callers", 404, sends={"json": {"run_id": "000000000000", "rating": "up"}}
    ),
    ("GET", "/api/v1/feedback"): Row("callers"),
    ("POST", "/api/v1/conversations"): Row("callers", 201, sends={"json": {"collection": "guide"}}),
    ("GET", "/api/v1/conversations"): Row("callers"),
    **{
        (method, "/api/v1/conversations/{conversation_id}"): Row(
            "callers", 404, f"/api/v1/conversations/{'0' * 32}", sends
        )
        for method, sends in (
            ("GET", {}),
            ("DELETE", {}),
            ("PATCH", {"json": {"title": "Candles"}}),
        )
    },
    **{
        (method, "/api/v1/conversations/{conversation_id}/readers"): Row(
            "callers", 404, f"/api/v1/conversations/{'0' * 32}/readers", sends
        )
        for method, sends in (("PUT", {"json": {"everyone": True}}), ("DELETE", {}))
    },
    ("GET", "/api/v1/memory"): Row("callers"),
    ("GET", "/api/v1/memory/export"): Row("callers"),
    **{
        (method, "/api/v1/memory/{note_id}"): Row(
            "callers", 404, f"/api/v1/memory/{'0' * 16}", sends
        )
        for method, sends in (
            ("GET", {}),
            ("DELETE", {}),
            ("PATCH", {"json": {"content": "I like candles."}}),
        )
    },
    ("GET", "/api/v1/collections"): Row("callers"),
    ("PUT", "/api/v1/collections"): Row(
        "writers",
        400,
        sends={"params": {"collection": "absent"}, "json": {"acl": ["editor"]}},
    ),
    ("GET", "/api/v1/documents"): Row("callers", sends={"params": {"collection": "guide"}}),
    ("POST", "/api/v1/documents"): Row(
        "writers",
        422,
        sends={"params": {"collection": "upload", "name": "a.exe"}, "content": b"x"},
    ),
    ("PUT", "/api/v1/documents"): Row(
        "writers",
        404,
        sends={
            "params": {"collection": "guide", "document_id": "absent.md"},
            "json": {"acl": ["editor"]},
        },
    ),
    ("GET", "/api/v1/documents/page"): Row(
        "callers",
        404,
        sends={"params": {"collection": "guide", "document_id": "absent.md", "number": 1}},
    ),
    ("GET", "/api/v1/documents/passages"): Row(
        "callers", 404, sends={"params": {"collection": "guide", "document_id": "absent.md"}}
    ),
    ("DELETE", "/api/v1/documents"): Row(
        "writers", 404, sends={"params": {"collection": "guide", "document_id": "absent.md"}}
    ),
    ("GET", "/api/v1/tree"): Row("callers", 404, sends={"params": {"collection": "guide"}}),
    ("POST", "/api/v1/tree"): Row("writers", 400, sends={"params": {"collection": "absent"}}),
    ("GET", "/api/v1/sources"): Row("writers"),
    ("POST", "/api/v1/sources"): Row(
        "writers", 400, sends={"json": {"name": "s", "address": "gopher://host/"}}
    ),
    ("POST", "/api/v1/sources/{name}/sync"): Row("writers", 404, "/api/v1/sources/absent/sync"),
    ("DELETE", "/api/v1/sources/{name}"): Row("writers", 404, "/api/v1/sources/absent"),
    ("GET", "/api/v1/jobs"): Row("callers"),
    ("GET", "/api/v1/jobs/{job_id}"): Row("callers", 404, "/api/v1/jobs/000000000000"),
    ("DELETE", "/api/v1/jobs/{job_id}"): Row("callers", 404, "/api/v1/jobs/000000000000"),
    ("GET", "/api/v1/keys"): Row("admins"),
    ("POST", "/api/v1/keys"): Row("admins", 422, sends={"json": {"tenant": "zoo"}}),
    ("DELETE", "/api/v1/keys/{key_id}"): Row("admins", 404, "/api/v1/keys/000000000000"),
    ("GET", "/v1/models"): Row("callers"),
    ("GET", "/v1/models/{model}"): Row("callers", path="/v1/models/carrel:guide"),
    ("POST", "/v1/chat/completions"): Row("callers", sends={"json": COMPLETION}),
    ("POST", "/v1/responses"): Row(
        "callers", sends={"json": {"model": "carrel:guide", "input": QUESTION["question"]}}
    ),
    ("POST", "/v1/embeddings"): Row(
        "callers", sends={"json": {"model": "carrel:guide", "input": "flame"}}
    ),
    ("POST", "/mcp"): Row("callers", sends={"json": LISTED, "headers": ACCEPTED}),
    **{
        (method, f"/agent{below}/{name}"): Row("callers", 200, f"/agent{given}/{name}", sends)
        for below, given in {"": "", "/c/{config_hash}": "/c/N4XyA"}.items()
        for name, (method, sends) in AGENT.items()
    },
}


def all_routes(served: Served) -> Iterator[tuple[str, str]]:
    document = make_api(served.services).openapi()
    for path, operations in document["paths"].items():
        yield from ((method.upper(), path) for method in operations)


def test_every_route_has_a_row(served: Served) -> None:
    # The page of all routes does not list itself, nor what has a protocol of its own.
    hidden = {("GET", "/api/v1/openapi.json"), ("POST", "/mcp")}
    assert set(all_routes(served)) == set(ROWS) - hidden
    for route in make_api(served.services).routes:
        path = getattr(route, "path", None)
        assert path is None or path in {known for _, known in ROWS}, route


@pytest.mark.parametrize("kind", [*NOBODY, *CALLERS])
@pytest.mark.parametrize(("method", "path"), ROWS)
def test_who_may_call_what(served: Served, method: str, path: str, kind: str) -> None:
    row = ROWS[method, path]
    with served.client(kind) as client:
        response = client.request(method, row.path or path, **row.sends)
    expected = row.status if kind in ALLOWED[row.access] else 401 if kind in NOBODY else 403
    assert response.status_code == expected, response.text
    if expected == 401:
        assert response.headers["www-authenticate"] == "Bearer"
    if expected in CODES and path.startswith("/agent"):
        assert response.json().keys() == {"detail"}
    elif expected in CODES and path.startswith("/v1"):
        assert response.json()["error"]["type"] == "invalid_request_error"
    elif expected in CODES:
        assert error_of(response)["code"] == CODES[expected]
    assert "x-request-id" in response.headers
    for header in served.headers[kind].values():
        assert header.removeprefix("Bearer ") not in response.text


@pytest.fixture(scope="session")
def run_id(served: Served) -> str:
    with served.client("reader") as client:
        return str(client.post("/api/v1/chat", json=QUESTION).json()["run_id"])


@pytest.mark.parametrize("kind", ["editor", "admin", "other tenant"])
def test_a_run_of_another_is_as_absent_as_none(served: Served, run_id: str, kind: str) -> None:
    with served.client("reader") as client:
        assert client.get(f"/api/v1/runs/{run_id}").json()["run_id"] == run_id
        given = client.post("/api/v1/feedback", json={"run_id": run_id, "rating": "up"})
        assert given.status_code == 201
    with served.client(kind) as client:
        foreign, absent = (client.get(f"/api/v1/runs/{one}") for one in (run_id, "f" * 12))
        assert foreign.status_code == absent.status_code == 404
        for key in ("code", "rule", "hint"):
            assert error_of(foreign)[key] == error_of(absent)[key]
        rated = client.post("/api/v1/feedback", json={"run_id": run_id, "rating": "down"})
        assert rated.status_code == 404
        listed = client.get("/api/v1/runs").json()["runs"]
        assert run_id not in [run["run_id"] for run in listed]


@pytest.mark.parametrize("short", ["last", "0", "%", "_"])
def test_a_run_is_named_by_its_whole_id(served: Served, run_id: str, short: str) -> None:
    with served.client("reader") as client:
        assert client.get(f"/api/v1/runs/{short}").status_code == 404
        assert client.get(f"/api/v1/runs/{run_id[:6]}").status_code == 404


def test_feedback_is_the_callers_own_but_for_an_admin(served: Served, run_id: str) -> None:
    with served.client("reader") as client:
        sent = {"run_id": run_id, "rating": "down", "comment": "not 42 <b>"}
        assert client.post("/api/v1/feedback", json=sent).status_code == 201
        (own,) = client.get("/api/v1/feedback").json()["feedback"]
    assert (own["rating"], own["comment"], own["run_id"]) == ("down", "not 42 <b>", run_id)
    with served.client("admin") as client:
        lines = client.get("/api/v1/feedback", params={"format": "jsonl"}).text.splitlines()
        assert len(lines) == 1 and "not 42" in lines[0]
    for kind in ("editor", "other tenant"):
        with served.client(kind) as client:
            assert client.get("/api/v1/feedback").json() == {"feedback": []}


def test_collections_and_documents_are_what_a_caller_may_see(served: Served) -> None:
    seen = {}
    for kind in ("reader", "editor", "other tenant"):
        with served.client(kind) as client:
            listed = client.get("/api/v1/collections").json()["collections"]
            counts = {one["name"]: one["documents"] for one in listed}
            seen[kind] = {(name, counts[name]) for name in counts if name in ("guide", "closed")}
    assert seen == {
        "reader": {("guide", 2)},
        "editor": {("guide", 2), ("closed", 1)},
        "other tenant": {("guide", 1)},
    }
    with served.client("reader") as client:
        closed, absent = (
            client.get("/api/v1/documents", params={"collection": one})
            for one in ("closed", "absent")
        )
        page = client.get("/api/v1/documents", params={"collection": "guide", "limit": 1}).json()
        (first,) = page["documents"]
        after = {"collection": "guide", "after": first["document_id"]}
        (second,) = client.get("/api/v1/documents", params=after).json()["documents"]
    assert closed.status_code == absent.status_code == 400
    assert error_of(closed)["hint"] == error_of(absent)["hint"]
    assert "closed" not in error_of(closed)["hint"]
    assert {first["source"], second["source"]} == {"candle.md", "чайник.txt"}
    assert first["chunks"] == 1
