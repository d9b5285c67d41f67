"""Vectors in segments: missing, late, and of sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fakes import DIMENSION, FakeEmbedder, document, remove, write, write_rows

from core.auth import AuthContext
from core.errors import ModelError
from stores.segments import views
from stores.segments.types import Candidates
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
BOSS = AuthContext(tenant="acme", roles=frozenset({"boss"}))
LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}


def near(store: Store, collection: Collection, vector, pool: int = 5, auth=ANN) -> Candidates:
    return store.search.candidates(auth, collection.id, terms=[], vector=vector, pool=pool)


def unit(draw: np.random.Generator, count: int) -> np.ndarray:
    rows = draw.normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def write_vectors(
    store: Store, collection: Collection, vectors: np.ndarray, first: int = 0
) -> dict:
    """Write a document per vector, every fourth for the boss alone; return them by chunk id."""
    rows = [
        document(collection, f"v{n}", f"text {n}", acl=["boss"] if n % 4 == 0 else [])
        for n in range(first, first + len(vectors))
    ]
    keys = [row.chunks[0].content_hash for row in rows]
    named = dict(zip(keys, vectors, strict=True))
    write_rows(store, collection, rows, parts(store).model_id, named)
    return {row.chunks[0].chunk_id: v for row, v in zip(rows, vectors, strict=True)}


@pytest.fixture(params=["memory", "segment", "both"])
def filled(
    request: pytest.FixtureRequest,
    open_store: Callable[..., Store],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Store, Collection, dict]:
    """Hold 60 vectors in memory, in a segment, or the later half in memory."""
    least = 1000 if request.param == "memory" else 10
    monkeypatch.setattr(views, "MAX_NEW_SHARE", 1)
    store = open_store(segment_min_rows=least)
    collection = store.intake.open_collection("acme", "main", None)
    vectors = unit(np.random.default_rng(1), 60)
    named = write_vectors(store, collection, vectors[:31])
    if request.param == "both":
        assert store.search.refresh(collection)
    named |= write_vectors(store, collection, vectors[31:], first=31)
    if request.param == "segment":
        assert store.search.refresh(collection)
    return store, collection, named


def test_the_nearest_are_those_of_a_plain_scan(filled) -> None:
    store, collection, named = filled
    for query in unit(np.random.default_rng(2), 20):
        found = near(store, collection, query, auth=BOSS)
        exact = {key: float(vector @ query) for key, vector in named.items()}
        expected = sorted(exact, key=lambda key: -exact[key])[:5]
        assert set(found.chunk_ids) == set(expected)
        assert found.cosine.tolist() == pytest.approx([exact[k] for k in found.chunk_ids], abs=1e-6)
        assert found.mean == pytest.approx(np.mean(list(exact.values())), abs=1e-6)
        assert found.deviation == pytest.approx(np.std(list(exact.values())), abs=1e-6)
        assert found.sentence.tolist() == found.cosine.tolist()
        assert (found.best_bm25, found.visible) == (0.0, 60)


def test_vectors_are_given_by_chunk_id(filled) -> None:
    store, collection, named = filled
    remove(store, collection, ["v3", "v40"])
    gone = [key for key, row in zip(named, range(60), strict=True) if row in (3, 40)]
    keys = [*reversed(named), "unknown"]
    found = store.search.vectors(collection.id, keys)
    assert found.shape == (61, DIMENSION)
    for key, vector in zip(keys, found, strict=True):
        if key == "unknown" or key in gone:
            assert np.isnan(vector).all()
        else:
            assert vector.tolist() == named[key].tolist()
    assert store.search.vectors(collection.id, []).shape == (0, DIMENSION)


@pytest.mark.parametrize("pool", [3, 9, 40])
def test_equal_vectors_come_in_the_order_of_ingest(filled, pool: int) -> None:
    store, collection, _ = filled
    twin = unit(np.random.default_rng(3), 1)
    named = write_vectors(store, collection, np.repeat(twin, 9, axis=0), first=101)
    found = near(store, collection, twin[0], pool, auth=BOSS)
    assert set(list(named)[:pool]) <= set(found.chunk_ids)
    assert len(found.chunk_ids) == pool


@pytest.mark.parametrize("pool", [0, 1])
def test_the_pool_may_be_empty(filled, pool: int) -> None:
    store, collection, _ = filled
    assert (
        len(near(store, collection, unit(np.random.default_rng(4), 1)[0], pool).chunk_ids) == pool
    )


@pytest.mark.parametrize(
    "vector", [np.ones(3), np.ones((1, DIMENSION)), np.full(DIMENSION, np.nan)]
)
def test_a_vector_that_does_not_fit_is_refused(filled, vector) -> None:
    store, collection, _ = filled
    with pytest.raises(ModelError, match=f"must be {DIMENSION} finite numbers.*reindex"):
        near(store, collection, vector)


def test_an_empty_collection_finds_nothing(store: Store, collection: Collection) -> None:
    found = near(store, collection, unit(np.random.default_rng(5), 1)[0])
    assert (found.chunk_ids, found.visible, found.mean, found.deviation) == ([], 0, 0.0, 0.0)


@pytest.mark.parametrize("built", [False, True])
def test_a_chunk_without_a_vector_waits_for_it(
    open_store: Callable[..., Store], embedder: FakeEmbedder, built: bool
) -> None:
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n:02}", f"harbour {n}") for n in range(9 + 9 * built)]
    write(store, collection, rows[1:], embedder)
    late = rows[0].chunks[0]
    write_rows(store, collection, rows[:1], embedder.model_id, {"other": np.ones(32)})
    assert store.search.refresh(collection) is built
    query = embedder.embed_query("harbour 0")
    assert late.chunk_id not in near(store, collection, query).chunk_ids
    both = store.search.candidates(ANN, collection.id, terms=[{"0"}], vector=query, pool=3)
    cosine = dict(zip(both.chunk_ids, both.cosine.tolist(), strict=True))
    assert np.isnan(cosine[late.chunk_id])
    assert np.isnan(store.search.vectors(collection.id, [late.chunk_id])).all()
    store.intake.store_vectors(embedder.model_id, {late.content_hash: query})
    found = near(store, collection, query, 1)
    assert found.chunk_ids == [late.chunk_id]
    assert found.cosine[0] == pytest.approx(1.0)
    assert store.search.vectors(collection.id, [late.chunk_id])[0].tolist() == query.tolist()


@pytest.mark.parametrize("built", [False, True])
def test_the_best_sentence_of_a_chunk_counts(
    open_store: Callable[..., Store], embedder: FakeEmbedder, built: bool
) -> None:
    store = open_store(segment_min_rows=3)
    collection = store.intake.open_collection("acme", "main", None)
    texts = {
        "two": ["harbour tide", "forest lake"],
        "one": ["harbour rope"],
        "none": [],
        "unknown": None,
    }
    rows = [document(collection, name, f"{name} {said}") for name, said in texts.items()]
    keys = {name: row.chunks[0] for name, row in zip(texts, rows, strict=True)}
    sentences = {
        keys[name].content_hash: embedder.embed_documents(said) * 0.5  # the scale does not matter
        for name, said in texts.items()
        if said is not None
    }
    vectors = {c.content_hash: embedder.embed_query(c.text) for c in keys.values()}
    write_rows(store, collection, rows, embedder.model_id, vectors, sentences)
    assert built is False or store.search.refresh(collection)
    query = embedder.embed_query("forest lake")
    found = near(store, collection, query, 4)
    best = dict(zip(found.chunk_ids, found.sentence.tolist(), strict=True))
    cosine = dict(zip(found.chunk_ids, found.cosine.tolist(), strict=True))
    assert best[keys["two"].chunk_id] == pytest.approx(1.0, abs=0.01)
    rope = float(embedder.embed_query("harbour rope") @ query)
    assert best[keys["one"].chunk_id] == pytest.approx(rope, abs=0.01)
    for name in ("none", "unknown"):
        assert best[keys[name].chunk_id] == cosine[keys[name].chunk_id]
