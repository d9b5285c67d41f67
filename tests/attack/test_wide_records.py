"""One file with far too many fields costs itself alone: no question, opening or other file."""

from __future__ import annotations

import json
import math
import sqlite3
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from behind import rows
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.budget import Ledger, TimeLimit, TimeUpError, limited_time, opened_ledger
from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from reasoning.llm.prompts import tools_data
from retrievers.types import Index
from stores.integrity.selfcheck import self_check
from stores.sqlite.catalogue import Collection
from stores.sqlite.records import ALL_EXAMPLES
from stores.store import Store, parts
from tools.toolbox import Toolbox
from tools.types import ToolError

ANN = AuthContext(tenant="acme", user="ann")
BEN = AuthContext(tenant="acme", user="ben", roles=frozenset({"reader"}))
BOSS = AuthContext(tenant="acme", user="boss", roles=frozenset({"boss"}))
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
LATE_S = 0.1

Ingest = Callable[..., Summary]


@pytest.fixture
def ingest(store: Store, embedder: FakeEmbedder, collection: Collection) -> Ingest:
    def run(*paths: Path, **values: Any) -> Summary:
        settings = Settings(**{"data": store.folder, **values})
        return Pipeline(store, embedder, settings, collection).run(paths)

    return run


def csv(path: Path, columns: int, *, name: str = "c", rows: int = 1) -> Path:
    header = ",".join(f"{name}{n}" for n in range(columns))
    path.write_text("\n".join([header, *[",".join("1" * columns)] * rows]))
    return path


def jsonl(path: Path, records: Sequence[dict[str, object]]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def reasons(summary: Summary) -> dict[str, str]:
    return {failure.path: failure.reason for failure in summary.failed}


def documents(store: Store) -> set[str]:
    return {name for (name,) in rows(store, "SELECT document_id FROM documents")}


# Files


@pytest.mark.parametrize("columns", [20_000, 200_000])
def test_a_csv_with_too_many_columns_fails_alone(
    ingest: Ingest, store: Store, tmp_path: Path, columns: int
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    csv(folder / "one.csv", columns)
    (folder / "plain.txt").write_text("The travel budget of the Lyon office is 40 euros.")
    summary = ingest(folder)
    assert f"{columns:,} columns or fields; at most 1,000" in reasons(summary)["one.csv"]
    assert "max_fields" in reasons(summary)["one.csv"]
    assert documents(store) == {"plain.txt"}
    assert store.catalogue.fields_of_records(ANN, 1) == []


def test_as_many_columns_as_may_be_are_read(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    summary = ingest(csv(tmp_path / "all.csv", 1000))
    assert summary.failed == []
    assert len(store.catalogue.fields_of_records(ANN, 1)) == 1000


@pytest.mark.parametrize(
    "records",
    [
        [{f"key{n}": n for n in range(20_000)}],
        [{"a": [{f"k{n}": 1} for n in range(20_000)]}],
        [{"id": n, f"key{n}": "one more"} for n in range(900)],
    ],
    ids=["keys", "nested", "a new one each"],
)
def test_a_file_whose_records_have_too_many_fields_leaves_nothing(
    ingest: Ingest, store: Store, tmp_path: Path, records: list[dict[str, object]]
) -> None:
    summary = ingest(jsonl(tmp_path / "r.jsonl", records), max_fields=200)
    assert list(reasons(summary)) == ["r.jsonl"]
    assert "max_fields" in reasons(summary)["r.jsonl"]
    assert documents(store) == set()


def test_a_long_file_ends_where_it_gets_too_many_fields(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    records: list[dict[str, object]] = [{"id": f"r{n}", "a": "one"} for n in range(1100)]
    records += [{"id": "wide", **{f"k{n}": 1 for n in range(50)}}, {"id": "after", "a": "two"}]
    summary = ingest(jsonl(tmp_path / "r.jsonl", records), max_fields=20)
    assert "max_fields" in reasons(summary)["r.jsonl"]
    assert len(documents(store)) == 1100


def test_what_stands_before_damage_is_kept(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('[{"id": "a", "n": 1}, {"id": "b", "n": 2}, oops')
    assert len(ingest(tmp_path / "r.json").failed) == 1
    assert documents(store) == {"a", "b"}


def test_a_record_with_too_many_values_fails_alone(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    many = {"id": "many", "tags": [f"t{n}" for n in range(11)]}
    file = jsonl(tmp_path / "r.jsonl", [many, {"id": "few", "tags": ["a", "b"]}])
    summary = ingest(file, max_field_values=10)
    assert ["max_field_values" in one for one in reasons(summary).values()] == [True]
    assert documents(store) == {"few"}


def test_each_member_of_an_archive_counts_for_itself(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, columns in (("one", 8), ("two", 8), ("wide", 11)):
            archive.write(csv(tmp_path / f"{name}.csv", columns, name=name), f"{name}.csv")
    summary = ingest(tmp_path / "a.zip", max_fields=10)
    assert list(reasons(summary)) == ["a.zip/wide.csv"]
    assert len(documents(store)) == 2


def test_files_that_together_have_too_many_fields_are_refused_by_name(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(5):
        csv(folder / f"f{number}.csv", 30, name=f"f{number}c", rows=3)
    summary = ingest(folder, max_collection_fields=100)
    assert list(reasons(summary)) == ["f3.csv", "f4.csv"]  # once each, not for each record
    assert all("max_collection_fields" in one for one in reasons(summary).values())
    assert len(store.catalogue.field_names(1)) == 90
    # What has no new field goes on, also in another run; a higher limit takes the others.
    csv(folder / "f0.csv", 30, name="f0c", rows=4)
    assert list(reasons(ingest(folder, max_collection_fields=100))) == ["f3.csv", "f4.csv"]
    assert len(documents(store)) == 10
    assert ingest(folder, max_collection_fields=200).failed == []
    assert len(documents(store)) == 16


# Directories that hold such a file from before


@pytest.fixture
def wide(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    """Return a collection with a document of 6,000 fields, more than are described."""
    fields: dict[str, Any] = {f"c{n}": n for n in range(6000)}
    texts = [f"part {n}" for n in range(20)]
    rows = [document(collection, "wide", *texts, fields=fields | {"title": "Wide"})]
    rows += [
        document(collection, f"book{n}", f"A book {n}.", fields={"title": f"B{n}", "year": n})
        for n in range(3)
    ]
    rows.append(document(collection, "closed", "No.", fields={"secret": "x"}, acl=["boss"]))
    write(store, collection, rows, embedder)
    return collection


@pytest.fixture
def statements(store: Store) -> Iterator[list[str]]:
    """Return the statements that this thread's reader has run over record fields."""
    found: list[str] = []

    def note(sql: str) -> None:
        if "record_fields" in sql:
            found.append(sql)

    parts(store).database.read().set_trace_callback(note)
    yield found
    parts(store).database.read().set_trace_callback(None)


def test_all_fields_are_described_by_one_statement(
    store: Store, wide: Collection, statements: list[str]
) -> None:
    found = {info.name: info for info in store.catalogue.fields_of_records(ANN, wide.id)}
    assert len(statements) == 1
    assert len(found) == Settings().max_collection_fields
    assert sum(len(info.examples) for info in found.values()) <= ALL_EXAMPLES
    assert (found["title"].values, found["title"].type) == (4, "text")  # the most frequent are in
    assert (found["year"].examples, found["year"].type) == (["0", "1", "2"], "number")
    assert "secret" not in found


def test_who_sees_the_same_shares_a_description(
    store: Store, wide: Collection, statements: list[str], embedder: FakeEmbedder
) -> None:
    store.catalogue.fields_of_records(ANN, wide.id)
    other = store.intake.open_collection("acme", "other", None)
    write(store, other, [document(other, "o", "Other.", fields={"o": 1})], embedder)
    store.catalogue.fields_of_records(BEN, wide.id)  # no access list names either
    assert len(statements) == 1
    assert len(store.catalogue.fields_of_records(BOSS, wide.id)) == Settings().max_collection_fields
    assert len(statements) == 2
    assert [info.name for info in store.catalogue.fields_of_records(BOSS, wide.id, ["closed"])] == [
        "secret"
    ]
    assert store.catalogue.fields_of_records(ANN, wide.id, ["closed"]) == []
    assert store.catalogue.fields_of_records(AuthContext(tenant="rival", user="ann"), wide.id) == []
    assert store.catalogue.fields_of_records(ANN, wide.id, ["book*"])[0].name == "title"
    confined = ANN.model_copy(update={"allowed_sources": ("book1",)})
    assert [info.examples for info in store.catalogue.fields_of_records(confined, wide.id)] == [
        ["B1"],
        ["1"],
    ]
    write(store, wide, [document(wide, "new", "New.", fields={"shelf": "A"})], embedder)
    assert "shelf" in {
        info.name for info in store.catalogue.fields_of_records(ANN, wide.id, ["new"])
    }


def test_a_field_that_is_not_described_can_be_asked_for(
    index: Callable[..., Index], wide: Collection
) -> None:
    box = Toolbox(index(wide))
    described = next(spec.fields for spec in box.specs(ANN) if spec.name == "query_records")
    assert "c999" not in {info.name for info in described}
    later = time.monotonic() + 60
    asked = {"where": [{"field": "c999", "op": "=", "value": 999}]}
    found = box.run("query_records", asked, ANN, later)
    assert [item.document_id for item in found.evidence] == ["wide"]
    for hidden in ("secret", "absent"):
        with pytest.raises(ToolError, match="a field must exist") as raised:
            box.run("query_records", {"where": [{"field": hidden, "value": "x"}]}, ANN, later)
        assert len(str(raised.value)) < 2000


def test_a_prompt_names_some_of_very_many_fields(
    index: Callable[..., Index], wide: Collection
) -> None:
    shown = tools_data(Toolbox(index(wide)).specs(ANN))
    assert "and 4800 more" in shown
    assert "title" in shown
    assert len(shown) < 10_000


def test_the_fields_of_a_document_are_compared_once_for_all_its_chunks(
    store: Store, wide: Collection
) -> None:
    counted: list[int] = []

    def count(*values: object) -> int:
        counted.append(1)
        return row_sum(*values)

    from stores.sqlite.sums import FUNCTION, row_sum

    connection = parts(store).database.read()
    connection.create_function(FUNCTION, -1, count, deterministic=True)
    chunks = [row[0] for row in connection.execute("SELECT chunk_id FROM chunks")]
    assert len(store.catalogue.evidence(ANN, wide.id, chunks)) == 23
    assert len(counted) < 6100
    counted.clear()
    assert self_check(parts(store).database, store.search, wide, "fake") == ""
    assert len(counted) < 6200


# The caller's time


@pytest.mark.parametrize("what", ["max(i)", "i"])
@pytest.mark.parametrize("budget", [0.05, 0.3])
def test_a_long_statement_is_cut_and_the_connection_goes_on(
    store: Store, what: str, budget: float
) -> None:
    connection = parts(store).database.read()
    started = time.monotonic()
    cpu = time.thread_time()
    with (
        pytest.raises(TimeUpError, match="budget.seconds"),
        limited_time(TimeLimit(started + budget)),
    ):
        for _ in connection.execute(ENDLESS.format(what)):
            pass
    # Time in which this thread ran: a busy machine is not the statement's fault.
    assert time.thread_time() - cpu < budget + LATE_S
    assert connection.execute("SELECT 1").fetchone()[0] == 1
    with limited_time(TimeLimit(time.monotonic() + 60)):
        assert connection.execute("SELECT count(*) FROM documents").fetchone()[0] == 0


def test_what_begins_too_late_is_refused_and_what_is_written_is_not(store: Store) -> None:
    from stores.segments.rows import snapshot

    with limited_time(TimeLimit(time.monotonic() - 1)):
        with pytest.raises(TimeUpError):
            parts(store).database.read().execute("SELECT 1")
        with pytest.raises(TimeUpError), snapshot(parts(store).database):
            pass
        store.intake.open_collection("acme", "written", None)
    assert not parts(store).database.read().in_transaction
    with pytest.raises(TimeUpError), snapshot(parts(store).database) as connection:
        with limited_time(TimeLimit(time.monotonic() + 0.01)):
            connection.execute(ENDLESS.format("max(i)")).fetchall()
    assert not parts(store).database.read().in_transaction


def test_of_two_limits_the_sooner_one_holds() -> None:
    soon = TimeLimit(time.monotonic() + 1, "soon")
    with limited_time(soon), limited_time(TimeLimit()) as inner:
        assert inner is soon
    with limited_time(TimeLimit()) as outer:
        assert outer.until == math.inf


def test_a_run_without_time_for_the_fields_goes_on_and_says_so(
    index: Callable[..., Index], wide: Collection
) -> None:
    box = Toolbox(index(wide))
    ledger = Ledger(deadline=time.monotonic(), tokens=1)
    with limited_time(TimeLimit(time.monotonic() - 1)), opened_ledger(ledger):
        spec = next(one for one in box.specs(ANN) if one.name == "query_records")
        assert spec.fields == []
        assert box.term_weights()(["book"]) == {"book": 1.0}
    assert len(ledger.warnings) == 2
    assert "the fields of the records are not known" in ledger.warnings[0]


def test_a_self_check_without_time_finds_no_fault(store: Store, wide: Collection) -> None:
    with limited_time(TimeLimit(time.monotonic() - 1)):
        found = self_check(parts(store).database, store.search, wide, "fake")
    assert found == ""


def test_damage_is_still_told_from_time(store: Store) -> None:
    with (
        limited_time(TimeLimit(time.monotonic() + 60)),
        pytest.raises(sqlite3.OperationalError, match="no such table"),
    ):
        parts(store).database.read().execute("SELECT * FROM missing")
