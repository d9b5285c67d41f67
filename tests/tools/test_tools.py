"""Each tool: its arguments, its limits, what it withholds and what it tells."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from candidate_builders import candidates
from fakes import FakeEmbedder, document, remove, write
from pydantic import ValidationError

from core.auth import AuthContext
from core.errors import CallerError
from core.profile import Profile, ToolProfile
from core.settings import Settings
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts
from tools.query_records import RecordArguments
from tools.toolbox import Toolbox
from tools.types import ToolError, ToolResult

ANN = AuthContext(tenant="acme", user="ann")
GENERAL = ["search", "search_vector", "search_text", "query_records"]
Run = Callable[..., ToolResult]


@pytest.fixture
def run(index: Callable[..., Index]) -> Run:
    def call(name: str, auth: AuthContext = ANN, **arguments: object) -> ToolResult:
        return Toolbox(index()).run(name, arguments, auth, time.monotonic() + 60)

    return call


def names(result: ToolResult) -> list[str]:
    return [item.document_id for item in result.evidence]


@pytest.fixture
def many(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [
        document(collection, f"d{n:02}", f"harbour {n}", fields={"year": 1900 + n})
        for n in range(30)
    ]
    write(store, collection, rows, embedder)
    return collection


@pytest.mark.parametrize(
    ("name", "arguments", "count"),
    [
        ("search_vector", {}, 5),
        ("search_vector", {"extended": True}, 15),
        ("search_text", {}, 5),
        ("search_text", {"extended": True}, 10),
        ("search_vector", {"limit": 1}, 1),
        ("search_text", {"limit": 20}, 20),
        ("search", {}, 10),
        ("search", {"extended": True}, 15),
        ("search", {"limit": 20}, 20),
        ("search_classic", {}, 1),
    ],
)
def test_how_many_results_a_search_gives(run: Run, many, name, arguments, count) -> None:
    assert len(run(name, query="harbour", **arguments).evidence) == count


def test_both_channels_are_fused_over_a_deep_pool(
    run: Run, store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    """What each channel ranks behind its first hits is found, if both of them know it."""
    rows = [document(collection, f"t{n}", "harbour harbour harbour crane") for n in range(6)]
    rows += [document(collection, "both", "harbour rope rope tide pilot")]
    write(store, collection, rows, embedder)
    assert "both" not in names(run("search_text", query="harbour"))
    assert "both" in names(run("search", query="harbour"))


@pytest.mark.parametrize("scoped", [False, True])
def test_links_are_followed_as_settings_and_arguments_say(
    store: Store, index: Callable[..., Index], embedder: FakeEmbedder, scoped: bool
) -> None:
    tool = ToolProfile(name="books", base="search", purpose="Books and authors.", sources=["*"])
    collection = store.intake.open_collection("acme", "l", Profile(name="p", tools=[tool]))
    texts = [
        "The Quiet Harbour is a novel; its author is Judith Marlow.",
        "After school Judith Marlow went to the university of the north.",
        *(f"Frog {n} lives near water." for n in range(12)),
    ]
    rows = [document(collection, f"d{n}", text) for n, text in enumerate(texts)]
    write(store, collection, rows, embedder)
    question = "Which university did the author of the novel The Quiet Harbour attend?"

    def followed(arguments: dict[str, object], name: str = "", **values: bool) -> bool:
        tools = Toolbox(index(collection, weight_vector=0.01, **values))
        asked = {"query": question, "language": "en", **arguments}
        result = tools.run(
            name or ("books" if scoped else "search"), asked, ANN, time.monotonic() + 60
        )
        return any("links" in item.scores for item in result.evidence)

    assert followed({})
    assert followed({"extended": True})
    assert not followed({}, agent_links=False)
    assert followed({"links": True}, agent_links=False)
    assert not followed({"links": False}, channel_links=True)
    assert not followed({}, "search_text")
    assert not followed({"links": True}, "search_vector")


@pytest.mark.parametrize(
    ("arguments", "count"), [({}, 5), ({"extended": True}, 15), ({"limit": 2}, 2)]
)
def test_how_many_records_a_query_gives(run: Run, many, arguments, count) -> None:
    result = run("query_records", order_by="year", **arguments)
    assert names(result) == [f"d{29 - n}" for n in range(count)]
    assert result.total == 30
    assert [item.score for item in result.evidence] == [1 / (1 + n) for n in range(count)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {}),
        ("search", {"query": ""}),
        ("search", {"query": "x" * 8001}),
        ("search", {"query": "x", "limit": 0}),
        ("search", {"query": "x", "limit": 101}),
        ("search", {"query": "x", "tenant": "rival"}),
        ("search_text", {"query": "x", "roles": ["boss"]}),
        ("search_vector", {"query": 5}),
        ("search_classic", {"query": "x", "sources": ["*"]}),
        ("query_records", {"limit": 101}),
        ("query_records", {"where": [{"field": "a", "op": "LIKE", "value": "x"}]}),
        ("query_records", {"where": [{"field": "a", "value": "x"}] * 9}),
        ("query_records", {"user": {"tenant": "rival"}}),
        ("read_document", {"chunk_id": ""}),
        ("read_document", {"chunk_id": "x", "reach": 6}),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(run: Run, name: str, arguments) -> None:
    with pytest.raises(ToolError, match=f"tool {name}: ") as caught:
        run(name, **arguments)
    assert "\n" not in str(caught.value)


def test_a_query_with_half_a_character_is_refused(run: Run, collection: Collection) -> None:
    with pytest.raises(ToolError, match="query"):
        run("search_text", query="harbour \ud800")


def test_an_unknown_tool_is_answered_with_the_known_ones(run: Run) -> None:
    with pytest.raises(ToolError, match="drop_tables.*search_text"):
        run("drop_tables")


@pytest.mark.parametrize("name", [*GENERAL, "search_classic", "read_document"])
def test_a_call_after_the_deadline_is_refused(index: Callable[..., Index], name: str) -> None:
    with pytest.raises(ToolError, match="time of this run"):
        Toolbox(index()).run(name, {"query": "x"}, ANN, time.monotonic() - 1)


def test_an_unknown_field_is_answered_with_the_visible_ones(
    run: Run, store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [
        document(collection, "a", "text", fields={"title": "a"}),
        document(collection, "b", "text", fields={"salary": "9"}, acl=["boss"]),
    ]
    write(store, collection, rows, embedder)
    for asked in ({"where": [{"field": "salary", "value": "9"}]}, {"order_by": "salary"}):
        with pytest.raises(ToolError, match=r"salary\. Fields: title\."):
            run("query_records", **asked)
        boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
        assert "b" in names(run("query_records", boss, **asked))


def test_neighbours_are_read_in_order_with_the_nearest_scored_best(
    run: Run, store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "d", *"abcdefg")
    write(store, collection, [row], embedder)
    result = run("read_document", chunk_id=row.chunks[3].chunk_id, reach=2)
    assert [item.text for item in result.evidence] == list("bcdef")
    assert [item.score for item in result.evidence] == [1 / 3, 1 / 2, 1, 1 / 2, 1 / 3]
    assert names(run("read_document", chunk_id=row.chunks[0].chunk_id, reach=0)) == ["d"]
    assert run("read_document", chunk_id="unknown").evidence == []


def test_each_result_says_what_was_enforced(run: Run, many: Collection) -> None:
    auth = AuthContext(
        tenant="acme", user="ann", roles=frozenset({"b", "a"}), allowed_sources=("d0*",)
    )
    for name in ("search", "search_text", "search_vector", "search_classic"):
        result = run(name, auth, query="harbour")
        assert result.auth_filter.items() >= auth.describe().items()
        assert {item.tool for item in result.evidence} == {name}
        assert all(name.startswith("d0") for name in names(result))
    assert run("query_records", auth).auth_filter["roles"] == ["a", "b"]


def test_a_profile_renames_scopes_and_replaces_tools(
    store: Store, index: Callable[..., Index], embedder: FakeEmbedder
) -> None:
    scoped = ToolProfile(
        name="search_books", base="search_text", purpose="Books only.", sources=["books/*"]
    )
    replaced = ToolProfile(
        name="search_text", base="search_text", purpose="Only the guide.", sources=["guide.md"]
    )
    profile = Profile(name="p", tools=[scoped, replaced])
    collection = store.intake.open_collection("acme", "scoped", profile)
    rows = [document(collection, n, "harbour") for n in ("books/a", "guide.md", "other.md")]
    write(store, collection, rows, embedder)
    tools = Toolbox(index(collection))
    specs = {spec.name: spec for spec in tools.specs(ANN)}
    assert set(specs) == {
        *GENERAL,
        "search_books",
        "read_document",
        "search_classic",
        "summarise",
    }
    assert {name for name, spec in specs.items() if spec.scoped} == {"search_books", "search_text"}
    for name, expected in (("search_books", ["books/a"]), ("search_text", ["guide.md"])):
        result = tools.run(name, {"query": "harbour"}, ANN, time.monotonic() + 60)
        assert names(result) == expected
        assert result.auth_filter["sources"] == (
            ["books/*"] if name == "search_books" else ["guide.md"]
        )


def test_every_spec_carries_a_schema_that_is_closed(index: Callable[..., Index]) -> None:
    for spec in Toolbox(index()).specs(ANN):
        assert spec.arguments["additionalProperties"] is False
        assert not {"tenant", "user", "roles", "auth"} & set(spec.arguments["properties"])
        assert spec.purpose.endswith(".")


class LyingIndex:
    """Return every chunk of every tenant, as a damaged or stale index might."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._honest = store.search

    def candidates(self, *arguments, **values):
        rows = (
            parts(self._store)
            .database.read()
            .execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")
        )
        ids = sorted(["gone", *(row[0] for row in rows)])
        return candidates([1.0] * len(ids), [0.9] * len(ids), ids=ids)

    def __getattr__(self, name: str):
        return getattr(self._honest, name)


@pytest.mark.parametrize("name", ["search_vector", "search", "search_classic", "query_records"])
def test_rows_of_a_lying_index_are_withheld_and_counted(
    run: Run, store: Store, collection: Collection, embedder: FakeEmbedder, name: str
) -> None:
    rival = store.intake.open_collection("rival", "main", None)
    write(store, rival, [document(rival, "foreign", "harbour")], embedder)
    rows = [
        document(collection, "mine", "harbour", fields={"x": 1}),
        document(collection, "closed", "harbour", acl=["boss"], fields={"x": 1}),
    ]
    write(store, collection, rows, embedder)
    store.search = LyingIndex(store)
    result = run(name, query="harbour")
    assert set(names(result)) == {"mine"}
    assert result.hidden >= 3


def test_a_chroma_row_of_a_removed_or_closed_document_is_never_shown(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    """Chroma has not heard of the changes; what it still holds is looked up in the truth."""
    store = open_store(index="chroma")
    collection = store.intake.open_collection("acme", "main", None)
    write(store, collection, [document(collection, n, f"harbour {n}") for n in "ab"], embedder)
    remove(store, collection, ["a", "b"])
    later = [document(collection, n, f"other {n}") for n in "cd"]
    closed = document(collection, "b", "harbour b", acl=["boss"])
    write(store, collection, [*later, closed], embedder)
    tools = Toolbox(Index(store, collection, embedder, Settings(data=store.folder)))
    boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
    for auth, expected in ((ANN, ["c", "d"]), (boss, ["b", "c", "d"])):
        asked = {"query": "harbour a"}
        result = tools.run("search_vector", asked, auth, time.monotonic() + 60)
        assert sorted(names(result)) == expected
    result = tools.run("search_vector", {"query": "harbour a"}, ANN, time.monotonic() + 60)
    assert sorted(names(result)) == ["c", "d"]


def test_without_an_embedder_words_still_find(
    store: Store, many: Collection, index: Callable[..., Index]
) -> None:
    keyword_only = Index(store, many, None, index().settings)
    tools = Toolbox(keyword_only)
    deadline = time.monotonic() + 60
    found = tools.run("search", {"query": "harbour 7"}, ANN, deadline)
    assert names(found)[0] == "d07"
    assert found.notes
    found = tools.run("search_vector", {"query": "harbour 7"}, ANN, deadline)
    assert names(found)[0] == "d07"
    assert any(note.startswith("keywords only") for note in found.notes)
    assert names(tools.run("search_classic", {"query": "harbour 7"}, ANN, deadline)) == ["d07"]


@pytest.mark.parametrize(("order", "message"), [({"order_by": "nothing"}, "a field must exist")])
def test_errors_of_a_tool_are_the_callers(run: Run, many, order, message) -> None:
    with pytest.raises(CallerError, match=message):
        run("query_records", **order)


def test_rare_terms_weigh_more(index: Callable[..., Index], many: Collection) -> None:
    weights = Toolbox(index()).term_weights()(["harbour", "7", "unheard"])
    assert weights["harbour"] < weights["7"] < weights["unheard"]


@pytest.mark.parametrize("given", [{}, {"field": "status"}])
def test_groups_of_nothing_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="name it in `by`"):
        RecordArguments.model_validate({"aggregate": "groups", **given})


def test_a_second_search_weighs_words_more_where_a_profile_says_so(
    many: Collection, index: Callable[..., Index]
) -> None:
    made = index(**{"selection.factor_amounts": ["retry=0.2"]})
    arguments = {"query": "harbour", "extended": True}
    box = Toolbox(made)
    found = box.run("search", arguments, ANN, time.monotonic() + 60)
    assert "searched again with vectors at 0.4" in found.notes
    first = box.run("search", {"query": "harbour"}, ANN, time.monotonic() + 60)
    assert not any("again" in note for note in first.notes)
