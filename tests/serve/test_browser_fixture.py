"""The browser of the tests notices what it must."""

from __future__ import annotations

import pytest
from browser import BrowserPages, axe_violations
from playwright.sync_api import Page


def test_a_page_of_the_server_opens(browser_page: Page, browser_pages: BrowserPages) -> None:
    response = browser_page.goto("/api/v1/health")
    assert response is not None and response.status == 200
    assert browser_pages.requests == [f"{browser_pages.url}/api/v1/health"]
    assert browser_pages.problems == []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("fetch('http://127.0.0.1:9/x').catch(() => 0)", "policy connect-src"),
        ("console.error('broken')", "console: broken"),
        ("document.head.appendChild(document.createElement('style')).textContent='a{}'", "policy"),
        ("setTimeout(() => { throw new Error('lost') })", "exception: lost"),
    ],
)
def test_what_goes_wrong_is_noticed(
    browser_page: Page, browser_pages: BrowserPages, script: str, told: str
) -> None:
    browser_page.goto("/api/v1/health")
    browser_page.evaluate(script)
    browser_page.wait_for_timeout(50)
    assert any(told in one for one in browser_pages.problems), browser_pages.problems
    browser_pages.problems.clear()


def test_a_remote_request_is_noticed_even_without_a_policy(browser_pages: BrowserPages) -> None:
    page = browser_pages.open(bypass_csp=True)
    page.goto("/api/v1/health")
    page.evaluate("fetch('http://127.0.0.1:9/x').catch(() => 0)")
    assert "remote request: http://127.0.0.1:9/x" in browser_pages.problems
    browser_pages.problems.clear()


def test_axe_finds_something(browser_pages: BrowserPages) -> None:
    page = browser_pages.open(bypass_csp=True)
    page.goto("/api/v1/health")
    page.set_content("<html><body><img src='data:,'><p>text</p></body></html>")
    assert any(one.startswith("image-alt") for one in axe_violations(page))
    browser_pages.problems.clear()
