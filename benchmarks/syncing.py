"""Measure a first sync and a re-sync (1 % changed) of files and of a site, with made-up vectors.

python -m benchmarks.syncing FOLDER [--files 2000] [--pages 500]
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import app.session
from app.session import Session
from app.syncing import sync_source
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


class MadeUpEmbedder:
    """Embed by hashing: what is measured is the sync, not a model."""

    languages = None
    dimension = 64
    model_id = "made-up"

    def similarity(self, cosine: float, *languages: str) -> float:
        """Return the cosine."""
        return max(0.0, cosine)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return one random unit vector a text."""
        rows = np.array([self.embed_query(one) for one in texts], dtype=np.float32)
        return rows.reshape(len(texts), self.dimension)

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a text."""
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        found = np.random.default_rng(seed).standard_normal(self.dimension)
        return (found / np.linalg.norm(found)).astype(np.float32)


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


def of_site(session: Session, count: int) -> None:
    """Measure a site."""
    server = Pages(("127.0.0.1", 0), Handler)
    server.pages = {f"/p{n}.html": page(n, count) for n in range(count)}
    server.pages["/"] = server.pages.pop("/p0.html")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    row = SourceRow("default", "", "site", "site", url, {"private": True})
    session.accounts.sources().add(row)
    measure(session, row, "site, first")
    for number in range(1, count, 100):
        server.pages[f"/p{number}.html"] = page(number, count, 1)
    measure(session, row, "site, 1 % changed")
    measure(session, row, "site, none changed")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=500)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    app.session.open_embedder = lambda settings: MadeUpEmbedder()
    values = {"data": given.folder / "data", "sources.requests_per_s": 1000}
    with Session(load_settings(values)[0], create=True) as session:
        of_files(session, given.folder / "files", given.files)
        of_site(session, given.pages)


if __name__ == "__main__":
    main()
