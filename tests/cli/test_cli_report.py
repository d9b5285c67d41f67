"""`carrel report`: the figures as data and as a page, the advice and what applies it."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel

GUIDE = (
    "# How to fly\n\nA kite needs wind, a line and a person who holds it.\n\n```python\n"
    "import kite\n\nkite.launch(height=40, line=2)\nkite.land()\n```\n"
)


@pytest.fixture
def kites(carrel: Carrel, tmp_path: Path) -> Path:
    folder, data = tmp_path / "in", tmp_path / "d"
    folder.mkdir()
    (folder / "fly.md").write_text(GUIDE, encoding="utf-8")
    assert carrel("ingest", folder, "-c", "kites", data=data).code == 0
    (folder / "secret.md").write_text("# Secret\n\nThe secret kite is red.\n", encoding="utf-8")
    arguments = ("ingest", folder / "secret.md", "-c", "kites", "--acl", "board")
    assert carrel(*arguments, data=data).code == 0
    return data


def test_the_figures_count_what_the_caller_sees(carrel: Carrel, kites: Path) -> None:
    def documents(*who: str) -> int:
        done = carrel("report", "kites", "--json", *who, data=kites).json
        (found,) = done["collections"]
        return int(found["documents"])

    assert documents() == documents("--user", "ann") == 1
    assert documents("--user", "ann", "--role", "board") == 2


def test_the_advice_is_applied_and_holds_for_the_next_ingest(
    carrel: Carrel, kites: Path, tmp_path: Path
) -> None:
    target = tmp_path / "kites.html"
    done = carrel("report", "kites", "--out", target, data=kites)
    assert done.code == 0 and "ingest.chunker: sentence → structural" in done.out
    assert target.read_text(encoding="utf-8").count("<figure>") == 10
    refused = carrel("report", "kites", "--out", target, "--apply", data=kites)
    refused.failed(2, "-y")
    applied = carrel("report", "kites", "--json", "--apply", "-y", data=kites).json
    assert applied["applied"] == ["kites"] and applied["collections"][0]["advice"]
    again = carrel("report", "kites", "--json", data=kites).json["collections"][0]
    assert again["advice"] == [] and again["documents"] == 1 and again["passages"] == 2
    assert carrel("ingest", tmp_path / "in/fly.md", "-c", "kites", data=kites).code == 0
    after = carrel("report", "kites", "--json", data=kites).json["collections"][0]
    assert after["passages"] == 1  # the code stays with its section


def test_report_wrong_use(carrel: Carrel, kites: Path, tmp_path: Path) -> None:
    carrel("report", "none", "--json", data=kites).failed(2, "none", "kites")
    carrel("report", "kites", "--out", tmp_path / "r.txt", data=kites).failed(2, ".html")
    carrel("report", "kites", "--json", "--apply", "--user", "ann", data=kites).failed(2, "--user")
    carrel("report", "kites", "--json", data=tmp_path / "nothing").failed(4, "there is no data")
