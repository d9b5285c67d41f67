"""The outline of a tree: what stands below what, and that texts of documents stay texts."""

from __future__ import annotations

from typing import Any

from display.tree import outline, tree_view


def node(name: str, *children: str, title: str = "", text: str = "") -> dict[str, Any]:
    summary = [{"text": text, "citations": []}] if text else []
    label = f"{title or 'boats, harbour'} (3)"
    return {"node_id": name, "label": label, "children": list(children), "summary": summary}


FOUND = {
    **{"levels": 2, "nodes": 3, "leaves": 6},
    "tree": [
        node("r", "a", "b", "deeper", text="Boats land."),
        node("a", title="Guide <b>", text="<script>alert(1)</script>"),
        node("b"),
    ],
}


def test_an_outline_has_what_is_known_below_each_node() -> None:
    root = outline(FOUND)
    assert (root.label, root.sentences) == ("boats, harbour (3)", ["Boats land."])
    assert [one.label for one in root.below] == ["Guide <b> (3)", "boats, harbour (3)"]
    assert root.below[1].below == []


def test_a_view_shows_it_as_html_and_as_text() -> None:
    view = tree_view(FOUND)
    assert view.text.splitlines()[:3] == [
        *("boats, harbour (3)", "  Boats land.", "  Guide <b> (3)"),
    ]
    assert "<script>" not in view.html
    assert "&lt;script&gt;" in view.html
    assert view.html.count("<details") == 3
    assert "no tree" in tree_view(None).text
