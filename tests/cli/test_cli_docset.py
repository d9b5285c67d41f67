"""Two versions of a docset side by side: filters, versions and deprecation in search and ask."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel
from docset_files import Name, definition, page, write_docset

NOTICE = (
    '<div class="deprecated"><p><span class="versionmodified">Deprecated since version 2.0: </span>'
    "Use kite.lift instead.</p></div>"
)


@pytest.fixture
def data(carrel: Carrel, tmp_path: Path) -> Path:
    for version, seconds in (("1.0", 30), ("2.0", 45)):
        timeout = f"<p>The launch timeout of the winch is {seconds} seconds.</p>"
        soar = f"<p>kite.soar returns the height of the kite in metres.</p>{NOTICE}"
        pages = {
            "winch.html": page("Winch", timeout, Name("kite.Winch", "Class")),
            "soar.html": page(
                "kite.soar", definition("kite.soar", "line", soar), Name("kite.soar")
            ),
        }
        write_docset(tmp_path / "docs" / version, pages, version=version)
    done = carrel("ingest", tmp_path / "docs", "-c", "kites", data=tmp_path / "data")
    assert done.code == 0, done.err
    return tmp_path / "data"


def test_versions_types_and_frameworks_are_kept_apart(carrel: Carrel, data: Path) -> None:
    ask = ("ask", "What is the launch timeout of the winch?", "-c", "kites", "--json")
    for version, seconds in (("1.0", "30"), ("2.0", "45")):
        found = carrel(*ask, "--where", f"version={version}", data=data).json
        assert f"{seconds} seconds" in found["answer"]
        named = carrel(*ask[:1], f"{ask[1][:-1]} in version {version}?", *ask[2:], data=data).json
        assert f"{seconds} seconds" in named["answer"]
        assert not named["conflicts"]  # what another version says contradicts nothing
        assert {one["version"] for one in named["evidence"][:1]} == {version}
    search = ("search", "winch", "-c", "kites", "--json", "--where")
    kinds = carrel(*search, "type=class", data=data).json["results"]
    assert {one["document_id"].rsplit("/")[-1] for one in kinds} == {"winch.html"}
    assert carrel(*search, "framework=kite", data=data).json["results"]
    assert not carrel(*search, "framework=ocean", data=data).json["results"]


def test_an_answer_warns_of_deprecation_and_of_another_version(carrel: Carrel, data: Path) -> None:
    asked = ("-c", "kites", "--json")
    found = carrel("ask", "What does kite.soar return?", *asked, data=data).json
    assert not found["refused"]
    (warning,) = [one for one in found["warnings"] if one.startswith("deprecated: ")]
    assert "Use kite.lift instead." in warning
    assert not any("thinly" in one for one in found["warnings"])  # no other module has more
    other = carrel("ask", "What is the launch timeout of the winch in 7.5?", *asked, data=data).json
    assert other["refused"]
    assert "asked about version 7.5, but found version 1.0, 2.0" in other["warnings"]


def test_of_several_names_on_a_page_each_is_what_it_is(carrel: Carrel, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/conf.py").write_text('project = "Kite"\nrelease = "4.2"\n')
    (tmp_path / "docs/air.rst").write_text(AIR, encoding="utf-8")
    data = tmp_path / "data"
    done = carrel("ingest", tmp_path / "docs", "-c", "air", "--profile", "techdocs", data=data)
    assert done.code == 0, done.err

    def sections(*where: str) -> set[str]:
        given = [part for one in where for part in ("--where", one)]
        found = carrel("search", "kite.air", "-c", "air", "--json", *given, data=data).json
        return {one["section"].rsplit(" › ")[-1] for one in found["results"]}

    assert sections("type=function", "framework=kite") == {"kite.air.glide", "kite.air.drift"}
    assert sections("type=class", "version=4.2") == {"kite.air.Sail"}
    assert sections("since=1.5") == {"kite.air.glide"}
    assert sections("deprecated=true") == {"kite.air.drift"}
    for name, warned in (("kite.air.drift", True), ("kite.air.glide", False)):
        found = carrel("ask", name, "-c", "air", "--json", data=data).json
        assert not found["refused"]
        notices = [one for one in found["warnings"] if one.startswith("deprecated: ")]
        assert [name in one and "Use `glide` instead." in one for one in notices] == [True] * warned


AIR = """Moving through the air
======================

.. module:: kite.air

.. function:: glide(angle, *, speed=3)

   Glide down at an angle.

   :param angle: the angle in degrees

   .. versionadded:: 1.5

.. function:: drift(angle)

   .. deprecated:: 2.0
      Use :func:`glide` instead.

   Move with the wind.

.. class:: Sail(size)

   A sail of some size that catches the wind.
"""
GUIDE = """# Kites

## Flying

Tie the line before a kite flies.

```python
def fly(line):
    for knot in line:


        tie(knot)
```

## Errors

CalmError is raised when there is too little wind for the line.

### `pull(line, *, force=1)`

Pull a kite down to the ground.

- `line`: what holds the kite.
- `force`: how hard, in newtons.
"""
FAILED = """It stops, what should I do?
Traceback (most recent call last):
  File "/home/ann/sky.py", line 7, in <module>
    fly(thread)
kites.CalmError: too little wind in /home/ann"""


def test_documentation_answers_with_code_signatures_and_what_an_error_means(
    carrel: Carrel, tmp_path: Path
) -> None:
    (tmp_path / "kites.md").write_text(GUIDE, encoding="utf-8")
    ingested = carrel(
        *("ingest", tmp_path / "kites.md", "-c", "kites", "--profile", "techdocs"),
        data=tmp_path / "data",
    )
    assert ingested.code == 0, ingested.err

    def answer(question: str) -> str:
        asked = carrel("ask", question, "-c", "kites", "--json", data=tmp_path / "data")
        return str(asked.json["answer"])

    block = "```\ndef fly(line):\n    for knot in line:\n\n\n        tie(knot)\n```"
    shown = answer("How do I tie the line of a kite?")
    assert shown == f"Tie the line before a kite flies. [1]\n{block}\n[1]"
    called = answer("What arguments does pull take?")
    assert called.startswith("pull(line, *, force=1): Pull a kite down to the ground. [1]")
    assert "- `force`: how hard, in newtons." in called
    assert answer(FAILED).startswith("CalmError is raised when there is too little wind")
