"""What pages of documentation say of their names, in each of their forms, and of which site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import loading
import pytest
from docset_files import PLIST, Name, definition, page, write_docset

from ingest.discover import discover
from ingest.loaders.site import split_release
from ingest.loaders.text import markdown, plain_text
from ingest.loaders.web import html
from ingest.types import ParsedDocument
from ingest.usable import load

RST = """Shelves
=======

.. py:module:: heron.shelf

.. _putting-away:

Putting away
------------

.. deprecated:: 3.0
   Sort by hand no more.

.. py:function:: stack(box, *, height=4)

   Put a box on top.

   :param Box box: the box,
      of any size
   :param height: levels at most
   :type height: int
   :returns: the level
   :raises FullError: when there is no room

   .. versionadded:: 2.2

.. py:function:: pile(box)

   .. deprecated:: 2.5
      Use :func:`stack`.

   Throw a box.
"""
MYST = """# Shelves

```{py:module} heron.shelf
```

(putting-away)=
## Putting away

:::{deprecated} 3.0
Sort by hand no more.
:::

```{py:function} stack(box, *, height=4)

Put a box on top.

:param Box box: the box, of any size
:param height: levels at most
:type height: int
:returns: the level
:raises FullError: when there is no room

:::{versionadded} 2.2
:::
```

```{py:function} pile(box)
:::{deprecated} 2.5
Use {func}`stack`.
:::

Throw a box.
```
"""
STACK = (
    "heron.shelf.stack(box, *, height=4)\n\nPut a box on top.\n\n"
    "Parameters:\n- box (Box) – the box, of any size\n- height (int) – levels at most\n\n"
    "Returns: the level\n\nRaises: FullError – when there is no room\n\nNew in version 2.2."
)


def said(document: ParsedDocument) -> dict[str, dict[str, str]]:
    return {one["name"]: {**one} for one in document.metadata["entries"]}


@pytest.mark.parametrize(
    "document",
    [next(plain_text.load("shelf.rst", RST)), next(markdown.load("shelf.md", MYST))],
    ids=["rst", "myst"],
)
def test_source_files_say_of_each_name_what_it_is(document: ParsedDocument) -> None:
    entries, metadata = said(document), document.metadata
    assert metadata["type"] == ["module", "function"]
    assert metadata["module"] == "heron.shelf"
    assert (metadata["deprecated"], metadata["since"]) == ("in part", ["2.2"])
    stack, pile = entries["heron.shelf.stack"], entries["heron.shelf.pile"]
    assert (stack["type"], stack["since"], stack["anchor"]) == ("function", "2.2", stack["name"])
    assert pile["deprecated"] == "Deprecated since version 2.5: Use `stack`."
    assert "deprecated" not in stack and "since" not in pile
    away = entries["Putting away"]
    assert away["anchor"] == "putting-away"
    assert away["deprecated"] == "Deprecated since version 3.0: Sort by hand no more."
    texts = {one.section.rsplit(" › ")[-1]: one.text for one in document.blocks}
    assert texts["heron.shelf.stack"] == STACK


def test_options_of_a_directive_go_and_its_content_stays() -> None:
    text = "# Boxes\n\n```{code-block} python\n:linenos:\n:caption: x\n\nlift(box)\n```\n"
    note = "\n```{note}\n:class: wide\nMind the step.\n```\n\n```md\n:::{note}\n:::\n```\n"
    (document,) = markdown.load("boxes.md", text + note)
    shown = [(one.kind, one.text) for one in document.blocks]
    assert shown == [("code", "lift(box)"), ("text", "Mind the step."),
                     ("code", ":::{note}\n:::")]  # fmt: skip


def test_pages_of_sphinx_say_of_each_name_what_it_is() -> None:
    old = '<div class="deprecated"><p>Deprecated since version 2.5: Use stack.</p></div>'
    new = '<div class="versionadded"><p>Added in version 2.2.</p></div>'
    member = definition("heron.Shelf.sort", "key", f"<p>Sort.</p>{new}", "method")
    members = member + definition("heron.Shelf.size", "", "<p>Levels.</p>", "attribute")
    parameter = (
        f'<dl class="field-list"><dt>Parameters:</dt><dd><ul><li>box{old}</li></ul></dd></dl>'
    )
    body = (
        definition("heron.stack", "box", f"<p>Put a box.</p>{parameter}")
        + definition("heron.pile", "box", f"{old}<p>Throw.</p>")
        + definition("heron.Shelf", "", f"<p>A shelf.</p>{members}", "class")
    )
    (document,) = html.load("shelf.html", page("Shelves", body).html)
    entries = said(document)
    assert {name: one["type"] for name, one in entries.items() if "type" in one} == {
        "heron.stack": "function", "heron.pile": "function", "heron.Shelf": "class",
        "heron.Shelf.sort": "method", "heron.Shelf.size": "attribute",
    }  # fmt: skip
    assert {name for name, one in entries.items() if "deprecated" in one} == {"heron.pile"}
    assert {name for name, one in entries.items() if "since" in one} == {"heron.Shelf.sort"}
    assert document.metadata["deprecated"] == "in part"
    sections = [block.section for block in document.blocks]
    assert sections[-1] == "Shelves › heron.Shelf › heron.Shelf.size"
    assert "Parameters:\n- box" in document.blocks[0].text


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("Heron 3.1", "Heron", "3.1"),
        ("Heron v3.1.2 documentation", "Heron", "3.1.2"),
        ("Heron-3.1", "Heron", "3.1"),
        ("heron_net_3.1rc1", "heron_net", "3.1rc1"),
        ("Python 3", "Python", "3"),
        ("ISO 8601", "ISO 8601", ""),
        ("D3", "D3", ""),
        ("3.1", "3.1", ""),
        ("Heron documentation", "Heron", ""),
    ],
)
def test_a_version_is_no_part_of_the_name(text: str, name: str, version: str) -> None:
    assert split_release(text) == (name, version)


def head(title: str, *tags: str) -> str:
    return f"<html><head><title>{title}</title>{''.join(tags)}</head><body><main><h1>Depth</h1>" + (
        "<p>Measure the depth with a rod.</p></main></body></html>"
    )


MKDOCS = '<meta name="generator" content="mkdocs-1.5.3, mkdocs-material-9.4">'
DOCUSAURUS = '<meta name="generator" content="Docusaurus v2.4.1">'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.html", head("Depth - Otter 5.2", MKDOCS), ("Otter", "5.2")),
        ("index.html", head("Otter 5.2", MKDOCS), ("Otter", "5.2")),
        ("a.html", head("Depth", MKDOCS), (None, None)),
        ("a.html", head("Depth | Otter", DOCUSAURUS), ("Otter", None)),
        ("a.html", head("Depth", DOCUSAURUS, '<meta property="og:site_name" content="Otter">'),
         ("Otter", None)),
        ("a.html", head("Depth — Otter 5.2 documentation",
                        "<script src=documentation_options.js></script>"), ("Otter", "5.2")),
        ("a.html", head("Depth — Otter documentation", "<script>var DOCUMENTATION_OPTIONS = {"
                        "VERSION: '5.2.1'}</script>"), ("Otter", "5.2.1")),
        ("a.html", head("Depth | The Daily Otter"), (None, None)),  # no documentation
    ],
)  # fmt: skip
def test_a_page_says_of_which_site_it_is(
    name: str, text: str, expected: tuple[str | None, str | None]
) -> None:
    (document,) = html.load(name, text)
    found = document.metadata
    assert (found.get("framework"), found.get("version")) == expected


def read(root: Path) -> Mapping[str, Mapping[str, Any]]:
    sources, _ = discover([root])
    items = [one for source in sources for one in load(source, loading.LIMITS, loading.SHARED)]
    return {one.source: one.metadata for one in items if isinstance(one, ParsedDocument)}


@pytest.mark.parametrize(
    ("config", "text", "version"),
    [
        ("conf.py", 'project = "Otter"\nversion = "5"\nrelease = "5.2"\n', "5.2"),
        ("mkdocs.yml", "site_name: Otter 5.2  # the river\nnav: []\n", "5.2"),
        ("docusaurus.config.js", "module.exports = {\n  title: 'Otter',\n};\n", None),
    ],
)
def test_the_configuration_of_a_site_says_of_what_its_sources_are(
    tmp_path: Path, config: str, text: str, version: str | None
) -> None:
    (tmp_path / "otter/docs").mkdir(parents=True)
    (tmp_path / "otter" / config).write_text(text, encoding="utf-8")
    (tmp_path / "otter/docs/depth.md").write_text("# Depth\n\nMeasure it.\n", encoding="utf-8")
    (tmp_path / "letter.md").write_text("# Letter\n\nDear Ann.\n", encoding="utf-8")
    found = read(tmp_path)
    depth = found["otter/docs/depth.md"]
    assert (depth["framework"], depth.get("version"), depth["type"]) == (
        "Otter",
        version,
        ["guide"],
    )
    assert "framework" not in found["letter.md"]


def test_a_docset_called_with_its_version_is_of_its_framework(tmp_path: Path) -> None:
    pages = {"a.html": page("Depth", "<p>Measure it.</p>", Name("Depth", "Guide"))}
    root = write_docset(tmp_path, pages, name="Otter 5.2", version="")
    (metadata,) = read(root).values()
    assert (metadata["framework"], metadata["version"]) == ("Otter", "5.2")
    (root / PLIST).unlink()
    (metadata,) = read(root).values()
    assert (metadata["framework"], metadata["version"]) == ("Otter", "5.2")
