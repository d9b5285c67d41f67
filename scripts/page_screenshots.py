"""Take the pictures of docs/how-to/page.md again, in Chromium over the sample data.

python scripts/page_screenshots.py [--url http://127.0.0.1:8400]

Without --url the samples are ingested into a temporary directory and served from there. Chromium
is the system's own; Playwright comes with the extra `dev`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
CARREL = [sys.executable, "-c", "from cli.app import main; main()"]
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
CHART_MS = 12_000  # until the charts have something to show
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 720}, "device_scale_factor": 2}
MULTI = (
    "What is the maximum timeout of the XPay refund API, who maintains it, "
    "and have there been complaints recently?"
)
HOP = "Which team maintains the interface whose maximum timeout is 300 seconds?"
CANDLE = "How are candles made from tallow?"


@contextmanager
def served() -> Iterator[str]:
    """Serve the sample data from a temporary directory; give the address."""
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data", folder]
        subprocess.run([*CARREL, "demo", *data], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        command = [*CARREL, "serve", "--allow-anonymous", "--port", "0", *data]
        env = os.environ | {"CARREL_SERVE__ANONYMOUS_ROLES": "writer,admin"}
        with subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout
            try:
                yield next(line.strip() for line in server.stdout if line.startswith("http"))
            finally:
                server.terminate()


def opened(browser: Browser, url: str, view: str = "ask", **options: Any) -> Page:  # noqa: ANN401
    """Return a page that shows a view, opened by its address: none is shown before it."""
    page = browser.new_context(base_url=url, **options).new_page()
    page.goto(f"/#/{view}")
    page.locator("#question" if view == "ask" else "main h1").wait_for()
    return page


def ask(page: Page, question: str, collection: str, until: str = ".how") -> None:
    """Ask a question of a collection and wait for a part of the answer."""
    page.locator(".shelf", has_text=collection).click()
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    page.locator(".turn").locator(until).first.wait_for()


def keep(page: Page, name: str, settle_ms: int = 400) -> None:
    """Write what is on the screen as a small PNG."""
    page.wait_for_timeout(settle_ms)
    picture = Image.open(BytesIO(page.screenshot()))
    small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(FOLDER / f"{name}.png", optimize=True)


def take(browser: Browser, url: str) -> None:
    """Take all pictures."""
    page = opened(browser, url, **DESKTOP)
    ask(page, MULTI, "xpay", ".live-path [data-node=retrieve].current")
    keep(page, "page-running", settle_ms=0)
    page.locator(".how").wait_for()
    keep(page, "page-answer")

    page = opened(browser, url, **DESKTOP)
    ask(page, CANDLE, "library")
    page.locator(".mark").first.click()
    page.locator("mark.span").wait_for()
    keep(page, "page-source")

    page = opened(browser, url, color_scheme="dark", **DESKTOP)
    ask(page, HOP, "xpay")
    page.get_by_text("How this was answered").click()
    page.get_by_role("tab", name="Plan").click()
    page.locator(".panel-plan svg").wait_for()
    page.locator(".under-answer").evaluate("node => node.scrollIntoView()")
    keep(page, "page-plan")

    page = opened(browser, url, "search", **DESKTOP)
    page.get_by_label("Collection").select_option("xpay")
    page.get_by_role("searchbox").fill("refunds rejected above 300 seconds")
    page.keyboard.press("Enter")
    page.locator(".result").first.wait_for()
    keep(page, "page-search")

    page = opened(browser, url, "admin", **DESKTOP)
    page.wait_for_timeout(CHART_MS)
    keep(page, "page-admin")

    page = opened(browser, url, **PHONE)
    ask(page, MULTI, "xpay")
    keep(page, "page-phone")
    take_documents(browser, url)


def take_documents(browser: Browser, url: str) -> None:
    """Take the picture of documents, after an upload that works and one that does not."""
    page = opened(browser, url, "documents/library", **DESKTOP)
    notes = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"A note about candles."}
    broken = {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-"}
    page.get_by_label("Into collection").fill("notes")
    page.locator("input[type=file][multiple]").set_input_files([notes, broken])  # type: ignore[list-item]
    for end in ("done", "failed"):
        page.locator(f".upload.{end}").wait_for()
    keep(page, "page-documents")


def main() -> None:
    """Take the pictures of a given server, or of the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that has the samples")
    given = parser.parse_args().url
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        if given:
            take(browser, given)
        else:
            with served() as url:
                take(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
