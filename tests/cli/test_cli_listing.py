"""`carrel collections`, `documents` and `status` tell what is there, to whom it is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel, change, in_process, write_files

from core.settings import load_settings
from stores.integrity.file_manifest import FileManifest
from stores.sqlite.listing import Listing

FILES = {
    "open/lunch.txt": "Lunch\n\nThe canteen opens at 11:30.\n",
    "open/books.csv": "id,title\n" + "".join(f"b{n},Volume {n}\n" for n in range(130)),
    "board/board.txt": "Board\n\nThe board of the museum meets in March.\n",
}


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    monkeypatch.setenv("CARREL_REASONER", "rules")
    return in_process(capsys, monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("listing")


@pytest.fixture
def data(made: Path, carrel: Carrel) -> Path:
    folder = made / "data"
    if not folder.exists():
        files = write_files(made, FILES)
        assert carrel("ingest", files / "open", data=folder).code == 0
        assert carrel("ingest", files / "board", "-c", "b", "--acl", "chief", data=folder).code == 0
    return folder


def test_collections_are_those_of_the_caller(carrel: Carrel, data: Path) -> None:
    listed = carrel("collections", "--json", data=data).json
    expected = {"name": "default", "profile": "default", "documents": 131}
    assert listed == {"collections": [expected]}
    chief = carrel("collections", "--role", "chief", "--json", data=data).json["collections"]
    assert [one["name"] for one in chief] == ["b", "default"]
    assert carrel("collections", data=data).out == "default: 131 documents\n"
    none = carrel("collections", "--tenant", "other", data=data)
    assert (none.code, none.out) == (0, "") and "carrel ingest" in none.err


def test_all_documents_are_listed_as_over_http(carrel: Carrel, data: Path) -> None:
    listed = carrel("documents", "--json", data=data).json["documents"]
    assert len(listed) == 131  # more than a page over HTTP has
    assert [one["document_id"] for one in listed] == sorted(one["document_id"] for one in listed)
    lunch = next(one for one in listed if one["source"] == "lunch.txt")
    assert lunch.keys() == {
        "document_id", "source", "title", "format", "language", "version", "updated_at",
        "indexed_at", "is_record", "chunks",
    }  # fmt: skip
    said = carrel("documents", data=data).out.splitlines()
    assert len(said) == 131 and any(line.startswith("lunch.txt") for line in said)


def test_documents_that_are_closed_are_not_listed(carrel: Carrel, data: Path) -> None:
    chief = carrel("documents", "-c", "b", "--role", "chief", "--json", data=data).json
    assert [one["source"] for one in chief["documents"]] == ["board.txt"]
    assert carrel("documents", "-c", "b", "--json", data=data).json == {"documents": []}
    assert "no documents for you" in carrel("documents", "-c", "b", data=data).err
    carrel("documents", "-c", "b", "--user", "ann", data=data).failed(2, "must exist", "default")
    carrel("documents", "-c", "nowhere", data=data).failed(2, "nowhere")


def test_status_tells_what_is_there(carrel: Carrel, data: Path) -> None:
    report = carrel("status", "--json", data=data).json
    assert (report["data"], report["server"], report["problems"]) == (str(data), None, [])
    assert [(one["name"], one["documents"]) for one in report["collections"]] == [("default", 131)]
    assert (report["documents"], report["chunks"] >= 131) == (131, True)
    assert (report["reasoner"], report["model"]) == ("rules", None)
    assert report["embedder"] == load_settings()[0].embedder
    assert report["last_ingest"]
    said = carrel("status", data=data).out
    assert f"data: {data}\n" in said and "default: 131 documents, " in said
    empty = carrel("status", "--tenant", "other", "--json", data=data).json
    assert (empty["collections"], empty["last_ingest"]) == ([], None)


def test_status_names_the_search_index(carrel: Carrel, data: Path, monkeypatch) -> None:
    assert carrel("status", "--json", data=data).json["index"] == "memmap"
    assert "index: memmap\n" in carrel("status", data=data).out
    monkeypatch.setenv("CARREL_INDEX", "chroma")
    (problem,) = carrel("status", "--json", data=data).json["problems"]
    assert "reindex --index chroma" in problem
    monkeypatch.setenv("CARREL_INDEX", "weird")
    carrel("status", data=data).failed(2, "unknown index")


def test_a_server_that_is_away_is_told(carrel: Carrel, tmp_path: Path) -> None:
    data, files = tmp_path / "data", write_files(tmp_path, FILES)
    assert carrel("ingest", files / "board", data=data).code == 0
    record = "UPDATE meta SET value = 'chroma http://127.0.0.1:9' WHERE key = 'index'"
    change(data, record)
    (problem,) = carrel("status", "--json", data=data).json["problems"]
    assert "was not reached" in problem and "127.0.0.1:9" in problem
    name = carrel("documents", "--json", data=data).json["documents"][0]["document_id"]
    left = carrel("forget", name, "-y", data=data)
    left.failed(4, "was not reached", "out of all answers already", "carrel forget")


def test_another_index_by_command_and_back(carrel: Carrel, tmp_path: Path) -> None:
    data, files = tmp_path / "data", write_files(tmp_path, FILES)
    assert carrel("ingest", files / "open", data=data).code == 0
    for name in ("chroma", "memmap"):
        done = carrel("reindex", "--index", name, data=data)
        assert (done.code, "rebuilt 131 full-text rows" in done.out) == (0, True), done.err
        assert carrel("status", "--json", data=data).json["index"] == name
        assert "lunch" in carrel("search", "canteen", "-k", "1", data=data).out.lower()
        assert carrel("doctor", "--json", data=data).json["ok"]


def test_status_names_what_is_to_be_looked_at(carrel: Carrel, data: Path) -> None:
    note = "INSERT INTO journal SELECT id, 'late', 'late.md', 'parsed', 0 FROM collections"
    change(data, f"{note} WHERE name = 'default'")
    (problem,) = carrel("status", "--json", data=data).json["problems"]
    change(data, "DELETE FROM journal")
    assert problem.startswith("1 documents of an interrupted ingest into 'default'")


def test_a_list_says_when_data_is_damaged(
    carrel: Carrel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: Listing, auth: object) -> list[object]:
        self._database.condition.report("chunks", "some of it is damaged")
        return []

    monkeypatch.setattr(Listing, "list_collections", damaged)
    said = carrel("collections", "--json", data=data).json
    assert said == {"collections": [], "warnings": ["some of it is damaged"]}


def test_without_data_they_say_what_to_do(carrel: Carrel, tmp_path: Path) -> None:
    for command in ("collections", "documents", "status"):
        carrel(command, data=tmp_path / "none").failed(4, "no data here yet", "carrel ingest")


def test_who_only_reads_hides_no_change_by_others(carrel: Carrel, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert carrel("ingest", write_files(tmp_path, FILES) / "board", data=data).code == 0
    assert carrel("status", data=data).code == 0
    assert FileManifest(data)._compared().state == "equal"
    change(data, "UPDATE documents SET title = 'forged'")
    for command in ("collections", "documents", "status", "trace"):
        assert carrel(command, data=data).code == 0
        assert FileManifest(data)._compared().state == "changed"


@pytest.mark.parametrize("command", ["list", "ls"])
def test_who_asks_for_a_list_is_told_the_commands(carrel: Carrel, command: str) -> None:
    carrel(command).failed(2, f"'{command}'", "carrel collections", "carrel documents", "status")
