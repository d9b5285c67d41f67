"""Permission masks: what is remembered for one caller never serves another, nor another moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from behind import rows
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from stores.segments import view
from stores.segments.types import Candidates
from stores.sqlite.catalogue import Collection
from stores.store import Store

LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}


def ask(
    store: Store,
    collection: Collection,
    *,
    roles: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    pool: int = 100,
    **rights: object,
) -> set[str]:
    """Return the document ids that a caller finds by words and by vector."""
    auth = AuthContext(**{"tenant": "acme", "roles": frozenset(roles), **rights})
    found: Candidates = store.search.candidates(
        auth,
        collection.id,
        terms=[{"harbour"}],
        vector=FakeEmbedder().embed_query("harbour"),
        pool=pool,
        sources=sources,
    )
    assert found.visible == len(found.chunk_ids) or pool < found.visible
    joined = "chunks c JOIN documents d ON d.id = c.document"
    owners = dict(rows(store, f"SELECT c.chunk_id, d.document_id FROM {joined}"))
    return {owners[key] for key in found.chunk_ids}


@pytest.fixture(params=["memory", "segment"])
def filled(
    request: pytest.FixtureRequest,
    open_store: Callable[..., Store],
    embedder: FakeEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Store, Collection]:
    monkeypatch.setattr(view, "MASKS", 4)
    store = open_store(segment_min_rows=1000 if request.param == "memory" else 2)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [
        document(collection, "open", "harbour one", source="a.md"),
        document(collection, "boss", "harbour two", source="a.md", acl=["boss"]),
        document(collection, "ann", "harbour three", source="b.md", acl=["user:ann"]),
        document(collection, "v1", "harbour four", source="docs/c.md", version="1"),
    ]
    write(store, collection, rows, embedder)
    assert store.search.refresh(collection) is (request.param == "segment")
    return store, collection


CALLERS = [
    ({}, {"open", "v1"}),
    ({"roles": ("boss",)}, {"open", "boss", "v1"}),
    ({"user": "ann"}, {"open", "ann", "v1"}),
    ({"user": "ann", "roles": ("boss",)}, {"open", "boss", "ann", "v1"}),
    ({"tenant": "rival", "roles": ("boss",)}, set()),
    ({"allowed_sources": ()}, set()),
    ({"allowed_sources": ("a.md",)}, {"open"}),
    ({"allowed_sources": ("a.md",), "roles": ("boss",)}, {"open", "boss"}),
    ({"sources": ("docs/*",)}, {"v1"}),
    ({"sources": ("docs/*",), "allowed_sources": ("a.md",)}, set()),
    ({"version_policy": "2"}, {"open"}),
    ({"version_policy": "1"}, {"open", "v1"}),
]


def test_callers_in_turn_never_share_a_mask(filled: tuple[Store, Collection]) -> None:
    """With room for fewer masks than there are callers, and asking each again."""
    store, collection = filled
    for rights, expected in [*CALLERS, *reversed(CALLERS), *CALLERS[::2]]:
        assert ask(store, collection, **rights) == expected, rights


def test_a_mask_ends_with_its_index_version(
    filled: tuple[Store, Collection], embedder: FakeEmbedder
) -> None:
    store, collection = filled
    assert ask(store, collection) == {"open", "v1"}
    closed = document(collection, "open", "harbour one", source="a.md", acl=["boss"])
    write(store, collection, [closed], embedder)
    assert ask(store, collection) == {"v1"}
    assert ask(store, collection, roles=("boss",)) == {"open", "boss", "v1"}
    write(store, collection, [document(collection, "boss", "harbour two")], embedder)
    assert ask(store, collection) == {"boss", "v1"}


def test_the_best_of_few_visible_rows_are_all_found(
    open_store: Callable[..., Store], embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask comes before the ranking: better rows that are closed take no place."""
    for share in (0.0, 1.0):
        monkeypatch.setattr(view, "GATHER_SHARE", share)
        store = open_store(**LOW)
        collection = store.intake.open_collection("acme", "main", None)
        rows = [document(collection, f"c{n}", "harbour", acl=["boss"]) for n in range(40)]
        rows += [document(collection, f"o{n}", f"harbour far away {n}") for n in range(3)]
        write(store, collection, rows, embedder)
        store.search.refresh(collection)
        assert ask(store, collection, pool=3) == {"o0", "o1", "o2"}
        store.close()


def test_another_tenants_collection_stays_closed(
    filled: tuple[Store, Collection], embedder: FakeEmbedder
) -> None:
    store, collection = filled
    rival = store.intake.open_collection("rival", "main", None)
    write(store, rival, [document(rival, "theirs", "harbour")], embedder)
    assert ask(store, rival) == set()
    assert ask(store, rival, tenant="rival") == {"theirs"}
    assert ask(store, collection, tenant="rival") == set()


def test_threads_with_different_rights_see_their_own(filled: tuple[Store, Collection]) -> None:
    store, collection = filled
    wrong: list[object] = []

    def work(rights: dict, expected: set[str]) -> None:
        for _ in range(15):
            found = ask(store, collection, **rights)
            if found != expected:
                wrong.append((rights, found))

    threads = [threading.Thread(target=work, args=caller) for caller in CALLERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
