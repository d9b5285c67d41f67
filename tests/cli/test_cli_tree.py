"""`carrel tree` builds the tree of a collection and shows it to whom it is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel, in_process, write_files

FILES = {
    "open/harbour.md": "# Harbour\n\n## Depth\n\nThe harbour of the town is nine metres deep today."
    "\n\n## Cranes\n\nTwo blue cranes unload the ships of the northern line every week.\n",
    "open/garden.md": "# Garden\n\nThe garden opens in April and closes after the first frost.\n",
    "board/board.md": "# Board\n\nThe secret board meets in the old tower in March.\n",
}


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    monkeypatch.setenv("CARREL_REASONER", "rules")
    return in_process(capsys, monkeypatch)


def test_a_tree_is_built_shown_and_kept_up(carrel: Carrel, tmp_path: Path) -> None:
    files, data = write_files(tmp_path, FILES), tmp_path / "data"
    assert carrel("ingest", files / "open", data=data).code == 0
    carrel("tree", "show", "default", data=data).failed(2, "no tree", "carrel tree build default")
    built = carrel("tree", "build", "default", "--json", data=data).json
    assert built.keys() == {"levels", "nodes", "leaves", "seconds"}
    assert (built["levels"] >= 2, built["nodes"] >= 2, built["leaves"]) == (True, True, 3)
    again = carrel("tree", "build", "default", "--fresh", data=data)
    assert again.out.startswith(f"default: {built['levels']} levels, {built['nodes']} nodes, 3 le")
    assert carrel("ingest", files / "board", "--acl", "chief", data=data).code == 0
    for role, leaves in (((), 3), (("--role", "chief"), 4)):  # of what others may not see nothing
        counted = carrel("tree", "build", "default", "--json", *role, data=data).json
        assert counted["leaves"] == leaves

    shown = carrel("tree", "show", "default", "--json", data=data).json
    assert {name: shown[name] for name in ("levels", "nodes", "leaves")} == {
        name: built[name] for name in ("levels", "nodes", "leaves")
    }
    root = shown["tree"][0]
    assert root["leaves"] == 3 and 3 <= len(root["questions"]) <= 5 and len(root["keywords"]) > 4
    for sentence in root["summary"]:
        assert sentence["text"] == " ".join(sentence["citations"][0]["quote"].split())
    assert set(root["children"]) <= {one["node_id"] for one in shown["tree"]}
    drawn = carrel("tree", "show", "default", data=data).out
    assert "nine metres deep" in drawn and "secret" not in drawn and "3 leaves" in drawn
    chief = carrel("tree", "show", "default", "--role", "chief", "--json", data=data).json
    assert chief["leaves"] == 4


def test_what_has_no_tree_is_explained(carrel: Carrel, tmp_path: Path) -> None:
    files, data = write_files(tmp_path, FILES), tmp_path / "data"
    assert carrel("ingest", files / "board", "--acl", "chief", data=data).code == 0
    carrel("tree", "build", "absent", data=data).failed(2, "must exist", "default")
    stranger = carrel("tree", "build", "default", "--user", "ann", data=data)
    stranger.failed(2, "must exist")
    assert carrel("tree", "build", "default", "--json", data=data).json["leaves"] == 0
    carrel("tree", "show", "default", data=data).failed(2, "no tree")
    given = ("ingest", files / "open", "-c", "new", "--set", "ingest.tree=build")
    assert carrel(*given, data=data).code == 0
    assert carrel("tree", "show", "new", "--json", data=data).json["leaves"] == 3
