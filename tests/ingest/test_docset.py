"""Docsets: every page a document, what the index says of it, and what is wrong with an index."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import docset_files
import loading
import pytest
from docset_files import DOCUMENTS, INDEX, PLIST, Name, Page, definition, page, write_docset

from core.auth import AuthContext
from core.metadata import parse_filters
from ingest.discover import discover
from ingest.loaders.outline import Outline
from ingest.loaders.text.structured_text import add_restructured_text
from ingest.loaders.web import html
from ingest.summary import Summary
from ingest.types import LoadFailure, ParsedDocument
from ingest.usable import load
from stores.sqlite.catalogue import Collection
from stores.store import Store

LIMITS = loading.LIMITS.model_copy(update={"max_characters": 3_000_000})  # a page of 2 MB is fine
SIN = definition("kite.sin", "x, /", "<p>Compute the sine, in radians.</p>")
COS = definition(
    "kite.cos",
    "x, *, exact=False",
    '<p>Compute the cosine.</p><dl class="field-list"><dt>Parameters</dt><dd><p><b>x</b>'
    ' – the angle.</p></dd></dl><div class="deprecated"><p><span class="versionmodified">'
    "Deprecated since version 2.0: </span>Use kite.cosine instead.</p></div>"
    '<div class="highlight"><pre>>>> kite.cos(0)\n1.0</pre></div>',
)
PAGES = {
    "api/kite.html": page(
        "kite module",
        f"<p>Functions of waves.</p>{SIN}{COS}",
        *(Name("kite", "Module"), Name("kite.sin", anchor="kite.sin")),
        Name("kite.cos", anchor="kite.cos"),
    ),
    "guide.html": page("Getting started", "<p>Install it with pip and fly the kite.</p>"),
}


def read(root: Path) -> tuple[dict[str, ParsedDocument], dict[str, str]]:
    """Return pages by their paths, and reasons of failures by theirs."""
    (source,), refused = discover([root])
    assert refused == []
    items = list(load(source, LIMITS, loading.SHARED))
    pages = {one.source: one for one in items if isinstance(one, ParsedDocument)}
    inside = {name.split(f"{DOCUMENTS.as_posix()}/")[-1]: one for name, one in pages.items()}
    failures = {one.path.split(".docset/")[-1]: one.reason for one in items
                if isinstance(one, LoadFailure)}  # fmt: skip
    return inside, failures


@pytest.mark.parametrize("form", ["search_index", "core_data"])
def test_pages_have_what_the_index_and_the_properties_say(
    tmp_path: Path, form: docset_files.Form
) -> None:
    pages, failures = read(write_docset(tmp_path, PAGES, form=form))
    assert failures == {}
    module, guide = pages["api/kite.html"], pages["guide.html"]
    expected = {"framework": "Kite", "version": "2.1.0", "module": "kite"}
    assert expected.items() <= module.metadata.items()
    assert module.metadata["type"] == ["function", "module"]
    assert {"name": "kite.sin", "type": "function", "anchor": "kite.sin"} in (
        module.metadata["entries"]
    )
    assert module.title == "kite module"
    assert (guide.metadata["type"], guide.metadata["version"]) == (["guide"], "2.1.0")
    notices = {one["name"]: one.get("deprecated") for one in module.metadata["entries"]}
    assert notices["kite.cos"] == "Deprecated since version 2.0: Use kite.cosine instead."
    assert not notices["kite.sin"] and module.metadata["deprecated"] == "in part"


def test_a_function_is_a_section_with_signature_parameters_and_code(tmp_path: Path) -> None:
    pages, _ = read(write_docset(tmp_path, PAGES))
    blocks = pages["api/kite.html"].blocks
    text = "\n".join(block.text for block in blocks if block.section.endswith("› kite.cos"))
    assert "kite.cos(x, *, exact=False)" in text
    assert "Parameters: x – the angle." in text
    assert [one.text for one in blocks if one.kind == "code"] == [">>> kite.cos(0)\n1.0"]
    whole = "\n".join(block.text for block in blocks)
    assert "[source]" not in whole and "General Index" not in whole and "Created using" not in whole


def test_a_packed_docset_is_read_as_its_folder_is(tmp_path: Path) -> None:
    root = write_docset(tmp_path / "a", PAGES)
    folder, _ = read(root)
    for packed in (
        docset_files.packed_tar(root, tmp_path / "Kite.tgz"),
        Path(shutil.make_archive(str(tmp_path / "kite"), "zip", tmp_path / "a")),
    ):
        pages, failures = read(packed)
        assert failures == {}
        assert {name: one.metadata for name, one in pages.items()} == {
            name: one.metadata for name, one in folder.items()
        }


def test_a_packed_folder_without_a_docset_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    _, failures = read(docset_files.packed_tar(tmp_path / "notes.txt", tmp_path / "n.tar.gz"))
    assert "no docset is in it" in failures["n.tar.gz"]


def test_what_is_wrong_is_reported_by_name_and_the_rest_is_read(tmp_path: Path) -> None:
    large = f"<p>{'A long sentence about kites. ' * 75_000}</p>"
    pages = {
        **PAGES,
        "large.html": page("Large", large),
        "links.html": page("Index", "".join(f'<a href="{n}">name {n}</a> ' for n in range(99))),
        "stub.html": page("Only a heading", ""),
        "list.html": page(
            "", f"<ul>{''.join(f'<li><a href=q{n}.html>P{n}</a></li>' for n in range(50))}</ul>"
        ),
    }
    rows = [
        ("gone", "Class", "gone.html#gone"),
        ("out", "File", "../../../../../../etc/passwd"),
        ("tagged", "Guide", "<dash_entry_name=x>guide.html"),
    ]
    root = write_docset(tmp_path, pages, version="nightly", rows=rows)
    (root / DOCUMENTS / "latin.html").write_bytes(
        "<html><head><meta charset=latin-1></head><p>Ein größerer Drachen.</p></html>".encode(
            "latin-1"
        )
    )
    (root / DOCUMENTS / "binary.html").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9)
    read_pages, failures = read(root)
    assert set(read_pages) == {*PAGES, "large.html", "latin.html"}
    assert "größerer" in read_pages["latin.html"].blocks[0].text
    assert read_pages["guide.html"].metadata["entries"][0]["name"] == "tagged"
    prefix = f"{DOCUMENTS.as_posix()}/"
    wrong = ("gone.html", "links.html", "list.html", "stub.html", "binary.html")
    assert {f"{prefix}{name}" for name in wrong} <= failures.keys()
    assert "'nightly'" in failures[str(PLIST)]
    assert "version" not in read_pages["guide.html"].metadata
    assert all("etc" not in name for name in read_pages)


@pytest.mark.parametrize(
    ("damage", "said"),
    [("none", "no index"), ("cut", "damaged"), ("other", "damaged"), ("view", "damaged")],
)
def test_pages_of_a_docset_without_a_sound_index_are_read(
    tmp_path: Path, damage: str, said: str
) -> None:
    names = [Name(f"kite.f{n}", "Function") for n in range(2000)]
    pages = {**PAGES, "many.html": page("Many", "<p>Many functions.</p>", *names)}
    root = write_docset(tmp_path, pages, form=None if damage == "none" else "search_index")
    index = root / INDEX
    if damage == "cut":
        index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
    elif damage == "other":
        index.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000)
    elif damage == "view":
        with closing(sqlite3.connect(index)) as opened, opened:
            opened.executescript(
                "DROP TABLE searchIndex; CREATE VIEW searchIndex AS WITH RECURSIVE n(i) AS"
                " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS name, i AS type,"
                " i AS path FROM n;"
            )
    found, failures = read(root)
    assert set(found) == set(pages)
    assert said in failures[str(INDEX)]


def test_a_docset_is_ingested_updated_and_filtered(
    tmp_path: Path, ingest: Callable[..., Summary], store: Store, collection: Collection
) -> None:
    root = write_docset(tmp_path, PAGES)
    other = {"waves.html": page("Waves", "<p>All about waves.</p>", Name("Sea", "Class"))}
    write_docset(tmp_path, other, name="Ocean", version="1.0")
    assert ingest(tmp_path).indexed == 2
    assert ingest(tmp_path).unchanged == 2
    changed = PAGES["guide.html"].html.replace("pip", "conda")
    (root / DOCUMENTS / "guide.html").write_text(changed)
    summary = ingest(tmp_path)
    assert (summary.indexed, summary.unchanged, summary.documents) == (1, 1, 3)
    for where, expected in (
        (["framework=kite"], 2),
        (["framework=Ocean", "version=1.0"], 1),
        (["type=class"], 1),
        (["type=guide", "framework=Kite"], 1),
        (["module=kite"], 1),
        (["code_density>0"], 1),
    ):
        auth = AuthContext(tenant=collection.tenant, where=parse_filters(where))
        assert len(store.catalogue.visible_documents(auth, collection.id, ())) == expected, where


def test_pages_of_real_documentation(tmp_path: Path) -> None:
    if not (docset_files.SHARED / "jax_docs").is_dir():
        pytest.skip("the shared data sets are not at hand")
    pages: dict[str, Page] = {}
    for path, one in docset_files.documentation_pages("jax_docs", "docs/", "JAX"):
        if len(pages) < 8:
            pages[path] = one
    found, failures = read(write_docset(tmp_path, pages, name="JAX", version="0.9.1"))
    assert found.keys() | {name.removeprefix(f"{DOCUMENTS.as_posix()}/") for name in failures} == (
        pages.keys()
    )
    assert len(failures) <= 1
    assert all(one.metadata["framework"] == "JAX" for one in found.values())
    assert not any("Search this site" in b.text for one in found.values() for b in one.blocks)


DOCUSAURUS = """<html><head><title>Setup | Kite</title>
<meta name="docusaurus_version" content="2.4"></head><body><nav class="navbar">Menu</nav>
<main><article><nav class="theme-doc-breadcrumbs">Home</nav>
<span class="theme-doc-version-badge">Version: 2.4</span><h1>Setup</h1>
<p>Tie the line first, and mind the wind.</p>
<h2>Options<a class="hash-link" href="#o">\u200b</a></h2>
<div class="theme-admonition"><p>Never in a storm.</p></div>
<pre class="prism-code"><code><span>line = {<br></span><span>}<br></span></code></pre>
<button>Copy</button><footer class="theme-doc-footer">Edit this page</footer></article>
</main></body></html>"""
MKDOCS = """<html><head><title>kite.fly - Kite</title></head><body>
<div class="md-sidebar"><nav>Menu</nav></div>
<article><a class="md-content__button">edit</a><h1>kite.fly</h1>
<h2 class="doc doc-heading"><code>fly(line, wind=1)</code>
<a class="headerlink" href="#f">&para;</a></h2><p>Fly a kite on its line.</p>
<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>
<td class="code"><pre>fly(1)\nfly(2)</pre></td></tr></table></article></body></html>"""
RST = """kite.tail module
================

.. currentmodule:: kite.tail

.. autosummary::
  :toctree: _autosummary

    length
    kite.cut

.. function:: knot(line, *, tight=True)

   Tie a knot.

   .. code-block:: python

      knot(1)

After the functions.
"""


def test_pages_of_other_generators_are_read_without_their_furniture() -> None:
    (setup,) = html.load("setup.html", DOCUSAURUS)
    assert (setup.title, setup.metadata["version"]) == ("Setup", "2.4")
    assert [(block.section, block.text) for block in setup.blocks] == [
        ("Setup", "Tie the line first, and mind the wind."),
        ("Setup › Options", "Never in a storm."),
        ("Setup › Options", "line = {\n}"),
    ]
    (fly,) = html.load("fly.html", MKDOCS)
    assert [(block.section, block.kind, block.text) for block in fly.blocks] == [
        ("kite.fly › fly(line, wind=1)", "text", "Fly a kite on its line."),
        ("kite.fly › fly(line, wind=1)", "code", "fly(1)\nfly(2)"),
    ]


def test_names_of_restructured_text_are_whole_and_sections_of_their_own() -> None:
    outline = Outline()
    add_restructured_text(outline, RST)
    title, knot = "kite.tail module", "kite.tail module › kite.tail.knot"
    assert [(block.section, block.text) for block in outline.finish()] == [
        (title, "kite.tail.length\nkite.cut"),
        (knot, "kite.tail.knot(line, *, tight=True)\n\nTie a knot."),
        (knot, "knot(1)"),
        (title, "After the functions."),
    ]
