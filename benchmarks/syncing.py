"""Measure a first sync and a re-sync with 1 % changed, of files and of a local site.

python -m benchmarks.syncing FOLDER [--files 2000] [--pages 500]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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


def carrel(data: Path, *arguments: str) -> dict[str, object]:
    """Run a command and return what it printed."""
    command = [sys.executable, "-m", "carrel", "source", *arguments, "--data", str(data), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def report(what: str, found: dict[str, object]) -> None:
    """Print the figures of one sync."""
    names = ("items", "new", "changed", "unchanged", "removed", "bytes", "seconds")
    print(f"{what:24}", *(f"{name} {found[name]}" for name in names), flush=True)


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=500)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    files, data = given.folder / "files", given.folder / "data"
    files.mkdir(parents=True)
    for number in range(given.files):
        (files / f"f{number}.md").write_text(text(number))
    carrel(data, "add", "files", str(files), "-c", "files")
    report("files, first", carrel(data, "sync", "files"))
    for number in range(0, given.files, 100):
        (files / f"f{number}.md").write_text(text(number, 1))
    report("files, 1 % changed", carrel(data, "sync", "files"))
    report("files, none changed", carrel(data, "sync", "files"))
    server = Pages(("127.0.0.1", 0), Handler)
    server.pages = {f"/p{n}.html": page(n, given.pages) for n in range(given.pages)}
    server.pages["/"] = server.pages["/p0.html"]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    carrel(data, "add", "site", url, "-c", "site", "--allow-private")
    fast = ("--set", "sources.requests_per_s=1000")
    report("site, first", carrel(data, "sync", "site", *fast))
    for number in range(0, given.pages, 100):
        server.pages[f"/p{number}.html"] = page(number, given.pages, 1)
    report("site, 1 % changed", carrel(data, "sync", "site", *fast))
    report("site, none changed", carrel(data, "sync", "site", *fast))


if __name__ == "__main__":
    main()
