"""Drawings over HTTP: the graph as it is compiled, and the path and plan of a caller's own run."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from serving import Served, error_of

from graph.build import NODES, build_graph

SVG = "{http://www.w3.org/2000/svg}"
ASKED = "How high is the flame of a candle? And why does a candle burn?"


def drawn(served: Served, path: str, kind: str = "reader") -> ElementTree.Element:
    with served.client(kind) as client:
        response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "image/svg+xml"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    return ElementTree.fromstring(response.text)


def links(tree: ElementTree.Element, of_class: str = "edge") -> list[tuple[str | None, str | None]]:
    found = [one for one in tree.iter(f"{SVG}path") if of_class in one.get("class", "").split()]
    return [
        (one.get("data-from"), one.get("data-to"))
        for one in found
        if "edge" in one.get("class", "").split()
    ]


@pytest.fixture(scope="module")
def run(served: Served) -> dict[str, object]:
    with served.client() as client:
        made = client.post("/api/v1/chat", json={"question": ASKED, "collection": "guide"}).json()
        held: dict[str, object] = client.get(f"/api/v1/runs/{made['run_id']}").json()
    return held


def test_the_graph_is_the_compiled_one(served: Served) -> None:
    tree = drawn(served, "/api/v1/graph.svg")
    names = [one.get("data-node") for one in tree.iter(f"{SVG}g")]
    assert names == ["__start__", *(node.__name__ for node in NODES), "__end__"]
    compiled = {(edge.source, edge.target) for edge in build_graph().get_graph().edges}
    assert set(links(tree)) == compiled
    assert links(tree, "visited") == []


def test_the_path_of_a_run_has_its_visits(served: Served, run: dict[str, object]) -> None:
    tree = drawn(served, f"/api/v1/runs/{run['run_id']}/graph.svg")
    nodes = {
        one.get("data-node"): int(one.get("data-count", 0))
        for one in tree.iter(f"{SVG}g")
        if "visited" in one.get("class", "")
    }
    trail = run["trail"]
    assert isinstance(trail, list)
    assert set(nodes) == {"__start__", "__end__", *(step["node"] for step in trail)}
    assert nodes["__start__"] == nodes["verify"] == nodes["__end__"] == 1
    taken = set(links(tree, "visited"))
    assert {("__start__", "understand"), ("generate", "verify"), ("verify", "__end__")} <= taken
    assert set(links(tree)) == set(links(drawn(served, "/api/v1/graph.svg")))
    assert tree.findtext(f"{SVG}desc", "").startswith("start → Reads the question →")


def test_the_plan_of_a_run_has_its_questions(served: Served, run: dict[str, object]) -> None:
    tree = drawn(served, f"/api/v1/runs/{run['run_id']}/plan.svg")
    boxes = {one.get("data-question"): one for one in tree.iter(f"{SVG}g")}
    assert list(boxes) == ["q1", "q2"]
    assert "answered" in boxes["q1"].get("class", "").split()
    assert "How high is the flame" in "".join(boxes["q1"].itertext())


@pytest.mark.parametrize("kind", ["editor", "admin", "other tenant"])
@pytest.mark.parametrize("name", ["graph", "plan"])
def test_a_drawing_of_anothers_run_is_as_absent_as_none(
    served: Served, run: dict[str, object], kind: str, name: str
) -> None:
    with served.client(kind) as client:
        foreign = client.get(f"/api/v1/runs/{run['run_id']}/{name}.svg")
        absent = client.get(f"/api/v1/runs/{'f' * 12}/{name}.svg")
    assert foreign.status_code == absent.status_code == 404
    for key in ("code", "rule", "hint"):
        assert error_of(foreign)[key] == error_of(absent)[key]
