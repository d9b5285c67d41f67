"""Asking on the page in a real browser: steps, answer, citations, stopping, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import PHONE, BrowserPages, axe_violations
from page_readers import (
    QUESTION,
    SCRIPT,
    SENTENCE,
    Reader,
    ask,
    make_reader,
    never_ask_back,
    sideways,
)
from playwright.sync_api import Browser, Page, expect
from serving import HeldSession, Served, held_services, running

from app.session import Session
from core.trace import RunRecord, StreamEvent
from stores.accounts.keys import Keys
from stores.store import parts


@pytest.fixture(scope="session")
def reader(served: Served) -> Reader:
    return make_reader(served)


@pytest.fixture
def page(reader: Reader, browser_pages: BrowserPages) -> Page:
    return reader.open(browser_pages)


@pytest.fixture
def held(session: Session, chromium: Browser, reader: Reader) -> Iterator[tuple[Page, HeldSession]]:
    services, holding = held_services(session)
    with running(services) as url:
        pages = BrowserPages(chromium, url)
        yield reader.open(pages), holding
        pages.close()
        holding.released.set()


def test_a_mark_opens_its_passage_with_the_quote_highlighted(page: Page) -> None:
    ask(page, QUESTION)
    expect(page.locator(".answer.whole")).to_have_text(f"{SENTENCE} [1]")
    expect(page.locator(".turn .status")).to_contain_text("Answered from 1 passage")
    page.get_by_role("button", name="Source 1").click()
    panel = page.get_by_role("dialog")
    # What is before it holds characters of two UTF-16 units, which the server counts as one.
    expect(panel.locator("mark.span")).to_have_text(SENTENCE)
    expect(panel.locator(".passage.cited")).to_contain_text("It was built in 1884")
    expect(panel.locator(".source-head")).to_contain_text("lighthouse.txt")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator(".mark")).to_be_focused()


def test_arrow_keys_go_from_citation_to_citation(page: Page) -> None:
    ask(page, f"{QUESTION} And who is the captain of the ferry of Osk?")
    page.locator(".mark").first.click()
    expect(page.locator("mark.span")).to_have_text(SENTENCE)
    page.keyboard.press("ArrowRight")
    expect(page.locator("mark.span")).to_contain_text("Marta Venn")
    expect(page.locator(".source-count")).to_contain_text("2 of 2")
    page.keyboard.press("Escape")
    expect(page.locator(".mark").nth(1)).to_be_focused()


def test_how_it_was_answered_is_told_in_tabs(page: Page) -> None:
    ask(page, QUESTION)
    page.get_by_text("How this was answered").click()
    expect(page.locator(".panel-evidence tbody tr").first).to_contain_text("[1]")
    expect(page.locator(".panel-evidence .grade").first).to_contain_text("answers")
    page.get_by_role("tab", name="Evidence").press("End")
    expect(page.get_by_role("tab", name="JSON")).to_be_focused()
    expect(page.locator(".raw")).to_contain_text('"stop_reason": "enough_evidence"')
    page.get_by_role("tab", name="Path").click()
    visited = page.locator(".panel-path .node.visited")
    expect(visited.filter(has_text="Grades passages")).to_have_count(1)
    page.get_by_role("tab", name="Steps").click()
    page.get_by_label("Step", exact=True).select_option("retrieve")
    expect(page.locator(".panel-steps tbody tr")).to_have_count(1)
    page.get_by_role("tab", name="Budget").click()
    expect(page.locator(".budget")).to_contain_text("of 128")


def test_how_it_was_answered_opens_above_the_composer(
    reader: Reader, browser_pages: BrowserPages
) -> None:
    page = reader.open(browser_pages, viewport={"width": 375, "height": 480})
    ask(page, QUESTION)
    page.get_by_text("How this was answered").click()
    for name in ("Evidence", "Path", "Steps"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_function(
            """([panel, foot]) => { const half = innerHeight / 2
            const top = one => document.querySelector(one).getBoundingClientRect().top
            return top(panel) > 0 && top(panel) < half && top(foot) > half }""",
            arg=[f".panel-{name.lower()}", ".composer"],
        )


def test_a_refusal_says_what_was_looked_for(page: Page) -> None:
    never_ask_back(page)
    ask(page, "Кто выиграл гонку на Марсе?")
    expect(page.locator(".refusal")).to_contain_text("Кто выиграл гонку на Марсе")
    expect(page.locator(".refusal")).to_have_attribute("lang", "ru")
    expect(page.locator(".turn [role=alert]")).to_have_count(0)


def test_stop_ends_the_run_and_it_can_be_asked_again(held: tuple[Page, HeldSession]) -> None:
    page, holding = held
    page.locator("#question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("Reads the question")
    page.get_by_role("button", name="Stop").click()
    assert holding.cancelled.acquire(timeout=60)
    expect(page.get_by_role("alert")).to_contain_text("You stopped this question")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".steps")).to_contain_text("Reads the question")
    assert len(holding.asked) == 2
    page.get_by_role("button", name="Stop").click()
    assert holding.cancelled.acquire(timeout=60)


def test_a_draft_is_shown_apart_from_what_is_verified(held: tuple[Page, HeldSession]) -> None:
    page, holding = held
    asked = holding.ask

    def writing(question: str, auth: object, collection: str, **given: Any) -> RunRecord:
        given["on_stream"](StreamEvent(kind="sentence", text="It stands on a rock. [1]"))
        given["on_stream"](StreamEvent(kind="token", text="Perhaps it"))
        return asked(question, auth, collection, **given)

    holding.ask = writing  # type: ignore[method-assign]
    page.locator("#question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".answer.live")).to_have_text("It stands on a rock. [1]")
    expect(page.locator(".answer.draft")).to_have_text("Perhaps it")
    page.get_by_role("button", name="Stop").click()
    assert holding.cancelled.acquire(timeout=60)
    expect(page.locator(".answer.draft")).to_have_text("It stands on a rock. [1]")


def test_a_question_back_is_answered_in_the_conversation(page: Page) -> None:
    page.locator("#question").fill("When was it built?")
    page.keyboard.press("Enter")
    page.get_by_label("Your reply").fill("the lighthouse of Brana")
    page.keyboard.press("Enter")
    expect(page.locator(".answer.whole")).to_contain_text("1884")
    page.reload()
    expect(page.locator(".clarify-reply")).to_have_text("the lighthouse of Brana")
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.locator(".answer.whole")).to_contain_text("1884")


def test_a_reply_from_below_closes_the_question_back(page: Page) -> None:
    for text in ("When was it built?", "the lighthouse of Brana"):
        page.locator("#question").fill(text)
        page.locator("#question").press("Enter")
        expect(page.locator(".clarify")).to_have_count(1)
    expect(page.locator(".answer.whole")).to_contain_text("1884")
    expect(page.get_by_label("Your reply")).to_be_disabled()


def test_what_looks_like_html_is_text(page: Page) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"> Who won the race on Mars?"
    never_ask_back(page)
    ask(page, hostile)
    expect(page.locator(".question")).to_have_text(hostile)
    expect(page.locator(".refusal")).to_contain_text("<img src=x onerror=")
    ask(page, "Who is the captain of the ferry of Osk?")
    expect(page.locator(".answer.whole")).to_contain_text(SCRIPT)
    page.locator(".mark").first.click()
    expect(page.locator("mark.span")).to_contain_text(SCRIPT)
    page.keyboard.press("Escape")
    page.goto("/#/search")
    page.get_by_role("searchbox").fill(f"captain of the ferry {SCRIPT}")
    page.keyboard.press("Enter")
    expect(page.locator(".snippet").first).to_contain_text(SCRIPT)
    assert page.locator("main img, main script, dialog img").count() == 0
    assert "owned" not in page.title()  # and `browser_pages` fails on any remote request


def test_the_keyboard_is_enough(page: Page) -> None:
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Shift+Enter")
    assert page.locator("#question").input_value().endswith("?\n")
    page.keyboard.press("Enter")
    page.locator(".turn .how").wait_for()
    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.className") == "mark":
            break
    expect(page.locator(".mark")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("mark.span")).to_have_text(SENTENCE)
    page.keyboard.press("Escape")
    expect(page.locator(".mark")).to_be_focused()
    for _ in range(20):  # what is closing may give the focus back once more
        page.locator(".brand").focus()
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "skip":
            break
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(
    reader: Reader, browser_pages: BrowserPages, scheme: str
) -> None:
    page = reader.open(browser_pages, color_scheme=scheme, bypass_csp=True, **PHONE)
    ask(page, QUESTION)
    page.get_by_text("How this was answered").click()
    for name in ("Evidence", "Path", "Plan", "Steps", "Budget", "JSON"):
        page.get_by_role("tab", name=name).click()
        page.locator(f".panel-{name.lower()} > *").first.wait_for()
        assert sideways(page) <= 0, name
    assert axe_violations(page) == []
    page.locator(".mark").click()
    expect(page.locator("mark.span")).to_be_in_viewport()
    box = page.get_by_role("dialog").bounding_box()
    assert box and (box["x"], box["width"]) == (0, 375)
    assert axe_violations(page) == []


def test_a_conversation_goes_on_after_a_reload_and_can_be_deleted(page: Page) -> None:
    ask(page, QUESTION)
    ask(page, "When was it built?")
    expect(page.locator(".turn").last.locator(".answer.whole")).to_contain_text("1884")
    page.get_by_role("button", name="Good answer").last.click()
    expect(page.locator(".feedback").last).to_contain_text("Thank you")
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".turn").first.locator(".answer.whole")).to_have_text(f"{SENTENCE} [1]")
    current = page.locator(".talks li", has=page.locator("[aria-current]"))
    expect(current).to_contain_text(QUESTION)
    current.hover()
    current.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator(".talks [aria-current]")).to_have_count(0)


def test_signing_in_and_out(reader: Reader, browser_pages: BrowserPages) -> None:
    browser_pages.allow("401")
    page = browser_pages.open()
    page.goto("/")
    page.get_by_label("Your key").fill("carrel_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not good here")
    page.get_by_label("Your key").fill(reader.key)
    page.keyboard.press("Enter")
    expect(page.locator(".who")).to_contain_text("paula")
    page.reload()
    expect(page.locator(".who")).to_contain_text("paula")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_key_that_is_revoked_asks_for_another(
    served: Served, browser_pages: BrowserPages
) -> None:
    browser_pages.allow("401")
    keys = Keys(parts(served.services.session.store).database)
    text, key = keys.create("page", user="peter", roles=frozenset(), days=1)
    page = Reader(text).open(browser_pages)
    page.locator("#question").wait_for()
    keys.revoke(key.id)
    page.evaluate("location.hash = '#/search'")
    expect(page.get_by_role("alert")).to_contain_text("no longer good")
    expect(page.get_by_label("Your key")).to_be_focused()
