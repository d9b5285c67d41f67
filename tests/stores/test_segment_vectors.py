"""Vectors in segments: missing, late, of sentences, and found through Chroma."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fakes import DIMENSION, FakeEmbedder, document, remove, write

from core.auth import AuthContext
from core.errors import ModelError
from stores.catalogue import Collection
from stores.segments.types import Candidates
from stores.store import Store

ANN = AuthContext(tenant="acme")
BOSS = AuthContext(tenant="acme", roles=frozenset({"boss"}))
LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}


def near(store: Store, collection: Collection, vector, pool: int = 5, auth=ANN) -> Candidates:
    return store.hot.candidates(auth, collection.id, terms=[], vector=vector, pool=pool)


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
    store.writer.write_documents(
        collection, rows, store.model_id, dict(zip(keys, vectors, strict=True))
    )
    return {row.chunks[0].chunk_id: v for row, v in zip(rows, vectors, strict=True)}


@pytest.fixture(params=["memory", "segment", "both"])
def filled(
    request: pytest.FixtureRequest, open_store: Callable[..., Store]
) -> tuple[Store, Collection, dict]:
    """Hold 60 vectors in memory, in a segment, or the later half in memory."""
    least = 1000 if request.param == "memory" else 10
    store = open_store(segment_min_rows=least, segment_max_new_share=1)
    collection = store.writer.open_collection("acme", "main", None)
    vectors = unit(np.random.default_rng(1), 60)
    named = write_vectors(store, collection, vectors[:31])
    if request.param == "both":
        assert store.hot.refresh(collection)
    named |= write_vectors(store, collection, vectors[31:], first=31)
    if request.param == "segment":
        assert store.hot.refresh(collection)
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
    found = store.hot.vectors(collection.id, keys)
    assert found.shape == (61, DIMENSION)
    for key, vector in zip(keys, found, strict=True):
        if key == "unknown" or key in gone:
            assert np.isnan(vector).all()
        else:
            assert vector.tolist() == named[key].tolist()
    assert store.hot.vectors(collection.id, []).shape == (0, DIMENSION)


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
    collection = store.writer.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n:02}", f"harbour {n}") for n in range(9 + 9 * built)]
    write(store, collection, rows[1:], embedder)
    late = rows[0].chunks[0]
    store.writer.write_documents(collection, rows[:1], embedder.model_id, {"other": np.ones(32)})
    assert store.hot.refresh(collection) is built
    query = embedder.embed_query("harbour 0")
    assert late.chunk_id not in near(store, collection, query).chunk_ids
    both = store.hot.candidates(ANN, collection.id, terms=[{"0"}], vector=query, pool=3)
    cosine = dict(zip(both.chunk_ids, both.cosine.tolist(), strict=True))
    assert np.isnan(cosine[late.chunk_id])
    assert np.isnan(store.hot.vectors(collection.id, [late.chunk_id])).all()
    store.writer.store_vectors(embedder.model_id, {late.content_hash: query})
    found = near(store, collection, query, 1)
    assert found.chunk_ids == [late.chunk_id]
    assert found.cosine[0] == pytest.approx(1.0)
    assert store.hot.vectors(collection.id, [late.chunk_id])[0].tolist() == query.tolist()


@pytest.mark.parametrize("built", [False, True])
def test_the_best_sentence_of_a_chunk_counts(
    open_store: Callable[..., Store], embedder: FakeEmbedder, built: bool
) -> None:
    store = open_store(segment_min_rows=3)
    collection = store.writer.open_collection("acme", "main", None)
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
    store.writer.write_documents(collection, rows, embedder.model_id, vectors, sentences)
    assert built is False or store.hot.refresh(collection)
    query = embedder.embed_query("forest lake")
    found = near(store, collection, query, 4)
    best = dict(zip(found.chunk_ids, found.sentence.tolist(), strict=True))
    cosine = dict(zip(found.chunk_ids, found.cosine.tolist(), strict=True))
    assert best[keys["two"].chunk_id] == pytest.approx(1.0, abs=0.01)
    rope = float(embedder.embed_query("harbour rope") @ query)
    assert best[keys["one"].chunk_id] == pytest.approx(rope, abs=0.01)
    for name in ("none", "unknown"):
        assert best[keys[name].chunk_id] == cosine[keys[name].chunk_id]


@pytest.fixture
def approximate(open_store: Callable[..., Store]) -> tuple[Store, Collection, dict]:
    """Hold 400 vectors that Chroma knows and 10 that it does not know yet."""
    store = open_store(vector_exact_limit=1, segment_min_rows=100)
    collection = store.writer.open_collection("acme", "main", None)
    vectors = unit(np.random.default_rng(6), 410)
    named = write_vectors(store, collection, vectors[:400])
    store.outbox.drain()
    assert store.hot.refresh(collection)
    named |= write_vectors(store, collection, vectors[400:], first=400)
    return store, collection, named


@pytest.mark.parametrize("auth", [ANN, BOSS])
def test_chroma_finds_nearly_all_and_nothing_newer_is_missed(approximate, auth) -> None:
    store, collection, named = approximate
    open_to_all = [key for n, key in enumerate(named) if n % 4]
    keys = list(named) if auth is BOSS else open_to_all
    hits = 0
    for query in unit(np.random.default_rng(7), 20):
        found = near(store, collection, query, 10, auth)
        assert set(found.chunk_ids) <= set(keys)
        exact = {key: float(named[key] @ query) for key in keys}
        assert found.cosine.tolist() == pytest.approx([exact[k] for k in found.chunk_ids], abs=1e-6)
        assert found.mean == pytest.approx(np.mean(list(exact.values())), abs=1e-6)
        assert (found.visible, found.notes) == (len(keys), ())
        hits += len(set(found.chunk_ids) & set(sorted(exact, key=lambda k: -exact[k])[:10]))
    assert hits / 200 >= 0.99
    newest = list(named)[-1]
    assert newest in near(store, collection, named[newest], 1, auth).chunk_ids


def test_a_removed_chunk_that_chroma_still_has_is_not_found(approximate) -> None:
    store, collection, named = approximate
    key = list(named)[5]
    remove(store, collection, ["v5"])
    assert key not in near(store, collection, named[key], 3).chunk_ids


def test_without_chroma_all_vectors_are_scanned(approximate) -> None:
    store, collection, named = approximate
    store.chroma.drop()
    (store.folder / "chroma").write_text("not a folder")
    key = list(named)[5]
    found = near(store, collection, named[key], 1)
    assert found.chunk_ids == [key]
    assert "all vectors were scanned" in found.notes[0]
