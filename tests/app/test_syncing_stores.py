"""Repositories, mailboxes, stores and loaders, each against a real server or process."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from local_web import Site
from store_servers import Mailbox, Tls, bucket, git_http, imap, webdav
from syncs import Room

from core.errors import CallerError, CarrelError
from core.settings import load_settings
from ingest.connectors.address import parse_address
from ingest.connectors.opening import check_source


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "served" / "repo"
    (made / "docs").mkdir(parents=True)
    git(made, "init", "-q", "-b", "main")
    git(made, "config", "uploadpack.allowFilter", "true")
    git(made, "config", "uploadpack.allowAnySHA1InWant", "true")
    (made / "read.md").write_text("The heron wades.\n")
    (made / "docs" / "b.txt").write_text("The crane calls.\n" * 2000)
    (made / "code.bin").write_bytes(b"\0" * 10)
    (made / "leak.md").symlink_to("/etc/passwd")
    commit(made)
    return made


@pytest.mark.parametrize("form", ["git+file://{}", "{}/.git"])
def test_a_local_repository(room: Room, repository: Path, form: str) -> None:
    row = room.add(form.format(repository))
    assert room.counts(row) == (2, 0, 0, 0)
    assert room.names() == ["src/docs/b.txt", "src/read.md"]
    (repository / "read.md").write_text("Not committed yet.\n")
    assert room.counts(row) == (0, 0, 2, 0)
    (repository / "docs" / "b.txt").unlink()
    commit(repository)
    assert room.counts(row) == (0, 1, 0, 1)


def test_a_remote_repository_sends_what_changed(room: Room, repository: Path) -> None:
    sent: list[int] = []
    with git_http(repository.parent, sent) as port:
        row = room.add(f"git+http://127.0.0.1:{port}/repo")
        assert room.counts(row) == (2, 0, 0, 0)
        sent.clear()
        assert room.counts(row) == (0, 0, 2, 0)
        (repository / "read.md").write_text("The heron flies.\n")
        commit(repository)
        report = room.sync(row)
        assert (report.changed, report.unchanged, report.bytes) == (1, 1, 17)
        assert not list((room.session.store.folder / "sources").iterdir())
        for path, why in (("moved/repo", "has moved"), ("absent", "renamed|moved|check")):
            with pytest.raises(CarrelError, match=f"git fails.*{why}"):
                room.sync(room.add(f"git+http://127.0.0.1:{port}/{path}", name=path[:5]))
        inside = room.add(f"git+http://localhost:{port}/repo", name="in", private=False)
        with pytest.raises(CarrelError, match="public address"):
            room.sync(inside)


def message(text: str) -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "bea@example.org", "ann@example.org", text
    made.set_content(f"{text}\n")
    return made.as_bytes()


def test_a_mailbox(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Mailbox()
    box.messages = {4: message("The heron wades."), 9: message("The crane calls.")}
    with imap(box) as port:
        row = room.add(f"imap://ann@127.0.0.1:{port}/Archive")
        with pytest.raises(CarrelError, match="needs a password.*_PASSWORD"):
            room.sync(row)
        monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "expired")
        with pytest.raises(CarrelError, match="does not open.*may have expired"):
            room.sync(row)
        monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "pw")
        assert room.counts(row) == (2, 0, 0, 0)
        del box.messages[4]
        box.messages[11] = message("The ibis turns.")
        box.fetched.clear()
        assert room.counts(row) == (1, 0, 1, 1) and box.fetched == [11]
        assert room.names() == ["src/11.eml", "src/9.eml"]
        box.validity = 8  # the numbers mean other messages now
        assert room.counts(row) == (0, 0, 2, 0)
        other = room.add(f"imap://ann@127.0.0.1:{port}/Absent", name="other")
        monkeypatch.setenv("CARREL_SOURCE_OTHER_PASSWORD", "pw")
        with pytest.raises(CarrelError, match="no such folder"):
            room.sync(other)


class Flood(Mailbox):
    """Answer a fetch with a literal, or with lines, that would fill any memory."""

    literal = True

    def _fetch(self, rest: str) -> Iterator[bytes]:
        if "RFC822.SIZE" in rest:
            yield from super()._fetch(rest)
        elif self.literal:
            yield b"* 1 FETCH (UID 4 BODY[] {99999999999}\r\n"
        else:
            yield from itertools.repeat(b"* 1 FETCH (FLAGS (" + b"x" * 9000 + b"))\r\n")


@pytest.mark.parametrize("literal", [True, False])
def test_a_mailbox_that_floods_is_one_line(
    room: Room, monkeypatch: pytest.MonkeyPatch, literal: bool
) -> None:
    box = Flood()
    box.literal, box.messages = literal, {4: message("The heron wades.")}
    monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "pw")
    with imap(box) as port:
        report = room.sync(room.add(f"imap://ann@127.0.0.1:{port}/Archive"))
    assert report.new == 0 and "more than 65 MB" in report.failed[0].reason


@pytest.mark.parametrize("form", ["imaps", "imap"])
def test_a_mailbox_over_tls(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    box, tls = Mailbox(), Tls(tmp_path)
    box.messages, box.offers = {4: message("The heron wades.")}, b"STARTTLS"
    monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "pw")
    with imap(box, tls, at_once=form == "imaps") as port:
        row = room.add(f"{form}://ann@localhost:{port}/Archive")
        with pytest.raises(CarrelError, match="(?i)does not open.*certificate"):
            room.sync(row)
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.file))
        assert room.counts(row) == (1, 0, 0, 0)


def test_a_webdav_folder_over_tls(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "shared").mkdir()
    (folder / "a.md").write_text("The heron wades.")
    monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "pw")
    tls = Tls(tmp_path)
    with webdav(folder, tls) as port:
        row = room.add(f"webdavs://ann@localhost:{port}/dav")
        with pytest.raises(CarrelError, match="(?i)does not answer.*certificate"):
            room.sync(row)
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.file))
        assert room.counts(row) == (1, 0, 0, 0)
        named = room.add(f"webdavs://ann@127.0.0.1:{port}/dav", name="named")
        with pytest.raises(CarrelError, match="(?i)certificate"):  # of another name
            room.sync(named)


def test_a_store_without_an_end_is_one_line(room: Room, site: Site) -> None:
    settings = room.session.settings
    changed = {**{name: settings.value(name) for name in settings.given()}, "sources.max_items": 9}
    room.session.settings = load_settings(changed)[0]
    made = itertools.count()
    token = "<NextContinuationToken>{}</NextContinuationToken>"
    site.rest = lambda: (200, {}, f"<L>{token.format(next(made))}</L>".encode())
    row = room.add(f"s3://papers/?endpoint={site.url}")
    with pytest.raises(CarrelError, match=r"listed in 9 requests at most \(sources.max_items\)"):
        room.sync(row)


def test_a_webdav_folder(room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared"
    (folder / "deep place").mkdir(parents=True)
    (folder / "a.md").write_text("The heron wades.")
    (folder / "deep place" / "б.txt").write_text("The crane calls.")
    monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "pw")
    with webdav(folder) as port:
        row = room.add(f"webdav://ann@127.0.0.1:{port}/dav")
        assert room.counts(row) == (2, 0, 0, 0)
        assert room.names() == ["src/a.md", "src/deep place/б.txt"]
        (folder / "a.md").write_text("The heron flies away.")
        (folder / "deep place" / "б.txt").unlink()
        report = room.sync(row)
        assert (report.changed, report.removed) == (1, 1)
        monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "expired")
        with pytest.raises(CarrelError, match="lets nobody in.*may have expired"):
            room.sync(row)
    assert room.names() == ["src/a.md"]


def test_a_bucket(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = {f"notes/{name}": f"Bird {name}.".encode() for name in ("a b.md", "c.txt", "d.md")}
    objects["elsewhere.md"] = b"Not below the prefix."
    asked: list[str] = []
    monkeypatch.setenv("CARREL_SOURCE_SRC_PASSWORD", "secret")
    with bucket(objects, asked) as port:
        row = room.add(f"s3://KEY@papers/notes/?endpoint=http://127.0.0.1:{port}")
        assert room.counts(row) == (3, 0, 0, 0)
        objects["notes/c.txt"] = b"Bird c flies."
        del objects["notes/d.md"]
        asked.clear()
        assert room.counts(row) == (0, 1, 1, 1)
        assert asked == ["/papers", "/papers/notes/c.txt"]
        monkeypatch.delenv("CARREL_SOURCE_SRC_PASSWORD")
        with pytest.raises(CarrelError, match="secret key"):
            room.sync(row)


LOADERS = """
import os, socket, subprocess, sys, time
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

class Good(BaseLoader):
    def __init__(self, count, token=""):
        self.count, self.token = count, token
    def lazy_load(self):
        print("what loaders print")
        os.write(1, b"goes nowhere")
        for number in range(self.count):
            found = {"source": f"bird {number}", "title": f"Bird {number}"}
            yield Document(f"Bird {number} sings.", metadata=found)

class Leaking(Good):
    def lazy_load(self):
        raise ValueError(f"401 for {self.token}")
        yield

class Hanging(Good):
    def lazy_load(self):
        yield Document("Bird 0 sings.", metadata={"source": "bird 0"})
        time.sleep(60)

class Endless(Good):
    def lazy_load(self):
        number = 0
        while True:
            number += 1
            yield Document(f"Bird {number} sings.", metadata={"source": str(number)})

class Slow(Good):
    def lazy_load(self):
        for one in Endless(1).lazy_load():
            time.sleep(0.1)
            yield one

class Hungry(Good):
    def lazy_load(self):
        kept = []
        while True:
            kept.append(bytearray(50_000_000))
        yield

class Garbling(Good):
    def lazy_load(self):
        for number in range(3, 20):
            try:
                os.write(number, b"no JSON" + bytes([10]))
            except OSError:
                pass
        yield

class Breaking(Good):
    def lazy_load(self):
        yield Document("Bird 0 sings.", metadata={"source": "bird 0"})
        raise ValueError("page 2 is away")

class Forking(Good):
    def lazy_load(self):
        os.fork()
        yield

class Starting(Good):
    def lazy_load(self):
        subprocess.run(["true"])
        yield

class Reading(Good):
    def lazy_load(self):
        yield Document(open("/etc/passwd").read())

class Inside(Good):
    def lazy_load(self):
        socket.create_connection(("127.0.0.1", 9))
        yield

class Ending(Good):
    def lazy_load(self):
        os._exit(3)
        yield
"""


@pytest.fixture
def loaders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "own_loaders.py").write_text(LOADERS)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    given = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "lib"), given]))
    return "loader:own_loaders"


def test_a_loader_of_langchain(room: Room, loaders: str) -> None:
    row = room.add(f"{loaders}.Good", parameters={"count": 3})
    assert room.counts(row) == (3, 0, 0, 0)
    assert room.counts(row) == (0, 0, 3, 0)
    assert any("bird-1" in name for name in room.names())
    row.options["parameters"]["count"] = 2
    assert room.counts(row) == (0, 0, 2, 1)


def test_what_came_before_a_loader_failed_stays(room: Room, loaders: str) -> None:
    row = room.add(f"{loaders}.Breaking", parameters={"count": 1})
    with pytest.raises(CarrelError, match="page 2 is away"):
        room.sync(row)
    assert len(room.names()) == 1


@pytest.mark.parametrize(
    ("dotted", "parameters", "why"),
    [
        ("own_loaders.Absent", {}, "has no attribute 'Absent'"),
        ("os.system", {}, "system is no document loader"),
        ("own_loaders.Good", {}, "missing a required argument: 'count'"),
        ("own_loaders.Good", {"count": 1, "wings": 2}, "unexpected keyword argument 'wings'"),
        ("own_loaders.Good", {"count": "env:NO_SUCH_BIRD"}, "environment variable: NO_SUCH_BIRD"),
        ("own_loaders.nowhere.Good", {}, "No module named"),
    ],
)
def test_a_loader_is_checked_before_it_is_added(
    room: Room, loaders: str, dotted: str, parameters: dict[str, object], why: str
) -> None:
    options = {"private": False, "parameters": parameters}
    settings = room.session.settings
    with pytest.raises(CallerError, match=why):
        check_source("src", parse_address("src", f"loader:{dotted}"), settings, options)
    right = {"private": False, "parameters": {"count": 1}}
    assert check_source("src", parse_address("src", f"{loaders}.Hanging"), settings, right) == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Leaking", r"loader fails.*401 for …"),
        ("Hanging", r"ends within 4 s \(sources.loader_timeout_s\): .*after 1 documents"),
        ("Endless", r"at most 500 documents \(sources.max_items\)"),
        ("Slow", r"ends within 4 s \(sources.loader_timeout_s\).*Nothing of this run"),
        ("Hungry", "MemoryError|ended before"),
        ("Garbling", "its answer cannot be read"),
        ("Forking", "may not call os.fork"),
        ("Starting", "may not call subprocess"),
        ("Reading", "may not open another file"),
        ("Inside", "may not connect to 127.0.0.1"),
        ("Ending", "ended before it was done"),
        ("Absent", "has no attribute 'Absent'"),
    ],
)
def test_a_loader_that_misbehaves_is_one_line(
    room: Room, loaders: str, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    settings = room.session.settings
    given = {one: settings.value(one) for one in settings.given()}
    given |= {"sources.loader_timeout_s": 4, "sources.max_items": 500}
    given |= {"ingest.parse_memory_mb": 512}
    room.session.settings = load_settings(given)[0]
    monkeypatch.setenv("BIRD_TOKEN", "t0psecret")
    parameters = {"count": 1, "token": "env:BIRD_TOKEN"}
    row = room.add(f"{loaders}.{name}", parameters=parameters, private=False)
    started = time.monotonic()
    with pytest.raises(CarrelError, match=why) as caught:
        room.sync(row)
    assert "\n" not in str(caught.value) and time.monotonic() - started < 30
    assert room.names() == []
