"""A model hub on loopback that counts what it sends and can break off, refuse or lie.

with stub_hub({("acme/Tiny-GGUF", "tiny.gguf"): data}) as hub:
    ...  # HF_ENDPOINT = hub.url
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0" * 40
RESOLVE = re.compile(r"/([\w.-]+/[\w.-]+)/resolve/[^/]+/(.+)")
MODEL = re.compile(r"/api/models/([\w.-]+/[\w.-]+?)(?:/revision/[^/]+)?(?:\?.*)?")


@dataclass
class StubHub:
    """Say how the hub behaves, and what it has been asked.

    `cut_after`: bytes after which a body breaks off; `status`: answer to every request, 0 as usual;
    `ranges`: whether it can send parts; `digests`: whether it announces any; `announces`: the
    digest it claims instead of the right one; `page`: what it says of every repository.
    """

    files: Mapping[tuple[str, str], bytes]
    url: str = ""
    cut_after: int | None = None
    status: int = 0
    ranges: bool = True
    digests: bool = True
    announces: str = ""
    page: bytes = b""
    sent: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def stub_hub(files: Mapping[tuple[str, str], bytes]) -> Iterator[StubHub]:
    """Serve the files, by repository and name, on a free port."""
    hub = StubHub(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(hub: StubHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            hub.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
            file, model = RESOLVE.fullmatch(self.path), MODEL.fullmatch(self.path)
            data = hub.files.get((file[1], file[2])) if file else None
            if hub.status or (data is None and not model):
                self.reply(hub.status or 404, {"Content-Length": "0"})
            elif data is not None:
                self.give(data, body)
            elif model:
                self.describe(model[1])

        def describe(self, repository: str) -> None:
            names = sorted(name for owner, name in hub.files if owner == repository)
            siblings = [describe_file(name, hub.files[repository, name]) for name in names]
            listing = {"id": repository, "sha": COMMIT, "siblings": siblings}
            text = hub.page or json.dumps(listing).encode()
            self.reply(200, {"Content-Length": str(len(text)), "Content-Type": "application/json"})
            self.wfile.write(text)

        def give(self, data: bytes, body: bool) -> None:
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(found[1]) if found and hub.ranges else 0
            self.reply(206 if start else 200, headers_of(hub, data, start))
            if not body:
                return
            part = data[start:] if hub.cut_after is None else data[start : start + hub.cut_after]
            hub.sent += len(part)  # before the client can have it and look
            self.wfile.write(part)
            if len(part) < len(data) - start:
                self.close_connection = True

        def reply(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def headers_of(hub: StubHub, data: bytes, start: int) -> dict[str, str]:
    """Return what the hub says with a file, from a byte on."""
    digest = hub.announces or hashlib.sha256(data).hexdigest()
    headers = {"Content-Length": str(len(data) - start), "X-Repo-Commit": COMMIT}
    if hub.digests:
        headers |= {"ETag": f'"{digest}"', "X-Linked-Etag": f'"{digest}"'}
        headers["X-Linked-Size"] = str(len(data))
    else:
        headers["ETag"] = '"some-name"'
    if start:
        headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
    return headers


def describe_file(name: str, data: bytes) -> dict[str, object]:
    """Return what a repository's listing says of a file; weights are large files."""
    described: dict[str, object] = {"rfilename": name, "size": len(data)}
    if not name.endswith((".json", ".txt")):
        sha256 = hashlib.sha256(data).hexdigest()
        described["lfs"] = {"size": len(data), "sha256": sha256, "pointerSize": 130}
    return described
