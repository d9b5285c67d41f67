"""Hostile names and texts on the views of the page: a small run of `benchmarks.attack_page`."""

from __future__ import annotations

import json

from browser import Browser
from serving import Served
from uploading import uploaded

from benchmarks.attack_page import COLLECTION, PAYLOADS, SIZES, Planted, Watched, look
from benchmarks.attack_world import Tally
from stores.accounts.keys import Keys
from stores.store import parts

CHOSEN = (
    PAYLOADS[0],
    PAYLOADS[3],
    "\u202egnp.exe\u202c\u200b ![a](http://evil.example/i.png)",
    "W" * 10_000,
)


def test_no_view_runs_loads_or_breaks(served: Served, chromium: Browser) -> None:
    key, _ = Keys(parts(served.services.session.store).database).create(
        "hostile", user="hal", roles=frozenset({"admin"}), days=1
    )
    served.headers["hostile"] = {"Authorization": f"Bearer {key}"}
    planted = [Planted(text, document=f"{text[:200]}{n}") for n, text in enumerate(CHOSEN)]
    rows = [
        {
            "_id": one.document,
            "title": one.text,
            "text": f"The code of item qx{n} is 77 {one.text}.",
        }
        for n, one in enumerate(planted)
    ]
    text = "\n".join(map(json.dumps, rows))
    uploaded(served, "<b>rows.jsonl", text, kind="hostile", collection=COLLECTION)
    uploaded(served, "x.txt", "A text.", kind="hostile", collection="W" * 64)
    with served.client("hostile") as client:
        for number, one in enumerate(planted):
            begun = client.post("/api/v1/conversations", json={"collection": COLLECTION}).json()
            one.talk = begun["conversation_id"]
            asked = {"question": f"What is the code of item qx{number}? {one.text[:500]}"}
            sent = asked | {"conversation_id": one.talk}
            one.run = client.post("/api/v1/chat", json=sent).json()["run_id"]
            path = f"/api/v1/conversations/{one.talk}"
            assert client.patch(path, json={"title": one.text[:400]}).status_code == 200
            opinion = {"run_id": one.run, "rating": "down", "comment": one.text[:4000]}
            assert client.post("/api/v1/feedback", json=opinion).status_code == 201
    del served.headers["hostile"]
    views = Tally("views")
    for number, size in enumerate(SIZES):
        context = chromium.new_context(base_url=served.url, viewport=size)
        watched = Watched(context.new_page(), served.url, key)
        watched.page.goto("/#/ask")
        watched.page.locator("#question").wait_for()
        for one in planted[number::2]:
            look(watched, one, views)
        for place in ("ask", "search", f"documents/{COLLECTION}", "admin/jobs", "admin/feedback"):
            watched.go(f"#/{place}")
            views.check(not (wrong := watched.problems()), f"{place}: {wrong}")
        context.close()
    assert views.broken == []
    assert views.tried > 40
