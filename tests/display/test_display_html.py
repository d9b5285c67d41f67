"""Displays of answers, runs, plans and evidence: complete, offline, and inert for any text."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser as HTMLParser
from tiers import examples

from core.trace import RunRecord, Step
from core.types import Answer, Citation, Claim, Evidence, Plan, StopReason, SubQuestion
from display.evidence import EvidenceList, answer_view, evidence_view
from display.html import clean, marked
from display.runs import (
    evidence_of,
    run_page,
    run_plan_view,
    run_view,
    show_in_notebooks,
    steps_view,
)

ROOT = Path(__file__).resolve().parents[2]
TEXT = "The fine is 10 cents a day. A reader may borrow 6 books. 书可以借 21 天。"
ALLOWED = set(
    "html head body div style p sup article header strong span mark dl dt dd ul li details summary"
    " svg title desc g rect path text tspan table thead tbody tr th td br blockquote".split()
)

show_in_notebooks()


def html_of(value: Any) -> str:
    """Return what a notebook asks of a value."""
    return str(value._repr_html_())


def evidence(text: str = TEXT, **values: Any) -> Evidence:
    given: dict[str, Any] = {
        **{"evidence_id": "e1", "chunk_id": "c1", "document_id": "d1", "document_key": "k"},
        **{"source": "guide.md", "title": "Guide", "text": text, "section": "Loans", "page": 3},
        **{"tool": "search", "query": "fine", "score": 0.8, "grades": {"q1": 3}},
        **{"scores": {"vector": 0.7}},
        **values,
    }
    return Evidence(**given)


def cited(item: Evidence, start: int, end: int, question_id: str = "q1") -> Claim:
    quote = item.text[start:end]
    found = Citation(
        **{"evidence_id": item.evidence_id, "document_id": item.document_id},
        **{"source": item.source, "chunk_id": item.chunk_id},
        start=start,
        end=end,
        quote=quote,
    )
    return Claim(text=quote, citations=[found], question_id=question_id)


def run_of(answer: Answer, found: list[Evidence], plan: Plan, **values: Any) -> RunRecord:
    result = {
        **{"run_id": "abc", "answer": answer.text, "refused": answer.refused},
        "claims": [claim.model_dump() for claim in answer.claims],
        "stop_reason": answer.stop_reason.value,
        "evidence": [item.model_dump(exclude={"document_key"}) for item in found],
        "usage": {"steps": 6, "tool_calls": 2, "tokens": 431, "ms": 12.0},
        "plan": {
            "questions": [one.model_dump() for one in plan.questions],
            "asked": [{"id": one.id, "text": one.text} for one in plan.questions],
            "slots": [{"slot": "x", "value": "10 cents", "question": "q1"}],
        },
        **{"missing": answer.missing, "warnings": answer.warnings},
    }
    way = ("understand", "plan", "retrieve", "grade_documents", "stop_condition", "plan")
    trail = [Step(node=node, question_id="q1", reason="because", ms=1.5) for node in way]
    given = {
        **{"run_id": "abc", "tenant": "acme", "user": "ann", "collection": "main"},
        **{"question": "How high is the fine?", "pipeline": "auto", "created_at": ""},
        **{"index_version": 1, "result": result, "trail": trail},
        **values,
    }
    return RunRecord(**given)  # type: ignore[arg-type]


def a_run(text: str = TEXT, **values: Any) -> RunRecord:
    item = evidence(text, **values)
    claim = cited(item, 0, min(27, len(text)))
    answer = Answer(
        text=f"{claim.text} [1]", claims=[claim], missing=["why?"], warnings=["not found: why?"]
    )
    questions = [
        SubQuestion(id="q1", text="How high is the fine?", query="fine", slot="x"),
        SubQuestion(id="q2", text="Why {x}?", query="why", deps=["q1"]),
    ]
    return run_of(answer, [item], Plan(questions=questions))


def test_a_run_shows_its_answer_with_the_cited_words_marked() -> None:
    tree = HTMLParser(html_of(a_run()))
    (mark,) = tree.css("article mark")
    assert mark.text() == "The fine is 10 cents a day."
    assert tree.css_first("article p").text() == TEXT
    assert tree.css_first("article header").text() == (
        "[1] Guide Loans · p. 3 · guide.md · ●●● answers"
    )
    (cite,) = tree.css("p.answer sup.cite")
    assert cite.text() == "[1]"
    assert "guide.md: “The fine is 10 cents a day.”" == cite.attributes["title"]
    told = tree.css_first("dl.facts").text()
    assert "stopped:enough_evidence" in told.replace(" ", "")
    assert "tool calls:2" in told.replace(": ", ":")
    assert [one.text() for one in tree.css("ul.warnings li")] == ["not found: why?"]


def test_a_run_shows_its_plan_its_path_and_its_evidence() -> None:
    tree = HTMLParser(html_of(a_run()))
    plan, path = tree.css("svg.drawing")
    states = {g.attributes["data-question"]: g.attributes["class"] for g in plan.css("g.node")}
    assert states == {"q1": "node answered", "q2": "node unreached"}
    assert "x = 10 cents" in plan.text()
    visited = {
        g.attributes["data-node"]: g.attributes.get("data-count") for g in path.css("g.visited")
    }
    assert visited["plan"] == "2" and visited["__end__"] == "1"
    titles = [one.text() for one in tree.css("th")]
    assert titles == ["#", "grade", "score", "passage", "found by"]


def test_brackets_of_a_document_are_no_citation_marks() -> None:
    item = evidence("See [1] for details.")
    claim = cited(item, 0, 20)
    answer = Answer(text="See [1] for details. [1]", claims=[claim])
    tree = HTMLParser(html_of(answer))
    assert [one.text() for one in tree.css("sup.cite")] == ["[1]"]
    assert tree.css_first("p.answer").text() == "See [1] for details. [1]"
    assert tree.css_first("mark").text() == "See [1] for details."


def test_a_refusal_looks_like_one() -> None:
    answer = Answer(text="Nothing.", refused=True, stop_reason=StopReason.no_relevant_evidence)
    tree = HTMLParser(html_of(run_of(answer, [], Plan(questions=[]))))
    assert tree.css_first("p.refused").text() == "Nothing."
    assert "no_relevant_evidence" in tree.css_first("dl.facts").text()
    assert not tree.css("mark")


def test_a_cancelled_run_shows_how_far_it_came() -> None:
    answer = Answer(text="", refused=True, stop_reason=StopReason.cancelled)
    run = run_of(answer, [], Plan(questions=[]), trail=[Step(node="understand")])
    tree = HTMLParser(html_of(run))
    assert tree.css_first("p.refused").text() == "There is no answer."
    names = [one.attributes["data-node"] for one in tree.css("g.visited")]
    assert names == ["__start__", "understand"]  # it never reached the end


def test_scores_are_compared_within_one_call_alone() -> None:
    found = EvidenceList(
        [
            evidence(chunk_id="c1", tool="search", score=0.5),
            evidence(chunk_id="c2", tool="search", score=0.25),
            evidence(chunk_id="c3", tool="rows", score=20.0),
        ]
    )
    tree = HTMLParser(html_of(found))
    shares = [
        float(one.css("rect")[1].attributes["width"] or 0) / 70 for one in tree.css("svg.bar")
    ]
    assert shares == [1.0, 0.5, 1.0]
    assert [one.text() for one in tree.css("span.grade")] == ["●●● answers"] * 3


@pytest.mark.parametrize(
    "shown",
    [
        a_run(),
        a_run().answer,
        evidence(),
        EvidenceList([evidence()]),
        Plan(questions=[SubQuestion(id="q1", text="Why?", query="why")]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_shown_has_html_and_plain_text(shown: Any) -> None:
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/html"] == html_of(shown)
    assert "<" not in bundle["text/plain"] and bundle["text/plain"].strip()
    assert set(shown._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert set(shown._repr_mimebundle_(exclude={"text/plain"})) == {"text/html"}


def test_a_value_learns_of_html_only_where_the_library_is_used() -> None:
    """The types of `core` know no HTML; the library of notebooks gives them theirs."""
    check = (
        "import core.types, core.trace; "
        "shown = [core.types.Answer, core.types.Evidence, core.types.Plan, core.trace.RunRecord]; "
        "assert not any(hasattr(one, '_repr_html_') for one in shown); "
        "import carrel.library; assert all(hasattr(one, '_repr_html_') for one in shown)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, cwd=ROOT)


def test_evidence_of_a_record_is_whole_again() -> None:
    (item,) = evidence_of(a_run())
    assert item == evidence(document_key="")


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</p></article></div><iframe src=javascript:alert(1)>",
    "<svg onload=alert(1)><foreignObject>",
    "<a href='javascript:alert(1)'>x</a>",
    "' onmouseover='alert(1)",
    "<math><mtext></mtext><mglyph><style><img src onerror=alert(1)>",
    "<!--<img src=--><img src=x onerror=alert(1)//>",
    "{{7*7}} ${7*7} <%= 1 %>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img&#62;",
    "]]>\x00\x1b[31m\u202e\ud800\uffff<\x00script>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_documents_questions_and_plans_stay_text(text: str) -> None:
    run = a_run(text + " " * 30, title=text, section=text, source=text, tool=text, query=text)
    question = SubQuestion(id=text, text=text, query=text, slot=text)
    held = json.loads(json.dumps(run.result))
    held |= {"warnings": [text], "run_id": text, "usage": {"steps": text, "ms": 1}}
    held["plan"] = {
        "questions": [question.model_dump(), SubQuestion(id="q2", text="", query="").model_dump()],
        "slots": [{"slot": text, "value": text, "question": text}],
    }
    trail = [Step(node=text, decision=text, reason=text, tool=text, degraded=text)]
    run = run.model_copy(update={"result": held, "question": text, "trail": trail})
    views = [run_view(run), run_plan_view(run), steps_view(run), evidence_view(evidence_of(run))]
    for view in [*views, answer_view(run.answer)]:
        tree = HTMLParser(view.html)
        assert {node.tag for node in tree.root.traverse()} <= ALLOWED  # type: ignore[union-attr]
        for node in tree.css("*"):
            for name, value in node.attributes.items():
                assert not name.startswith("on") and name not in ("href", "src", "style")
                assert (
                    name == "title"
                    or "javascript:" not in (value or "").lower()
                    or (
                        name in ("aria-label", "data-question", "data-node", "data-from", "data-to")
                    )
                )
        assert len(tree.css("style")) == 1
        assert "alert" not in tree.css_first("style").text()
        assert not {"\x00", "\x1b", "\u202e", "\ud800", "\uffff"} & set(view.html)


def test_a_page_holds_the_run_and_lets_nothing_run() -> None:
    tree = HTMLParser(run_page(a_run("<script>alert(1)</script> is cited here.")))
    assert tree.css_first("title").text() == "How high is the fine?"
    assert len(tree.css("script, link, img, iframe")) == 0
    (policy,) = tree.css("meta[http-equiv]")
    assert (policy.attributes["content"] or "").startswith("default-src 'none'")
    assert tree.css_first("article mark").text() == "<script>alert(1)</script> i"
    assert [one.text() for one in tree.css("summary")][-1] == "Steps: 6"


def test_nothing_is_loaded_from_anywhere() -> None:
    shown = html_of(a_run()).replace("http://www.w3.org/2000/svg", "")
    for word in ("http:", "https:", "//", "url(", "@import", "<script", "<link", "<img"):
        assert word not in shown


@given(
    st.text(max_size=40), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50)), max_size=5)
)
@settings(max_examples=examples(150), deadline=None)
def test_marks_cover_their_characters_and_no_others(
    text: str, spans: list[tuple[int, int]]
) -> None:
    wanted = [any(start <= place < end for start, end in spans) for place in range(len(text))]
    pieces = marked(text, spans).replace("</mark>", "<mark>").split("<mark>")
    inside = [place % 2 == 1 for place, piece in enumerate(pieces) for _ in html.unescape(piece)]
    kept = [is_in for character, is_in in zip(text, wanted, strict=True) if clean(character)]
    assert inside == kept
