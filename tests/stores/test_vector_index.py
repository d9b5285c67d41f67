"""The exact scan over stored vectors, of a second embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from fakes import DIMENSION, FakeEmbedder, document, remove, write, write_rows

from core.settings import Settings
from stores.sqlite.catalogue import Collection
from stores.sqlite.embeddings import ExactVectors
from stores.store import Store, parts

ROWS = 500
Searcher = Callable[..., list[tuple[str, float]]]


@pytest.fixture
def vectors(store: Store) -> ExactVectors:
    return store.scan(parts(store).model_id)


@pytest.fixture
def find(store: Store, collection: Collection, vectors: ExactVectors) -> Searcher:
    """Search; by default every document is visible."""

    def search(
        vector: np.ndarray, limit: int = 10, visible: set[int] | None = None
    ) -> list[tuple[str, float]]:
        seen = set(row_ids(store, collection)) if visible is None else visible
        version = store.catalogue.index_version()
        return vectors.search(collection.id, vector, limit, seen, version)

    return search


def row_ids(store: Store, collection: Collection) -> dict[int, str]:
    rows = (
        parts(store)
        .database.read()
        .execute(
            "SELECT id, document_id FROM documents WHERE collection_id = ? ORDER BY id",
            (collection.id,),
        )
    )
    return {row[0]: row[1] for row in rows}


def chunks(*rows) -> list[str]:
    return [chunk.chunk_id for row in rows for chunk in row.chunks]


def test_the_nearest_comes_first_with_its_cosine(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher
) -> None:
    rows = [document(collection, f"d{n}", text) for n, text in enumerate(["a b", "a c", "x y"])]
    write(store, collection, rows, embedder)
    query = embedder.embed_query("a b")
    found = find(query)
    cosines = embedder.embed_documents(["a b", "a c", "x y"]) @ query
    expected = sorted(zip(chunks(*rows), cosines.tolist(), strict=True), key=lambda p: -p[1])
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-5)
    assert found[0][1] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("limit", [3, 9, 40])
def test_equal_vectors_come_in_the_order_of_their_ids(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher, limit: int
) -> None:
    rows = [document(collection, f"d{n}", "same words") for n in range(9)]
    write(store, collection, rows, embedder)
    found = find(embedder.embed_query("same words or others"), limit)
    assert [key for key, _ in found] == sorted(chunks(*rows))[:limit]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_limit_holds(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher, limit: int
) -> None:
    write(store, collection, [document(collection, "d", "a", "b", "c")], embedder)
    assert len(find(embedder.embed_query("a"), limit)) == limit


def test_an_empty_collection_finds_nothing(embedder: FakeEmbedder, find: Searcher) -> None:
    assert find(embedder.embed_query("a"), visible={1}) == []


def test_only_visible_documents_are_found(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher
) -> None:
    rows = [document(collection, f"d{n}", f"word {n}") for n in range(6)]
    write(store, collection, rows, embedder)
    names = {name: row for row, name in row_ids(store, collection).items()}
    query = embedder.embed_query("word 0")
    assert find(query, visible=set()) == []
    found = find(query, visible={names["d1"], names["d4"], 999})
    assert {key for key, _ in found} == set(chunks(rows[1], rows[4]))


def test_another_collection_is_not_searched(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher
) -> None:
    other = store.intake.open_collection("acme", "other", None)
    write(store, other, [document(other, "d", "a")], embedder)
    assert find(embedder.embed_query("a"), visible={1, 2, 3}) == []


def test_a_removed_document_is_gone(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher
) -> None:
    rows = [document(collection, name, f"text {name}") for name in ("a", "b")]
    write(store, collection, rows, embedder)
    query = embedder.embed_query("text a")
    assert len(find(query)) == 2
    remove(store, collection, ["a"])
    assert [key for key, _ in find(query, visible={1, 2, 3})] == chunks(rows[1])


def test_a_changed_document_is_found_by_its_new_text_alone(
    store: Store, collection: Collection, embedder: FakeEmbedder, find: Searcher
) -> None:
    write(store, collection, [document(collection, "a", "old", "older")], embedder)
    find(embedder.embed_query("old"))
    changed = document(collection, "a", "new")
    write(store, collection, [changed], embedder)
    found = find(embedder.embed_query("new"))
    assert [key for key, _ in found] == chunks(changed)
    assert found[0][1] == pytest.approx(1.0, abs=1e-5)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Collection, dict]]:
    """Hold ROWS random unit vectors, one to a document, in both indexes."""
    rng = np.random.default_rng(7)
    data = Settings(data=tmp_path_factory.mktemp("pool"))
    with Store(data, "random", create=True) as store:
        collection = store.intake.open_collection("acme", "pool", None)
        rows = [document(collection, f"d{n}", f"text {n}") for n in range(ROWS)]
        unit = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        hashes = [row.chunks[0].content_hash for row in rows]
        write_rows(store, collection, rows, "random", dict(zip(hashes, unit, strict=True)))
        named = {row.chunks[0].chunk_id: vector for row, vector in zip(rows, unit, strict=True)}
        yield store, collection, named


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.02])
def test_filtered_recall(
    pool: tuple[Store, Collection, dict[str, np.ndarray]], share: float
) -> None:
    store, collection, named = pool
    index = store.scan(parts(store).model_id)
    rng = np.random.default_rng(int(share * 100))
    owners = dict(parts(store).database.read().execute("SELECT chunk_id, document FROM chunks"))
    visible = {document for document in owners.values() if rng.random() < share}
    keys = [key for key in named if owners[key] in visible]
    hits = 0
    for _ in range(20):
        query = rng.normal(size=DIMENSION).astype(np.float32)
        query /= np.linalg.norm(query)
        exact = sorted(keys, key=lambda key: -float(named[key] @ query))[:10]
        version = store.catalogue.index_version()
        found = index.search(collection.id, query, 10, visible, version)
        assert {owners[key] for key, _ in found} <= visible
        assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
        hits += len({key for key, _ in found} & set(exact))
        assert len(found) == len(exact)
    assert hits / (20 * min(10, len(keys))) >= 1.0
