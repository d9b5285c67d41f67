"""A list that is set holds at once everywhere, and no later ingest opens the document again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from postgres_server import RECORDS

from app import session as composing
from cli import app

FACT = "The zqvault is opened by 4711 turns.\n"
ROWS = [{"_id": f"r{n}", "title": f"Row {n}", "text": f"Row {n} tells of zqrows."} for n in "12"]


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    capsys.readouterr()
    assert app.run(list(words)) == code
    told = capsys.readouterr()
    return told.err if code == 2 else told.out


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> Path:
    """Return a folder with a document and a catalogue, ingested into two collections."""
    monkeypatch.setenv("CARREL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CARREL_REASONER", "rules")
    monkeypatch.setattr(composing, "open_embedder", lambda settings: FakeEmbedder())
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "vault.md").write_text(f"# Vault\n\n{FACT}")
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    for name in ("one", "two"):
        run(capsys, "ingest", str(folder), "-c", name)
    return folder


def readers(capsys, source: str, collection: str = "one") -> list[str]:
    return json.loads(run(capsys, "acl", "show", source, "-c", collection, "--json"))["acl"]


def test_a_list_is_replaced_and_holds_at_once(place: Path, capsys) -> None:
    question = ("ask", "How is the zqvault opened?", "-c", "one", "--json")
    first = json.loads(run(capsys, *question))
    assert "4711" in first["answer"]
    change = ("acl", "set", "vault.md", "--acl", "board,legal", "--acl", "user:ann", "-c", "one")
    told = json.loads(run(capsys, *change, "--json"))
    acl = ["board", "legal", "user:ann"]
    assert told == {
        "source": "vault.md",
        "collection": "one",
        "acl": acl,
        "documents": 1,
        "chunks": 1,
        "before": [],
    }
    assert json.loads(run(capsys, *change, "--json"))["before"] == acl
    assert "4711" not in run(capsys, *question, code=3)
    assert "4711" not in run(capsys, "trace", first["run_id"], "--json")
    assert "vault" not in run(capsys, "documents", "-c", "one")
    assert "vault" in run(capsys, "documents", "-c", "two")  # which has a list of its own
    for who in (("--role", "board"), ("--user", "ann")):
        assert "4711" in run(capsys, *question, *who)
    listed = json.loads(run(capsys, "audit", "list", "--kind", "access_changed", "--json"))
    facts = listed["events"][-1]["facts"]
    assert (facts["before"], facts["readers"]) == ([], acl)
    assert json.loads(run(capsys, "audit", "verify", "--json"))["whole"]
    run(capsys, "acl", "set", "vault.md", "--everyone", "-c", "one")
    assert "4711" in run(capsys, *question)
    assert "4711" in run(capsys, "trace", first["run_id"], "--json")


def test_a_later_ingest_keeps_a_list_unless_it_names_another(place: Path, capsys) -> None:
    run(capsys, "acl", "set", "vault.md", "--acl", "board", "-c", "one")
    run(capsys, "acl", "set", "rows.jsonl#r1", "--acl", "staff", "-c", "one")
    assert readers(capsys, "rows.jsonl#r2") == ["staff"]  # of one file
    rows = [*ROWS, {"_id": "r3", "title": "Row 3", "text": "Row 3 is new."}]
    (place / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (place / "vault.md").write_text(f"# Vault\n\n{FACT} It is heavy.\n")
    run(capsys, "ingest", str(place), "-c", "one")
    assert [readers(capsys, name) for name in ("vault.md", "rows.jsonl#r3")] == [
        ["board"],
        ["staff"],
    ]
    (place / "vault.md").rename(place / "safe.md")
    (place / "rows.jsonl").rename(place / "lines.jsonl")
    run(capsys, "ingest", str(place), "-c", "one")
    assert [readers(capsys, name) for name in ("safe.md", "lines.jsonl")] == [["board"], ["staff"]]
    run(capsys, "ingest", str(place / "safe.md"), "-c", "one", "--acl", "legal")
    assert readers(capsys, "safe.md") == ["legal"]
    run(capsys, "forget", "lines.jsonl#r1", "-c", "one", "--yes")
    run(capsys, "forget", "--source", "lines.jsonl", "-c", "one", "--yes")
    run(capsys, "ingest", str(place), "-c", "one")
    assert readers(capsys, "lines.jsonl") == []  # a new one


def test_what_is_wrong_is_said_and_nothing_changes(place: Path, capsys) -> None:
    for words, said in (
        (("nowhere.md", "--acl", "board"), "no document of this source: nowhere.md"),
        (("vault.md", "--acl", "board"), "in 2 collections (one, two)"),
        (("vault.md", "-c", "one"), "who may read it"),
        (("vault.md", "-c", "one", "--acl", ""), "a role is 1 to 64"),
        (("vault.md", "-c", "one", "--acl", "user:"), "a user is 1 to 64"),
        (("vault.md", "-c", "one", "--acl", "a b"), "a role is 1 to 64"),
        (("vault.md", "-c", "one", "--acl", "a", "--everyone"), "give either"),
        (("vault.md", "-c", "three", "--acl", "a"), "the collection must exist"),
        (("vault.md", "--tenant", "zoo", "--acl", "a"), "no document of this source"),
        (("vault.md", "--tenant", "z/o", "--acl", "a"), "a tenant is"),
    ):
        assert said in run(capsys, "acl", "set", *words, code=2)
    assert [readers(capsys, "vault.md", name) for name in ("one", "two")] == [[], []]


def test_what_was_counted_goes_with_its_records(place: Path, capsys) -> None:
    (place / "goods.csv").write_text("name,price\nLamp,40\nDesk,90\n")
    run(capsys, "ingest", str(place / "goods.csv"), "-c", "three")
    asked = run(capsys, "ask", "What is the total price of goods?", "-c", "three", "--json")
    name = json.loads(asked)["run_id"]
    assert "130" in json.loads(asked)["answer"]

    def read() -> str:
        return run(capsys, "trace", name) + run(capsys, "why", name)

    assert "130" in read()
    run(capsys, "acl", "set", "goods.csv#1", "--acl", "board", "-c", "three")
    assert "130" not in read()
    run(capsys, "replay", name, code=2)
    run(capsys, "acl", "set", "goods.csv#1", "--everyone", "-c", "three")
    assert "130" in read()  # the records are those that were counted
    run(capsys, "forget", "--source", "goods.csv", "-c", "three", "-y")
    assert "130" not in read()
    files = [one for one in (place.parent / "data").rglob("*") if one.is_file()]
    assert not any(b"price: 130" in one.read_bytes() for one in files)


def test_a_collection_is_closed_and_opened_as_a_whole(place: Path, capsys) -> None:
    run(capsys, "acl", "set", "-c", "one", "--acl", "board", code=2)  # not without being asked
    change = ("acl", "set", "-c", "one", "--acl", "board", "-y")
    done = json.loads(run(capsys, *change, "--json"))
    assert (done["acl"], done["documents"]) == (["board"], 1 + len(ROWS))
    assert readers(capsys, "vault.md") == readers(capsys, "rows.jsonl#r1") == ["board"]
    assert readers(capsys, "vault.md", "two") == []
    listed = json.loads(run(capsys, "audit", "list", "--kind", "access_changed", "--json"))
    assert listed["events"][-1]["facts"]["files"] == 2
    run(capsys, "acl", "set", "--everyone", "-c", "one", "-y")
    assert readers(capsys, "vault.md") == []
    run(capsys, "acl", "set", "--everyone", code=2)


@pytest.mark.parametrize("catalogue", RECORDS)
def test_what_comes_later_is_closed_by_the_default_of_its_collection(
    catalogue: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("CARREL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CARREL_REASONER", "rules")
    for name, value in RECORDS[catalogue]().items():
        monkeypatch.setenv(f"CARREL_{name.upper()}", str(value))
    monkeypatch.setattr(composing, "open_embedder", lambda settings: FakeEmbedder())
    folder = tmp_path / "docs"
    folder.mkdir()

    def ingest(name: str, text: str, *words: str) -> None:
        (folder / name).write_text(text)
        run(capsys, "ingest", str(folder / name), "-c", "one", *words)

    def seen(*who: str) -> list[str]:
        listed = json.loads(run(capsys, "documents", "-c", "one", "--json", *who))["documents"]
        return sorted(one["source"] for one in listed)

    later = ("acl", "default", "-c", "one")
    asked = ("ask", "How is the zqvault opened?", "-c", "one", "--json")
    rows = [json.dumps(one) for one in ROWS]
    ingest("open.md", "# Open\n\nA note for all.\n")
    ingest("rows.jsonl", rows[0])
    assert json.loads(run(capsys, *later, "--acl", "board", "--json"))["default"] == ["board"]
    ingest("vault.md", f"# Vault\n\n{FACT}")
    ingest("own.md", "# Own\n\nA list of its own.\n", "--acl", "staff")
    ingest("rows.jsonl", "\n".join(rows))  # keeps the one list that it has
    nobody, board = ("--user", "bob"), ("--role", "board")
    assert seen(*nobody) == ["open.md", "rows.jsonl#r1", "rows.jsonl#r2"]
    assert seen(*board) == [*seen(*nobody), "vault.md"]
    assert "4711" not in run(capsys, *asked, *nobody, code=3)
    assert "4711" in run(capsys, *asked, *board)
    assert "later ones are read by board" in run(capsys, "collections")
    # A wider default, or none, opens nothing that is there, also where it is read again.
    run(capsys, *later, "--everyone")
    ingest("vault.md", f"# Vault\n\n{FACT} It is heavy.\n")
    assert "4711" not in run(capsys, *asked, *nobody, code=3)
    run(capsys, *later, "--acl", "board")
    # A collection that became empty is still closed, until it is deleted.
    for name in ("open.md", "vault.md", "own.md"):
        run(capsys, "forget", "--source", name, "-c", "one", "--yes")
    run(capsys, "forget", "--source", "rows.jsonl", "-c", "one", "--yes")
    ingest("vault.md", f"# Vault\n\n{FACT}")
    assert "vault" not in run(capsys, "collections", "--user", "bob")
    assert readers(capsys, "vault.md") == ["board"]
    assert "before: board" in run(capsys, *later, "--everyone")
    assert json.loads(run(capsys, "audit", "verify", "--json"))["whole"]
    assert "must exist" in run(capsys, "acl", "default", "-c", "none", code=2)
