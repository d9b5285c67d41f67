"""Pages, sites, sitemaps and feeds of a real server on loopback, and what servers do wrong."""

from __future__ import annotations

import re

import pytest
from local_web import BOMB, Site
from syncs import Room

from core.errors import CallerError, CarrelError
from core.settings import load_settings
from ingest.connectors import network
from ingest.connectors.address import find_credential, parse_address
from ingest.connectors.network import check_host, is_public


def failures(room: Room, address: str, **values: object) -> str:
    report = room.sync(room.add(address, **values))
    return " ".join(one.reason for one in report.failed)


def test_a_site_is_followed_below_its_address(room: Room, site: Site) -> None:
    site.page("/docs/", "The heron wades.", "a.html", "/docs/b?x=1#part", "/other/", "../up.html")
    site.page("/docs/a.html", "The stork stands.", "deep/c.html", "https://elsewhere.example/")
    site.page("/docs/b?x=1", "The crane calls.")
    site.page("/docs/deep/c.html", "The ibis turns.", "/docs/")
    site.page("/other/", "Not of this site.")
    row = room.add(f"{site.url}/docs/")
    assert room.counts(row) == (4, 0, 0, 0)
    assert not site.asked["/other/", 200]
    assert "src/127.0.0.1/docs/deep/c.html" in room.names()
    site.asked.clear()
    site.page("/docs/deep/c.html", "The ibis returns.", "new.html")
    site.page("/docs/deep/new.html", "A new bird.")
    del site.pages["/docs/a.html"]
    assert room.counts(row) == (1, 1, 2, 1)
    assert site.count(304) == 1  # the address itself is always read
    assert "returns" in room.text("src/127.0.0.1/docs/deep/c.html")
    assert "src/127.0.0.1/docs/a.html" not in room.names()


def test_one_page_is_one_page(room: Room, site: Site) -> None:
    site.page("/a.html", "The heron wades.", "b.html")
    row = room.add(f"{site.url}/a.html")
    assert room.counts(row) == (1, 0, 0, 0) and room.counts(row) == (0, 0, 1, 0)
    del site.pages["/a.html"]
    assert room.counts(row) == (0, 0, 0, 1) and room.names() == []


SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
)


def entry(site: Site, path: str, changed: str) -> str:
    return f"<url><loc>{site.url}{path}</loc><lastmod>{changed}</lastmod></url>"


def test_a_sitemap_says_what_changed(room: Room, site: Site) -> None:
    for name in ("a", "b", "c"):
        site.page(f"/{name}.html", f"Bird {name} sings.")
    both = entry(site, "/a.html", "2026-01-01") + entry(site, "/b.html", "2026-01-01")
    site.pages["/sitemap.xml"] = SITEMAP.format(both).encode()
    row = room.add(f"{site.url}/sitemap.xml")
    assert room.counts(row) == (2, 0, 0, 0)
    site.asked.clear()
    site.page("/b.html", "Bird b is silent.")
    later = entry(site, "/b.html", "2026-02-01") + entry(site, "/c.html", "2026-02-01")
    site.pages["/sitemap.xml"] = SITEMAP.format(later).encode()
    assert room.counts(row) == (1, 1, 0, 1)
    assert room.counts(row) == (0, 0, 2, 0)
    assert not site.asked["/a.html", 200]


def test_a_feed_keeps_what_has_left_it(room: Room, site: Site) -> None:
    feed = "<?xml version='1.0'?><rss><channel>{}</channel></rss>"
    linked = "<item><title>A</title><link>/a.html</link></item>"
    alone = "<item><guid>7</guid><title>B</title><description>A wren &lt;b&gt;sings&lt;/b&gt;"
    site.page("/a.html", "The heron wades.")
    site.pages["/feed"] = feed.format(f"{linked}{alone}</description></item>").encode()
    row = room.add(f"{site.url}/feed")
    assert room.counts(row) == (2, 0, 0, 0)
    site.pages["/feed"] = feed.format(linked).encode()
    assert room.counts(row) == (0, 0, 1, 0) and len(room.names()) == 2


def test_an_entry_without_its_page_is_what_the_feed_says(room: Room, site: Site) -> None:
    item = "<item><title>Bread</title><link>/b.html</link><description>It costs 3 crowns."
    feed = f"<?xml version='1.0'?><rss><channel>{item}</description></item></channel></rss>"
    site.pages["/feed"] = feed.encode()
    row = room.add(f"{site.url}/feed")
    assert room.counts(row) == (1, 0, 0, 0) and room.counts(row) == (0, 0, 1, 0)
    assert "3 crowns" in room.text(room.names()[0])
    site.page("/b.html", "The whole story of bread.")
    assert room.counts(row) == (0, 1, 0, 0)
    assert "whole story" in room.text(room.names()[0]) and len(room.names()) == 1


def test_what_removes_all_is_noted(room: Room, site: Site) -> None:
    site.page("/a.html", "The heron wades.")
    site.pages["/sitemap.xml"] = SITEMAP.format(entry(site, "/a.html", "2026-01-01")).encode()
    row = room.add(f"{site.url}/sitemap.xml")
    assert room.counts(row) == (1, 0, 0, 0)
    site.pages["/sitemap.xml"] = SITEMAP.format("").encode()
    report = room.sync(row)
    assert report.removed == 1 and "1 items are removed" in report.notes[0]


def test_a_file_that_fails_is_not_new(room: Room, site: Site) -> None:
    site.pages["/a.zip"] = (200, {"Content-Type": "application/zip"}, b"PK no archive")
    site.page("/", "The heron wades.", "/a.zip")
    report = room.sync(room.add(f"{site.url}/"))
    assert (report.new, len(report.failed)) == (1, 1)


def test_robots_are_obeyed(room: Room, site: Site) -> None:
    site.pages["/robots.txt"] = b"User-agent: *\nDisallow: /docs/private\n"
    site.page("/docs/", "The heron wades.", "private.html")
    site.page("/docs/private.html", "Not for readers.")
    row = room.add(f"{site.url}/docs/")
    for _ in range(2):
        report = room.sync(row)
        assert (report.failed, row.state) == ([], "ok")
        assert "robots.txt does not allow" in report.left_out[0].reason
    assert not site.asked["/docs/private.html", 200]
    site.pages["/robots.txt"] = (503, {}, b"")
    row = room.add(f"{site.url}/docs/", name="other")
    with pytest.raises(CarrelError, match="does not answer"):
        room.sync(row)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ((302, {"Location": "/bad.html"}, b""), "at most 5 redirects"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "another web address"),
        ((200, {"Content-Encoding": "gzip", "Content-Type": "text/html"}, BOMB), "at most 64 MB"),
        ((200, {"Content-Encoding": "br", "Content-Type": "text/html"}, b"x"), "not asked for"),
        ((200, {"Content-Type": "image/png"}, b"x"), "is not read"),
        ((403, {}, b""), "lets nobody in.*may have expired"),
        ((500, {}, b""), "does not answer"),
        ("endless", "within 0.5 s"),
    ],
)
def test_what_a_server_does_wrong_is_one_line(
    room: Room, site: Site, page: object, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other pages are there."""
    settings = room.session.settings
    changed = {
        **{name: settings.value(name) for name in settings.given()},
        "sources.timeout_s": 0.5,
    }
    room.session.settings = load_settings(changed)[0]
    site.page("/", "The heron wades.", "/bad.html", "/good.html")
    site.page("/good.html", "The crane calls.")
    site.pages["/bad.html"] = page
    report = room.sync(row := room.add(f"{site.url}/"))
    assert len(report.failed) == 1 and "\n" not in report.failed[0].reason
    assert re.search(why, report.failed[0].reason)
    assert report.new == 2 and row.state == "partial"


def test_a_server_that_is_busy_is_asked_again(room: Room, site: Site) -> None:
    settings = room.session.settings
    changed = {**{name: settings.value(name) for name in settings.given()}, "sources.retries": 1}
    room.session.settings = load_settings(changed)[0]
    answers = iter(
        [(429, {"Retry-After": "0"}, b""), (200, {"Content-Type": "text/plain"}, b"Heron.")]
    )
    site.pages["/a.txt"] = lambda: next(answers)
    assert room.counts(room.add(f"{site.url}/a.txt")) == (1, 0, 0, 0)


def test_a_source_that_is_away_ends_soon_and_keeps_what_it_had(room: Room, site: Site) -> None:
    site.page("/", "The heron wades.", *(f"/{number}.html" for number in range(9)))
    for number in range(9):
        site.page(f"/{number}.html", f"Bird {number}.")
    row = room.add(f"{site.url}/")
    assert room.counts(row) == (10, 0, 0, 0)
    for number in range(9):
        site.pages[f"/{number}.html"] = (503, {}, b"")
    site.page("/", "The heron is back.")
    with pytest.raises(CarrelError, match="fails 5 times in a row"):
        room.sync(row)
    assert len(room.names()) == 10 and site.count(503) == 5


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1",
     "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1"],
)  # fmt: skip
def test_addresses_of_the_inside_are_not_public(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(CallerError, match="public address"):
        check_host(address)
    assert is_public("93.184.216.34") and is_public("2606:4700::1111")


def test_every_connection_is_checked(
    room: Room, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads inside by the time of the sync, and a redirect that does."""
    site.page("/a.html", "The heron wades.")
    port = site.url.rpartition(":")[2]
    row = room.add(f"http://localhost:{port}/a.html", private=False)
    with pytest.raises(CallerError, match="public address.*localhost"):
        room.sync(row)
    assert not site.asked


def test_a_redirect_inside_costs_its_page_alone(
    room: Room, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "is_public", lambda text: text == "127.0.0.1")
    site.page("/", "The heron wades.", "/in.html", "/good.html")
    site.page("/good.html", "The crane calls.")
    site.pages["/in.html"] = (302, {"Location": "http://169.254.169.254/latest"}, b"")
    report = room.sync(room.add(f"{site.url}/", private=False))
    assert report.new == 2 and "public address" in report.failed[0].reason


def test_addresses_of_a_link_are_never_allowed() -> None:
    check_host("10.1.2.3", private=True)
    for address in ("169.254.169.254", "fe80::1", "::ffff:169.254.1.1", "fd00:ec2::254"):
        with pytest.raises(CallerError, match="a link is never allowed"):
            check_host(address, private=True)


def test_a_private_source_reaches_its_own_host_alone(room: Room, site: Site) -> None:
    """Neither a redirect nor a sitemap nor a link leads to another machine, or another port."""
    port = site.url.rpartition(":")[2]
    inside = ["http://10.0.0.1/", f"http://localhost:{port}/b.html", "http://127.0.0.1:9/"]
    site.page("/", "The heron wades.", *(f"/{number}.html" for number in range(3)))
    for number, address in enumerate(inside):
        site.pages[f"/{number}.html"] = (302, {"Location": address}, b"")
    report = room.sync(room.add(f"{site.url}/"))
    assert report.new == 1 and len(report.failed) == 3
    assert all("no other" in one.reason for one in report.failed)
    listed = "".join(f"<url><loc>{one}</loc></url>" for one in inside)
    site.pages["/sitemap.xml"] = SITEMAP.format(listed).encode()
    report = room.sync(room.add(f"{site.url}/sitemap.xml", name="map"))
    assert report.new == 0 and len(report.failed) == 3 and not site.asked["/b.html", 200]
    assert network.may_be_private("wiki.lan", 8080, "http://wiki.lan:8080/")
    assert network.may_be_private("www.wiki.lan", 443, "http://wiki.lan:8080/")
    assert not network.may_be_private("wiki.lan", 6379, "http://wiki.lan:8080/")
    assert not network.may_be_private("1.127.0.0.1", 80, "http://127.0.0.1/")


def test_a_secret_is_not_sent_in_the_clear(
    room: Room, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "is_public", lambda text: True)
    monkeypatch.setenv("CARREL_SOURCE_SRC_TOKEN", "s3cret")
    with pytest.raises(CarrelError, match="over TLS alone.*--allow-private"):
        room.sync(room.add(f"{site.url}/a.html", private=False))
    assert not site.asked


def test_secrets_stay_with_their_host(
    room: Room, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "is_public", lambda text: True)
    monkeypatch.setenv("CARREL_SOURCE_SRC_TOKEN", "s3cret")
    port = site.url.rpartition(":")[2]
    site.page("/b.html", "The heron wades.")
    site.pages["/a.html"] = (302, {"Location": f"http://localhost:{port}/b.html"}, b"")
    assert room.counts(room.add(f"{site.url}/a.html")) == (1, 0, 0, 0)
    sent = {(path, value) for path, name, value in site.headers if name == "Authorization"}
    assert ("/a.html", "Bearer s3cret") in sent and ("/b.html", "") in sent
    kept = b"".join(
        path.read_bytes() for path in room.session.store.folder.iterdir() if path.is_file()
    )
    assert b"s3cret" not in kept


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "1 to 2000 printable"),
        ("https://ann:pw@host/", "no secret.*CARREL_SOURCE_SRC_PASSWORD"),
        ("https://host/?api_key=1", "no secret.*'api_key'"),
        ("ftp://host/", "known kind.*imaps://"),
        ("https:///path", "names a host"),
        ("https://host:99999/", "valid URL"),
        ("imaps://host/INBOX", "names its user"),
        ("loader:Alone", "named as module.Class"),
        ("loader:no_such_package.Loader", "is installed.*pip install"),
        ("/no/such/folder", "must exist"),
    ],
)
def test_an_address_is_refused_in_one_line(address: str, why: str) -> None:
    with pytest.raises(CallerError, match=why):
        parse_address("src", address)


def test_a_credential_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_SOURCE_MY_MAIL_PASSWORD", "pw")
    found = find_credential("my-mail", "ann")
    assert (found.user, found.password) == ("ann", "pw") and "pw" not in repr(found)
    assert find_credential("other", "ann").password == ""


def test_a_credential_comes_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    kept = {("carrel-source-mail", "ann"): "from the ring"}

    class Ring(keyring.backend.KeyringBackend):  # type: ignore[misc,name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        assert find_credential("mail", "ann").password == "from the ring"
        assert find_credential("mail", "bob").password == ""
        monkeypatch.setenv("CARREL_SOURCE_MAIL_PASSWORD", "first")
        assert find_credential("mail", "ann").password == "first"
    finally:
        keyring.set_keyring(before)
