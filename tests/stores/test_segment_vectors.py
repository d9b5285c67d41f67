"""Vectors in segments: missing, late, and of sentences."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import DIMENSION, OpenShelf, Shelf

from core.auth import AuthContext
from core.errors import ModelError
from stores.segments import views
from stores.segments.types import Candidates

ANN = AuthContext(tenant="acme")
BOSS = AuthContext(tenant="acme", roles=frozenset({"boss"}))
LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}


def near(shelf: Shelf, vector, pool: int = 5, auth=ANN) -> Candidates:
    return shelf.search.candidates(auth, shelf.id, terms=[], vector=vector, pool=pool)


def unit(draw: np.random.Generator, count: int) -> np.ndarray:
    rows = draw.normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def write_vectors(shelf: Shelf, vectors: np.ndarray, first: int = 0) -> dict:
    """Write a document per vector, every fourth for the boss alone; return them by chunk id."""
    rows = [
        shelf.row(f"v{n}", f"text {n}", acl=["boss"] if n % 4 == 0 else [])
        for n in range(first, first + len(vectors))
    ]
    keys = [row.chunks[0].content_hash for row in rows]
    shelf.write_rows(rows, dict(zip(keys, vectors, strict=True)))
    return {row.chunks[0].chunk_id: v for row, v in zip(rows, vectors, strict=True)}


@pytest.fixture(params=["memory", "segment", "both"])
def filled(
    request: pytest.FixtureRequest, open_shelf: OpenShelf, monkeypatch: pytest.MonkeyPatch
) -> tuple[Shelf, dict]:
    """Hold 60 vectors in memory, in a segment, or the later half in memory."""
    monkeypatch.setattr(views, "MAX_NEW_SHARE", 1)
    shelf = open_shelf(segment_min_rows=1000 if request.param == "memory" else 10)
    vectors = unit(np.random.default_rng(1), 60)
    named = write_vectors(shelf, vectors[:31])
    if request.param == "both":
        assert shelf.search.refresh(shelf.collection)
    named |= write_vectors(shelf, vectors[31:], first=31)
    if request.param == "segment":
        assert shelf.search.refresh(shelf.collection)
    return shelf, named


def test_the_nearest_are_those_of_a_plain_scan(filled) -> None:
    shelf, named = filled
    for query in unit(np.random.default_rng(2), 20):
        found = near(shelf, query, auth=BOSS)
        exact = {key: float(vector @ query) for key, vector in named.items()}
        expected = sorted(exact, key=lambda key: -exact[key])[:5]
        assert set(found.chunk_ids) == set(expected)
        assert found.cosine.tolist() == pytest.approx([exact[k] for k in found.chunk_ids], abs=1e-6)
        assert found.mean == pytest.approx(np.mean(list(exact.values())), abs=1e-6)
        assert found.deviation == pytest.approx(np.std(list(exact.values())), abs=1e-6)
        assert found.sentence.tolist() == found.cosine.tolist()
        assert (found.best_bm25, found.visible) == (0.0, 60)


def test_vectors_are_given_by_chunk_id(filled) -> None:
    shelf, named = filled
    shelf.remove(["v3", "v40"])
    gone = [key for key, row in zip(named, range(60), strict=True) if row in (3, 40)]
    keys = [*reversed(named), "unknown"]
    found = shelf.search.vectors(shelf.id, keys)
    assert found.shape == (61, DIMENSION)
    for key, vector in zip(keys, found, strict=True):
        if key == "unknown" or key in gone:
            assert np.isnan(vector).all()
        else:
            assert vector.tolist() == named[key].tolist()
    assert shelf.search.vectors(shelf.id, []).shape == (0, DIMENSION)


@pytest.mark.parametrize("pool", [3, 9, 40])
def test_equal_vectors_come_in_the_order_of_ingest(filled, pool: int) -> None:
    shelf, _ = filled
    twin = unit(np.random.default_rng(3), 1)
    named = write_vectors(shelf, np.repeat(twin, 9, axis=0), first=101)
    found = near(shelf, twin[0], pool, auth=BOSS)
    assert set(list(named)[:pool]) <= set(found.chunk_ids)
    assert len(found.chunk_ids) == pool


@pytest.mark.parametrize("pool", [0, 1])
def test_the_pool_may_be_empty(filled, pool: int) -> None:
    shelf, _ = filled
    assert len(near(shelf, unit(np.random.default_rng(4), 1)[0], pool).chunk_ids) == pool


@pytest.mark.parametrize(
    "vector", [np.ones(3), np.ones((1, DIMENSION)), np.full(DIMENSION, np.nan)]
)
def test_a_vector_that_does_not_fit_is_refused(filled, vector) -> None:
    shelf, _ = filled
    with pytest.raises(ModelError, match=f"must be {DIMENSION} finite numbers.*reindex"):
        near(shelf, vector)


def test_an_empty_collection_finds_nothing(shelf: Shelf) -> None:
    found = near(shelf, unit(np.random.default_rng(5), 1)[0])
    assert (found.chunk_ids, found.visible, found.mean, found.deviation) == ([], 0, 0.0, 0.0)


@pytest.mark.parametrize("built", [False, True])
def test_a_chunk_without_a_vector_waits_for_it(open_shelf: OpenShelf, built: bool) -> None:
    shelf = open_shelf(**LOW)
    rows = [shelf.row(f"d{n:02}", f"harbour {n}") for n in range(9 + 9 * built)]
    shelf.write(*rows[1:])
    late = rows[0].chunks[0]
    shelf.write_rows(rows[:1], {"other": np.ones(32)})
    assert shelf.search.refresh(shelf.collection) is built
    query = shelf.embedder.embed_query("harbour 0")
    assert late.chunk_id not in near(shelf, query).chunk_ids
    both = shelf.search.candidates(ANN, shelf.id, terms=[{"0"}], vector=query, pool=3)
    cosine = dict(zip(both.chunk_ids, both.cosine.tolist(), strict=True))
    assert np.isnan(cosine[late.chunk_id])
    assert np.isnan(shelf.search.vectors(shelf.id, [late.chunk_id])).all()
    shelf.intake.store_vectors(shelf.embedder.model_id, {late.content_hash: query})
    found = near(shelf, query, 1)
    assert found.chunk_ids == [late.chunk_id]
    assert found.cosine[0] == pytest.approx(1.0)
    assert shelf.search.vectors(shelf.id, [late.chunk_id])[0].tolist() == query.tolist()


@pytest.mark.parametrize("built", [False, True])
def test_the_best_sentence_of_a_chunk_counts(open_shelf: OpenShelf, built: bool) -> None:
    shelf = open_shelf(segment_min_rows=3)
    texts = {
        "two": ["harbour tide", "forest lake"],
        "one": ["harbour rope"],
        "none": [],
        "unknown": None,
    }
    rows = [shelf.row(name, f"{name} {said}") for name, said in texts.items()]
    keys = {name: row.chunks[0] for name, row in zip(texts, rows, strict=True)}
    sentences = {
        # The scale does not matter.
        keys[name].content_hash: shelf.embedder.embed_documents(said) * 0.5
        for name, said in texts.items()
        if said is not None
    }
    vectors = {c.content_hash: shelf.embedder.embed_query(c.text) for c in keys.values()}
    shelf.write_rows(rows, vectors, sentences)
    assert built is False or shelf.search.refresh(shelf.collection)
    query = shelf.embedder.embed_query("forest lake")
    found = near(shelf, query, 4)
    best = dict(zip(found.chunk_ids, found.sentence.tolist(), strict=True))
    cosine = dict(zip(found.chunk_ids, found.cosine.tolist(), strict=True))
    assert best[keys["two"].chunk_id] == pytest.approx(1.0, abs=0.01)
    rope = float(shelf.embedder.embed_query("harbour rope") @ query)
    assert best[keys["one"].chunk_id] == pytest.approx(rope, abs=0.01)
    for name in ("none", "unknown"):
        assert best[keys[name].chunk_id] == cosine[keys[name].chunk_id]
