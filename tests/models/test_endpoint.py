"""An embedding endpoint: a server of the protocol of text-embeddings-inference, in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ModelError
from models.embeddings import Embedder, load_embedder

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
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with EndpointServer() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def opened(server: EndpointServer, tmp_path: Path, **values: Any) -> Embedder:
    given = {"cache_dir": tmp_path, "threads": 1, "batch_size": 2, **values}
    return load_embedder(server.url, **given)


def test_texts_are_sent_in_batches_under_the_prompts_of_the_model(
    server: EndpointServer, tmp_path: Path
) -> None:
    embedder = opened(server, tmp_path)
    assert embedder.dimension == 3
    assert embedder.languages is None
    server.asked.clear()
    rows = embedder.embed_documents(["a b", "c", "d", "half \ud800"])
    query = embedder.embed_query("a b")
    sent = [texts for texts, _ in server.asked]
    assert sent == [
        ["passage: a b", "passage: c"], ["passage: d", "passage: half ?"], ["query: a b"]
    ]  # fmt: skip
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert query == pytest.approx(np.array([10, 3, 1]) / np.sqrt(110), abs=1e-6)
    assert embedder.embed_documents([]).shape == (0, 3)


def test_the_token_of_the_hub_goes_to_no_other_server(
    server: EndpointServer, tmp_path: Path
) -> None:
    opened(server, tmp_path).embed_query("a")
    assert {token for _, token in server.asked} == {""}


def test_the_model_is_named_by_what_the_server_says_of_it(
    server: EndpointServer, tmp_path: Path
) -> None:
    named = opened(server, tmp_path).model_id
    assert named.startswith("multilingual-e5-small@")
    assert opened(server, tmp_path).model_id == named
    server.tells = False
    other = opened(server, tmp_path).model_id
    assert other.startswith(f"127.0.0.1:{server.server_port}@")


def test_a_server_that_fails_or_is_away_is_one_line(server: EndpointServer, tmp_path: Path) -> None:
    embedder = opened(server, tmp_path)
    server.broken = True
    with pytest.raises(ModelError, match="one row per text"):
        embedder.embed_documents(["a", "b"])
    with pytest.raises(ModelError, match="See whether the endpoint runs") as raised:
        load_embedder("http://127.0.0.1:9", cache_dir=tmp_path, threads=1, batch_size=2)
    assert "\n" not in str(raised.value)
