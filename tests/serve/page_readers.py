"""Readers of the page: a tenant of their own, with documents that other tests do not see."""

from __future__ import annotations

import json
from dataclasses import dataclass

import httpx
from browser import BrowserPages
from playwright.sync_api import Page
from serving import SECONDS, Served, eventually

from stores.accounts.keys import Keys
from stores.store import parts

COLLECTION = "notes"
QUESTION = "How high is the lamp of the Brana lighthouse?"
SENTENCE = "The lamp of the Brana lighthouse stands 61 metres above the sea."
SCRIPT = "<script>document.title='owned'</script>"
DOCUMENTS = {
    "lighthouse.txt": "The lighthouse of Brana 🗼\n\nThe keeper 🧑‍🔧 lights it at dusk. "
    f"{SENTENCE} It was built in 1884 by the harbour of Brana.\n",
    "маяк.txt": "Маяк Брана\n\nСмотритель маяка Брана носит фамилию Петров.\n",
    "ferry.txt": f"The ferry of Osk\n\nThe captain of the ferry of Osk is {SCRIPT}Marta Venn.\n",
}


@dataclass(frozen=True)
class Reader:
    """Hold the key of a reader whose documents are there."""

    key: str

    def open(
        self, pages: BrowserPages, url: str = "", hash: str = "#/ask", **options: object
    ) -> Page:
        """Open the page, signed in."""
        page = pages.open(**options)
        page.add_init_script(f"sessionStorage.setItem('carrel.key', {json.dumps(self.key)})")
        page.goto(f"{url}/{hash}")
        return page


def make_reader(served: Served) -> Reader:
    """Make a key of the tenant "page" and upload its documents."""
    keys = Keys(parts(served.services.session.store).database)
    key, _ = keys.create("page", user="paula", roles=frozenset({"writer"}), days=1)
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(
        base_url=served.url, headers=headers, timeout=SECONDS, verify=False
    ) as client:
        for name, text in DOCUMENTS.items():
            sent = {"collection": COLLECTION, "name": name}
            job = client.post("/api/v1/documents", params=sent, content=text.encode()).json()
            path = f"/api/v1/jobs/{job['id']}"
            eventually(lambda: client.get(path).json()["state"] == "done")  # noqa: B023
    return Reader(key)


def ask(page: Page, question: str) -> None:
    """Ask by typing, and wait for the answer."""
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    page.locator(".turn").last.locator(".how").wait_for()


def never_ask_back(page: Page) -> None:
    """Switch off clarifying questions."""
    page.locator(".options summary").click()
    box = page.get_by_label("Ask me back")
    if box.is_visible():
        box.uncheck()


def sideways(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
