"""A server of the protocol of text-embeddings-inference in this process: `embedding_endpoint`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

INFO = {
    "model_id": "intfloat/multilingual-e5-small",
    "model_sha": "fd1525a9fd15316a2d503bf26ab0",
}


class EndpointHandler(BaseHTTPRequestHandler):
    """Answer each text with its length and its number of blanks."""

    def do_GET(self) -> None:
        self._answer(INFO if self.path == "/info" and self.server.tells else None)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        self.server.asked.append((asked, self.headers.get("authorization")))
        rows = [[len(text), text.count(" ") + 1, 1] for text in asked]
        self._answer([] if self.server.broken else rows)

    def _answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200 if value is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


class EndpointServer(ThreadingHTTPServer):
    tells, broken = True, False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), EndpointHandler)
        self.asked: list[tuple[list[str], str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def embedding_endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with EndpointServer() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
