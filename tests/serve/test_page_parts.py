"""What the page's modules compute, in the browser itself: spans, marks, cleaned drawings."""

from __future__ import annotations

from typing import Any

import pytest
from browser import BrowserPages
from playwright.sync_api import Page
from serving import Served


@pytest.fixture
def page(browser_page: Page, served: Served) -> Page:
    browser_page.goto("/page/icon.svg")  # any place of the server: modules may be loaded from it
    return browser_page


def call(page: Page, module: str, code: str, *given: Any) -> Any:
    script = f"async (given) => {{ const part = await import('/page/{module}'); return {code}; }}"
    return page.evaluate(script, list(given))


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Two refunds were refused.", "a refund that is refused", ["refunds", "refused"]),
        ("Смотритель маяка зажёг лампу.", "кто зажигает лампы маяков", ["маяка", "лампу"]),
        ("退款接口的超时为三百秒。", "退款 接口", ["退款", "接口"]),
        ("Error XP-4221 after 300 s", "300", ["300"]),
        ("The cat sat.", "the", []),
        ("a < b & c", "<b>", []),
    ],
)
def test_words_of_a_query_are_found_in_their_forms(
    page: Page, text: str, query: str, marked: list[str]
) -> None:
    ranges = call(page, "parts/spans.js", "part.queryRanges(...given)", text, query)
    assert [text[start:end] for start, end in ranges] == marked


@pytest.mark.parametrize("before", ["", "plain ", "🗼 and 👩‍🚀 ", "\U0001f600" * 50])
def test_a_span_of_the_server_is_the_same_characters(page: Page, before: str) -> None:
    text = f"{before}quoted 🗼 words and more"
    quote = "quoted 🗼 words"
    span = {"start": len(before), "end": len(before) + len(quote), "quote": quote}
    code = "given[0].slice(...part.quoted(...given))"
    assert call(page, "parts/spans.js", code, text, span) == quote
    moved = span | {"start": 0, "end": 5}
    assert call(page, "parts/spans.js", code, text, moved) == quote
    gone = span | {"quote": "words that are not there"}
    assert call(page, "parts/spans.js", "part.quoted(...given)", text, gone) is None


def test_marks_belong_to_claims_and_not_to_what_only_looks_like_one(page: Page) -> None:
    def claim(text: str, *chunks: str) -> dict[str, Any]:
        return {"text": text, "question_id": "q1", "citations": [{"chunk_id": c} for c in chunks]}

    result = {
        "answer": "As [2] says, it is so. [1] Twice. [1][2]",
        "claims": [claim("As [2] says, it is so.", "a"), claim("Twice.", "a", "b")],
        "evidence": [],
        "plan": {"questions": [{"id": "q1"}]},
    }
    code = "part.marksOf(...given).map(({from, to, number}) => [from, to, number])"
    marks = call(page, "parts/cites.js", code, result)
    shown = [(result["answer"][start:end], number) for start, end, number in marks]
    assert shown == [("[1]", 1), ("[1]", 1), ("[2]", 2)]
    assert marks[0][0] == result["answer"].index("[1]")


def test_a_drawing_brings_no_script_and_no_address(page: Page, browser_pages: BrowserPages) -> None:
    browser_pages.allow("style|script-src-attr")  # the policy objects before it is cleaned
    drawn = """<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script>
    <foreignObject><b/></foreignObject><a href="https://evil.example"><text>a</text></a>
    <g class="node" data-node="plan" style="color:red"><rect fill="url(https://evil.example)"/>
    <text onclick="x()">plan</text></g></svg>"""
    code = "(await part.drawing({api: {text: async () => given[0]}}, '', 'Graph')).innerHTML"
    html = call(page, "parts/drawing.js", code, drawn)
    assert ">plan</text>" in html and 'data-node="plan"' in html
    for bad in ("script", "foreignObject", "evil", "onclick", "onload", "style", "<a"):
        assert bad not in html
    broken = call(page, "parts/drawing.js", code.replace(".innerHTML", ""), "<svg")
    assert broken is None


MARKDOWN = """## Limits [1]
Use **at most** `5` per <b>day</b>. ![x](https://evil.example/a.png) [1]
- first [2]
| Name | Most |
|---|---|
| a\\b | **7** | [1]
| c | 8 | [2]

| One | cell |
```
| no | table |
```"""


def test_markdown_of_an_answer_is_shown_and_nothing_else_of_it(page: Page) -> None:
    lines = ["## Limits", "- first", "| a\\b | **7** |", "| c | 8 |"]
    chunks = ["a", "b", "a", "b"]
    claims = [
        {"text": text, "question_id": "q1", "citations": [{"chunk_id": chunk}]}
        for text, chunk in zip(lines, chunks, strict=True)
    ]
    result = {"answer": MARKDOWN, "claims": claims, "evidence": [], "plan": {"questions": []}}
    code = "part.answerNodes({}, given[0], 'guide')[0].outerHTML"
    html = call(page, "parts/answer.js", code, result)
    for shown in (
        "<strong>at most</strong>", "<code>5</code>", "&lt;b&gt;day", "• first", ">Name </th>",
        "<strong>7</strong>", '<pre tabindex="0"><code>| no | table |</code></pre>',
    ):  # fmt: skip
        assert shown in html.replace("> Name", ">Name"), (shown, html)
    assert "## " not in html and html.count("<table") == 2 and "<img" not in html
    assert html.count('class="mark"') == 4 and "![x](https://evil.example/a.png)" in html
