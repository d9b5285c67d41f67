"""The channels together: which of them speak, and what their evidence carries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.settings import Settings
from core.types import Evidence
from retrievers.fusion import TEXT, VECTOR, serves
from retrievers.hybrid import hybrid_search
from retrievers.pipelines import classic_search, elect
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.store import Store

ANN = AuthContext(tenant="acme")
LIMITS = {VECTOR: 5, TEXT: 5}
RUSSIAN = "Где находится гавань и когда она открыта?"
ENGLISH = "Where is the harbour and when is it open?"


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    texts = {"a": "the harbour is open", "b": "гавань открыта", "c": "a quiet forest"}
    rows = [document(collection, name, text) for name, text in texts.items()]
    write(store, collection, rows, embedder)
    return collection


def speaking(store: Store, collection: Collection, languages: frozenset[str] | None) -> Index:
    return Index(store, collection, FakeEmbedder(languages), Settings(data=store.folder))


@pytest.mark.parametrize(
    ("languages", "text", "served"),
    [
        (None, RUSSIAN, True),
        (frozenset({"en"}), ENGLISH, True),
        (frozenset({"en"}), RUSSIAN, False),
        (frozenset({"en", "ru"}), RUSSIAN, True),
        (frozenset({"en"}), "12345", True),
    ],
)
def test_an_embedder_serves_its_languages(store, filled, languages, text, served) -> None:
    assert serves(speaking(store, filled, languages), Query(text, ANN)) is served


@pytest.mark.parametrize(("language", "served"), [("en", True), ("ru", False), (None, False)])
def test_a_language_that_is_known_already_is_believed(store, filled, language, served) -> None:
    english = speaking(store, filled, frozenset({"en"}))
    assert serves(english, Query(RUSSIAN, ANN, language=language)) is served


def test_a_channel_that_cannot_read_the_question_is_left_out(store, filled) -> None:
    english = speaking(store, filled, frozenset({"en"}))
    found = hybrid_search(english, Query(RUSSIAN, ANN), [VECTOR, TEXT], LIMITS, 5)
    assert {name for item in found.evidence for name in item.scores} == {TEXT}
    assert found.notes
    found = hybrid_search(english, Query(ENGLISH, ANN), [VECTOR, TEXT], LIMITS, 5)
    assert {name for item in found.evidence for name in item.scores} == {TEXT, VECTOR}
    assert not found.notes


def test_evidence_carries_its_query_and_the_scores_of_each_channel(
    store: Store, filled: Collection, index: Callable[..., Index]
) -> None:
    query = Query("the harbour is open", ANN)
    found = hybrid_search(index(), query, [VECTOR, TEXT], LIMITS, 5)
    best = found.evidence[0]
    assert (best.document_id, best.query) == ("a", query.text)
    assert best.score == max(item.score for item in found.evidence)
    assert best.scores[VECTOR] == pytest.approx(1.0, abs=1e-5)
    assert best.scores[TEXT] > 0


def test_one_channel_keeps_its_own_scores(
    store: Store, filled: Collection, index: Callable[..., Index]
) -> None:
    query = Query("the harbour", ANN)
    found = hybrid_search(index(), query, [VECTOR], LIMITS, 5)
    assert [item.score for item in found.evidence] == [
        item.scores[VECTOR] for item in found.evidence
    ]


def test_a_search_by_scope_finds_nothing_outside(
    store: Store, filled: Collection, index: Callable[..., Index]
) -> None:
    found = hybrid_search(index(), Query("harbour", ANN, ("c",)), [VECTOR, TEXT], LIMITS, 5)
    assert {item.document_id for item in found.evidence} <= {"c"}


def evidence(document_id: str, score: float) -> Evidence:
    return Evidence(
        evidence_id=f"{document_id}{score}",
        chunk_id=f"{document_id}{score}",
        document_id=document_id,
        document_key=f"key-{document_id}",
        source=document_id,
        title="",
        text="",
        score=score,
    )


@pytest.mark.parametrize(
    ("hits", "winner"),
    [
        ([("a", 0.9)], "a"),
        ([("a", 0.9), ("b", 0.2), ("b", 0.1)], "b"),
        ([("a", 0.5), ("b", 0.6), ("a", 0.4), ("b", 0.4)], "b"),
        ([("b", 0.5), ("a", 0.5)], "a"),
        ([("b", 0.25), ("a", 0.5), ("a", 0.25), ("b", 0.5)], "a"),
    ],
)
def test_the_classic_vote(hits, winner) -> None:
    assert elect([evidence(*hit) for hit in hits]).document_id == winner


def test_classic_stays_inside_one_document(
    store: Store, collection: Collection, embedder: FakeEmbedder, index: Callable[..., Index]
) -> None:
    rows = [
        document(collection, "many", "harbour one", "harbour two", "harbour three"),
        document(collection, "one", "harbour"),
    ]
    write(store, collection, rows, embedder)
    found = classic_search(index(), Query("harbour", ANN), 10, 10)
    assert {item.document_id for item in found.evidence} == {"many"}
    assert len(found.evidence) == 3


@pytest.mark.parametrize("source", ["docs/[x]*?.md", "[", "]", "a[!b]", "*", "x"])
def test_classic_finds_a_document_whatever_its_source_is_called(
    store: Store,
    collection: Collection,
    embedder: FakeEmbedder,
    index: Callable[..., Index],
    source: str,
) -> None:
    write(store, collection, [document(collection, "d", "harbour", source=source)], embedder)
    found = classic_search(index(), Query("harbour", ANN), 5, 5)
    assert [item.source for item in found.evidence] == [source]


def test_classic_finds_nothing_in_an_empty_collection(index: Callable[..., Index]) -> None:
    assert classic_search(index(), Query("harbour", ANN), 5, 5).evidence == []
