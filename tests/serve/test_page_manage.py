"""The page in a real browser: documents in and out, keys, and what it weighs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import PHONE, BrowserPages, axe_violations
from local_web import Site
from playwright.sync_api import Page, expect
from serving import Served
from uploading import uploaded

from ingest.connectors import network

KEY = "Bearer "
FIRST_LOAD = 200_000


def enter(page: Page, served: Served, kind: str, place: str = "#/ask") -> Page:
    """Open a place of the page as one kind of caller."""
    key = served.headers[kind]["Authorization"].removeprefix(KEY)
    script = (
        f"location.protocol === 'http:' && sessionStorage.setItem('carrel.key', {json.dumps(key)})"
    )
    page.add_init_script(script)
    page.goto(f"/{place}")
    expect(page.locator("main h1")).to_be_visible()
    return page


def test_the_readers_of_a_document_are_replaced(served: Served, browser_page: Page) -> None:
    uploaded(served, "owl.md", "# Owls\n\nAn owl hunts at night.", collection="owls")
    page = enter(browser_page, served, "writer", "#/documents/owls")
    row = page.get_by_role("row").filter(has_text="owl.md")
    changes = {"everyone": "Read by: everyone", "writer, user:wim": "Read by: user:wim, writer"}
    for given, said in changes.items():
        row.get_by_role("button", name="Readers").click()
        page.get_by_role("dialog").get_by_label("Who may read it").fill(given)
        page.get_by_role("dialog").get_by_role("button", name="Replace").click()
        expect(page.get_by_text(said).first).to_be_visible()
    with served.client("reader") as client:
        listed = client.get("/api/v1/documents", params={"collection": "owls"})
    assert listed.status_code == 400  # as if there were no such collection


def test_an_admin_sets_the_readers_of_what_comes_later(served: Served, browser_page: Page) -> None:
    uploaded(served, "kite.md", "# Kites\n\nA kite hovers.", collection="kites")
    page = enter(browser_page, served, "admin", "#/documents/kites")
    page.get_by_role("button", name="Readers", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Now: everyone")
    dialog.get_by_label("Who may read it").fill("writer")
    dialog.get_by_role("button", name="Replace").click()
    expect(page.get_by_text("Read by: writer").first).to_be_visible()
    uploaded(served, "late.md", "# Late\n\nA late kite.", collection="kites")
    for kind, seen in (("writer", 2), ("reader", 1)):
        with served.client(kind) as client:
            found = client.get("/api/v1/documents", params={"collection": "kites"}).json()
        assert len(found["documents"]) == seen
    page.reload()
    page.get_by_role("button", name="Readers", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Now: writer")


def test_a_source_is_added_synced_and_removed(
    served: Served, site: Site, browser_page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of the test stands for one of the public internet."""
    monkeypatch.setattr(network, "is_public", lambda text: True)
    site.page("/guide/", "The bittern booms.", "reed.html", "gone.html")
    site.page("/guide/reed.html", "The reed grows.")
    page = enter(browser_page, served, "writer", "#/documents")
    page.get_by_text("Sources kept in sync").click()
    page.get_by_label("Name", exact=True).fill("bitterns")
    page.get_by_label("Address").fill(f"{site.url}/guide/")
    page.get_by_label("Synced").select_option(label="every day")
    page.get_by_role("button", name="Add source").click()
    row = page.get_by_role("listitem").filter(has_text="bitterns")
    expect(row).to_contain_text("not read yet · every day")
    page.get_by_role("button", name="Sync bitterns").click()
    expect(row).to_contain_text("in sync, in part")  # and why
    expect(row).to_contain_text("the source no longer has it")
    assert axe_violations(page) == []
    page.get_by_role("button", name="Remove bitterns").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Delete its documents too").check()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Removed: bitterns")).to_be_visible()
    expect(row).to_have_count(0)


def test_a_conversation_is_shared_saved_and_an_answer_copied(
    served: Served, browser_page: Page, browser_pages: BrowserPages
) -> None:
    browser_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with served.client("editor") as client:
        talk = client.post("/api/v1/conversations", json={"collection": "guide"}).json()
        name = talk["conversation_id"]
        asked = {"question": "How high is the candle flame?", "conversation_id": name}
        assert "42 mm" in client.post("/api/v1/chat", json=asked).json()["answer"]
    page = enter(browser_page, served, "editor", f"#/chat/{name}")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied, with its sources.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("How high") and "42 mm. [1]" in copied and "[1] Candles" in copied
    item = page.get_by_role("listitem").filter(has_text="How high is the candle").first
    item.hover()
    with page.expect_download() as saved:
        item.get_by_role("button", name="Save").click()
    assert "42 mm" in saved.value.path().read_text(encoding="utf-8")
    item.hover()
    item.get_by_role("button", name="Share").click()
    page.get_by_role("dialog").get_by_label("Who may read it").fill("user:ann")
    page.get_by_role("dialog").get_by_role("button", name="Share").click()
    expect(page.get_by_text(f"/#/chat/{name}")).to_be_visible()
    browser_pages.allow("404")  # its runs are its owner's
    other = enter(browser_pages.open(), served, "reader", f"#/chat/{name}")
    expect(other.get_by_text("eve shares this with you")).to_be_visible()
    expect(other.get_by_text("42 mm").first).to_be_visible()
    expect(other.locator("#question")).to_be_hidden()


def test_a_note_is_seen_edited_and_deleted_by_its_owner(served: Served, browser_page: Page) -> None:
    uploaded(served, "yew.md", "# Yews\n\nA yew is evergreen.", collection="yews")
    with served.client("writer") as client:
        begun = client.post("/api/v1/conversations", json={"collection": "yews"}).json()
        talk = begun["conversation_id"]
        sent = {"question": "My name is <b>Olena</b>.", "conversation_id": talk}
        assert client.post("/api/v1/chat", json=sent).status_code == 200
    page = enter(browser_page, served, "writer", "#/memory")
    note = page.get_by_role("listitem").filter(has_text="My name is <b>Olena</b>.")
    expect(note).to_contain_text("you stated it")
    note.get_by_role("button", name="Edit").click()
    page.get_by_label("What it says").fill("My name is Oksana.")
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_text("you edited it")).to_be_visible()
    expect(page.get_by_text("superseded on")).to_be_visible()
    assert axe_violations(page) == []
    note = page.get_by_role("listitem").filter(has_text="My name is Oksana.")
    note.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()


def test_a_document_goes_in_is_asked_about_and_is_deleted(
    served: Served, browser_page: Page, browser_pages: BrowserPages, tmp_path: Path
) -> None:
    page = enter(browser_page, served, "writer", "#/documents")
    name = "<img src=x onerror=alert(1)> shrew.md"
    (tmp_path / name).write_text("# <b>Shrews</b>\n\nA shrew weighs 11 grams.\n")
    (tmp_path / "locked.pdf").write_bytes(b"this is no pdf")
    page.get_by_label("Into collection").fill("shrews")
    files = [tmp_path / name, tmp_path / "locked.pdf"]
    page.locator("input[type=file][multiple]").set_input_files(files)
    expect(page.get_by_text("Ready: 1 passage")).to_be_visible()
    expect(page.get_by_text(re.compile("^Failed: .*could not be read"))).to_be_visible()
    page.goto("/#/documents/shrews")
    row = page.get_by_role("row").filter(has_text="shrew.md")
    expect(row).to_contain_text("markdown")
    row.get_by_role("link").click()
    expect(page.get_by_text("A shrew weighs 11 grams.")).to_be_visible()
    with served.client("writer") as client:
        asked = {"question": "How much does a shrew weigh?", "collection": "shrews"}
        assert "11 grams" in client.post("/api/v1/chat", json=asked).json()["answer"]
        page.go_back()
        row.get_by_role("button", name="Delete").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Cancel").click()
        expect(row).to_be_visible()
        row.get_by_role("button", name="Delete").click()
        dialog.get_by_role("button", name="Delete").click()
        expect(row).to_have_count(0)
        listed = client.get("/api/v1/documents", params={"collection": "shrews"})
        assert listed.json().get("documents", []) == []
    assert page.locator("main img").count() == 0


def test_dropped_files_are_taken_and_a_bad_name_is_said(
    served: Served, browser_page: Page, browser_pages: BrowserPages
) -> None:
    browser_pages.allow("422|400")
    page = enter(browser_page, served, "writer", "#/documents")
    page.get_by_label("Read by").select_option(label="Another role…")
    page.get_by_label("Name of the role").fill("keeper")
    page.get_by_label("Into collection").fill("dropped")
    given = page.evaluate_handle(
        """() => { const held = new DataTransfer();
        held.items.add(new File(["A dormouse sleeps."], "dormouse.txt"));
        held.items.add(new File(["x"], "virus.exe"));
        held.items.add(new File([], "empty.txt"));
        held.items.add(new File([new Uint8Array(51e6)], "large.txt"));
        return held; }"""
    )
    page.locator(".dropzone").dispatch_event("drop", {"dataTransfer": given})
    expect(page.locator(".upload.done")).to_contain_text("dormouse.txt")
    expect(page.locator(".upload.failed")).to_have_count(3)
    expect(page.locator(".upload", has_text="large.txt")).to_contain_text("at most 50 MB")
    expect(page.locator(".upload", has_text="virus.exe")).to_contain_text("Failed:")
    expect(page.locator(".upload", has_text="empty.txt")).to_contain_text("at least one byte")
    with served.client("writer") as client:
        hidden = client.get("/api/v1/documents", params={"collection": "dropped"})
    assert hidden.status_code == 400  # for the role alone: nothing is there for who sent it


def test_an_admin_makes_a_key_and_revokes_it(
    served: Served, browser_page: Page, browser_pages: BrowserPages
) -> None:
    page = enter(browser_page, served, "admin", "#/admin/keys")
    page.get_by_label("User", exact=True).fill("kim")
    page.get_by_label("Roles").fill("editor, writer")
    page.get_by_label("Expires after days").fill("5")
    page.get_by_role("button", name="Create key").click()
    secret = page.locator(".secret code").inner_text()
    served.headers["made on the page"] = {"Authorization": f"Bearer {secret}"}
    with served.client("made on the page") as client:
        me = client.get("/api/v1/me").json()
        assert (me["tenant"], me["user"], me["roles"]) == ("acme", "kim", ["editor", "writer"])
        page.get_by_role("row", name="kim").get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("row", name="kim")).to_contain_text("revoked")
        assert client.get("/api/v1/me").status_code == 401
    del served.headers["made on the page"]
    page.reload()
    expect(page.get_by_role("row", name="kim")).to_contain_text("revoked")
    assert secret not in page.content()


# Where to look, and what says that all of it is there.
PLACES = {
    "ask": ".view-ask h1",
    "search": ".view-search h1",
    "documents/lynxes": "text=lynx.md",
    "documents/lynxes/lynx.md": "text=A lynx is 1 m long.",
    "admin": ".tile",
    "admin/jobs": "text=lynx.md",
    "admin/keys": "text=Create key",
    "admin/feedback": "text=Save as JSON Lines",
    "admin/audit": 'th:has-text("login")',
}


def test_many_documents_come_in_pages_and_long_ones_in_parts(
    served: Served, browser_page: Page
) -> None:
    rows = "".join(f"r{number:02},Ruff {number:02}\n" for number in range(60))
    uploaded(served, "ruffs.csv", f"id,title\n{rows}", collection="ruffs")
    parts = "\n\n".join(f"## Part {number}\n\nRuff {number} sings." for number in range(60))
    uploaded(served, "long.md", f"# Long\n\n{parts}\n", collection="long")
    page = enter(browser_page, served, "reader", "#/documents/ruffs")
    titles = page.locator(".documents tbody th")
    expect(titles).to_have_count(50)
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()
    page.get_by_role("button", name="Next").click()
    expect(titles).to_have_count(10)
    expect(page.get_by_text("Page 2")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(titles).to_have_count(50)
    assert page.get_by_role("button", name="Delete").count() == 0  # a reader deletes nothing
    assert page.locator(".dropzone").count() == 0
    page.goto("/#/documents/long/long.md/30")
    said = page.locator(".reading .prose")
    expect(said.first).to_have_text("Ruff 25 sings.")
    page.get_by_role("button", name="Later passages").click()
    expect(said.last).to_have_text("Ruff 59 sings.")
    page.get_by_role("button", name="Earlier passages").click()
    expect(said).to_have_count(60)
    assert said.all_inner_texts() == [f"Ruff {number} sings." for number in range(60)]


def test_charts_say_what_they_show(
    served: Served, browser_page: Page, browser_pages: BrowserPages
) -> None:
    page = enter(browser_page, served, "admin", "#/admin")
    with served.client("reader") as client:
        client.post("/api/v1/chat", json={"question": "How high is it?", "collection": "guide"})
    memory = page.get_by_role(
        "img", name=re.compile(r"^Memory, now: resident [\d.,]+ [MG]B; the scale")
    )
    expect(memory).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Questions, now: at work"))).to_be_visible()
    expect(page.get_by_role("rowheader", name="/api/v1/me", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("img", name=re.compile("^How runs ended: "))).to_be_visible()


@pytest.mark.parametrize("variant", ["light", "dark", "phone"])
def test_no_view_shuts_anyone_out(
    served: Served, browser_pages: BrowserPages, variant: str
) -> None:
    browser_pages.allow("status of (401|404)")
    uploaded(
        served, "lynx.md", "# Lynxes\n\nA lynx is 1 m long.", kind="admin", collection="lynxes"
    )
    options: dict[str, Any] = PHONE if variant == "phone" else {"color_scheme": variant}
    page = browser_pages.open(bypass_csp=True, **options)
    page.goto("/")
    expect(page.locator("form.login")).to_be_visible()
    found = {"login": axe_violations(page)}
    page.goto("about:blank")
    enter(page, served, "admin")
    for place, sign in PLACES.items():
        page.goto(f"/#/{place}")
        expect(page.locator(sign).first).to_be_visible()
        found[place] = axe_violations(page)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide > room:
            found[place].append(f"it scrolls sideways: {wide} of {room}")
    assert not {place: wrong for place, wrong in found.items() if wrong}


def test_uploads_go_on_while_other_views_are_shown(
    served: Served, browser_page: Page, browser_pages: BrowserPages, tmp_path: Path
) -> None:
    page = enter(browser_page, served, "writer", "#/documents")
    files = [tmp_path / f"vixen{number}.txt" for number in range(4)]
    for file in files:
        file.write_text(f"A vixen called {file.stem} has cubs.")
    page.get_by_label("Into collection").fill("vixens")
    page.locator("input[type=file][multiple]").set_input_files(files)
    page.get_by_role("link", name="Search").click()
    expect(page.locator(".view-search h1")).to_be_visible()
    page.get_by_role("link", name="Documents").click()
    expect(page.locator(".upload.done")).to_have_count(4)


def test_the_first_load_is_light(
    served: Served, browser_page: Page, browser_pages: BrowserPages
) -> None:
    loaded: dict[str, int] = {}
    browser_page.on("response", lambda got: loaded.update({got.url: len(got.body())}))
    enter(browser_page, served, "reader")
    browser_page.wait_for_load_state("networkidle")
    assert sum(loaded.values()) <= FIRST_LOAD, loaded
    assert len(loaded) > 5
    assert all(url.startswith(f"{served.url}/") for url in browser_pages.requests)


def test_a_dropped_folder_is_taken_with_its_names(
    served: Served, browser_page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "burrow"
    for name in ("vole.md", "deep/er/stoat.md", "deep/odd.raw", *(f"m/{n}.txt" for n in range(3))):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {path.stem}\n\nThe {path.stem} digs.\n")
    (folder / "deep" / "locked.pdf").write_bytes(b"this is no pdf")
    page = enter(browser_page, served, "writer", "#/documents")
    page.get_by_label("Into collection").fill("burrows")
    box = page.locator(".dropzone").bounding_box()
    assert box
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        place = {"x": box["x"] + 20, "y": box["y"] + 5, "data": data}
        session.send("Input.dispatchDragEvent", {"type": kind, **place})
    expect(page.locator(".upload.done")).to_have_count(5)
    lost = page.locator(".upload.failed")
    expect(lost).to_contain_text(["deep/locked.pdf"])
    expect(lost).to_contain_text(["could not be read"])
    page.get_by_text("1 file of other formats left out").click()
    expect(page.get_by_text("deep/odd.raw")).to_be_visible()
    page.goto("/#/documents/burrows")
    expect(page.get_by_role("cell", name="deep/er/stoat.md")).to_be_visible()


def test_documents_are_sorted_on_a_phone(served: Served, browser_pages: BrowserPages) -> None:
    page = enter(browser_pages.open(**PHONE), served, "writer", "#/documents/guide")
    titles = page.locator("tbody th")
    expect(titles).to_have_count(2)
    page.get_by_label("Sort by").select_option(label="Title, from the end")
    expect(titles).to_have_text(["Чайник", "Candles"])
    page.get_by_label("Sort by").select_option(label="Title")
    expect(titles).to_have_text(["Candles", "Чайник"])


def test_documents_are_found_sorted_and_deleted_together(
    served: Served, browser_page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "shelf"
    for name, text in (
        ("ibis.md", "# Ibis\n\nAn ibis wades."),
        ("deep/egret.md", "# Egret\n\nAn egret fishes."),
        ("deep/heron.md", "# Heron\n\nA heron waits."),
        ("deep/photo.raw", "x"),
        (".hidden/note.md", "x"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    page = enter(browser_page, served, "writer", "#/documents")
    expect(page.get_by_text("Up to 50 MB each; formats")).to_be_visible()
    page.get_by_label("Into collection").fill("waders")
    page.get_by_label("Choose a folder").set_input_files(str(folder))
    expect(page.get_by_text("1 file of other formats left out")).to_be_visible()
    expect(page.locator(".upload.done")).to_have_count(3)
    page.goto("/#/documents/waders")
    titles = page.locator("tbody th")
    expect(titles).to_have_count(3)
    expect(page.get_by_role("cell", name="deep/egret.md")).to_be_visible()
    page.get_by_role("button", name="Title").click()
    expect(titles).to_have_text(["Egret", "Heron", "Ibis"])
    page.get_by_role("button", name="Title").click()
    expect(titles).to_have_text(["Ibis", "Heron", "Egret"])
    page.get_by_label("Find a document").fill("DEEP")
    expect(titles).to_have_text(["Heron", "Egret"])
    expect(page.get_by_text("2 documents", exact=True)).to_be_visible()
    assert axe_violations(page) == []
    page.get_by_label("Choose Heron").check()
    page.get_by_label("Choose Egret").check()
    page.get_by_role("button", name="Delete 2 documents").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted: 2 documents")).to_be_visible()
    with served.client("writer") as client:
        listed = client.get("/api/v1/documents", params={"collection": "waders"}).json()
    assert [one["title"] for one in listed["documents"]] == ["Ibis"]


def test_questions_to_begin_with_are_of_what_may_be_read(
    served: Served, browser_page: Page
) -> None:
    page = enter(browser_page, served, "reader")
    page.locator(".shelf", has_text="guide").click()
    offered = page.locator(".offers button")
    expect(offered.filter(has_text="Candles")).to_be_visible()
    expect(offered.filter(has_text="Что в документах сказано о «Чайник»?")).to_be_visible()
    offered.filter(has_text="Candles").click()
    expect(page.locator(".answer.whole")).to_contain_text("42 mm")
    page.get_by_role("button", name="Ask differently").click()
    expect(page.locator("#question")).to_have_value("What do the documents say about Candles?")
    with served.client("reader") as client:
        closed = client.get("/api/v1/examples", params={"collection": "closed"})
    assert closed.status_code == 400
