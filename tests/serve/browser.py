"""A real browser for tests of the page: the system's Chromium, headless, driven by Playwright.

- `browser_page`: a fresh page whose addresses are below the `served` server's.
- `browser_pages`: opens more of them: `browser_pages.open(color_scheme="dark", **PHONE)`.
- `axe_violations(page)`: what axe finds; the page must be opened with `bypass_csp=True`.

A test fails when its pages ask anything of another origin, write an error to the console, break
their Content-Security-Policy or let an exception out. Chromium writes an error for every response
with an error status: a test that wants one says so by `browser_pages.allow("404")`.

Playwright's sync API keeps an event loop running in this thread, where `asyncio.run` then fails:
the browser is closed at the end of each module.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Route,
    expect,
    sync_playwright,
)
from serving import Served

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MILLISECONDS = 60_000
expect.set_options(timeout=MILLISECONDS)
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 720}}
LOCAL = ("data:", "blob:")
# A policy's violation is an error in the console only in some cases.
WATCH_POLICY = """document.addEventListener("securitypolicyviolation",
  event => console.error("policy", event.violatedDirective, event.blockedURI));"""


@dataclass
class BrowserPages:
    """Open pages and remember what they asked for and what went wrong."""

    browser: Browser
    url: str
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def open(self, **options: Any) -> Page:
        """Return a page in a new context of its own; options are those of `new_context`."""
        context = self.browser.new_context(base_url=self.url, **options)
        self.contexts.append(context)
        context.set_default_timeout(MILLISECONDS)
        context.add_init_script(WATCH_POLICY)
        context.route("**/*", self._route)
        context.on("console", self._console)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        return page

    def allow(self, pattern: str) -> None:
        """Let errors in the console pass that the pattern (a regex) is found in."""
        self.allowed.append(pattern)

    def close(self) -> None:
        """Close the pages and fail when something was wrong in one."""
        for context in self.contexts:
            context.close()
        wrong = [
            one for one in self.problems if not any(re.search(known, one) for known in self.allowed)
        ]
        assert not wrong, wrong

    def _route(self, route: Route, request: Request) -> None:
        self.requests.append(request.url)
        if request.url.startswith((f"{self.url}/", *LOCAL)):
            route.continue_()
        else:
            self.problems.append(f"remote request: {request.url}")
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            place = message.location.get("url", "")
            self.problems.append(f"console: {message.text} ({place})")


@pytest.fixture(scope="module")
def chromium(served: Served) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_pages(chromium: Browser, served: Served) -> Iterator[BrowserPages]:
    pages = BrowserPages(chromium, served.url)
    yield pages
    pages.close()


@pytest.fixture
def browser_page(browser_pages: BrowserPages) -> Page:
    return browser_pages.open()


def axe_violations(page: Page) -> list[str]:
    """Return what axe holds against the page as it is now: the rule, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {' | '.join(str(node['target']) for node in one['nodes'])}"
        for one in found
    ]
