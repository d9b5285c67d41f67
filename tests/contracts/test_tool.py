"""Contract of Tool: no tool returns a row that its caller may not see, whatever the caller asks.

The oracle `may_see` is written anew from the rules, over the generated documents alone. All
examples share one data directory, so the rows of every earlier example are foreign rows too.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, short_hash, write
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from postgres_server import RECORDS
from tiers import examples

from core.auth import AuthContext
from core.errors import CallerError, CarrelError, PolicyError
from core.metadata import parse_filters
from core.profile import Profile, ToolProfile
from core.settings import Settings
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store
from tools.toolbox import Toolbox
from tools.types import ToolResult

EXAMPLES = 250
LEAST_CALLS = 2000
TENANTS = ("red", "blue", "green")
ROLES = ("staff", "boss", "guest")
USERS = ("ann", "bob")
VERSIONS = ("", "1.0", "2.0")
SOURCES = ("a/1.md", "a/2.md", "a/[x].md", "a/x.md", "b/1.md", "b/sub/2.md", "c.csv#7", "^.md")
PATTERNS = (
    "*",
    "a/*",
    "b/*",
    "*.md",
    "a/?.md",
    "[ab]/*",
    "[!a]*",
    "[^a]*",
    "a/[[]x].md",
    "a/[x].md",
    "a/[",
    "c.csv#[0-9]",
    "nothing",
)
SHARED = "harbour"  # in every document
WORDS = ("ship", "crane", "rope", "pilot", "tide")
SCOPED = (("scoped_search", "search"), ("scoped_text", "search_text"), ("scoped", "query_records"))


@dataclass(frozen=True)
class Doc:
    tenant: str
    collection: str
    name: str
    source: str
    acl: frozenset[str]
    version: str
    record: bool
    words: tuple[tuple[str, ...], ...]
    secret: str


def chunk_ids(doc: Doc) -> list[str]:
    where = (doc.tenant, doc.collection, doc.name)
    return [short_hash(*where, doc.version, n) for n in range(len(doc.words))]


def passes(doc: Doc, text: str) -> bool:
    """Decide a filter of WHERE in plain Python."""
    year = 2000 + int(doc.secret[1])
    return {
        "author=S1": doc.secret == "s1",
        "authors!=s2": doc.secret != "s2",
        "creator~nn s3": doc.secret == "s3",
        "date>=2002": year >= 2002,
        "year<2003": year < 2003,
        "file=a/*.md": fnmatchcase(doc.source, "a/*.md"),
        "file!=1.md": doc.source.rpartition("/")[2] != "1.md",
        "version=2.0": doc.version == "2.0",
        "version>1.5": doc.version == "2.0",
        "type=text": True,
        "language=ru": False,
    }[text]


WHERE = (
    *("author=S1", "authors!=s2", "creator~nn s3", "date>=2002", "year<2003", "type=text"),
    *("file=a/*.md", "file!=1.md", "version=2.0", "version>1.5", "language=ru", "version=latest"),
)


def seen_by(
    docs: list[Doc], auth: AuthContext, collection: Collection, scope: tuple[str, ...] = ()
) -> list[Doc]:
    """Return what a caller may see of all documents, narrowed by filters and scope."""
    known = [doc for doc in docs if may_see(doc, auth, collection, ())]
    found = [doc for doc in known if may_see(doc, auth, collection, scope)]
    if auth.version_policy == "latest" or "version=latest" in map(str, auth.where):
        newest: dict[str, str] = {}
        for doc in known:
            family = re.sub("[0-9]+", "", doc.source)
            newest[family] = max(newest.get(family, ""), doc.version)
        found = [d for d in found if d.version in ("", newest[re.sub("[0-9]+", "", d.source)])]
    texts = [str(one) for one in auth.where if str(one) != "version=latest"]
    return [doc for doc in found if all(passes(doc, text) for text in texts)]


def may_see(doc: Doc, auth: AuthContext, collection: Collection, scope: tuple[str, ...]) -> bool:
    mine = doc.tenant == auth.tenant == collection.tenant and doc.collection == collection.name
    named = not doc.acl or bool(doc.acl & (auth.roles | {f"user:{auth.user}"}))
    allowed = auth.allowed_sources is None or any(
        fnmatchcase(doc.source, pattern) for pattern in auth.allowed_sources
    )
    fits = auth.version_policy in ("any", "latest") or doc.version in ("", auth.version_policy)
    scoped = not scope or any(fnmatchcase(doc.source, pattern) for pattern in scope)
    return mine and named and allowed and fits and scoped


principals = st.sampled_from([*ROLES, *(f"user:{user}" for user in USERS)])
docs = st.builds(
    Doc,
    tenant=st.sampled_from(TENANTS),
    collection=st.sampled_from(["x", "y"]),
    name=st.uuids().map(str),
    source=st.sampled_from(SOURCES),
    acl=st.frozensets(principals, max_size=2),
    version=st.sampled_from(VERSIONS),
    record=st.booleans(),
    words=st.lists(
        st.lists(st.sampled_from(WORDS), max_size=3).map(tuple), min_size=1, max_size=3
    ).map(tuple),
    secret=st.sampled_from(["s1", "s2", "s3", "s4"]),
)
callers = st.builds(
    AuthContext,
    tenant=st.sampled_from(TENANTS),
    user=st.sampled_from(USERS),
    roles=st.frozensets(st.sampled_from(ROLES), max_size=2),
    allowed_sources=st.none() | st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple),
    version_policy=st.sampled_from(["any", "any", "latest", "1.0", "2.0", "3.0"]),
)
scopes = st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple)
conditions = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "field": st.just("secret"),
                "op": st.sampled_from(["=", "contains"]),
                "value": st.sampled_from(["s1", "S2", "s", "' OR 1=1 --", "%", ""]),
            }
        ),
        st.fixed_dictionaries(
            {
                "field": st.just("year"),
                "op": st.sampled_from(["<", "<=", ">", ">="]),
                "value": st.sampled_from([0, 1, 2.5, "2"]),
            }
        ),
    ),
    max_size=3,
)
queries = st.lists(st.sampled_from([*WORDS, SHARED, "unheard", '"', "OR", "*"]), min_size=1).map(
    " ".join
)


class World:
    """One data directory that all examples write to, each under collections of its own."""

    def __init__(self, folder: Path, kept: Mapping[str, object]) -> None:
        self.embedder = FakeEmbedder()
        self.settings = Settings(data=folder, text_cutoff=0, **kept)
        self.store = Store(self.settings, self.embedder.model_id, create=True)
        self.calls = 0
        self._numbers = itertools.count()

    def fill(
        self, written: list[Doc], scope: tuple[str, ...]
    ) -> tuple[list[Doc], list[Collection]]:
        """Write the documents; return them with the collections they got."""
        number = next(self._numbers)
        tools = [
            ToolProfile(name=name, base=base, purpose="for the test", sources=list(scope))
            for name, base in SCOPED
        ]
        profile = Profile(name="p", tools=tools)
        placed: list[Doc] = []
        collections = []
        for tenant, short in sorted({(doc.tenant, doc.collection) for doc in written}):
            name = f"{short}{number}"
            collection = self.store.intake.open_collection(tenant, name, profile)
            collections.append(collection)
            rows = []
            for doc in written:
                if (doc.tenant, doc.collection) == (tenant, short):
                    kept = Doc(**{**doc.__dict__, "collection": name})
                    placed.append(kept)
                    rows.append(self.row(collection, kept))
            write(self.store, collection, rows, self.embedder)
        return placed, collections

    @staticmethod
    def row(collection: Collection, doc: Doc):
        texts = [f"{SHARED} {' '.join(words)} {n} {doc.name}" for n, words in enumerate(doc.words)]
        fields = {"secret": doc.secret, "year": float(doc.secret[1])} if doc.record else None
        return document(
            collection,
            doc.name,
            *texts,
            source=doc.source,
            acl=doc.acl,
            version=doc.version,
            fields=fields,
            metadata={"authors": [f"Ann {doc.secret}"], "year": 2000 + int(doc.secret[1])},
        )

    def toolbox(
        self, collection: Collection, where: Sequence[str] = (), beside: Sequence[Toolbox] = ()
    ) -> Toolbox:
        index = Index(self.store, collection, self.embedder, self.settings)
        return Toolbox(index, where=parse_filters(where), beside=beside)

    def run(
        self, tools: Toolbox, auth: AuthContext, name: str, arguments: dict[str, object]
    ) -> ToolResult:
        self.calls += 1
        return tools.run(name, arguments, auth, time.monotonic() + 60)


@pytest.fixture(scope="module", params=RECORDS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"), RECORDS[request.param]())
    yield made
    made.store.close()


def test_no_tool_returns_a_row_its_caller_may_not_see(world: World) -> None:
    @settings(
        max_examples=examples(EXAMPLES),
        phases=[Phase.generate],  # examples are small, and shrinking takes minutes
        suppress_health_check=list(HealthCheck),
    )
    @given(
        written=st.lists(docs, min_size=1, max_size=8),
        auth=callers,
        scope=scopes,
        query=queries,
        where=conditions,
        most=st.booleans(),
        order_by=st.sampled_from([None, "year", "secret"]),
        descending=st.booleans(),
        place=st.integers(0, 5),
        filters=st.lists(st.sampled_from(WHERE), max_size=2),
        more=st.lists(st.sampled_from(WHERE), max_size=1),
    )
    def check(written, auth, scope, query, where, most, order_by, descending, place, filters, more):
        placed, collections = world.fill(written, scope)
        collection = collections[place % len(collections)]
        tools = world.toolbox(collection, filters)
        asked_by, auth = auth, auth.narrowed(parse_filters(filters))
        seen = {c for d in seen_by(placed, auth, collection) for c in chunk_ids(d)}
        within = {c for d in seen_by(placed, auth, collection, scope) for c in chunk_ids(d)}
        fields = {
            spec.name: {info.name: info.examples for info in spec.fields}
            for spec in tools.specs(asked_by)
        }

        def rows(name: str, arguments: dict[str, object], permitted: set[str]) -> set[str]:
            result = world.run(tools, asked_by, name, arguments)
            returned = {item.chunk_id for item in result.evidence}
            assert returned <= permitted, (name, arguments)
            assert result.hidden == 0, (name, arguments)
            return returned

        # Everything that a word finds is found, when the limit allows.
        assert rows("search_text", {"query": SHARED, "limit": 100}, seen) == seen
        assert rows("search_vector", {"query": SHARED, "limit": 100}, seen) == seen
        assert rows("scoped_text", {"query": SHARED, "limit": 100}, within) == within
        for name in ("search_text", "search_vector", "search", "search_classic"):
            rows(name, {"query": query, "extended": place > 2}, seen)
        rows("scoped_search", {"query": query}, within)

        for name, permitted, bounds in (("query_records", seen, ()), ("scoped", within, scope)):
            records = [d for d in seen_by(placed, auth, collection, bounds) if d.record]
            assert set(fields[name].get("secret", [])) == {d.secret for d in records}
            everything = rows(name, {"limit": 100}, permitted)
            assert everything == {chunk_ids(d)[0] for d in records}
            if not records:  # nobody may ask for a field that is not shown
                continue
            asked = {"where": where, "match": "most" if most else "all", "limit": 100}
            found = rows(name, asked, permitted)
            assert found == {chunk_ids(d)[0] for d in records if meets(d, where, most)}
            ordered = {**asked, "order_by": order_by, "descending": descending, "query": query}
            rows(name, ordered, permitted)

        # A call narrows further; a field that the caller sees nowhere is refused.
        call = {"query": SHARED, "limit": 100, "where": more}
        if seen_by(placed, asked_by, collection) or not more:
            narrow = seen_by(placed, auth.narrowed(parse_filters(more)), collection)
            assert rows("search_text", call, seen) == {c for d in narrow for c in chunk_ids(d)}

        # Several collections give what each of them gives.
        others = [one for one in collections if one.tenant == auth.tenant and one != collection]
        joint = world.toolbox(collection, filters, [world.toolbox(o, filters) for o in others])
        result = world.run(joint, asked_by, "search_text", {"query": SHARED, "limit": 100})
        every = {c for one in others for d in seen_by(placed, auth, one) for c in chunk_ids(d)}
        assert {item.chunk_id for item in result.evidence} == seen | every
        if others:
            names = {(i.chunk_id, i.collection) for i in result.evidence}
            assert names == {(c, d.collection) for d in placed for c in chunk_ids(d)} & names

        for doc in placed[:3]:
            for chunk in chunk_ids(doc)[:1]:
                expected = set(chunk_ids(doc)[:3]) if chunk in seen else set()
                assert rows("read_document", {"chunk_id": chunk, "reach": 2}, seen) == expected

    check()
    assert world.calls >= LEAST_CALLS * examples(EXAMPLES) // EXAMPLES


def meets(doc: Doc, where: list[dict[str, object]], most: bool) -> bool:
    """Decide a record query in plain Python."""
    year = float(doc.secret[1])
    results = []
    for condition in where:
        value = condition["value"]
        match condition["op"]:
            case "=":
                results.append(doc.secret == str(value).casefold())
            case "contains":
                results.append(str(value).casefold() in doc.secret)
            case "<":
                results.append(year < float(value))
            case "<=":
                results.append(year <= float(value))
            case ">":
                results.append(year > float(value))
            case ">=":
                results.append(year >= float(value))
    return not results or (any(results) if most else all(results))


# Every tool, with the least that it can be called with: a new one is a line here.
CALLS: dict[str, dict[str, object]] = {
    "search": {"query": SHARED},
    "search_vector": {"query": SHARED},
    "search_text": {"query": SHARED},
    "search_classic": {"query": SHARED},
    "query_records": {},
    "read_document": {"chunk_id": "x"},
    "summarise": {},
}
ANN = AuthContext(tenant="red", user="ann")


@pytest.fixture(scope="module")
def tools(world: World) -> Toolbox:
    """Hold an open text and record, and one of each that the caller may not see."""
    written = [
        Doc(
            "red", "c", f"d{n}", f"a/{n}.md", acl, "", record, (("ship",),), "s1" if n < 2 else "s4"
        )
        for n, (acl, record) in enumerate(
            [(frozenset(), False), (frozenset(), True), (frozenset({"boss"}), True)]
        )
    ]
    collection = world.fill(written, ())[1][0]
    return world.toolbox(collection)


def call(tools: Toolbox, name: str, auth: object = ANN, seconds: float = 60, **more: object):
    arguments = {**CALLS[name], **more}
    if name == "read_document":
        arguments["chunk_id"] = readable(tools)
    return tools.run(name, arguments, auth, time.monotonic() + seconds)


def readable(tools: Toolbox) -> str:
    found = tools.run("search_text", {"query": SHARED}, ANN, time.monotonic() + 60)
    return found.evidence[0].chunk_id


def test_every_tool_is_in_this_suite(tools: Toolbox) -> None:
    assert {spec.name for spec in tools.specs(ANN)} - {name for name, _ in SCOPED} - {
        "scoped"
    } == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_tool_says_what_it_is_for_and_what_it_takes(tools: Toolbox, name: str) -> None:
    [spec] = [one for one in tools.specs(ANN) if one.name == name]
    assert spec.purpose.endswith(".") and "\n" not in spec.purpose
    Draft202012Validator.check_schema(spec.arguments)
    assert spec.arguments["additionalProperties"] is False
    assert set(spec.arguments.get("required", ())) <= CALLS[name].keys()
    Draft202012Validator(spec.arguments).validate(CALLS[name])
    shown = spec.model_dump_json()
    assert "s3" not in shown and "d2" not in shown


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_permitted_and_the_same_again(tools: Toolbox, name: str) -> None:
    result = call(tools, name)
    assert result.evidence
    assert "d2" not in {item.document_id for item in result.evidence} and result.hidden == 0
    assert result.auth_filter["tenant"] == "red"
    assert json.dumps([item.model_dump() for item in result.evidence])
    again = call(tools, name)
    assert [item.evidence_id for item in again.evidence] == [
        item.evidence_id for item in result.evidence
    ]
    stranger = AuthContext(tenant="blue", user="ann", roles=frozenset({"boss"}))
    assert call(tools, name, stranger).evidence == []


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "wrong", [{"tenant": "blue"}, {"auth": {}}, {"where": "author=S1"}, {"where": ["no filter"]}]
)
def test_arguments_that_a_tool_does_not_take_are_refused(
    tools: Toolbox, name: str, wrong: dict[str, object]
) -> None:
    with pytest.raises(CallerError):
        call(tools, name, **wrong)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_after_its_deadline_is_not_made(tools: Toolbox, name: str) -> None:
    with pytest.raises(CarrelError):
        call(tools, name, AuthContext(tenant="red", user="late"), seconds=-1)


@pytest.mark.parametrize("missing", [None, {"tenant": "red"}, "red"])
@pytest.mark.parametrize("name", CALLS)
def test_no_tool_runs_without_a_verified_caller(tools: Toolbox, name: str, missing: object) -> None:
    with pytest.raises(PolicyError, match="verified caller"):
        tools.run(name, CALLS[name], missing, time.monotonic() + 60)
