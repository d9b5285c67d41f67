"""`carrel recommend` lists what meets a need, with reasons, under the rights of its caller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Carrel, in_process, write_files

PROJECTS = [
    ("fastjson", "A fast JSON parser and validator for services.",
     {"license": "MIT", "language": "Python", "stars": 5200, "last_push": "2026-11-01"}),
    ("oldjson", "A JSON parser that reads large files.",
     {"license": "GPL-3.0", "language": "Python", "stars": 90, "last_push": "2015-02-03"}),
    ("gojson", "JSON parser with schema validation.",
     {"license": "Apache-2.0", "language": "Go", "stars": 1500, "platforms": ["Docker"]}),
    ("barejson", "A JSON parser without any metadata at all.", {}),
    ("wikibox", "A wiki for small teams.",
     {"license": "AGPL-3.0", "stars": 400, "platforms": ["Docker", "PHP"]}),
    ("chartling", "Draws charts in the browser.", {"license": "MIT", "language": "JavaScript"}),
    ("kvint", "A document editor that works with Docker and chartling, instead of Google Docs."
     " It does not work with wikibox.",
     {"license": "MIT", "language": "Go", "stars": 30, "depends_on": ["chartling", "zlib"]}),
    ("oldwiki", "A wiki in plain files. Not maintained any more; use wikibox instead. Needs Perl. "
     "It requires Chartling.", {"license": "MIT", "stars": 3, "successor": "wikibox"}),
]  # fmt: skip
ROWS = "".join(
    json.dumps({"_id": name, "title": name, "text": text, "metadata": fields}) + "\n"
    for name, text, fields in PROJECTS
)
FILES = {
    "open/projects.jsonl": ROWS,
    "board/secret.jsonl": json.dumps(
        {"_id": "secretjson", "title": "secretjson", "text": "A secret JSON parser.",
         "metadata": {"license": "MIT", "language": "Python", "stars": 9000}}
    ) + "\n",
    "prose/tea.md": "# Tea\n\nGreen tea is brewed with water of eighty degrees.\n",
}  # fmt: skip


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    monkeypatch.setenv("CARREL_REASONER", "rules")
    return in_process(capsys, monkeypatch)


@pytest.fixture
def data(carrel: Carrel, tmp_path: Path) -> Path:
    files, data = write_files(tmp_path, FILES), tmp_path / "data"
    assert carrel("ingest", files / "open", "-c", "projects", data=data).code == 0
    secret = carrel("ingest", files / "board", "-c", "projects", "--acl", "chief", data=data)
    assert secret.code == 0
    assert carrel("ingest", files / "prose", "-c", "prose", data=data).code == 0
    return data


def test_projects_are_recommended_with_reasons(carrel: Carrel, data: Path) -> None:
    def ids(need: str, *more: str) -> list[str]:
        found = carrel("recommend", need, "-c", "projects", "--json", *more, data=data).json
        return [item["document_id"] for item in found["items"]]

    found = carrel(
        "recommend", "a JSON parser with a permissive licence", "-c", "projects", "-k", "2",
        "--json", data=data,
    ).json  # fmt: skip
    assert found["constraints"]["licence"]["filters"] == ["license=Apache-2.0|MIT"]
    assert sorted(item["document_id"] for item in found["items"]) == ["fastjson", "gojson"]
    first = found["items"][0]
    assert {"document_id", "title", "score", "factors", "reasons"} <= first.keys()
    assert all(0 <= value <= 1 for value in first["factors"].values())
    assert any(reason["text"].startswith("Its licence is") for reason in first["reasons"])
    assert all(cited["quote"] for reason in first["reasons"] for cited in reason["citations"])

    assert ids("JSON parser in Python") == ["fastjson", "oldjson"]
    assert ids("JSON parser in Python, at least 1000 stars") == ["fastjson"]
    assert ids("a JSON parser, not GPL")[:2] == ["fastjson", "gojson"]
    assert ids("вики, копилефт лицензия, в Docker") == ["wikibox"]
    assert "secretjson" not in ids("secret JSON parser")
    assert ids("secret JSON parser", "--role", "chief")[0] == "secretjson"
    assert ids("JSON parser", "--where", "stars>2000") == ["fastjson"]

    shown = carrel("recommend", "JSON parser in Go", "-c", "projects", data=data).out
    assert "1. gojson" in shown and "fit" in shown and "█" in shown and "Its licence is" in shown
    table = carrel("recommend", "JSON parser", "-c", "projects", "--compare", data=data).out
    assert "█" not in table and "barejson" in table and "–" in table


def test_likes_move_later_lists_of_their_user_alone(carrel: Carrel, data: Path) -> None:
    def listed(*more: str) -> list[dict[str, Any]]:
        found = carrel("recommend", "JSON", "-c", "projects", "--json", *more, data=data).json
        items: list[dict[str, Any]] = found["items"]
        return items

    before = [item["document_id"] for item in listed()]
    carrel("feedback", "dislike", before[0], "-c", "projects", data=data)
    carrel("feedback", "like", before[2], "-c", "projects", data=data)
    after = listed()
    assert [item["document_id"] for item in after][-1] == before[0]
    assert after[0]["document_id"] == before[2]
    assert "You liked it." in [one["text"] for one in after[0]["reasons"]]
    for item in after:  # nothing is like itself
        assert f"Because you liked “{item['title']}”." not in [r["text"] for r in item["reasons"]]
    assert [item["document_id"] for item in listed("--user", "bob")] == before

    rated = carrel("feedback", "list", "-c", "projects", "--json", data=data).json["ratings"]
    assert [(one["document_id"], one["rating"]) for one in rated] == [
        (before[2], "up"), (before[0], "down"),
    ]  # fmt: skip
    unseen = carrel("feedback", "like", "secretjson", "-c", "projects", data=data)
    unseen.failed(2, "no such document")
    chief = ("-c", "projects", "--role", "chief")
    assert carrel("feedback", "like", "secretjson", *chief, data=data).code == 0
    assert "secretjson" not in carrel("feedback", "list", "-c", "projects", data=data).out
    everywhere = carrel("feedback", "list", "--json", data=data).json["ratings"]
    assert {one["collection"] for one in everywhere} == {"projects"} and len(everywhere) == 2
    assert carrel("feedback", "reset", "--yes", data=data).out.startswith("3 opinions")
    assert [item["document_id"] for item in listed()] == before


def test_needs_that_cannot_be_met_are_explained(carrel: Carrel, data: Path) -> None:
    carrel("recommend", "MIT licence, copyleft", "-c", "projects", data=data).failed(
        2, "contradict"
    )
    carrel("recommend", "", "-c", "projects", data=data).failed(2, "at least one word")
    carrel("recommend", "tea", "-c", "none", data=data).failed(2, "must exist")
    bare = carrel("recommend", "tea, MIT licence", "-c", "prose", "--json", data=data).json
    assert bare["items"] == [] and "licence" in bare["warnings"][-1]
    tea = carrel("recommend", "how to brew tea", "-c", "prose", "--json", data=data).json
    assert tea["items"][0]["factors"].keys() == {"fit"}
    assert tea["items"][0]["reasons"][0]["citations"]


def test_relations_are_told_and_drawn(carrel: Carrel, data: Path, tmp_path: Path) -> None:
    need = ("recommend", "document editor, charts in the browser", "-c", "projects")
    found = carrel(*need, "--json", data=data).json
    told = {(one["title"], one["kind"], one["target"]) for one in found["relations"]}
    assert {
        ("kvint", "depends_on", "zlib"), ("kvint", "depends_on", "chartling"),
        ("kvint", "instead_of", "Google Docs"), ("kvint", "works_with", "Docker"),
        ("kvint", "works_with", "chartling"),
    } <= told  # fmt: skip
    assert all(one["citations"][0]["quote"] for one in found["relations"])
    other = carrel("recommend", "wiki", "-c", "projects", "--json", data=data).json["relations"]
    assert {("oldwiki", "replaced_by", "wikibox"), ("oldwiki", "depends_on", "Chartling")} <= {
        (one["title"], one["kind"], one["target"]) for one in other
    }
    wanted = ("recommend", "a wiki instead of oldwiki", "-c", "projects", "--json")
    titles = [one["title"] for one in carrel(*wanted, data=data).json["items"]]
    assert "wikibox" in titles and "oldwiki" not in titles
    ids = {one["target"]: one["target_id"] for one in found["relations"]}
    assert (ids["chartling"], ids["zlib"]) == ("chartling", None)
    drawn = tmp_path / "graph.svg"
    assert "kvint instead of Google Docs" in carrel(*need, "--graph", drawn, data=data).out
    assert drawn.read_text().startswith("<svg") and "Google Docs" in drawn.read_text()
    carrel(*need, "--graph", tmp_path / "graph.txt", data=data).failed(2, ".svg")
    alone = ("recommend", "wiki for small teams", "-c", "projects", "--graph", drawn)
    assert "None of these documents" in carrel(*alone, data=data).err
    assert "None of these documents" in drawn.read_text()


def test_use_is_counted_and_likes_are_evaluated(carrel: Carrel, data: Path) -> None:
    need = ("recommend", "JSON parser", "-c", "projects", "--json")
    shown = [one["document_id"] for one in carrel(*need, data=data).json["items"]]
    assert {"fastjson", "gojson"} <= set(shown)
    carrel("feedback", "use", "gojson", "-c", "projects", data=data)
    first = carrel(*need, data=data).json["items"][0]
    assert first["document_id"] == "gojson"
    assert [one["text"] for one in first["reasons"][:2]] == [
        "JSON parser with schema validation.", "You use it.",
    ]  # fmt: skip
    kept = carrel("feedback", "list", "-c", "projects", "--json", data=data).json["ratings"]
    assert [(one["document_id"], one["rating"]) for one in kept] == [("gojson", "adopted")]
    assert "nobody has likes" in carrel("eval", "opinions", data=data).out
    carrel("feedback", "like", "fastjson", "-c", "projects", data=data)
    found = carrel("eval", "opinions", "--json", data=data).json
    assert (found["users"], found["likes"]) == (1, 2) and 0 <= found["auc"] <= 1
    assert "2 opinions forgotten" in carrel("feedback", "reset", "-y", data=data).out
    assert carrel("eval", "opinions", "--json", data=data).json["users"] == 0
