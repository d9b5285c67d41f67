"""Contract of Catalogue: what exists, and what a caller may see of it, rule by rule.

The random test of permissions, over all tools, is in test_tool.py.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from fakes import FakeEmbedder, Shelf, document, write
from hypothesis import example, given
from hypothesis import strategies as st
from record_books import ANN, BOSS, INJECTIONS, called

from core.auth import AuthContext
from core.errors import CallerError
from core.metadata import parse_filter
from stores.sqlite.catalogue import Collection
from stores.sqlite.record_conditions import Condition, RecordScope
from stores.store import Store

SOURCES = [
    *("a.md", "b.md", "docs/a.md", "docs/sub/a.md", "docs/[1].md", "docs/1.md", "]", "[", "^"),
    *("!", "-", "A.md", "ä.md", "日本.md", "t.csv#1", "*", "?"),
]


def visible(store: Store, auth: AuthContext, collection: Collection, *sources: str) -> set[str]:
    rows = store.catalogue.visible_documents(auth, collection.id, sources)
    return set(called(store, auth, collection, rows))


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
def test_an_access_list_names_roles_and_users(shelf: Shelf, acl, user, roles, seen) -> None:
    shelf.write(shelf.row("d", "text", acl=acl))
    auth = AuthContext(tenant="acme", user=user, roles=frozenset(roles))
    assert (visible(shelf.store, auth, shelf.collection) == {"d"}) is seen


@pytest.mark.parametrize("role", ["user:ann", "user:bob", "a b", "", "a" * 65, "a'b"])
def test_a_role_cannot_pass_for_a_user(role: str) -> None:
    with pytest.raises(CallerError, match="a role is"):
        AuthContext(tenant="acme", roles=frozenset({role}))


def test_another_tenant_sees_nothing(shelf: Shelf) -> None:
    row = shelf.row("d", "text")
    shelf.write(row)
    auth = AuthContext(tenant="rival", roles=frozenset({"acme"}))
    assert visible(shelf.store, auth, shelf.collection) == set()
    chunk = row.chunks[0].chunk_id
    assert shelf.catalogue.evidence(auth, shelf.id, [chunk]) == {}
    assert shelf.catalogue.neighbours(auth, shelf.id, chunk, 5) == []
    with pytest.raises(CallerError, match="must exist"):
        shelf.catalogue.collection("rival", "main")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("any", {"none", "v1", "v2"}), ("1.0", {"none", "v1"}), ("3.0", {"none"})],
)
def test_a_version_policy_admits_that_version_and_what_has_none(
    shelf: Shelf, policy, expected
) -> None:
    versions = {"none": "", "v1": "1.0", "v2": "2.0"}
    rows = [shelf.row(name, "text", version=v) for name, v in versions.items()]
    shelf.write(*rows)
    assert (
        visible(shelf.store, AuthContext(tenant="acme", version_policy=policy), shelf.collection)
        == expected
    )


def test_source_patterns_are_those_of_a_shell(shelf: Shelf) -> None:
    shelf.write(*[shelf.row(name, "text") for name in SOURCES])

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
        assert visible(shelf.store, confined, shelf.collection) == expected
        scoped = visible(shelf.store, AuthContext(tenant="acme"), shelf.collection, *patterns)
        assert scoped == (expected if patterns else set(SOURCES))

    check()


@pytest.mark.parametrize("count", [1, 99, 100, 101, 5000])
def test_a_caller_may_be_confined_to_many_sources(shelf: Shelf, count: int) -> None:
    shelf.write(*[shelf.row(n, "text") for n in ("p0", "last")])
    patterns = (*(f"x{n}" for n in range(count - 1)), "last")
    auth = AuthContext(tenant="acme", allowed_sources=patterns)
    assert visible(shelf.store, auth, shelf.collection) == {"last"}


def test_a_wider_pattern_of_a_tool_does_not_widen_the_callers(shelf: Shelf) -> None:
    shelf.write(*[shelf.row(name, "text") for name in SOURCES])
    auth = AuthContext(tenant="acme", allowed_sources=("docs/*",))
    everywhere = visible(shelf.store, auth, shelf.collection, "*")
    assert everywhere == {name for name in SOURCES if name.startswith("docs/")}
    assert visible(shelf.store, auth, shelf.collection, "a.md") == set()


def test_many_chunks_are_read_in_parts(shelf: Shelf) -> None:
    row = shelf.row("d", *(f"text {n}" for n in range(1203)))
    shelf.write(row)
    ids = [chunk.chunk_id for chunk in row.chunks]
    found = shelf.catalogue.evidence(AuthContext(tenant="acme"), shelf.id, [*ids, "unknown"])
    assert set(found) == set(ids)


def first_chunk_ids(store: Store, collection: Collection) -> list[str]:
    return [one.first for one in store.catalogue.document_names(ANN, collection.id)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("title", "=", "dune"), ["dune"]),
        (("title", "=", "dun"), []),
        (("title", "contains", "U"), ["dune", "ulysses"]),
        (("tags", "=", "space"), ["dune"]),
        (("tags", "contains", "o"), ["emma"]),
        (("year", "=", "1965"), ["dune"]),
        (("year", "=", 1965), ["dune"]),
        (("year", "contains", 1965), ["dune"]),
        (("year", "contains", "19"), ["dune", "ulysses"]),
        (("year", ">", 1922), ["dune"]),
        (("year", ">=", "1922"), ["dune", "ulysses"]),
        (("year", "<", 1815.5), ["emma"]),
        (("year", "<=", 1815), ["emma"]),
        (("author", ">", 0), []),
        (("year", "<", float("nan")), []),
        (("year", "<", float("inf")), ["dune", "emma", "ulysses"]),
        (("secret", "contains", ""), []),
        (("nothing", "=", "x"), []),
        (("nothing", "missing", ""), ["dune", "emma", "ulysses"]),
        (("title", "missing", ""), []),
    ],
)
def test_a_condition_means_what_it_says(find, condition, expected) -> None:
    assert find(condition) == expected


def test_one_of_several_values_in_a_cell_is_equal_to_what_is_asked(shelf: Shelf) -> None:
    cells = [
        "travel; trains",
        "trains;sea",
        "sea|trains|air",
        "trains",
        "seatrains; x",
        "a, trains",
    ]
    rows = [shelf.row(str(n), "text", fields={"subjects": cell}) for n, cell in enumerate(cells)]
    shelf.write(*rows)
    where = [Condition(field="subjects", op="=", value="trains")]
    _, total = shelf.catalogue.find_records(
        RecordScope(ANN, shelf.id), where, order_by=None, descending=True, limit=20
    )
    assert total == 4


def test_all_conditions_must_hold_or_most(find) -> None:
    both = [("author", "=", "herbert"), ("year", ">", 1900)]
    assert find(*both) == ["dune"]
    assert find(*both, most=True) == ["dune", "ulysses"]
    assert find(("author", "=", "austen"), ("year", ">", 1950), ("year", ">", 1960), most=True) == [
        "dune",
        "emma",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["dune", "emma", "ulysses"]),
        ({"order_by": "year"}, ["dune", "ulysses", "emma"]),
        ({"order_by": "year", "descending": False}, ["emma", "ulysses", "dune"]),
        ({"order_by": "author", "descending": False}, ["emma", "dune", "ulysses"]),
        ({"order_by": "year", "limit": 1}, ["dune"]),
    ],
)
def test_records_come_in_the_order_asked_for(find, options, expected) -> None:
    assert find(**options) == expected


def test_the_total_counts_all_that_match(store: Store, books: Collection) -> None:
    asked = {"order_by": None, "descending": True, "limit": 1}
    rows, total = store.catalogue.find_records(RecordScope(ANN, books.id), [], **asked)
    assert (len(rows), total) == (1, 3)


def test_a_stored_value_that_looks_like_sql_is_found_as_text(shelf: Shelf) -> None:
    rows = [shelf.row(str(n), "text", fields={"title": text}) for n, text in enumerate(INJECTIONS)]
    shelf.write(*rows)
    for text in INJECTIONS:
        where = [Condition(field="title", op="=", value=text)]
        rows_found, total = shelf.catalogue.find_records(
            RecordScope(ANN, shelf.id), where, order_by="title", descending=True, limit=20
        )
        assert (len(rows_found), total) == (1, 1)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_comparing_needs_a_number(find, op: str) -> None:
    with pytest.raises(CallerError, match="compares numbers"):
        find(("year", op, "old"))


def test_what_is_remembered_of_fields_is_of_one_caller_and_one_index(
    store: Store, books: Collection, embedder: FakeEmbedder
) -> None:
    for _ in range(2):
        assert "secret" not in {
            info.name for info in store.catalogue.fields_of_records(ANN, books.id)
        }
        assert "secret" in {info.name for info in store.catalogue.fields_of_records(BOSS, books.id)}
    more = document(books, "more", "More.", fields={"shelf": "A"})
    write(store, books, [more], embedder)
    assert "shelf" in {info.name for info in store.catalogue.fields_of_records(ANN, books.id)}


def test_fields_are_described_as_the_caller_may_see_them(store: Store, books: Collection) -> None:
    fields = {info.name: info for info in store.catalogue.fields_of_records(ANN, books.id)}
    assert list(fields) == ["author", "tags", "title", "year"]
    assert fields["year"].type == "number"
    assert fields["author"].type == "text"
    assert fields["author"].values == 3
    assert fields["tags"].examples == ["Space", "love", "sand"]
    assert "secret" in {info.name for info in store.catalogue.fields_of_records(BOSS, books.id)}
    stranger = AuthContext(tenant="rival", roles=frozenset({"boss"}))
    assert store.catalogue.fields_of_records(stranger, books.id) == []
    assert store.catalogue.fields_of_records(BOSS, books.id, ["emma"])[0].examples == ["Austen"]


def test_totals_groups_and_sums_count_only_what_the_caller_may_see(
    store: Store, books: Collection
) -> None:
    for auth, names, added in ((ANN, 3, 5702.0), (BOSS, 4, 7701.0)):
        groups = store.catalogue.group_records(RecordScope(auth, books.id), [], "author", limit=10)
        assert (len(groups.counts), groups.values) == (names, names)
        total = store.catalogue.total_of_records(RecordScope(auth, books.id), [], "year")
        assert total is not None
        assert (total[0], total[2]) == (added, names)
        assert bool(store.catalogue.records_having(RecordScope(auth, books.id), "Nobody")) is (
            auth is BOSS
        )
        tables = store.catalogue.describe_records(auth, books.id).tables
        assert sum(one.records for one in tables) == names


def test_a_field_is_added_up_for_each_value_of_another(store: Store, books: Collection) -> None:
    groups = store.catalogue.group_records(
        RecordScope(ANN, books.id), [], "author", adds="year", limit=2
    )
    assert groups.counts == [("Herbert", 1965), ("Joyce", 1922)]
    assert groups.values == 3


@pytest.mark.parametrize(
    ("words", "found"), [("dune", ["dune"]), ("Herbert", ["dune"]), ("classified", [])]
)
def test_a_record_is_called_by_its_title_or_a_value_of_its_own(
    store: Store, books: Collection, words: str, found: list[str]
) -> None:
    keys = store.catalogue.records_called(ANN, books.id, words)
    cards = store.catalogue.evidence(ANN, books.id, first_chunk_ids(store, books))
    names = {item.document_key: item.document_id for item in cards.values()}
    assert [names[key] for key in keys] == found


def test_every_change_raises_the_index_version(shelf: Shelf) -> None:
    versions = [shelf.catalogue.index_version()]
    shelf.write(shelf.row("a", "one"))
    versions.append(shelf.catalogue.index_version())
    shelf.remove(["a"])
    versions.append(shelf.catalogue.index_version())
    assert versions == sorted(set(versions))
    shelf.write()
    assert shelf.catalogue.index_version() == versions[-1]


def test_a_collection_is_there_for_whoever_sees_a_document_in_it(shelf: Shelf) -> None:
    operator = AuthContext(tenant="acme", user="op", operator=True)
    other = shelf.intake.open_collection("acme", "other", None)
    shelf.intake.open_collection("zoo", "main", None)
    shelf.write(shelf.row("a", "text", acl=["boss"]))
    write(shelf.store, other, [document(other, "b", "text")], shelf.embedder)
    answers = shelf.catalogue
    assert [one.name for one in answers.collections()] == ["main", "other", "main"]
    assert answers.collections("acme") == [shelf.collection, other]
    assert answers.collection("acme", "main") == shelf.collection
    assert answers.visible_collections(ANN) == [other]
    assert answers.visible_collections(BOSS) == [shelf.collection, other]
    assert answers.visible_collection(BOSS, "main") == shelf.collection
    assert answers.visible_collection(operator, "main") == shelf.collection
    assert answers.collections_named(BOSS, "main, other") == [shelf.collection, other]
    with pytest.raises(CallerError, match="must exist") as hidden:
        answers.visible_collection(ANN, "main")
    with pytest.raises(CallerError, match="must exist") as absent:
        answers.visible_collection(ANN, "none")
    assert str(hidden.value).replace("main", "none") == str(absent.value)
    assert "other" in str(absent.value)
    assert answers.list_collections(ANN) == [
        {"name": "other", "profile": "default", "documents": 1}
    ]
    assert [one["name"] for one in answers.list_collections(BOSS)] == ["main", "other"]


@pytest.fixture
def parted(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    """Hold two open documents and one for the BOSS, with parts, languages and metadata."""
    rows = [
        document(collection, "a", "one red", "two blue", "three", title="Oak", version="1"),
        document(collection, "b", "vier rot", language="de", metadata={"shelf": "A"}),
        document(collection, "c", "five red", acl=["boss"], metadata={"drawer": "B"}),
    ]
    write(store, collection, rows, embedder)
    return collection


@pytest.mark.parametrize(("auth", "seen"), [(ANN, ["a", "b"]), (BOSS, ["a", "b", "c"])])
def test_lists_have_what_the_caller_may_see(
    store: Store, parted: Collection, auth: AuthContext, seen: list[str]
) -> None:
    answers = store.catalogue
    assert [one["document_id"] for one in answers.list_documents(auth, parted)] == seen
    assert answers.count_documents(auth, parted) == len(seen)
    chunks, last = answers.measure_collection(auth, parted)
    assert (chunks, bool(last)) == (len(seen) + 2, True)
    assert [one.source for one in answers.document_names(auth, parted.id)] == seen
    assert (answers.describe_document(auth, parted, "c") is not None) is ("c" in seen)
    assert bool(answers.list_passages(auth, parted, "c", 0, 9)) is ("c" in seen)
    assert len({one["document"] for one in answers.visible_passages(auth, parted)}) == len(seen)
    answers.check_fields(auth, [parted], [parse_filter("shelf=A")])
    if "c" in seen:
        answers.check_fields(auth, [parted], [parse_filter("drawer=B")])
    else:
        with pytest.raises(CallerError, match="no document here has the field") as unknown:
            answers.check_fields(auth, [parted], [parse_filter("drawer=B")])
        assert "shelf" in str(unknown.value)


def test_documents_are_listed_by_pages(store: Store, parted: Collection) -> None:
    [first] = store.catalogue.list_documents(BOSS, parted, limit=1)
    assert first == store.catalogue.describe_document(BOSS, parted, "a")
    assert (first["title"], first["version"], first["chunks"]) == ("Oak", "1", 3)
    rest = store.catalogue.list_documents(BOSS, parted, after="a", limit=5)
    assert [one["document_id"] for one in rest] == ["b", "c"]
    assert store.catalogue.describe_document(BOSS, parted, "none") is None


def test_passages_come_in_reading_order(store: Store, parted: Collection) -> None:
    answers = store.catalogue
    passages = answers.list_passages(ANN, parted, "a", 1, 2)
    assert [one["text"] for one in passages] == ["two blue", "three"]
    middle = passages[0]["chunk_id"]
    for reach, texts in ((0, ["two blue"]), (1, ["one red", "two blue", "three"])):
        found = answers.neighbours(ANN, parted.id, middle, reach)
        assert [item.text for item in found] == texts
    [row] = [one.row for one in answers.document_names(ANN, parted.id) if one.source == "a"]
    first = answers.first_chunks(ANN, parted.id, [row])[row]
    assert (first.text, answers.chunk_ids([row])[1]) == ("one red", middle)
    closed = answers.document_names(BOSS, parted.id)[2]
    assert answers.first_chunks(ANN, parted.id, [closed.row]) == {}
    assert answers.evidence(ANN, parted.id, [closed.first, middle, "?"]).keys() == {middle}
    assert answers.evidence(BOSS, parted.id, [closed.first, middle], ["a"]).keys() == {middle}
    assert answers.neighbours(ANN, parted.id, closed.first, 1) == []


def test_languages_and_rarity_are_of_the_collection(store: Store, parted: Collection) -> None:
    assert store.search.languages(parted.id) == {"en", "de"}
    rarity = store.catalogue.inverse_frequencies(parted.id, ["red", "blue", "nowhere"])
    assert rarity["red"] < rarity["blue"] < rarity["nowhere"]


def test_fields_of_a_collection(store: Store, books: Collection) -> None:
    answers = store.catalogue
    assert answers.field_names(books.id) == {"title", "year", "author", "tags", "secret"}
    assert answers.field_names(books.id, ANN) == {"title", "year", "author", "tags"}
    assert answers.known_fields(ANN, books.id, {"year", "secret", "?"}) == {"year"}
    assert answers.known_fields(BOSS, books.id, {"year", "secret", "?"}) == {"year", "secret"}
    assert answers.known_fields(BOSS, books.id, {"year", "secret"}, ["emma"]) == {"year"}
    assert answers.records_having(RecordScope(ANN, books.id), "herbert") == [("author", True)]
    assert answers.records_sounding(RecordScope(ANN, books.id), "Остин") == [("author", "Austen")]
    assert answers.records_sounding(RecordScope(ANN, books.id), "Ноубади") == []
    tables = answers.describe_records(ANN, books.id).tables
    assert sum(one.records for one in tables) == 3


def test_a_text_and_its_book_know_each_other(shelf: Shelf) -> None:
    rows = [
        shelf.row("card", "Oak.", fields={"n": 1}, metadata={"isbn": "1"}),
        shelf.row("text", "Long.", title="Oak", metadata={"isbn": "1"}),
        shelf.row("closed", "Long.", acl=["boss"], metadata={"isbn": "1"}),
        shelf.row("lone", "Alone.", metadata={"isbn": "2"}),
    ]
    shelf.write(*rows)

    def of_text(name: str, title: str, metadata: dict[str, str]) -> list[tuple[int, str]]:
        return [(0, metadata["isbn"])]

    def of_book(
        name: str, title: str, metadata: dict[str, str], fields: object
    ) -> list[tuple[int, str]]:
        return [(0, metadata["isbn"])]

    assert shelf.intake.link_books(shelf.collection, of_text, of_book) == 3 - 1
    answers, keys = shelf.catalogue, {row.document_id: row.key for row in rows}
    for auth, texts in ((ANN, {"text"}), (BOSS, {"text", "closed"})):
        books = answers.books_of_texts(auth, shelf.id, keys.values())
        assert books.keys() == {keys["text"], keys["closed"]}
        assert {book["document_id"] for book in books.values()} == {"card"}
        found = answers.texts_of_book(auth, shelf.id, keys["card"])
        assert {one["document_id"] for one in found} == texts
        first = answers.full_texts(auth, shelf.id, rows[0].chunks[0].chunk_id)
        assert {item.document_id for item in first} == texts
    assert shelf.intake.link_books(shelf.collection, of_text, of_book) == 0
    assert shelf.intake.clear_books(shelf.collection) == 2
    assert answers.books_of_texts(BOSS, shelf.id, keys.values()) == {}
