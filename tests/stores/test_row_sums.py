"""A changed byte in any row of the truth is noticed, and what it is part of is withheld."""

from __future__ import annotations

import behind
import numpy as np
import pytest
from fakes import FakeEmbedder, document, remove, write
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.errors import ModelError, OperatorError
from stores.accounts.keys import Keys
from stores.sqlite.catalogue import Collection
from stores.sqlite.sums import Damage, find_damage, row_sum
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
Values = st.lists(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.binary(), st.floats(allow_nan=False))
)


@given(Values, Values)
def test_other_values_have_another_sum(first: list[object], second: list[object]) -> None:
    same = [(type(a), repr(a)) for a in first] == [(type(b), repr(b)) for b in second]
    assert same == (row_sum(*first) == row_sum(*second))


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    rows = [
        document(collection, "a", "alpha text", "beta text", acl=["staff"], fields={"year": 1999}),
        document(collection, "b", "gamma text", metadata={"authors": ["Ann"]}),
    ]
    write(store, collection, rows, embedder)
    vectors = {row.chunks[0].content_hash: embedder.embed_documents(["x", "y"]) for row in rows}
    store.intake.store_vectors(embedder.model_id, {}, vectors)
    Keys(parts(store).database).create("acme", roles=frozenset({"staff"}))
    return store


def damage(store: Store) -> Damage:
    return find_damage(parts(store).database.read())


def test_what_is_written_is_signed(filled: Store, collection: Collection) -> None:
    assert damage(filled) == Damage()
    remove(filled, collection, ["a"])
    assert damage(filled) == Damage()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("UPDATE documents SET is_open = 1 WHERE document_id = 'a'", "documents"),
        ("UPDATE documents SET tenant = 'other' WHERE document_id = 'a'", "documents"),
        ("UPDATE documents SET title = CAST(x'ff41' AS TEXT) WHERE document_id = 'a'", "documents"),
        ("UPDATE document_acl SET principal = 'stafg'", "documents"),
        ("DELETE FROM document_acl", "documents"),
        ("UPDATE record_fields SET number = 1998", "documents"),
        ("UPDATE chunks SET text = 'alpha test' WHERE ordinal = 0 AND document = 1", "chunks"),
        ("UPDATE chunks SET document = 2 WHERE ordinal = 1", "chunks"),
        ("UPDATE embeddings SET vector = zeroblob(128)", "vectors"),
        ("UPDATE sentence_vectors SET vectors = x'00'", "vectors"),
        ("UPDATE collections SET profile = replace(profile, 'default', 'defaulu')", "collections"),
        ("""UPDATE api_keys SET roles = '["admin"]'""", "keys"),
        ("UPDATE api_keys SET expires_at = '9999'", "keys"),
    ],
)
def test_a_change_behind_its_back_is_found(filled: Store, change: str, part: str) -> None:
    behind.change(filled, change)
    found = damage(filled)
    assert getattr(found, part)
    others = {"documents", "chunks", "vectors", "collections", "keys"} - {part}
    assert not any(getattr(found, other) for other in others)


def test_a_damaged_document_is_withheld_from_everyone(
    filled: Store, collection: Collection
) -> None:
    assert len(filled.catalogue.visible_documents(ANN, collection.id)) == 1
    behind.change(filled, "UPDATE documents SET is_open = 1 WHERE document_id = 'a'")
    chunks = ids(filled, "a")
    assert filled.catalogue.evidence(ANN, collection.id, chunks) == {}  # before any check
    filled.maintenance.check_rows()
    assert len(filled.catalogue.visible_documents(ANN, collection.id)) == 1
    staff = AuthContext(tenant="acme", roles=frozenset({"staff"}))
    assert len(filled.catalogue.visible_documents(staff, collection.id)) == 1
    [warning] = [line for line in filled.warnings() if "documents" in line]
    assert "withheld" in warning and "'a'" not in warning


def ids(store: Store, name: str) -> list[str]:
    joined = "chunks c JOIN documents d ON d.id = c.document"
    found = behind.rows(store, f"SELECT chunk_id FROM {joined} WHERE d.document_id = ?", name)
    return [chunk for (chunk,) in found]


@pytest.mark.parametrize("text", ["'gamma texu'", "CAST(x'ff67' AS TEXT)"])
def test_a_damaged_passage_is_withheld_and_that_is_said(
    filled: Store, collection: Collection, text: str
) -> None:
    [chunk] = ids(filled, "b")
    assert chunk in filled.catalogue.evidence(ANN, collection.id, [chunk])
    behind.change(filled, f"UPDATE chunks SET text = {text} WHERE chunk_id = '{chunk}'")
    assert filled.catalogue.evidence(ANN, collection.id, [chunk]) == {}
    assert filled.catalogue.neighbours(ANN, collection.id, chunk, 1) == []
    assert any("withheld" in line for line in filled.warnings())


def test_a_damaged_vector_finds_nothing(
    filled: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    vector = embedder.embed_query("gamma text")

    def near() -> list[str]:
        found = filled.search.candidates(ANN, collection.id, terms=[], vector=vector, pool=3)
        return found.chunk_ids

    [chunk] = ids(filled, "b")
    assert near() == [chunk]
    of_it = f"SELECT content_hash FROM chunks WHERE chunk_id = '{chunk}'"
    damaging = "UPDATE embeddings SET vector = zeroblob(128) WHERE content_hash"
    behind.change(filled, f"{damaging} = ({of_it})")
    filled.search._views.forget(collection.id)
    assert near() == []
    version = filled.catalogue.index_version()
    scanned = filled.scan(embedder.model_id).search(collection.id, vector, 3, {1, 2}, version)
    assert {key for key, _ in scanned} == set(ids(filled, "a"))


def test_a_damaged_profile_and_a_damaged_key_are_refused(
    filled: Store, collection: Collection
) -> None:
    text, _ = Keys(parts(filled).database).create("acme", roles=frozenset({"staff"}))
    assert Keys(parts(filled).database).verified(text)
    roles = "UPDATE api_keys SET roles = '[\"admin\"]'"
    behind.change(filled, roles, "UPDATE collections SET profile = '{}'")
    assert Keys(parts(filled).database).verified(text) is None
    with pytest.raises(OperatorError, match="profile of a collection is damaged.*--profile"):
        filled.catalogue.collection("acme", collection.name)
    with pytest.raises(OperatorError, match="damaged"):
        filled.intake.open_collection("acme", collection.name, None)
    filled.intake.open_collection("acme", collection.name, collection.profile)
    assert filled.catalogue.collection("acme", collection.name).id == collection.id


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_vectors_that_are_none_are_refused(
    filled: Store, collection: Collection, value: float
) -> None:
    rows = {"h": np.full(32, value, dtype=np.float32)}
    with pytest.raises(ModelError, match="finite vectors that are not zero"):
        filled.intake.store_vectors("fake", rows)
    with pytest.raises(ModelError, match="have 32 numbers"):
        filled.intake.store_vectors("fake", {"h": np.ones(16, dtype=np.float32)})
    assert filled.intake.missing_vectors("fake", ["h"]) == {"h"}
