"""Measure a first sync and a re-sync (1 % changed) of files and of a site, with made-up vectors.

python -m benchmarks.syncing FOLDER [--files 10000] [--pages 2000] [--kills 100]

With --kills a process that syncs 300 files and 100 pages is killed by SIGKILL at random moments,
and some of both change after each. What is there is looked at from another process: nothing may be
doubled or torn, and after a sync that ends each item is there once, in its newest wording. The bar
is 0 lost, 0 doubled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import signal
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import app.session
from app.session import Session
from app.syncing import sync_source
from benchmarks.forked import Forked, forked, run_carrel
from benchmarks.ingest_corpus import InstantEmbedder
from benchmarks.truth import faults, open_truth
from core.settings import load_settings
from stores.runlog.sources import SourceRow

WORDS = "heron crane ibis stork wren kestrel marsh tower river reed nest egg wing call".split()


def text(number: int, version: int = 0) -> str:
    """Return about 300 bytes of text that no other number has."""
    words = [
        f"{WORDS[(number * 7 + i * i) % len(WORDS)]} {number}-{i}-{version}" for i in range(20)
    ]
    return f"Bird {number}. " + " ".join(words) + "."


class Pages(ThreadingHTTPServer):
    """Serve pages that link to one another, with ETags."""

    daemon_threads = True
    pages: dict[str, bytes]
    sent = 0


class Handler(BaseHTTPRequestHandler):
    """Answer with a page, or say that it is as it was."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one segment: two would wait 40 ms for each other
    server: Pages

    def log_message(self, *given: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer."""
        body = self.server.pages.get(self.path)
        tag = f'"{hashlib.sha256(body or b"").hexdigest()[:16]}"'
        status = 404 if body is None else 304 if self.headers.get("If-None-Match") == tag else 200
        body = body if status == 200 and body else b""
        self.send_response(status)
        for name, value in (("ETag", tag), ("Content-Type", "text/html")):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def page(number: int, count: int, version: int = 0) -> bytes:
    """Return a page that links to two others: a tree of all."""
    links = [n for n in (2 * number + 1, 2 * number + 2) if n < count]
    made = "".join(f'<a href="p{one}.html">{one}</a> ' for one in links)
    return f"<html><title>Page {number}</title><p>{text(number, version)}</p>{made}</html>".encode()


def measure(session: Session, row: SourceRow, what: str) -> None:
    """Sync, and print the figures."""
    busy = time.process_time()
    found = sync_source(session, row).describe()
    names = ("items", "new", "changed", "unchanged", "removed", "bytes", "seconds")
    own = time.process_time() - busy
    print(
        f"{what:20}", *(f"{name} {found[name]}" for name in names), f"own CPU {own:.1f}", flush=True
    )


def of_files(session: Session, files: Path, count: int) -> None:
    """Measure a folder."""
    files.mkdir(parents=True)
    for number in range(count):
        (files / f"f{number}.md").write_text(text(number))
    session.accounts.sources().add(row := SourceRow("default", "", "files", "files", str(files)))
    measure(session, row, "files, first")
    for number in range(0, count, 100):
        (files / f"f{number}.md").write_text(text(number, 1))
    measure(session, row, "files, 1 % changed")
    measure(session, row, "files, none changed")


def served_site(count: int) -> tuple[Pages, str]:
    """Serve a site of so many pages; return the server and the address."""
    server = Pages(("127.0.0.1", 0), Handler)
    server.pages = {f"/p{n}.html": page(n, count) for n in range(count)}
    server.pages["/"] = server.pages.pop("/p0.html")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def of_site(session: Session, count: int) -> None:
    """Measure a site."""
    server, url = served_site(count)
    row = SourceRow("default", "", "site", "site", url, {"private": True})
    session.accounts.sources().add(row)
    measure(session, row, "site, first")
    for number in range(1, count, 100):
        server.pages[f"/p{number}.html"] = page(number, count, 1)
    measure(session, row, "site, 1 % changed")
    measure(session, row, "site, none changed")


class Killed:
    """Kill syncs of a folder and of a site, and compare what is there with what should be."""

    files, pages = 300, 100

    def __init__(self, work: Path, seed: int) -> None:
        """Make both below `work`."""
        self._draw = random.Random(seed)
        self._work, self._data = work, work / "data"
        self._server, url = served_site(self.pages)
        self._texts: dict[str, str] = {}
        (work / "files").mkdir(parents=True)
        self._version = 0
        self._there: set[str] = set()
        self.problems: list[str] = []
        self.kills = self.ended = 0
        for number in range(self.files):
            self._write(number)
        for number in range(self.pages):
            self._publish(number)
        with Session(load_settings({"data": self._data})[0], create=True) as session:
            rows = session.accounts.sources()
            rows.add(SourceRow("default", "", "files", "files", str(work / "files")))
            rows.add(SourceRow("default", "", "site", "site", url, {"private": True}))

    def run(self, kills: int) -> None:
        """Kill so often; every tenth sync may end."""
        began = time.monotonic()
        self._sync().wait()
        usual = time.monotonic() - began
        self._check("the first sync", ended=True)
        while self.kills < kills:
            for number in self._draw.sample(range(self.files), 6):
                self._write(number)
            for number in self._draw.sample(range(1, self.pages), 2):
                self._publish(number)
            child = self._sync()
            if self._draw.random() < 0.9:
                time.sleep(self._draw.random() * usual)
                child.kill()
            code = child.wait()
            self.kills += code == -signal.SIGKILL
            if code not in (0, -signal.SIGKILL):
                self.problems.append(f"a sync ended with {code}")
            self.ended += code == 0
            self._check(f"kill {self.kills}", ended=code == 0)
        if code := self._sync().wait():
            self.problems.append(f"the last sync ended with {code}")
        self._check("the last sync", ended=True)

    def _write(self, number: int) -> None:
        """Write a file with new words, or delete one that is there."""
        path, name = self._work / "files" / f"f{number}.md", f"files/f{number}.md"
        self._version += 1
        if name in self._texts and self._draw.random() < 0.3:
            path.unlink()
            del self._texts[name]
            return
        self._texts[name] = text(number, self._version)
        path.write_text(self._texts[name])

    def _publish(self, number: int) -> None:
        self._version += 1
        place = f"/p{number}.html" if number else "/"
        self._server.pages[place] = page(number, self.pages, self._version)
        name = f"site/127.0.0.1{place if number else '/index.html'}"
        self._texts[name] = text(number, self._version)

    def _sync(self) -> Forked:
        given = ["source", "sync", "--json", "--data", str(self._data)]
        for change in ("sources.requests_per_s=1000", "segments.min_rows=50"):
            given += ["--set", change]
        return forked(lambda: run_carrel(given, real=False))

    def _check(self, where: str, *, ended: bool) -> None:
        answer = self._work / "answer.json"

        def look() -> int:
            found = faults(self._data, InstantEmbedder.model_id)
            with closing(open_truth(self._data)) as connection:
                rows = connection.execute(
                    "SELECT d.document_id, c.text FROM documents d JOIN chunks c"
                    " ON c.document = d.id"
                ).fetchall()
            texts: dict[str, str] = {}
            for row in rows:
                texts[row[0]] = texts.get(row[0], "") + row[1]
            found += [f"vanished: {name}" for name in self._there & set(self._texts) - set(texts)]
            if ended:
                wanted = self._texts.items()
                found += [f"lost: {name}" for name, one in wanted if one not in texts.get(name, "")]
                found += [f"not gone: {name}" for name in set(texts) - set(self._texts)]
            answer.write_text(json.dumps([found, sorted(texts)]))
            return 0

        answer.unlink(missing_ok=True)
        forked(look).wait()
        if not answer.exists():
            self.problems.append(f"{where}: it cannot be opened")
            return
        found, there = json.loads(answer.read_text())
        self._there = set(there)
        self.problems += [f"{where}: {one}" for one in found]


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0, help="kill instead of measuring")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    app.session.open_embedder = lambda settings: InstantEmbedder()
    if given.kills:
        killed = Killed(given.folder, given.seed)
        killed.run(given.kills)
        print(f"{killed.kills} kills, {killed.ended} ended, {len(killed.problems)} problems")
        print(*killed.problems, sep="\n")
        raise SystemExit(bool(killed.problems))
    values = {"data": given.folder / "data", "sources.requests_per_s": 1000}
    with Session(load_settings(values)[0], create=True) as session:
        of_files(session, given.folder / "files", given.files)
        of_site(session, given.pages)


if __name__ == "__main__":
    main()
