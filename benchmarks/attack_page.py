"""Hostile names and texts on every view of the page, in the system's Chromium."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

from benchmarks.attack_absent import done, offered, uploaded
from benchmarks.attack_world import Tally, World, attacked, token_of

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
COLLECTION = "hostile"
SIZES = ({"width": 1280, "height": 800}, {"width": 375, "height": 720})
EVIL = "http://evil.example"
PAYLOADS = (
    "<img src=x onerror=pwned=1>",
    "<script>pwned=1</script>",
    "<svg onload=pwned=1>",
    "<svg><script>pwned=1</script></svg>",
    "<svg><a xlink:href='javascript:pwned=1'>x</a></svg>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<iframe src=javascript:parent.pwned=1>",
    "<object data='data:text/html,<script>pwned=1</script>'>",
    "<embed src=javascript:pwned=1>",
    '"><img src=x onerror=pwned=1>',
    "'><svg/onload=pwned=1>",
    "</textarea><script>pwned=1</script>",
    "</title><script>pwned=1</script>",
    "--><script>pwned=1</script>",
    "]]><script>pwned=1</script>",
    "<a href=javascript:pwned=1>click</a>",
    "javascript:pwned=1",
    "JaVaScRiPt:pwned=1//",
    "data:text/html,<script>pwned=1</script>",
    f"<base href='{EVIL}/'>",
    f"<link rel=stylesheet href='{EVIL}/c.css'>",
    f"<style>@import '{EVIL}/c.css';</style>",
    f"<meta http-equiv=refresh content='0;url={EVIL}'>",
    f"<form action='{EVIL}'><button>ok</button>",
    f"![a]({EVIL}/i.png)",
    f"[a]({EVIL})",
    "[a](javascript:pwned=1)",
    f"<{EVIL}>",
    EVIL,
    f"url({EVIL}/u) fill=url({EVIL}/f)",
    "<math><mtext><script>pwned=1</script></mtext></math>",
    "<details open ontoggle=pwned=1>",
    "<body onload=pwned=1>",
    "<input autofocus onfocus=pwned=1>",
    "<video><source onerror=pwned=1></video>",
    "<marquee onstart=pwned=1>x</marquee>",
    "{{constructor.constructor('pwned=1')()}}",
    "${pwned=1}",
    "`${pwned=1}`",
    "';pwned=1;//",
    "&lt;script&gt;pwned=1&lt;/script&gt;",
    "&#60;img src=x onerror=pwned=1&#62;",
    "%3Cscript%3Epwned=1%3C/script%3E",
    "\\u003cscript\\u003epwned=1\\u003c/script\\u003e",
    "__proto__",
    "constructor",
    "#/admin",
    "../../api/v1/keys",
    "//evil.example/x",
    "\u202egnp.exe\u202c",
    "\u2066\u2067\u2068isolate",
    "zero\u200b\u200c\u200d\u2060width",
    "Z\u0335\u0321\u0300\u0301" * 60,
    "\ufdfd" * 30,
    "W" * 10_000,
    "长" * 3000,
    "word " * 2000,
    "🏳️‍🌈" * 200,
    "\u00ad" * 500 + "soft",
    "<" * 3000,
    "&" * 3000,
    "١٢٣ עברית العربية",
)
PIECES = (
    "<",
    ">",
    '"',
    "'",
    "`",
    "=",
    "/",
    "img",
    " src=x",
    " onerror=pwned=1",
    "svg",
    " onload=pwned=1",
    "<script>pwned=1</script>",
    "javascript:pwned=1",
    "\u202e",
    "\u200b",
    "&lt;",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    f"{EVIL}/x",
    "![",
    "](",
    ")",
    "\\",
    "{{",
    "}}",
    "<a href=",
)
# What none of the page's own places holds: an element that runs, loads or leads out.
FOREIGN = """() => [...document.querySelectorAll(`body script, main img, dialog img, iframe,
 object, embed, base, form[action], main style, main link, video, audio, math, foreignObject`)].map(
 one => one.outerHTML.slice(0, 100)).concat([...document.querySelectorAll("*")].flatMap(
 one => [...one.attributes].filter(({name, value}) => /^on/.test(name) ||
 (/(href|src|action)$/.test(name) && !/^(#|\\/page\\/|blob:)/.test(value))).map(({name, value}) =>
 `${one.localName} ${name}=${value.slice(0, 100)}`)))"""
SIDEWAYS = "document.documentElement.scrollWidth - window.innerWidth"
POLICY = """document.addEventListener("securitypolicyviolation",
  event => console.error("policy", event.violatedDirective, event.blockedURI));"""
TABS = ("Evidence", "Path", "Plan", "Steps", "Budget", "JSON")


def payloads(count: int, draw: random.Random) -> list[str]:
    """Return the known ones, and mixtures of their pieces after them."""
    mixed = ["".join(draw.choices(PIECES, k=draw.randrange(2, 12))) for _ in range(count)]
    return [*PAYLOADS, *mixed][:count]


@dataclass
class Planted:
    """Say where one payload was put."""

    text: str
    run: str = ""
    talk: str = ""
    document: str = ""


@dataclass
class Watched:
    """Open a page and remember what it did."""

    page: Page
    url: str
    key: str
    wrong: list[str] = field(default_factory=list)
    pending: int = 0

    def __post_init__(self) -> None:
        """Listen."""
        page = self.page
        page.context.add_init_script(POLICY)
        key = json.dumps(self.key)
        page.context.add_init_script(
            f"location.protocol === 'http:' && sessionStorage.setItem('carrel.key', {key})"
        )
        page.context.route("**/*", self._route)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        page.on("popup", lambda popup: self.wrong.append(f"a window: {popup.url}"))
        page.on("download", lambda got: self.wrong.append(f"a download: {got.url}"))
        # A 404 of an id that is not there is written to the console, and is right, and so is what
        # `_route` aborted, which is known already, and a redirect to the same address without "/".
        page.on(
            "console",
            lambda said: (
                said.type == "error"
                and not re.search("status of 4|ERR_FAILED", said.text)
                and self.wrong.append(f"console: {said.text[:200]}")
            ),
        )

    def _route(self, route: Route, request: Request) -> None:
        if request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.pending += 1
            route.continue_()
            return
        self.wrong.append(f"request to {request.url[:200]}")
        route.abort()

    def _ended(self, _: Request) -> None:
        self.pending -= 1

    def go(self, place: str) -> None:
        """Go to a place of the page."""
        self.page.evaluate("hash => { location.hash = hash; }", place)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is loaded any more."""
        self.page.wait_for_timeout(40)
        until = time.monotonic() + 20
        while self.pending > 0 and time.monotonic() < until:
            self.page.wait_for_timeout(20)
        self.pending = 0

    def problems(self) -> list[str]:
        """Return what is wrong with what is shown, and what went wrong until now."""
        found, self.wrong = self.wrong, []
        if self.page.evaluate("window.pwned"):
            found.append("a script ran")
            self.page.evaluate("delete window.pwned")
        found += [f"element: {one}" for one in self.page.evaluate(FOREIGN)]
        if (wide := self.page.evaluate(SIDEWAYS)) > 0:
            found.append(f"{wide} pixels wider than the window")
        if not self.page.url.startswith(f"{self.url}/"):
            found.append(f"it went to {self.page.url}")
        return found


def attack_page(folder: Path, cases: int, seed: int) -> Iterable[Tally]:
    """Plant the payloads and look at every view, wide and narrow."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        yield Tally("page: no Chromium on this machine")
        return
    with attacked(folder) as world:
        names = Tally("page: hostile names of users, roles, collections and files, refused or kept")
        planted = plant(world, payloads(max(8, cases // 6), random.Random(seed)), names)
        yield names
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            views = Tally("page: views with hostile texts")
            try:
                for narrow in (0, 1):
                    shared(opened(browser, world, narrow), views)
                    watched = opened(browser, world, narrow)
                    for one in planted[narrow::2]:
                        look(watched, one, views)
                    watched.page.context.close()
            finally:
                browser.close()
            if world.tracebacks() or world.server_errors():
                views.broken.append("the server wrote a traceback")
            views.note = f"{len(planted)} texts"
            yield views


def opened(browser: Browser, world: World, narrow: int) -> Watched:
    """Open the page, signed in as an admin."""
    context = browser.new_context(base_url=world.url, viewport=SIZES[narrow])
    context.set_default_timeout(30_000)
    watched = Watched(context.new_page(), world.url, token_of("admin"))
    watched.page.goto("/#/ask")
    watched.page.locator("#question").wait_for()
    return watched


def plant(world: World, texts: Sequence[str], names: Tally) -> list[Planted]:
    """Put each text into names, titles, texts, questions, conversations and opinions."""
    planted = [Planted(text) for text in texts]
    with world.client("admin") as client:
        rows = []
        for number, one in enumerate(planted):
            one.document = f"{one.text[:200]}{number}"
            fact = f"The code of item qx{number} is {1000 + number} {one.text[:3000]}."
            row = {"_id": one.document, "title": one.text, "text": fact}
            row["metadata"] = {"author": one.text[:500], "url": one.text[:500], "version": "1"}
            rows.append(json.dumps(row))
            for route, sent in (
                ("/api/v1/keys", {"json": {"user": one.text[:64]}}),
                ("/api/v1/keys", {"json": {"user": "u", "roles": [one.text[:64]]}}),
            ):
                got = client.post(route, **sent)  # type: ignore[arg-type]
                names.check(got.status_code in (201, 400, 422), f"{one.text!r}: {got.status_code}")
            for collection, name in (
                (COLLECTION, f"{one.text[:60]}.txt"),
                (one.text[:64], "x.txt"),
            ):
                got = offered(client, collection, name, fact)
                names.check(got.status_code in (202, 400, 422), f"{name!r}: {got.text[:200]}")
        uploaded(client, "rows.jsonl", "\n".join(rows), COLLECTION)
        for number, one in enumerate(planted):
            begun = client.post("/api/v1/conversations", json={"collection": COLLECTION})
            one.talk = done(begun)["conversation_id"]
            asked: dict[str, Any] = {"conversation_id": one.talk}
            asked["question"] = f"What is the code of item qx{number}? {one.text[:1000]}"
            one.run = done(client.post("/api/v1/chat", json=asked))["run_id"]
            client.patch(f"/api/v1/conversations/{one.talk}", json={"title": one.text[:400]})
            opinion = {"run_id": one.run, "rating": "down", "comment": one.text[:4000]}
            done(client.post("/api/v1/feedback", json=opinion))
    return planted


def look(watched: Watched, one: Planted, views: Tally) -> None:
    """Look at the views of one payload."""
    text = quote(one.text[:300], safe="")
    places = {
        "run": f"#/run/{one.run}",
        "conversation": f"#/chat/{one.talk}",
        "search": f"#/search/{COLLECTION}/{text}",
        "document": f"#/documents/{COLLECTION}/{quote(one.document, safe='')}",
        "collection by address": f"#/documents/{text}",
        "run by address": f"#/run/{text}",
        "place by address": f"#/{one.text[:300]}",
    }
    for name, place in places.items():
        watched.go(place)
        views.check(not (wrong := watched.problems()), f"{name} {one.text[:60]!r}: {wrong}")
        if name == "run" and watched.page.locator(".turn .how").count():
            opened_up(watched, one, views)


def opened_up(watched: Watched, one: Planted, views: Tally) -> None:
    """Open how a question was answered, its drawings and its first source."""
    page = watched.page
    page.locator(".turn .how summary").first.click()
    for tab in TABS:
        found = page.get_by_role("tab", name=tab)
        if found.count():
            found.first.click()
            watched.settle()
            views.check(not (wrong := watched.problems()), f"{tab} {one.text[:60]!r}: {wrong}")
    if page.locator(".mark").count():
        page.locator(".mark").first.click()
        page.locator("dialog[open], [role=dialog]").first.wait_for()
        watched.settle()
        views.check(not (wrong := watched.problems()), f"source {one.text[:60]!r}: {wrong}")
        page.keyboard.press("Escape")


def shared(watched: Watched, views: Tally) -> None:
    """Look at the lists, which hold all payloads at once."""
    page = watched.page
    for place in ("ask", "search", f"documents/{COLLECTION}", "admin", "admin/jobs", "admin/keys",
                  "admin/feedback", "admin/audit"):  # fmt: skip
        watched.go(f"#/{place}")
        page.wait_for_timeout(200)
        views.check(not (wrong := watched.problems()), f"{place}: {wrong}")
        if place.startswith("documents"):
            for button in page.locator("button.danger-text").all()[:10]:
                button.click()
                views.check(not (wrong := watched.problems()), f"deletion asked: {wrong}")
                page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.context.close()
