"""Drawings: the graph is the one that is built, and plans are legible whatever they say."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.trace import RunRecord, Step
from core.types import Plan, SubQuestion
from display.plan_drawing import Outcome, place, plan_drawing, ranks, text_width, wrapped
from display.runs import graph_drawing, path_drawing
from graph.build import build_graph

SVG = "{http://www.w3.org/2000/svg}"
WAY = ("understand", "plan", "retrieve", "grade_documents", "stop_condition", "plan", "retrieve")


def run_through(*nodes: str, stop_reason: str = "enough_evidence") -> RunRecord:
    return RunRecord(
        **{"run_id": "a", "tenant": "t", "user": "u", "collection": "c", "question": "?"},
        **{"pipeline": "auto", "created_at": "", "index_version": 1},
        result={"stop_reason": stop_reason},
        trail=[Step(node=node, ms=1.0) for node in nodes],
    )


def marked(tree: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in tree.iter() if "visited" in one.get("class", "").split()]


def test_the_drawing_is_that_of_the_built_graph() -> None:
    """When the graph has changed on purpose, display/graph.svg is changed by hand."""
    tree = ElementTree.fromstring(graph_drawing())
    built = build_graph().get_graph()
    names = [one.get("data-node") for one in tree.iter(f"{SVG}g")]
    assert sorted(map(str, names)) == sorted(built.nodes)
    links = {(edge.source, edge.target): bool(edge.conditional) for edge in built.edges}
    for kind in ("edge", "arrow", "count"):
        drawn = {
            (one.get("data-from"), one.get("data-to")): "conditional" in one.get("class", "")
            for one in tree
            if one.get("class", "").split()[:1] == [kind]
        }
        assert drawn == (links if kind != "count" else dict.fromkeys(links, False))
    dashed = {
        (one.get("data-from"), one.get("data-to")) for one in tree if "dash" in str(one.attrib)
    }
    assert dashed == {link for link, conditional in links.items() if conditional}
    assert marked(tree) == []


def test_a_path_is_told_without_colour() -> None:
    tree = ElementTree.fromstring(path_drawing(run_through(*WAY)))
    nodes = {one.get("data-node"): one for one in tree.iter(f"{SVG}g")}
    visited = {name: int(one.get("data-count", 0)) for name, one in nodes.items()}
    assert {name: count for name, count in visited.items() if count} == {
        **{"__start__": 1, "understand": 1, "plan": 2, "retrieve": 2, "grade_documents": 1},
        **{"stop_condition": 1, "__end__": 1},
    }
    assert nodes["plan"].findtext(f"{SVG}title") == "Plans: 2 times, 2 ms"
    edges = {(one.get("data-from"), one.get("data-to")): one for one in tree.iter(f"{SVG}path")}
    taken, other = edges["plan", "retrieve"], edges["plan", "extract"]
    assert taken.get("data-count") == "2" or "arrow" in taken.get("class", "")
    thick = [float(one.get("stroke-width", 0)) for one in tree if "edge" in one.get("class", "")]
    assert sorted(set(thick)) == [1.2, 2.6] and "visited" not in other.get("class", "")
    counts = ["".join(one.itertext()) for one in tree.iter() if one.get("class") == "count"]
    assert sorted(one.strip() for one in counts) == ["×2", "×2", "×2"]
    colours = {one.get(name) for one in tree.iter() for name in ("fill", "stroke")}
    assert colours <= {None, "none", "currentColor"}
    assert (tree.get("role"), tree.get("aria-label")) == ("img", "The path of the run")
    assert tree.findtext(f"{SVG}desc", "").startswith("start → Reads the question → Plans")


def test_a_cancelled_run_never_reached_the_end() -> None:
    tree = ElementTree.fromstring(path_drawing(run_through("understand", stop_reason="cancelled")))
    assert [one.get("data-node") for one in marked(tree) if one.tag == f"{SVG}g"] == [
        "__start__",
        "understand",
    ]


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
    first = SubQuestion(id=text, text=text, query=text, slot=text)
    second = SubQuestion(id="b", text=text, query=text, deps=[text])
    known = Outcome(asked={"b": [text, text]}, values={text: [text]})
    drawings = [
        plan_drawing(Plan(questions=[first, second]), known),
        path_drawing(run_through(text, "plan", text)),
    ]
    for drawn in drawings:
        tree = ElementTree.fromstring(drawn)
        allowed = {"svg", "title", "desc", "g", "rect", "path", "text", "tspan"}
        assert {one.tag.removeprefix(SVG) for one in tree.iter()} <= allowed
        names = {name for one in tree.iter() for name in one.attrib}
        assert not {name for name in names if name.startswith("on") or "href" in name}
        assert "style" not in names
        for mark in ("\x07", "\x00", "\ud800", "\uffff", "\u202e"):
            assert mark not in drawn


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    questions: list[SubQuestion] = []
    for number in range(draw(st.integers(1, 6))):
        known = st.sampled_from([one.id for one in questions] or ["none"])
        deps = draw(st.lists(known, unique=True, max_size=3)) if questions else []
        text = draw(st.text(min_size=1, max_size=60))
        questions.append(SubQuestion(id=f"q{number}", text=text, query="x", deps=deps))
    return Plan(questions=draw(st.permutations(questions)))


@given(plans())
@settings(max_examples=examples(150), deadline=None)
def test_no_boxes_overlap_and_no_arrow_crosses_one(plan: Plan) -> None:
    sizes = {one.id: (40.0 + 30 * n, 30.0 + 10 * n) for n, one in enumerate(plan.questions)}
    links = [(name, one.id) for one in plan.questions for name in one.deps]
    boxes, through = place(sizes, links)
    every = {*boxes.values(), *(box for way in through.values() for box in way)}
    for one, other in combinations(every, 2):
        beside = abs(one.x - other.x) >= (one.width + other.width) / 2
        assert beside or abs(one.y - other.y) >= (one.height + other.height) / 2
    for way in through.values():  # so every curve has the free space between two rows
        assert all(
            upper.bottom[1] < lower.top[1] for upper, lower in zip(way, way[1:], strict=False)
        )


@given(plans())
@settings(max_examples=examples(60), deadline=None)
def test_a_plan_is_drawn_with_all_its_questions_and_always_the_same(plan: Plan) -> None:
    drawn = plan_drawing(plan)
    assert drawn == plan_drawing(plan)
    tree = ElementTree.fromstring(drawn)
    boxes = tree.findall(f"{SVG}g[@class='node']")
    assert [one.get("data-question") for one in boxes] == [one.id for one in plan.questions]
    left, top, width, height = map(float, str(tree.get("viewBox")).split())
    for box in boxes:
        frame = box.find(f"{SVG}rect")
        assert frame is not None and box.findtext(f"{SVG}title")
        x, y, wide, high = (float(frame.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert left <= x and x + wide <= left + width and top <= y and y + high <= top + height
    links = [(name, one.id) for one in plan.questions for name in one.deps]
    for kind in ("edge", "arrow"):
        edges = tree.findall(f"{SVG}path[@class='{kind}']")
        assert [(one.get("data-from"), one.get("data-to")) for one in edges] == links


def test_a_record_with_a_loop_is_drawn_all_the_same() -> None:
    assert max(ranks(["a", "b"], [("a", "b"), ("b", "a")]).values()) < 2
    loop = [SubQuestion(id=a, text=a, query=a, deps=[b, "gone"]) for a, b in ("ab", "ba", "cc")]
    assert ElementTree.fromstring(plan_drawing(Plan(questions=loop))).get("role") == "img"


@given(st.text(max_size=120), st.integers(1, 4))
@settings(max_examples=examples(150), deadline=None)
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
