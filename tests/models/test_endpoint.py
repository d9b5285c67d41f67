"""An embedding endpoint: a server of the protocol of text-embeddings-inference, in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from embedding_endpoints import EndpointServer
from tiny_models import embedder_of

from core.errors import ModelError
from models.embeddings import Embedder


@pytest.fixture
def server(embedding_endpoint: EndpointServer) -> EndpointServer:
    return embedding_endpoint


def opened(server: EndpointServer, tmp_path: Path) -> Embedder:
    return embedder_of(server.url, tmp_path)


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
        embedder_of("http://127.0.0.1:9", tmp_path)
    assert "\n" not in str(raised.value)
