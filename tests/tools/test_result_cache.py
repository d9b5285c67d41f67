"""What a run has asked before is answered once, for the same caller and the same index only."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.auth import AuthContext
from core.errors import PolicyError
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store
from tools.toolbox import Toolbox
from tools.types import ToolError, ToolResult

ANN = AuthContext(tenant="acme", user="ann")
THREADS = 4


def call(
    tools: Toolbox, query: str, auth: AuthContext = ANN, name: str = "search", **more: object
) -> ToolResult:
    return tools.run(name, {"query": query, **more}, auth, time.monotonic() + 60)


def names(result: ToolResult) -> list[str]:
    return [item.document_id for item in result.evidence]


def remembered(result: ToolResult) -> bool:
    return result.remembered


@pytest.fixture
def ships(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [
        document(collection, "open", "harbour of ships"),
        document(collection, "boss", "harbour of the boss", acl=["boss"]),
        document(collection, "ann", "harbour of ann", acl=["user:ann"]),
        document(collection, "old", "harbour as it was", version="1.0"),
    ]
    write(store, collection, rows, embedder)
    return collection


@pytest.fixture
def tools(index: Callable[..., Index], ships: Collection) -> Toolbox:
    return Toolbox(index())


def test_the_same_call_is_answered_once_and_says_so(tools: Toolbox) -> None:
    first, second = call(tools, "harbour"), call(tools, "harbour")
    assert not remembered(first)
    assert first.stages
    assert remembered(second)
    assert second.stages == []
    assert second.evidence == first.evidence
    assert second.auth_filter == first.auth_filter


@pytest.mark.parametrize(
    "changed",
    [
        {"query": "ships"},
        {"limit": 2},
        {"extended": True},
        {"links": False},
        {"language": "ru"},
        {"name": "search_text"},
    ],
)
def test_another_call_is_made(tools: Toolbox, changed: dict[str, object]) -> None:
    call(tools, "harbour")
    assert not remembered(call(tools, **{"query": "harbour", **changed}))


@pytest.mark.parametrize(
    ("other", "seen"),
    [
        ({"user": "bob"}, {"open", "old"}),
        ({"roles": frozenset({"boss"})}, {"open", "old", "ann", "boss"}),
        ({"allowed_sources": ("open*",)}, {"open"}),
        ({"allowed_sources": ()}, set()),
        ({"version_policy": "2.0"}, {"open", "ann"}),
        ({"tenant": "rival"}, set()),
    ],
)
def test_another_caller_never_gets_it(
    tools: Toolbox, other: dict[str, object], seen: set[str]
) -> None:
    mine = {"open", "old", "ann"}
    stranger = AuthContext.model_validate({**ANN.model_dump(), **other})
    for auth, expected in ((ANN, mine), (stranger, seen)):
        found = call(tools, "harbour", auth)
        assert set(names(found)) == expected
        assert not remembered(found)
        assert found.auth_filter.items() >= auth.describe().items()
    for auth, expected in ((ANN, mine), (stranger, seen)):
        found = call(tools, "harbour", auth)
        assert remembered(found)
        assert set(names(found)) == expected


def test_nobody_gets_it_without_being_verified_or_in_time(tools: Toolbox) -> None:
    call(tools, "harbour")
    with pytest.raises(PolicyError, match="verified caller"):
        tools.run("search", {"query": "harbour"}, ANN.model_dump(), time.monotonic() + 60)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="time of this run"):
        tools.run("search", {"query": "harbour"}, ANN, time.monotonic() - 1)


def test_an_ingest_in_between_is_seen(
    tools: Toolbox, store: Store, ships: Collection, embedder: FakeEmbedder
) -> None:
    assert set(names(call(tools, "harbour"))) == {"open", "old", "ann"}
    write(store, ships, [document(ships, "new", "harbour anew")], embedder)
    assert set(names(call(tools, "harbour"))) == {"open", "old", "ann", "new"}
    remove(store, ships, ["open"])
    assert set(names(call(tools, "harbour"))) == {"old", "ann", "new"}
    closed = document(ships, "new", "harbour anew", acl=["boss"])
    write(store, ships, [closed], embedder)
    assert set(names(call(tools, "harbour"))) == {"old", "ann"}


def test_what_a_reader_does_to_a_result_stays_with_it(tools: Toolbox) -> None:
    first = call(tools, "harbour")
    kept = list(first.evidence)
    first.evidence.clear()
    first.notes.append("mine")
    first.auth_filter["roles"] = ["boss"]
    second = call(tools, "harbour")
    second.evidence.clear()
    third = call(tools, "harbour")
    assert third.evidence == kept
    assert "mine" not in third.notes
    assert third.auth_filter["roles"] == []


def test_a_refused_call_is_refused_again(tools: Toolbox) -> None:
    for _ in range(2):
        with pytest.raises(ToolError, match="query"):
            tools.run("search", {"query": ""}, ANN, time.monotonic() + 60)
        with pytest.raises(ToolError, match="query"):
            tools.run("search", {"query": object()}, ANN, time.monotonic() + 60)


def test_the_oldest_results_are_forgotten(index: Callable[..., Index], ships: Collection) -> None:
    tools = Toolbox(index(tool_cache=2))
    for query in ("one", "two", "one", "three"):
        call(tools, query)
    assert remembered(call(tools, "one"))
    assert not remembered(call(tools, "two"))
    nothing = Toolbox(index(tool_cache=0))
    assert not any(remembered(call(nothing, "one")) for _ in range(3))


class Slow(FakeEmbedder):
    """An embedder that waits for `go`, and fails the first time where it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.started, self.go, self.calls, self.fails = Event(), Event(), 0, fails

    def embed_query(self, text: str) -> Any:
        self.calls += 1
        self.started.set()
        assert self.go.wait(60)
        if self.fails and self.calls == 1:
            raise KeyboardInterrupt
        return super().embed_query(text)


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_is_being_answered_is_waited_for(
    index: Callable[..., Index], ships: Collection, fails: bool
) -> None:
    """Where it fails, one who waits makes it."""
    slow = Slow(fails=fails)
    tools = Toolbox(replace(index(), embedder=slow))
    with ThreadPoolExecutor(THREADS) as pool:
        first = pool.submit(call, tools, "harbour")
        assert slow.started.wait(60)
        other = pool.submit(call, tools, "harbour")
        slow.go.set()
        if fails:
            with pytest.raises(KeyboardInterrupt):
                first.result(60)
        else:
            assert not remembered(first.result(60))
        assert set(names(other.result(60))) == {"open", "old", "ann"}
        assert remembered(other.result(60)) is not fails
    assert slow.calls == 1 + fails


def test_four_threads_find_what_one_finds(
    index: Callable[..., Index], store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    """Searches of all kinds, the same and different ones, by callers with different rights."""
    rows = [
        document(
            collection,
            f"d{n:02}",
            f"harbour {n} of Ada Byron and ship {n % 7}",
            f"Корабль {n} стоит в гавани",
            acl=["boss"] if n % 3 == 0 else (),
            fields={"year": 1900 + n},
        )
        for n in range(40)
    ]
    write(store, collection, rows, embedder)
    boss = AuthContext(tenant="acme", user="bob", roles=frozenset({"boss"}))
    asked = [
        (name, {"query": f"{word} {n}"}, auth)
        for name in ("search", "search_vector", "search_text", "search_classic", "query_records")
        for word in ("harbour", "ship", "корабль")
        for n in range(4)
        for auth in (ANN, boss)
    ]
    alone = Toolbox(index(tool_cache=0))
    expected = [names(alone.run(*one, time.monotonic() + 60)) for one in asked]
    assert any(expected)
    shared, begin = Toolbox(index()), Barrier(THREADS)

    def work(thread: int) -> list[list[str]]:
        begin.wait(60)
        order = [(place + 31 * thread) % len(asked) for place in range(len(asked))]
        found = {place: names(shared.run(*asked[place], time.monotonic() + 60)) for place in order}
        return [found[place] for place in range(len(asked))]

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(work, range(THREADS)):
            assert found == expected
