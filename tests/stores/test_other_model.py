"""Vectors of two models are never mixed, and nothing unpickles."""

from __future__ import annotations

import re
from pathlib import Path

from fakes import FakeEmbedder, Shelf, write

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("core", "models", "stores", "ingest", "retrievers", "tools", "reasoning", "graph", "app")


def test_a_collection_knows_the_models_of_its_vectors(shelf: Shelf) -> None:
    assert shelf.search.models(shelf.id) == ()
    other = FakeEmbedder(model_id="other")
    write(shelf.store, shelf.collection, [shelf.row("a", "some text")], other)
    assert shelf.search.models(shelf.id) == ("other",)
    shelf.write(shelf.row("b", "more text"))
    assert shelf.search.models(shelf.id) == (shelf.embedder.model_id,)


def test_no_code_of_a_model_or_a_pickle_is_ever_run() -> None:
    bad = re.compile(
        r"trust_remote_code\s*=\s*True|allow_pickle\s*=\s*True"
        r"|^\s*(?:import|from) (?:c?pickle|dill)\b|torch\.load\(",
        re.MULTILINE,
    )
    found = [
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if bad.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
