"""The page in a real browser: recommendations, what one thinks of them, and what admins see."""

from __future__ import annotations

import json

from browser import BrowserPages, axe_violations
from playwright.sync_api import expect
from serving import Served
from test_page_manage import enter
from uploading import uploaded

PROJECTS = [
    {"_id": "heron", "title": "Heron", "text": "A web server, an alternative to Stork & Sons.",
     "metadata": {"license": "MIT", "language": "Go", "stars": 900, "depends_on": ["reed"]}},
    {"_id": "egret", "title": "Egret", "text": "A web server that works with Heron.",
     "metadata": {"license": "GPL-3.0", "language": "Go", "stars": 90, "updated_at": "2026-10-10"}},
]  # fmt: skip


def test_documents_are_recommended_compared_and_liked(
    served: Served, browser_pages: BrowserPages
) -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in PROJECTS)
    uploaded(served, "waders.jsonl", lines, collection="waders")
    page = enter(browser_pages.open(bypass_csp=True), served, "writer", "#/recommend/waders")
    page.get_by_label("What you need").fill("web server")
    page.get_by_role("button", name="Recommend").click()
    expect(page.get_by_role("status").first).to_contain_text("2 documents")
    expect(page.get_by_role("region", name="How they are related")).to_be_visible()
    told = page.get_by_role("listitem").filter(has_text="Heron depends on reed")
    expect(told.last).to_be_visible()
    expect(page.get_by_role("region", name="Compared")).to_contain_text("Egret")
    assert not axe_violations(page)
    like = page.get_by_role("button", name="Like: Egret", exact=True)
    like.click()
    expect(like).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Heron", exact=True).click()
    expect(page.get_by_role("heading", name="Heron")).to_be_visible()
    admin = enter(browser_pages.open(), served, "admin", "#/admin/recommendations")
    expect(admin.get_by_text("Click-through")).to_be_visible()
