"""The exact scan over stored vectors, of a second embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from behind import rows
from fakes import DIMENSION, FakeEmbedder, Shelf, document, write, write_rows

from core.settings import Settings
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow
from stores.store import Store, parts

ROWS = 500
Found = list[tuple[str, float]]
Searcher = Callable[..., Found]


@pytest.fixture
def find(store: Store, collection: Collection, embedder: FakeEmbedder) -> Searcher:
    """Search for a text; by default every document is visible."""

    def search(text: str, limit: int = 10, visible: set[int] | None = None) -> Found:
        seen = set(row_ids(store)) if visible is None else visible
        version = store.catalogue.index_version()
        vector = embedder.embed_query(text)
        return store.scan(embedder.model_id).search(collection.id, vector, limit, seen, version)

    return search


def row_ids(store: Store) -> dict[int, str]:
    return dict(rows(store, "SELECT id, document_id FROM documents ORDER BY id"))


def chunks(*rows: DocumentRow) -> list[str]:
    return [chunk.chunk_id for row in rows for chunk in row.chunks]


def keys(found: Found) -> list[str]:
    return [key for key, _ in found]


def test_the_nearest_comes_first_with_its_cosine(
    shelf: Shelf, embedder: FakeEmbedder, find: Searcher
) -> None:
    texts = ["a b", "a c", "x y"]
    rows = shelf.put({f"d{n}": text for n, text in enumerate(texts)})
    found = find("a b")
    cosines = embedder.embed_documents(texts) @ embedder.embed_query("a b")
    expected = sorted(zip(chunks(*rows), cosines.tolist(), strict=True), key=lambda p: -p[1])
    assert keys(found) == keys(expected)
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-5)
    assert found[0][1] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("limit", [0, 1, 3, 9, 40])
def test_equal_vectors_come_in_the_order_of_their_ids(
    shelf: Shelf, find: Searcher, limit: int
) -> None:
    rows = shelf.put({f"d{n}": "same words" for n in range(9)})
    assert keys(find("same words or others", limit)) == sorted(chunks(*rows))[:limit]


def test_only_visible_documents_of_the_collection_are_found(
    store: Store, embedder: FakeEmbedder, shelf: Shelf, find: Searcher
) -> None:
    other = store.intake.open_collection("acme", "other", None)
    write(store, other, [document(other, "d", "word 0")], embedder)
    assert find("word 0", visible={1, 2, 3}) == []
    rows = shelf.put({f"d{n}": f"word {n}" for n in range(6)})
    names = {name: row for row, name in row_ids(store).items()}
    assert find("word 0", visible=set()) == []
    found = find("word 0", visible={names["d1"], names["d4"], 999})
    assert set(keys(found)) == set(chunks(rows[1], rows[4]))


def test_what_was_removed_or_changed_is_found_by_its_new_text_alone(
    shelf: Shelf, find: Searcher
) -> None:
    rows = shelf.put({"a": ["old", "older"], "b": "text b"})
    assert len(find("old")) == 3
    [changed] = shelf.put({"a": "new"})
    found = find("new", visible={1, 2, 3})
    assert set(keys(found)) == set(chunks(changed, rows[1]))
    assert found[0] == (chunks(changed)[0], pytest.approx(1.0, abs=1e-5))
    shelf.remove(["a"])
    assert keys(find("new", visible={1, 2, 3})) == chunks(rows[1])


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
    owners = dict(rows(store, "SELECT chunk_id, document FROM chunks"))
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
