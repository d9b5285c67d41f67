"""Drawings of any graph: legible, the same each time, and inert whatever their texts hold."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.display.boxes import box_label, placed_boxes
from core.display.columns import columns
from core.display.drawing import draw
from core.display.labels import placed_labels
from core.display.layers import Layers, Vertex, crossings, layered
from core.display.ranks import back_links, ranks
from core.display.routes import Route, routes
from core.display.shapes import Box, Edge, Node
from core.display.wrapping import text_width, wrapped
from core.errors import CarrelError

SVG = "{http://www.w3.org/2000/svg}"
names = st.integers(1, 9).map(lambda count: [f"n{number}" for number in range(count)])


@st.composite
def graphs(draw_from: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    known = draw_from(names)
    end = st.sampled_from(known)
    return known, draw_from(st.lists(st.tuples(end, end), max_size=14, unique=True))


def laid_out(
    known: list[str], links: list[tuple[str, str]]
) -> tuple[Layers, dict[Vertex, Box], dict[tuple[str, str], Route]]:
    made = layered(known, links)
    boxes = placed_boxes(made, {name: box_label(Node(name)) for name in known})
    return made, boxes, routes(made, boxes)


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_nothing_overlaps_and_every_arrow_goes_down_or_around(
    graph: tuple[list[str], list[tuple[str, str]]],
) -> None:
    known, links = graph
    made, boxes, lines = laid_out(known, links)
    for one, other in combinations(known, 2):
        assert not boxes[one].overlaps(boxes[other], 10)
    for link, route in lines.items():
        points = route.points()
        if link not in made.back:
            assert boxes[link[0]].y < boxes[link[1]].y
            heights = [point.y for point in points]
            assert heights == sorted(heights)
        for name in set(known) - set(link):
            inner = boxes[name]._replace(width=boxes[name].width - 1, height=boxes[name].height - 1)
            assert not any(inner.overlaps(Box(p.x, p.y, 0, 0)) for p in points), (link, name)


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_without_the_arrows_that_go_back_there_is_no_loop(
    graph: tuple[list[str], list[tuple[str, str]]],
) -> None:
    known, links = graph
    back = back_links(known, links)
    assert back <= set(links)
    place = ranks(known, [link for link in links if link not in back])
    assert all(place[a] < place[b] for a, b in links if (a, b) not in back)
    assert all(place[a] >= place[b] for a, b in back)


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_a_drawing_is_well_formed_and_always_the_same(
    graph: tuple[list[str], list[tuple[str, str]]],
) -> None:
    known, links = graph
    nodes, edges = [Node(name) for name in known], [Edge(*link) for link in links]
    drawn = draw(nodes, edges, title="t")
    assert drawn == draw(nodes, edges, title="t")
    tree = ElementTree.fromstring(drawn)
    drawn_nodes = tree.findall(f"{SVG}g[@class='node']")
    assert [one.get("data-node") for one in drawn_nodes] == known
    assert all(one.find(f"{SVG}rect") is not None for one in drawn_nodes)
    drawn_edges = tree.findall(f"{SVG}path[@class='edge']")
    assert [(one.get("data-from"), one.get("data-to")) for one in drawn_edges] == links


def test_a_loop_is_drawn_beside_its_nodes() -> None:
    links = [("a", "b"), ("b", "c"), ("c", "a")]
    made, boxes, lines = laid_out(["a", "b", "c"], links)
    assert made.back == {("c", "a")}
    xs = [point.x for point in lines["c", "a"].points()]
    assert max(abs(x - boxes["b"].x) for x in xs) > boxes["b"].width / 2


def test_rows_are_ordered_against_crossings() -> None:
    made = layered(["a", "b", "x", "y"], [("a", "y"), ("b", "x")])
    assert crossings(made.rows, made.ties) == 0
    assert crossings([["a", "b"], ["x", "y"]], made.ties) == 1


def test_a_node_stands_over_the_middle_of_what_follows_it() -> None:
    made = layered(["a", "b", "c"], [("a", "b"), ("a", "c")])
    x = columns(made, dict.fromkeys("abc", 50.0), 20.0)
    assert x == pytest.approx({"a": 60.0, "b": 25.0, "c": 95.0}, abs=0.5)


def test_counts_stand_beside_their_arrows_and_on_nothing_else() -> None:
    known = ["a", "b", "c", "d"]
    links = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a"), ("d", "b")]
    _, boxes, lines = laid_out(known, links)
    own = [boxes[name] for name in known]
    points = {link: route.points() for link, route in lines.items()}
    placed = placed_labels(dict.fromkeys(links, "×12"), points, own, 11.0)
    assert len(placed) == len(links)
    for (_, one), (_, other) in combinations(placed, 2):
        assert not one.overlaps(other)
    assert not any(box.overlaps(node) for _, box in placed for node in own)


def test_a_count_and_the_path_are_told_without_colour() -> None:
    nodes = [Node("a", classes=("visited",), count=3), Node("b")]
    drawn = draw(nodes, [Edge("a", "b", ("visited",), 2), Edge("b", "a")], title="t")
    tree = ElementTree.fromstring(drawn)
    (edge,) = tree.findall(f"{SVG}path[@class='edge visited']")
    (other,) = tree.findall(f"{SVG}path[@class='edge']")
    assert float(edge.get("stroke-width", 0)) > float(other.get("stroke-width", 0))
    counts = [one.text or "" for one in tree.iter() if one.get("class") == "count"]
    assert sorted(one.strip() for one in counts) == ["×2", "×3"]
    colours = {one.get(name) for one in tree.iter() for name in ("fill", "stroke")}
    assert colours <= {None, "none", "currentColor"}


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</text></svg><script>alert(1)</script>",
    "javascript:alert(1)",
    "<foreignObject><iframe src=//evil></foreignObject>",
    "]]><!--",
    "&lt;script&gt; &#x3c; &",
    "bell \x07 null \x00 half \ud800 mark \uffff turned \u202e",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_shown_and_are_never_markup(text: str) -> None:
    node = Node(text, text, text, (text,), (), 2, text)
    drawn = draw([node, Node("b")], [Edge(text, "b", (), 3)], title=text, description=text)
    tree = ElementTree.fromstring(drawn)
    allowed = {"svg", "title", "desc", "g", "rect", "path", "text", "tspan"}
    assert {one.tag.removeprefix(SVG) for one in tree.iter()} <= allowed
    given = {name for one in tree.iter() for name in one.attrib}
    assert not {name for name in given if name.startswith("on") or "href" in name}
    assert "style" not in given
    for mark in ("\x07", "\x00", "\ud800", "\uffff", "\u202e"):
        assert mark not in drawn


def test_who_does_not_see_it_is_told() -> None:
    tree = ElementTree.fromstring(
        draw([Node("a", description="told")], [], title="T", description="D")
    )
    assert (tree.get("role"), tree.get("aria-label")) == ("img", "T")
    assert [tree.findtext(f"{SVG}{tag}") for tag in ("title", "desc")] == ["T", "D"]
    assert tree.findtext(f"{SVG}g/{SVG}title") == "told"


@pytest.mark.parametrize(
    ("nodes", "edges", "rule"),
    [
        ([], [], "at least one node"),
        ([Node("a"), Node("a")], [], "a name of its own"),
        ([Node("a")], [Edge("a", "b")], "joins nodes"),
    ],
)
def test_what_can_not_be_drawn_is_said(nodes: list[Node], edges: list[Edge], rule: str) -> None:
    with pytest.raises(CarrelError, match=rule):
        draw(nodes, edges, title="t")


@given(st.text(max_size=120), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_lines_fit_their_box(text: str, most: int) -> None:
    lines = wrapped(text, 13.0, 90.0, most)
    assert len(lines) <= most
    assert all(text_width(one, 13.0) <= 90.0 for one in lines)


@pytest.mark.parametrize(
    "text",
    [
        "退款接口的最大超时是多少?谁来维护?最近有投诉吗?",
        "Максимальний час очікування запиту, який супроводжує команда",
        "anextremelylongwordwithoutanyspacethatmustbebrokensomewhere",
    ],
)
def test_text_of_any_script_is_broken_and_kept_whole(text: str) -> None:
    lines = wrapped(text, 13.0, 120.0, 20)
    assert len(lines) > 1
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert not any(one.startswith(("?", "、", "。", "，")) for one in lines[1:])


def test_what_is_left_out_ends_in_an_ellipsis() -> None:
    assert wrapped("one two three four five six seven", 13.0, 80.0, 2)[-1].endswith("…")
