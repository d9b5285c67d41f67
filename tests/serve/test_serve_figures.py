"""What admins see of a server: counts, times and hit rates, and nothing of anybody's questions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from caching import once
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from serving import Served, record

from core.cache import open_caches
from core.settings import Settings
from core.trace import Step
from serve.api.status import Figures as Shape
from serve.telemetry.metrics import CacheFigures
from serve.telemetry.run_figures import Recent, RunFigures, best_distance

WORDS = "peculiar zeppelin"


def figures(served: Served) -> dict[str, Any]:
    with served.client("admin") as client:
        response = client.get("/api/v1/metrics")
    assert response.status_code == 200
    Shape.model_validate(response.json())
    found: dict[str, Any] = response.json()
    return found


def test_a_run_and_a_search_are_counted(served: Served) -> None:
    before = figures(served)
    with served.client("reader") as client:
        for _ in range(2):
            body = {
                "question": f"How high is the {WORDS} flame of a candle?",
                "collection": "guide",
            }
            assert client.post("/api/v1/chat", json=body).status_code == 200
        search = {"query": f"flame {WORDS}", "collection": "guide"}
        for _ in range(2):
            assert client.post("/api/v1/search", json=search).status_code == 200
    after = figures(served)
    chats, searches = (
        after["requests"][route]["count"] - before["requests"].get(route, {"count": 0})["count"]
        for route in ("/api/v1/chat", "/api/v1/search")
    )
    assert (chats, searches) == (2, 2)
    assert after["requests"]["/api/v1/search"]["errors"] == 0
    assert after["requests"]["/api/v1/search"]["p50_ms"] > 0
    for node in ("understand", "retrieve", "grade_documents"):
        assert after["nodes"][node]["count"] > before["nodes"].get(node, {"count": 0})["count"]
    assert after["tools"]["search"]["p50_ms"] > 0
    assert sum(after["answers"].values()) > sum(before["answers"].values())
    assert sum(after["distances"].values()) > sum(before["distances"].values())
    assert after["caches"]["results"]["hits"] > before["caches"]["results"]["hits"]
    assert after["caches"]["embeddings"]["entries"] > 0
    assert set(after["caches"]) == {"embeddings", "rewrites", "results", "answers"}
    assert set(after["pools"]) == {"ask", "search"}
    assert after["uptime_seconds"] >= before["uptime_seconds"] >= 0
    assert after["rss_bytes"] is None or after["rss_bytes"] > 1_000_000
    told = json.dumps(after)
    for secret in ("zeppelin", "acme", "zoo", "ann", "candle"):
        assert secret not in told


def test_prometheus_gets_the_same(served: Served) -> None:
    with served.client("admin") as client:
        text = client.get("/metrics").text
    for name in ("hits_total", "misses_total", "entries"):
        assert f'carrel_cache_{name}{{cache="results"}}' in text
    for line in ("carrel_node_seconds_bucket", "carrel_best_distance_sum", "carrel_answers_total"):
        assert line in text
    assert "redis" not in text
    assert "acme" not in text


@pytest.mark.parametrize("kind", ["no key", "reader", "writer", "other tenant"])
def test_nobody_else_sees_it(served: Served, kind: str) -> None:
    with served.client(kind) as client:
        assert client.get("/api/v1/metrics").status_code in (401, 403)


@given(st.lists(st.floats(0, 1e6), max_size=50), st.integers(1, 30))
def test_percentiles_are_of_the_latest(values: list[float], size: int) -> None:
    recent = Recent(size)
    for value in values:
        recent.add(value)
    found = recent.percentiles((0, 50, 100))
    latest = [round(value, 3) for value in values[-size:]]
    assert recent.count == len(values)
    if latest:
        assert (found[0], found[100]) == (min(latest), max(latest))
        assert found[50] in latest
    else:
        assert set(found.values()) == {None}


def test_a_tool_that_a_plan_made_up_is_no_label() -> None:
    runs = RunFigures(CollectorRegistry(), 10)
    steps = [
        Step(node="retrieve", tool=tool, ms=2.0) for tool in ("find_owner", "search", "<b>mine</b>")
    ]
    run = record("?").model_copy(update={"trail": steps})
    runs.observe(run, {"find_owner": "query_records", "search": "search"})
    tools = runs.figures()["tools"]
    assert {name: one["count"] for name, one in tools.items()} == {
        "query_records": 1,
        "search": 1,
        "other": 1,
    }
    assert tools["search"]["p50_ms"] == 2.0


@pytest.mark.parametrize(
    ("cosines", "bucket"),
    [([0.95], "0.1"), ([0.2, 0.55], "0.5"), ([-0.5], "more"), ([], None)],
)
def test_distances_are_those_of_the_nearest_evidence(
    cosines: list[float], bucket: str | None
) -> None:
    evidence = [{"scores": {"vector": cosine}} for cosine in cosines] + [{"scores": {"text": 3.0}}]
    run = record("?").model_copy(update={"result": {"evidence": evidence}})
    runs = RunFigures(CollectorRegistry(), 10)
    runs.observe(run, {})
    counted = {edge: count for edge, count in runs.figures()["distances"].items() if count}
    assert counted == ({bucket: 1} if bucket else {})
    assert (best_distance(run) is None) == (not cosines)


def test_a_rate_is_that_of_hits(tmp_path: Any) -> None:
    caches = open_caches(Settings(data=tmp_path), tmp_path)
    shown = CacheFigures(caches)
    assert shown.figures()["results"] == {"hits": 0, "misses": 0, "rate": None, "entries": 0}
    for _ in range(4):
        once(caches.results, "k", lambda: b"v")
    assert shown.figures()["results"] == {"hits": 3, "misses": 1, "rate": 0.75, "entries": 1}
