"""Vectors of two models are never mixed, and nothing unpickles."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from fakes import FakeEmbedder, document, write

from stores.store import Store

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "core",
    "models",
    "stores",
    "ingest",
    "retrievers",
    "tools",
    "reasoning",
    "graph",
    "app",
)


def test_a_collection_knows_the_models_of_its_vectors(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    store = open_store()
    collection = store.intake.open_collection("acme", "main", None)
    assert store.search.models(collection.id) == ()
    other = FakeEmbedder(model_id="other")
    write(store, collection, [document(collection, "a", "some text")], other)
    assert store.search.models(collection.id) == ("other",)
    write(store, collection, [document(collection, "b", "more text")], embedder)
    assert store.search.models(collection.id) == (embedder.model_id,)


def test_no_code_of_a_model_or_a_pickle_is_ever_run() -> None:
    bad = re.compile(
        r"trust_remote_code\s*=\s*True|allow_pickle\s*=\s*True"
        r"|^\s*(?:import|from) (?:c?pickle|dill)\b|torch\.load\(",
        re.MULTILINE,
    )
    found = [
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if bad.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
