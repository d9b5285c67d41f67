"""Whole results are shared between the runs of one caller, over one state of the index."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.auth import AuthContext
from core.cache import Cache, local_cache
from core.errors import ModelError
from core.profile import Profile
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store
from tools.results import Results, deciding
from tools.toolbox import Toolbox
from tools.types import ToolResult

ANN = AuthContext(tenant="acme", user="ann")


@pytest.fixture
def ships(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [
        document(collection, "open", "harbour of ships"),
        document(collection, "boss", "harbour of the boss", acl=["boss"]),
    ]
    write(store, collection, rows, embedder)
    return collection


@pytest.fixture
def cache() -> Cache:
    return local_cache("results", 64)


def asked(
    index: Index, cache: Cache, auth: AuthContext = ANN, model: str = "", **more: object
) -> ToolResult:
    """Search in a toolbox of its own, as each run does."""
    tools = Toolbox(index, Results(index, cache, model))
    arguments = {"query": "harbour", **more}
    return tools.run("search", arguments, auth, time.monotonic() + 60)


def ids(result: ToolResult) -> list[str]:
    return [item.document_id for item in result.evidence]


def test_another_run_is_served_what_was_found(
    index: Callable[..., Index], ships: Collection, cache: Cache
) -> None:
    first, second = asked(index(), cache), asked(index(), cache)
    assert (first.remembered, second.remembered) == (False, True)
    assert second.evidence == first.evidence
    assert second.auth_filter == first.auth_filter
    assert second.notes == first.notes
    assert (bool(first.stages), second.stages) == (True, [])
    second.evidence.clear()
    assert asked(index(), cache).evidence == first.evidence
    assert (cache.hits, cache.misses) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"user": "bob"},
        {"roles": frozenset({"boss"})},
        {"allowed_sources": ("open*",)},
        {"version_policy": "2.0"},
        {"tenant": "rival"},
    ],
)
def test_another_caller_is_not(
    index: Callable[..., Index], ships: Collection, cache: Cache, other: dict[str, object]
) -> None:
    asked(index(), cache)
    stranger = AuthContext.model_validate({**ANN.model_dump(), **other})
    assert not asked(index(), cache, stranger).remembered
    assert cache.hits == 0


def test_another_tenants_collection_of_the_same_name_is_another(
    index: Callable[..., Index],
    store: Store,
    ships: Collection,
    cache: Cache,
    embedder: FakeEmbedder,
) -> None:
    theirs = store.intake.open_collection("rival", ships.name, Profile(name="default"))
    write(store, theirs, [document(theirs, "theirs", "harbour of the rival")], embedder)
    rival = AuthContext(tenant="rival", user="ann")
    assert ids(asked(index(), cache)) == ["open"]
    found = asked(index(theirs), cache, rival)
    assert (ids(found), found.remembered) == (["theirs"], False)
    assert asked(index(), cache).remembered
    assert ids(asked(index(), cache)) == ["open"]


def test_what_decides_a_result_is_part_of_its_key(
    index: Callable[..., Index], ships: Collection, cache: Cache
) -> None:
    asked(index(), cache)
    profile = Profile(name="default", settings={"top_k": 3})
    others = [
        index(top_k=3),
        replace(index(), embedder=FakeEmbedder(model_id="another")),
        replace(index(), embedder=None),
        replace(index(), second=FakeEmbedder(model_id="second")),
        replace(index(), collection=replace(ships, profile=profile)),
    ]
    for other in others:
        assert not asked(other, cache).remembered
    assert not asked(index(), cache, model="qwen").remembered
    assert not asked(index(), cache, limit=1).remembered
    assert asked(index(), cache).remembered
    assert len({str(deciding(one, "")) for one in [index(), *others]}) == len(others) + 1


def test_a_changed_index_leaves_results_behind_at_once(
    index: Callable[..., Index],
    store: Store,
    ships: Collection,
    cache: Cache,
    embedder: FakeEmbedder,
) -> None:
    assert ids(asked(index(), cache)) == ["open"]
    write(store, ships, [document(ships, "new", "harbour anew")], embedder)
    assert set(ids(asked(index(), cache))) == {"open", "new"}
    write(store, ships, [document(ships, "new", "harbour anew", acl=["boss"])], embedder)
    assert ids(asked(index(), cache)) == ["open"]
    remove(store, ships, ["open"])
    assert ids(asked(index(), cache)) == []
    assert cache.hits == 0


class Failing(FakeEmbedder):
    def embed_query(self, text: str) -> object:  # type: ignore[override]
        raise ModelError("the model failed while it ran")


def test_a_result_that_could_be_better_is_not_kept(
    index: Callable[..., Index], ships: Collection, cache: Cache
) -> None:
    broken = replace(index(), embedder=Failing())
    for _ in range(2):
        found = asked(broken, cache)
        assert found.partial
        assert not found.remembered
    assert cache.entries == 0


@pytest.mark.parametrize("spoiled", [{"hidden": 1}, {"partial": True}, {}])
def test_late_or_stale_results_are_not_kept(
    index: Callable[..., Index], cache: Cache, spoiled: dict[str, object]
) -> None:
    shared = Results(index(), cache)
    deadline = time.monotonic() + (60 if spoiled else 0.01)
    for _ in range(2):
        with shared.call(ANN, "search", {"query": "x"}, deadline) as call:
            assert call.result is None
            call.result = ToolResult(**spoiled)  # type: ignore[arg-type]
            time.sleep(0 if spoiled else 0.02)
    assert cache.entries == 0
