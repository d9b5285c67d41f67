"""A small web server on loopback, with ETags and all that a server can do wrong."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Site:
    """Hold pages by path: bytes, or (status, headers, bytes); and count what was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.rest: Any = None  # what all other paths give
        self.asked: Counter[tuple[str, int]] = Counter()
        self.headers: list[tuple[str, str, str]] = []  # path, header, value
        self.url = ""

    def page(self, path: str, text: str, *links: str) -> None:
        made = "".join(f'<p><a class="x" href="{link}">more</a></p>' for link in links)
        html = f"<html><head><title>{path}</title></head><body><p>{text}</p>{made}</body></html>"
        self.pages[path] = html.encode()

    def count(self, status: int) -> int:
        return sum(n for (path, code), n in self.asked.items() if code == status)


BOMB = gzip.compress(bytes(80 * 2**20), 9)  # 80 MB of nothing in 80 kB


def handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *given: object) -> None:
            pass

        def do_GET(self) -> None:
            for name in ("Authorization", "Host"):
                site.headers.append((self.path, name, self.headers.get(name, "")))
            found = site.pages.get(self.path, site.rest)
            if found is None:
                self._answer(404, {}, b"no such page")
            elif isinstance(found, bytes):
                tag = f'"{hashlib.sha256(found).hexdigest()[:16]}"'
                if self.headers.get("If-None-Match") == tag:
                    self._answer(304, {"ETag": tag}, b"")
                else:
                    kind = "application/xml" if found.startswith(b"<?xml") else "text/html"
                    self._answer(200, {"ETag": tag, "Content-Type": kind}, found)
            elif found == "endless":
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b"x" * 100)
                        time.sleep(0.05)
                except OSError:
                    self.close_connection = True
            elif callable(found):
                self._answer(*found())
            else:
                self._answer(*found)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            site.asked[self.path, status] += 1
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(made))
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()
