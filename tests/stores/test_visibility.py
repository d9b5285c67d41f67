"""The permission filter, rule by rule; the random test of all tools is in tests/tools."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from fakes import FakeEmbedder, document, write
from hypothesis import example, given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.errors import CallerError
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

SOURCES = [
    "a.md",
    "b.md",
    "docs/a.md",
    "docs/sub/a.md",
    "docs/[1].md",
    "docs/1.md",
    "]",
    "[",
    "^",
    "!",
    "-",
    "A.md",
    "ä.md",
    "日本.md",
    "t.csv#1",
    "*",
    "?",
]


def visible(store: Store, auth: AuthContext, collection: Collection, *sources: str) -> set[str]:
    rows = store.catalogue.visible_documents(auth, collection.id, sources)
    names = dict(parts(store).database.read().execute("SELECT id, document_id FROM documents"))
    return {names[row] for row in rows}


@pytest.mark.parametrize(
    ("acl", "user", "roles", "seen"),
    [
        ([], "ann", [], True),
        (["staff"], "ann", [], False),
        (["staff"], "ann", ["staff"], True),
        (["staff"], "ann", ["Staff"], False),
        (["staff", "boss"], "ann", ["boss"], True),
        (["user:ann"], "ann", [], True),
        (["user:ann"], "bob", ["ann"], False),
        (["user:ann"], "Ann", [], False),
        (["ann"], "ann", [], False),
    ],
)
def test_an_access_list_names_roles_and_users(
    store: Store, collection: Collection, embedder: FakeEmbedder, acl, user, roles, seen
) -> None:
    write(store, collection, [document(collection, "d", "text", acl=acl)], embedder)
    auth = AuthContext(tenant="acme", user=user, roles=frozenset(roles))
    assert (visible(store, auth, collection) == {"d"}) is seen


@pytest.mark.parametrize("role", ["user:ann", "user:bob", "a b", "", "a" * 65, "a'b"])
def test_a_role_cannot_pass_for_a_user(role: str) -> None:
    with pytest.raises(CallerError, match="a role is"):
        AuthContext(tenant="acme", roles=frozenset({role}))


def test_another_tenant_sees_nothing(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "d", "text")
    write(store, collection, [row], embedder)
    auth = AuthContext(tenant="rival", roles=frozenset({"acme"}))
    assert visible(store, auth, collection) == set()
    chunk = row.chunks[0].chunk_id
    assert store.catalogue.evidence(auth, collection.id, [chunk]) == {}
    assert store.catalogue.neighbours(auth, collection.id, chunk, 5) == []
    with pytest.raises(CallerError, match="must exist"):
        store.catalogue.collection("rival", "main")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("any", {"none", "v1", "v2"}), ("1.0", {"none", "v1"}), ("3.0", {"none"})],
)
def test_a_version_policy_admits_that_version_and_what_has_none(
    store: Store, collection: Collection, embedder: FakeEmbedder, policy, expected
) -> None:
    versions = {"none": "", "v1": "1.0", "v2": "2.0"}
    rows = [document(collection, name, "text", version=v) for name, v in versions.items()]
    write(store, collection, rows, embedder)
    assert visible(store, AuthContext(tenant="acme", version_policy=policy), collection) == expected


def test_source_patterns_are_those_of_a_shell(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, name, "text") for name in SOURCES], embedder)

    @given(st.lists(st.text("[]!^-*?abA.md/#1日\x00", max_size=8), max_size=3).map(tuple))
    @example(("[!a]*",))
    @example(("[^a]*",))
    @example(("[]]",))
    @example(("[[]",))
    @example(("docs/[[]1].md",))
    @example(("docs/[1].md",))
    @example(("[",))
    @example(("a.md\x00*",))
    @example(())
    def check(patterns: tuple[str, ...]) -> None:
        expected = {s for s in SOURCES if any(fnmatchcase(s, p) for p in patterns)}
        confined = AuthContext(tenant="acme", allowed_sources=patterns)
        assert visible(store, confined, collection) == expected
        scoped = visible(store, AuthContext(tenant="acme"), collection, *patterns)
        assert scoped == (expected if patterns else set(SOURCES))

    check()


@pytest.mark.parametrize("count", [1, 99, 100, 101, 5000])
def test_a_caller_may_be_confined_to_many_sources(
    store: Store, collection: Collection, embedder: FakeEmbedder, count: int
) -> None:
    write(store, collection, [document(collection, n, "text") for n in ("p0", "last")], embedder)
    patterns = (*(f"x{n}" for n in range(count - 1)), "last")
    auth = AuthContext(tenant="acme", allowed_sources=patterns)
    assert visible(store, auth, collection) == {"last"}


def test_a_wider_pattern_of_a_tool_does_not_widen_the_callers(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, name, "text") for name in SOURCES], embedder)
    auth = AuthContext(tenant="acme", allowed_sources=("docs/*",))
    everywhere = visible(store, auth, collection, "*")
    assert everywhere == {name for name in SOURCES if name.startswith("docs/")}
    assert visible(store, auth, collection, "a.md") == set()


def test_many_chunks_are_read_in_parts(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "d", *(f"text {n}" for n in range(1203)))
    write(store, collection, [row], embedder)
    ids = [chunk.chunk_id for chunk in row.chunks]
    found = store.catalogue.evidence(AuthContext(tenant="acme"), collection.id, [*ids, "unknown"])
    assert set(found) == set(ids)
