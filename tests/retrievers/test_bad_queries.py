"""Queries nobody should send, through every pipeline: an answer or a reason, never an exception."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from retrievers.pipelines import PIPELINES, run_pipeline
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.store import Store

ANN = AuthContext(tenant="acme")
TEXTS = {
    "en": "What is this? It is the harbour, and that is where it was.",
    "ru": "Гавань открыта весь год, и это не изменится.",
    "zh": "港口全年开放,这不会改变。",
    "code": 'Call harbour.open(port=80) or use SELECT * FROM harbours; -- "quoted"',
}
QUERIES = [
    "a",
    "港",
    "я",
    "?",
    "the of and is it",
    "и в на не это",
    "的 了 是",
    "harbour " * 10_000,
    " ".join(f"word{n}" for n in range(10_000)),
    "harbour гавань 港口 open открыта 开放",
    "😀😀😀",
    "harbour 😀",
    '"harbour',
    'NEAR("harbour" "open", 5)',
    "harbour* AND -open OR col:open ^harbour {a b}:c",
    "'; DROP TABLE chunks; --",
    "SELECT * FROM documents WHERE 1=1",
    "har\x00bour",
    "\x00",
    "\ud800",
    "\u202eharbour\u202c",
    " \t\n ",
    "x" * 100_000,
]


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [document(collection, name, text, language=name) for name, text in TEXTS.items()]
    write(store, collection, rows, embedder)
    return collection


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("text", QUERIES, ids=lambda text: ascii(text[:20]))
def test_an_odd_query_finds_something_or_says_why(
    store: Store, filled: Collection, index: Callable[..., Index], pipeline: str, text: str
) -> None:
    version = store.catalogue.index_version()
    found = run_pipeline(index(), Query(text, ANN), pipeline, 5)
    assert found.evidence or any("nothing found" in note for note in found.notes)
    assert len({item.chunk_id for item in found.evidence}) == len(found.evidence) <= 5
    assert store.catalogue.index_version() == version


@pytest.mark.parametrize("text", ["harbour " * 10_000, "harbour 😀", '"harbour', "harbour*"])
def test_the_words_of_an_odd_query_are_found(
    filled: Collection, index: Callable[..., Index], text: str
) -> None:
    found = run_pipeline(index(), Query(text, ANN), "keyword", 5)
    assert {item.document_id for item in found.evidence} >= {"en"}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_empty_collection_says_so(index: Callable[..., Index], pipeline: str) -> None:
    found = run_pipeline(index(), Query("harbour", ANN), pipeline, 5)
    assert found.evidence == []
    assert any("no document here" in note for note in found.notes)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_another_tenant_is_told_nothing_of_what_there_is(
    filled: Collection, index: Callable[..., Index], pipeline: str
) -> None:
    stranger = AuthContext(tenant="rival")
    found = run_pipeline(index(), Query("harbour", stranger), pipeline, 5)
    assert found.evidence == []
    assert any("no document here" in note for note in found.notes)
