"""The drawing of the compiled graph is its control flow; a change of it must be meant."""

from __future__ import annotations

from pathlib import Path

from graph.build import build_graph

SNAPSHOT = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "graph.mmd"


def test_the_drawing_is_the_one_in_the_docs() -> None:
    drawn = build_graph().get_graph().draw_mermaid()
    assert drawn == SNAPSHOT.read_text(encoding="utf-8"), (
        "the graph has changed; when that is meant, run `make docs` and look at the difference"
    )


def test_every_loop_passes_a_node_that_counts() -> None:
    """Each cycle goes through rewrite (attempts), plan (closed), generate (drafts) or clarify."""
    drawn = build_graph().get_graph()
    counted = {"rewrite", "plan", "generate", "clarify"}
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
