"""Links read from the postings equal those counted by hand over what the caller sees."""

from __future__ import annotations

from collections.abc import Iterator
from math import log1p

import pytest
from fakes import FakeEmbedder, OpenShelf, document, remove, write
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.settings import Settings
from stores.segments import channels
from stores.segments.channels import Links
from stores.sqlite.catalogue import Collection
from stores.store import Store

NAMES = [("ada", "moor"), ("moor",), ("bela",), ("cyra", "quill"), ("nobody",)]
TEXTS = [
    "Ada Moor met Bela",
    "Moor and Ada at sea",
    "Bela alone",
    "Cyra Quill painted Bela",
    "Quill wrote to Cyra and Ada",
    "the sea is calm",
    "Moor",
]
WORDS = [{"sea"}, {"met", "paint"}, {"absent"}]
ROLES = ("boss", "crew")
Filled = tuple[Store, Collection, dict[str, tuple[str, frozenset[str]]]]


@pytest.fixture(scope="module", params=["memory", "segment"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    least = 1000 if request.param == "memory" else 10
    settings = Settings(data=tmp_path_factory.mktemp("links"), segment_min_rows=least)
    with pytest.MonkeyPatch.context() as patch, Store(settings, "fake", create=True) as store:
        patch.setattr(channels, "HUB_LEAST", 4)
        collection = store.intake.open_collection("acme", "main", None)
        rows, known = [], {}
        for number in range(28):
            acl = {0: [], 1: ["boss"], 2: ["crew"], 3: ["user:ann"]}[number % 4]
            text = TEXTS[number % 7]
            row = document(collection, f"d{number}", text, source=f"{number % 3}.md", acl=acl)
            rows.append(row)
            known[row.chunks[0].chunk_id] = (text, frozenset(acl), f"{number % 3}.md")
        write(store, collection, rows[:20], FakeEmbedder())
        assert store.search.refresh(collection) is (request.param == "segment")
        write(store, collection, rows[20:], FakeEmbedder())  # newer than the segment
        remove(store, collection, ["d5"])
        del known[rows[5].chunks[0].chunk_id]
        yield store, collection, known


def look_up(
    filled: Filled, auth: AuthContext, sources: tuple[str, ...] = (), limit: int = 100
) -> Links:
    store, collection, known = filled
    found = store.search.links(
        auth,
        collection.id,
        names=NAMES,
        words=WORDS,
        seeds=sorted(known)[:3],
        limit=limit,
        sources=sources,
    )
    assert found is not None
    return found


def stems(text: str) -> set[str]:
    return {word.lower().removesuffix("ed") for word in text.split()}


@given(
    roles=st.sets(st.sampled_from(ROLES)),
    user=st.sampled_from(["ann", "bob"]),
    source=st.sampled_from(["", "0.md", "2.md"]),
)
def test_only_what_the_caller_sees_is_linked_and_counted(filled, roles, user, source) -> None:
    rights = {"acme": True, **dict.fromkeys(roles, True), f"user:{user}": True}
    seen = {
        key: stems(text)
        for key, (text, acl, where) in filled[2].items()
        if (not acl or acl & rights.keys()) and source in ("", where)
    }
    auth = AuthContext(tenant="acme", user=user, roles=frozenset(roles))
    links = look_up(filled, auth, (source,) if source else ())
    assert links.visible == len(seen)
    saying = [{key for key, said in seen.items() if said.issuperset(name)} for name in NAMES]
    kept = [one if 2 <= len(one) <= 4 else set() for one in saying]
    assert links.counts.tolist() == [len(one) for one in kept]
    assert set(links.chunk_ids) == set().union(*kept)
    assert len(links.chunk_ids) == len(set(links.chunk_ids))
    for said, one in zip(links.says, kept, strict=True):
        assert {key for key, yes in zip(links.chunk_ids, said, strict=True) if yes} == one
    for group, rarity, covers, seeds in zip(
        WORDS, links.rarity, links.covers, links.seed_covers, strict=True
    ):
        having = {key for key, said in seen.items() if said & group}
        assert rarity == pytest.approx(log1p(len(seen) / (1 + len(having))))
        assert covers.tolist() == [key in having for key in links.chunk_ids]
        assert seeds.tolist() == [key in having for key in sorted(filled[2])[:3]]


def test_another_tenant_sees_no_links(filled) -> None:
    links = look_up(filled, AuthContext(tenant="other", roles=frozenset(ROLES)))
    assert links.chunk_ids == [] and links.visible == 0 and not links.counts.any()


def test_the_limit_keeps_chunks_with_the_rarest_names(filled) -> None:
    auth = AuthContext(tenant="acme")
    links, few = look_up(filled, auth), look_up(filled, auth, limit=2)
    assert len(few.chunk_ids) == 2 < len(links.chunk_ids)
    shares = links.says.T @ (1 / links.counts.clip(min=1))
    worth = dict(zip(links.chunk_ids, shares.tolist(), strict=True))
    assert sorted(worth.values(), reverse=True)[:2] == sorted(
        (worth[key] for key in few.chunk_ids), reverse=True
    )


def test_without_counted_words_there_are_no_links(open_shelf: OpenShelf) -> None:
    shelf = open_shelf(segment_min_rows=2)
    shelf.put({f"d{n}": "Ada Moor" for n in range(5)})
    asked = {"names": NAMES, "words": WORDS, "seeds": [], "limit": 5}
    assert shelf.search.links(AuthContext(tenant="acme"), shelf.id, **asked) is None
    shelf.search.refresh(shelf.collection)
    assert shelf.search.links(AuthContext(tenant="acme"), shelf.id, **asked) is not None
