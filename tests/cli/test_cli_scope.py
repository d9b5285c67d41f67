"""What a question is about, at the command line: collections, filters, versions, readers."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from commands import Carrel, Done, write_files

from stores.sqlite import sums

REFUND = (
    "---\nversion: '{}'\nauthor: {}\ndate: {}\n---\n"
    "# Refunds\n\nThe refund timeout is {} seconds.\n"
)
FILES = {
    "docs/v1/refund.md": REFUND.format("1.9", "Jane Smith", "2019-05-01", 120),
    "docs/v2/refund.md": REFUND.format("2.10", "Bob Lee", "2024-02-03", 300),
    "lunch/lunch.txt": "Lunch\n\nThe canteen opens at 11:30.\n",
    "board/board.txt": "Board\n\nThe board of the museum meets in March.\n",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scope")


@pytest.fixture
def data(made: Path, carrel: Carrel) -> Path:
    folder = made / "data"
    if folder.exists():
        return folder
    files = write_files(made, FILES)
    assert carrel("ingest", files / "docs", "-c", "docs", data=folder).code == 0
    assert carrel("ingest", files / "lunch", "-c", "house", data=folder).code == 0
    acl = ("--acl", "user:ann", "--acl", "board, chief")
    assert carrel("ingest", files / "board", "-c", "house", *acl, data=folder).code == 0
    return folder


def sources(done: Done) -> set[str]:
    assert done.code == 0, done.err
    return {one["source"] for one in done.json["results"]}


BOTH = ("-c", "docs", "-c", "house")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"v1/refund.md", "v2/refund.md", "lunch.txt"}),
        (("-w", "author=smith"), {"v1/refund.md"}),
        (("-w", "date>=2020"), {"v2/refund.md"}),
        (("-w", "version=latest"), {"v2/refund.md", "lunch.txt"}),
        (("-w", "version=1.9"), {"v1/refund.md"}),
        (("-w", "type=md", "-w", "author!=Smith"), {"v2/refund.md"}),
        (("--version-policy", "latest"), {"v2/refund.md", "lunch.txt"}),
        (("--version-policy", "1.9"), {"v1/refund.md", "lunch.txt"}),
        (("--source", "v2/*", "--source", "lunch*"), {"v2/refund.md", "lunch.txt"}),
        (("--source", "v2/*", "-w", "file=v1/*"), set()),
    ],
)
def test_a_search_keeps_to_its_scope(
    carrel: Carrel, data: Path, options: tuple[str, ...], expected: set[str]
) -> None:
    asked = ("search", "refund timeout canteen", "-k", "20", "--user", "bob", "--json")
    named = BOTH if expected else ("-c", "docs")  # else `house` is as one that is not there
    assert sources(carrel(*asked, *named, *options, data=data)) == expected


def test_the_collection_is_named_by_star_environment_or_by_being_the_only_one(
    carrel: Carrel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("search", "refund timeout canteen", "-k", "20", "--json")
    everything = {"v1/refund.md", "v2/refund.md", "lunch.txt"}
    assert sources(carrel(*asked, "--user", "bob", "-c", "*", data=data)) == everything
    carrel(*asked, data=data).failed(2, "must exist: default")
    only = ("--source", "v*", "--user", "bob")  # who sees one of the two collections
    assert sources(carrel(*asked, *only, data=data)) == {"v1/refund.md", "v2/refund.md"}
    monkeypatch.setenv("CARREL_COLLECTION", "house")
    done = carrel(*asked, "--user", "bob", data=data)
    assert sources(done) == {"lunch.txt"} and "CARREL_COLLECTION" not in done.err
    carrel(*asked, "-c", "nowhere", data=data).failed(2, "must exist: nowhere")


def test_citations_of_several_collections_name_theirs(carrel: Carrel, data: Path) -> None:
    question = "What is the refund timeout?"
    done = carrel("ask", question, "-c", "house,docs", "-w", "version=latest", "--json", data=data)
    assert done.code == 0, done.err
    run = done.json
    assert "300 seconds" in run["answer"]
    cited = [one for claim in run["claims"] for one in claim["citations"]]
    assert {one["collection"] for one in cited} == {"docs"}
    assert "docs · v2/refund.md" in carrel("ask", question, *BOTH, "-w", "version>2", data=data).out
    alone = carrel("ask", question, "-c", "docs", "--json", data=data).json
    assert {i["collection"] for i in alone["evidence"]} == {""}
    shown = carrel("trace", run["run_id"], "--json", data=data)
    assert shown.json["collection"] == "house,docs"
    assert shown.json["result"]["answer"] == run["answer"]  # nothing of it is closed
    filters = [step["auth_filter"] for step in shown.json["trail"] if step["auth_filter"]]
    assert filters
    assert all(one["where"] == ["version=latest"] for one in filters)
    assert all(one["collections"] == ["house", "docs"] for one in filters)


def test_who_an_access_list_names_sees_a_document(carrel: Carrel, data: Path) -> None:
    asked = ("search", "board of the museum", *BOTH, "--json")
    for options, seen in (
        (("--user", "ann"), True),
        (("--user", "bob"), False),
        (("--user", "bob", "--role", "chief"), True),
        (("--user", "bob", "--role", "ann"), False),
    ):
        assert ("board.txt" in sources(carrel(*asked, *options, data=data))) is seen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (*BOTH, "-w", "colour=red"),
            "no document here has the field.*colour. Fields: authors, da",
        ),
        ((*BOTH, "-w", "author"), "a filter names a field and a value: author. Write FIELD=VALUE"),
        ((*BOTH, "-w", "date>soon"), "'>' compares numbers, versions and dates"),
        (("-c", "docs", "-c", "nowhere"), "the collection must exist: nowhere"),
        (("-c", "docs,,house"), "a collection is 1 to 64 letters"),
        ((*BOTH, "--version-policy", ""), "--version-policy is any, latest or one version"),
        ((*BOTH, "--source", ""), "a source pattern has 1 to"),
        (("-c", ",".join(f"c{n}" for n in range(17))), "at most 16 collections"),
    ],
)
def test_bad_scope_is_one_line(
    carrel: Carrel, data: Path, options: tuple[str, ...], message: str
) -> None:
    for command in ("search", "ask"):
        done = carrel(command, "refund timeout", "--user", "bob", *options, data=data)
        assert done.code == 2
        assert re.search(message, done.err.replace("\n", " ")), done.err
        assert "Traceback" not in done.err


def test_a_field_of_a_hidden_document_is_not_named(carrel: Carrel, tmp_path: Path) -> None:
    files = write_files(
        tmp_path, {"a/open.md": "# A\n\nOpen.\n", "b/shut.md": "---\nwage: 9\n---\nShut.\n"}
    )
    assert carrel("ingest", files / "a", data=tmp_path / "d").code == 0
    assert carrel("ingest", files / "b", "--acl", "user:ann", data=tmp_path / "d").code == 0
    asked = ("search", "open", "-w", "wage=9")
    done = carrel(*asked, "--user", "bob", data=tmp_path / "d")
    assert done.code == 2
    assert "Fields: date, file, language, title, type, version." in done.err
    assert carrel(*asked, "--user", "ann", data=tmp_path / "d").code == 0


def test_a_refusal_says_whether_sources_stood_in_the_way(carrel: Carrel, data: Path) -> None:
    asked = ("ask", "When does the canteen open?", "-c", "house", "--source", "board*")
    for options, told in (((), True), (("--user", "ann"), False), (("--role", "chief"), False)):
        done = carrel(*asked, *options, data=data)
        assert done.code == 3 and "Confined to: board*." in done.out
        assert ("Without this filter the documents do answer." in done.out) is told


def test_a_plan_may_filter_its_searches(carrel: Carrel, data: Path, tmp_path: Path) -> None:
    call = {"tool": "search", "arguments": {"query": "refund timeout", "where": ["author=Smith"]}}
    plan = {"questions": [{"id": "q1", "text": "What is the refund timeout?", "calls": [call]}]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    done = carrel(
        "ask", "What is the refund timeout?", "-c", "docs", "--plan", path, "--json", data=data
    )
    assert done.code == 0, done.err
    assert {one["source"] for one in done.json["evidence"]} == {"v1/refund.md"}


def test_collections_of_different_embedders_are_not_mixed(
    carrel: Carrel, data: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "data"
    shutil.copytree(data, copied)
    with sqlite3.connect(copied / "catalogue.sqlite3") as direct:
        sums.register(direct)
        direct.execute(
            """UPDATE embeddings AS e SET model = 'another' WHERE content_hash IN
               (SELECT c.content_hash FROM chunks c JOIN collections o ON o.id = c.collection_id
                WHERE o.name = 'house')"""
        )
        direct.execute("INSERT INTO embedders VALUES ('another', 384)")
        direct.execute(f"UPDATE embeddings AS e SET sum = {sums.VECTOR}")
    direct.close()
    done = carrel("search", "refund", *BOTH, data=copied)
    assert done.code == 2
    assert "asked together when one embedder made their vectors: house." in done.err.replace(
        "\n", " "
    )
    assert "carrel reindex" in done.err
    assert carrel("search", "refund", "-c", "house", data=copied).code == 0
