"""Displays and drawings in a real browser: text inside its box, nothing loaded, axe content."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from core.trace import RunRecord, Step
from core.types import Answer, Plan, SubQuestion
from display.evidence import answer_view, evidence_view
from display.plan_drawing import Outcome, plan_drawing
from display.runs import evidence_of, path_drawing, run_view, steps_view

CHROMIUM = shutil.which("chromium")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--no-first-run"),
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
MEASURE = """() => {
  const overlap = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width
    && a.y < b.y + b.height && b.y < a.y + a.height;
  const outside = [], hidden = [];
  for (const node of document.querySelectorAll('g.node')) {
    const box = node.querySelector('rect').getBBox();
    for (const text of node.querySelectorAll('text')) {
      const t = text.getBBox();
      if (t.x < box.x || t.x + t.width > box.x + box.width || t.y < box.y - 1
          || t.y + t.height > box.y + box.height + 1) outside.push(text.textContent);
    }
  }
  const counts = [...document.querySelectorAll('svg > text.count')];
  const boxes = [...document.querySelectorAll('g.node rect'), ...counts];
  for (const count of counts)
    for (const other of boxes)
      if (other !== count && overlap(count.getBBox(), other.getBBox()))
        hidden.push(count.textContent);
  const nodes = document.querySelectorAll('g.node').length;
  return {outside, hidden, nodes, counts: counts.length};
}"""
TEXTS = (
    "WHICH TEAM MAINTAINS THE XPAY REFUND API, AND WHY MMMM WWWW?",
    "退款接口的最大超时是多少？谁来维护？最近有投诉吗？",
    "Яка команда обслуговує сервіс, від якого залежить ЮЖЩШ?",
    "iiiii lllll a_very_long_identifier.with.parts.and_more_and_more_and_more",
)
WAY = (
    *("understand", "plan", "retrieve", "grade_documents", "stop_condition"),
    *("plan", "extract", "stop_condition", "plan", "compose_query", "stop_condition"),
    *("rewrite", "retrieve", "grade_documents", "stop_condition", "generate", "verify"),
    *("generate", "verify"),
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser.new_page()
        browser.close()


@pytest.fixture(scope="module")
def run() -> RunRecord:
    questions = [
        SubQuestion(id=f"q{number}", text=text, query=text, slot=f"v{number}")
        for number, text in enumerate(TEXTS, start=1)
    ]
    result = {
        "stop_reason": "enough_evidence",
        "answer": "There is one.",
        "plan": {"questions": [one.model_dump() for one in questions]},
    }
    return RunRecord(
        **{"run_id": "a", "tenant": "t", "user": "u", "collection": "c", "question": TEXTS[0]},
        **{"pipeline": "auto", "created_at": "", "index_version": 1},
        result=result,
        trail=[Step(node=node, decision="this", reason="because", ms=1.0) for node in WAY],
    )


def measured(page: Page, body: str) -> dict[str, Any]:
    page.set_content(f"<!doctype html><html lang=en><title>t</title><body>{body}</body></html>")
    found: dict[str, Any] = page.evaluate(MEASURE)
    return found


def test_the_path_is_legible(page: Page, run: RunRecord) -> None:
    found = measured(page, path_drawing(run))
    assert found["nodes"] >= 12 and found["counts"] > 2
    assert (found["outside"], found["hidden"]) == ([], [])


def test_a_plan_of_long_questions_is_legible(page: Page) -> None:
    questions = [
        SubQuestion(id=f"q{n}", text=text, query="x", slot=f"slot_{n}", deps=["q1"] * (n > 1))
        for n, text in enumerate(TEXTS, start=1)
    ]
    known = Outcome(values={one.id: [one.text] for one in questions}, fates={"q1": "failed"})
    found = measured(page, plan_drawing(Plan(questions=questions), known))
    assert found["nodes"] == len(TEXTS)
    assert found["outside"] == []


@pytest.mark.parametrize("width", [1000, 360])
@pytest.mark.parametrize(
    "colours", ["background:#fff;color:#222", "background:#181a1f;color:#e6e6e6"]
)
def test_a_run_is_accessible_in_light_and_dark_and_loads_nothing(
    page: Page, run: RunRecord, width: int, colours: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": width, "height": 700})
    body = run_view(run).html + steps_view(run).html + evidence_view(evidence_of(run)).html
    body = f"<main style='{colours};padding:1em'><h1>Run</h1>{body}</main>"
    measured(page, body.replace("<details>", "<details open>"))
    assert [one["id"] for one in Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert asked == []


def test_an_answer_that_is_empty_is_said(page: Page) -> None:
    measured(page, answer_view(Answer(text="")).html)
    assert page.inner_text("p.answer") == "There is no answer."
