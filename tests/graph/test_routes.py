"""The edges, as tables, and the drawing of them, which is the control flow of the docs."""

from __future__ import annotations

from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from commands import ROOT

from core.operations import (
    AnyOperation,
    ComposeQuery,
    ExtractAnswer,
    ExtractEntities,
    FilterCe,
    IntersectHits,
    MapRetrieve,
    Retrieve,
    UnionHits,
)
from core.types import Answer
from graph import build as routes
from graph.build import (
    MAX_DRAFTS,
    after_stop_condition,
    after_understand,
    after_verify,
    build_graph,
    sent,
)
from graph.state import Outcome, Path

ONE = [Retrieve(out="h1", question="q1", query="beds", top_k=5)]
TWO = [*ONE, Retrieve(out="h2", question="q2", query="wards", top_k=5)]


@pytest.mark.parametrize(("path", "target"), [("plain", "retrieve"), ("planned", "plan")])
def test_after_understand(path: Path, target: str) -> None:
    assert after_understand({"path": path, "operations": [*ONE], "wave": ["h1"]}) == target


def test_operations_of_a_wave_are_sent_side_by_side() -> None:
    assert sent({"operations": [*TWO], "wave": ["h2"]}) == "retrieve"
    several = sent({"operations": [*TWO], "wave": ["h1", "h2"], "started": 3.0})
    assert isinstance(several, list)
    assert [(one.node, one.arg["operation"].out, one.arg["started"]) for one in several] == [
        ("retrieve", "h1", 3.0),
        ("retrieve", "h2", 3.0),
    ]


@pytest.mark.parametrize(
    ("operation", "node"),
    [
        (ExtractAnswer(out="x", question="q1", slot="s", hits="h1", fan_out=1), "extract"),
        (ExtractEntities(out="x", question="q1", hits="h1", max_entities=1), "extract"),
        (
            ComposeQuery(out="x", question="q1", template="{s}", values={"s": "v"}, fan_out=1),
            "compose_query",
        ),
        (UnionHits(out="x", hits=["h1", "h2"]), "merge_hits"),
        (IntersectHits(out="x", hits=["h1", "h2"]), "merge_hits"),
        (FilterCe(out="x", question="q1", hits="h1", threshold=0.5, top_k=3), "merge_hits"),
        (
            MapRetrieve(
                out="x", question="q1", template="{entity}", entities="e", top_k=1, fan_out=1
            ),
            "retrieve",
        ),
    ],
)
def test_every_operation_has_its_node(operation: AnyOperation, node: str) -> None:
    assert sent({"operations": [operation], "wave": ["x"]}) == node


OUTCOMES = {
    "enough": "generate",
    "weak": "rewrite",
    "next": "plan",
    "never": "refuse",
    "unclear": "clarify",
}


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_after_stop_condition(outcome: Outcome) -> None:
    assert after_stop_condition({"outcome": outcome}) == OUTCOMES[outcome]


@pytest.mark.parametrize(
    ("state", "target"),
    [
        ({"answer": Answer(text="yes"), "drafts": 1}, "__end__"),
        ({"answer": Answer(text="yes"), "drafts": 9}, "__end__"),
        ({"drafts": 1}, "generate"),
        ({"answer": None, "drafts": 1}, "generate"),
        ({"drafts": MAX_DRAFTS}, "refuse"),
        ({"drafts": 9}, "refuse"),
        ({}, "generate"),
    ],
)
def test_after_verify(state, target: str) -> None:
    assert after_verify(state) == target


ROUTES = (after_understand, sent, after_stop_condition, after_verify)


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_names_its_targets_and_changes_nothing(route) -> None:
    from graph.build import NODES

    returned = get_type_hints(route, vars(routes))["return"]
    literals = [held for held in get_args(returned) if get_origin(held) is Literal] or [returned]
    targets = [name for held in literals for name in get_args(held)]
    assert set(targets) <= {node.__name__ for node in NODES} | {"__end__"}
    state = {"path": "plain", "operations": [*ONE], "wave": ["h1"], "outcome": "weak", "drafts": 1}
    before = dict(state)
    assert route(state) in targets
    assert state == before


SNAPSHOT = ROOT / "docs" / "explanation" / "graph.mmd"


def test_the_drawing_is_the_one_in_the_docs() -> None:
    drawn = build_graph().get_graph().draw_mermaid()
    assert drawn == SNAPSHOT.read_text(encoding="utf-8"), (
        "the graph has changed; when that is meant, run `make docs` and look at the difference"
    )


def test_every_loop_passes_a_node_that_counts() -> None:
    """Each cycle goes through a node that counts: attempts, plans, drafts, replies, actions."""
    drawn = build_graph().get_graph()
    counted = {"rewrite", "plan", "generate", "clarify", "choose_action"}
    edges: dict[str, set[str]] = {}
    for edge in drawn.edges:
        if edge.source not in counted and edge.target not in counted:
            edges.setdefault(edge.source, set()).add(edge.target)

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        return any(
            following == goal
            or (following not in seen and reaches(following, goal, {*seen, start}))
            for following in edges.get(start, set())
        )

    assert [name for name in edges if reaches(name, name, set())] == []
