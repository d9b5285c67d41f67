"""Contract of VectorIndex: the exact scan and Chroma answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes import DIMENSION, FakeEmbedder, document, remove, write

from core.errors import OperatorError
from core.settings import Settings
from stores.catalogue import Collection
from stores.store import Store, VectorIndex

ROWS = 500
KINDS = ["exact", "chroma"]
LEAST_RECALL = {"exact": 1.0, "chroma": 0.95}
Searcher = Callable[..., list[tuple[str, float]]]


def of_kind(store: Store, kind: str) -> VectorIndex:
    return store.chroma if kind == "chroma" else store.scan(store.model_id)


@pytest.fixture(params=KINDS)
def vectors(request: pytest.FixtureRequest, store: Store) -> VectorIndex:
    return of_kind(store, request.param)


@pytest.fixture
def find(store: Store, collection: Collection, vectors: VectorIndex) -> Searcher:
    """Search after telling Chroma all that is new; by default every document is visible."""

    def search(
        vector: np.ndarray, limit: int = 10, visible: set[int] | None = None
    ) -> list[tuple[str, float]]:
        store.outbox.drain()
        seen = set(row_ids(store, collection)) if visible is None else visible
        version = store.catalogue.index_version()
        return vectors.search(collection.id, vector, limit, seen, version)

    return search


def row_ids(store: Store, collection: Collection) -> dict[int, str]:
    rows = store.database.read().execute(
        "SELECT id, document_id FROM documents WHERE collection_id = ? ORDER BY id",
        (collection.id,),
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
    other = store.writer.open_collection("acme", "other", None)
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
        collection = store.writer.open_collection("acme", "pool", None)
        rows = [document(collection, f"d{n}", f"text {n}") for n in range(ROWS)]
        unit = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        hashes = [row.chunks[0].content_hash for row in rows]
        store.writer.write_documents(
            collection, rows, "random", dict(zip(hashes, unit, strict=True))
        )
        store.outbox.drain()
        named = {row.chunks[0].chunk_id: vector for row, vector in zip(rows, unit, strict=True)}
        yield store, collection, named


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.02])
def test_filtered_recall(
    pool: tuple[Store, Collection, dict[str, np.ndarray]], kind: str, share: float
) -> None:
    store, collection, named = pool
    index = of_kind(store, kind)
    rng = np.random.default_rng(int(share * 100))
    owners = dict(store.database.read().execute("SELECT chunk_id, document FROM chunks"))
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
    assert hits / (20 * min(10, len(keys))) >= LEAST_RECALL[kind]


@pytest.fixture
def forty(store: Store, collection: Collection, embedder: FakeEmbedder) -> list[str]:
    rows = [document(collection, f"d{n:02}", f"word{n}") for n in range(40)]
    write(store, collection, rows, embedder)
    store.outbox.drain()
    return chunks(*rows)


def test_no_more_is_asked_for_than_chroma_can_look_up(
    store: Store,
    collection: Collection,
    embedder: FakeEmbedder,
    forty: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = embedder.embed_query("word7")
    far = {max(row_ids(store, collection))}
    assert len(store.chroma.search(collection.id, asked, 2, far, 0)) == 1
    monkeypatch.setattr("stores.chroma.MOST", 4)
    with pytest.raises(OperatorError, match="0 of 4|1 of 4"):
        store.chroma.search(collection.id, asked, 2, far, 0)


def test_the_index_knows_every_vector_it_was_given_and_no_other(
    store: Store, collection: Collection, embedder: FakeEmbedder, forty: list[str]
) -> None:
    for number, chunk_id in enumerate(forty):
        vector = embedder.embed_query(f"word{number}")
        assert store.chroma.knows(collection.id, vector, chunk_id)
    assert not store.chroma.knows(collection.id, vector, "another")


def test_a_damaged_chroma_folder_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    from core.errors import OperatorError
    from stores.chroma import ChromaVectors

    (tmp_path / "chroma").write_text("not a folder")
    index = ChromaVectors(tmp_path / "chroma", "fake", batch=10)
    with pytest.raises(OperatorError, match="reindex"):
        index.count(1)
