"""Write Dash docsets: pages as Sphinx builds them, and an index in either of its two forms.

`page` and `definition` make a page that explains names; `documentation_pages` makes pages of the
JAX or PyTorch documentation (Markdown) in the shared data, with their headings as index entries.
`python tests/docset_files.py FOLDER` writes what docs/evals/techdocs.md is measured on.
"""

from __future__ import annotations

import html
import json
import plistlib
import re
import sqlite3
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

SHARED = Path(__file__).resolve().parents[2] / "shared/data"
DOCUMENTS = Path("Contents/Resources/Documents")
INDEX = Path("Contents/Resources/docSet.dsidx")
PLIST = Path("Contents/Info.plist")
NAVIGATION = (
    '<nav class="bd-links"><ul><li><a href="genindex.html">General Index</a></li>'
    '<li><a href="search.html">Search this site</a></li></ul></nav>'
)
Form = Literal["search_index", "core_data"]


@dataclass(frozen=True)
class Name:
    """A name that a page explains: `type` and `anchor` as in the index."""

    name: str
    type: str = "Function"
    anchor: str = ""


@dataclass
class Page:
    html: str
    names: Sequence[Name] = field(default_factory=list)


def page(title: str, body: str, *names: Name, project: str = "Kite") -> Page:
    """Return a page with the navigation that a theme puts around its text."""
    shown = html.escape(title)
    return Page(
        f'<!DOCTYPE html><html lang="en"><head><title>{shown} &#8212; {project} documentation'
        f'</title></head><body>{NAVIGATION}<div class="document"><div role="main">'
        f'<section><h1>{shown}<a class="headerlink" href="#x">#</a></h1>{body}</section></div>'
        f"</div><footer><p>Created using Sphinx.</p></footer></body></html>",
        names,
    )


def definition(name: str, signature: str, text: str, kind: str = "function") -> str:
    """Return what Sphinx writes for one object of an API."""
    around, _, last = name.rpartition(".")
    return (
        f'<dl class="py {kind}"><dt class="sig sig-object py" id="{name}">'
        f'<span class="sig-prename descclassname"><span class="pre">{around}.</span></span>'
        f'<span class="sig-name descname"><span class="pre">{last}</span></span>'
        f'<span class="sig-paren">(</span>{html.escape(signature)}<span class="sig-paren">)</span>'
        '<a class="reference internal viewcode-link" href="_modules/x.html">'
        f'<span class="viewcode-link">[source]</span></a><a class="headerlink" href="#{name}">#</a>'
        f"</dt><dd>{text}</dd></dl>"
    )


def write_docset(
    folder: Path,
    pages: Mapping[str, Page],
    *,
    name: str = "Kite",
    version: str = "2.1.0",
    form: Form | None = "search_index",
    rows: Sequence[tuple[str, str, str]] = (),
) -> Path:
    """Write a docset below `folder`; `rows` are further ones of the index (name, type, path)."""
    root = folder / f"{name}.docset"
    (root / DOCUMENTS).mkdir(parents=True)
    said = {"CFBundleName": name, "CFBundleIdentifier": name.lower(), "isDashDocset": True}
    said |= {"CFBundleShortVersionString": version} if version else {}
    (root / PLIST).write_bytes(plistlib.dumps(said))
    listed = list(rows)
    for path, one in pages.items():
        (root / DOCUMENTS / path).parent.mkdir(parents=True, exist_ok=True)
        (root / DOCUMENTS / path).write_text(one.html, encoding="utf-8")
        listed += [(n.name, n.type, f"{path}#{n.anchor}" if n.anchor else path) for n in one.names]
    if form is not None:
        write = {"search_index": _search_index, "core_data": _core_data}[form]
        with closing(sqlite3.connect(root / INDEX)) as index, index:
            write(index, listed)
    return root


def _search_index(index: sqlite3.Connection, rows: Sequence[tuple[str, str, str]]) -> None:
    index.execute(
        "CREATE TABLE searchIndex(id INTEGER PRIMARY KEY, name TEXT, type TEXT, path TEXT)"
    )
    index.executemany("INSERT INTO searchIndex(name, type, path) VALUES (?, ?, ?)", rows)


def _core_data(index: sqlite3.Connection, rows: Sequence[tuple[str, str, str]]) -> None:
    index.executescript("""
        CREATE TABLE ZTOKENTYPE(Z_PK INTEGER PRIMARY KEY, ZTYPENAME TEXT);
        CREATE TABLE ZFILEPATH(Z_PK INTEGER PRIMARY KEY, ZPATH TEXT);
        CREATE TABLE ZTOKENMETAINFORMATION(Z_PK INTEGER PRIMARY KEY, ZFILE INTEGER, ZANCHOR TEXT);
        CREATE TABLE ZTOKEN(
            Z_PK INTEGER PRIMARY KEY, ZTOKENNAME TEXT, ZTOKENTYPE INTEGER, ZMETAINFORMATION INTEGER
        );
    """)
    types = {kind: n for n, kind in enumerate(dict.fromkeys(row[1] for row in rows), 1)}
    files = {
        path: n for n, path in enumerate(dict.fromkeys(row[2].split("#")[0] for row in rows), 1)
    }
    index.executemany("INSERT INTO ZTOKENTYPE VALUES (?, ?)", [(n, k) for k, n in types.items()])
    index.executemany("INSERT INTO ZFILEPATH VALUES (?, ?)", [(n, p) for p, n in files.items()])
    for number, (name, kind, path) in enumerate(rows, 1):
        file, _, anchor = path.partition("#")
        index.execute(
            "INSERT INTO ZTOKENMETAINFORMATION VALUES (?, ?, ?)", (number, files[file], anchor)
        )
        index.execute("INSERT INTO ZTOKEN VALUES (?, ?, ?, ?)", (number, name, types[kind], number))


def packed_tar(root: Path, target: Path) -> Path:
    """Pack a docset as it is distributed."""
    with tarfile.open(target, "w:gz") as archive:
        archive.add(root, root.name)
    return target


_MARKDOWN = MarkdownIt().enable("table")
_HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_PERMALINK = re.compile(r" *\[¶\]\(#[^()]*\)")
_PERMALINKED = re.compile(r"^(#{1,3}) (.+?) *\[¶\]\(#([^()\s\"]*)", re.MULTILINE)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def documentation_pages(data_set: str, under: str, project: str) -> Iterator[tuple[str, Page]]:
    """Yield the Markdown pages of a data set as a site shows them, by their paths."""
    with tarfile.open(SHARED / data_set / "files.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            if not member.name.startswith(under) or not member.name.endswith(".md"):
                continue
            content = archive.extractfile(member)
            assert content is not None
            text = _without_myst(_FRONT.sub("", content.read().decode()))
            path = member.name.removeprefix(under).removesuffix(".md") + ".html"
            yield path, _documentation_page(text, path, project)


def _without_myst(text: str) -> str:
    """Write roles, notes and cells as a site shows them: `name`, a paragraph, code."""
    text = re.sub(r"\{[\w:-]+\}(?=`)", "", text)
    text = re.sub(r"^```\{(?:code|code-cell|code-block)\}.*\n(?::.*\n)*", "```\n", text, flags=re.M)
    return re.sub(
        r"^```\{[\w-]+\}(.*)\n(?::.*\n)*((?:(?!```).*\n)*)```$", r"\1\n\n\2", text, flags=re.M
    )


def _documentation_page(text: str, path: str, project: str) -> Page:
    """Make a page whose headings have the ids that their permalinks lead to, as Sphinx writes."""
    plain = _PERMALINK.sub("", text)
    headings = [match[2].strip("# `") for match in _HEADING.finditer(_FENCED.sub("", plain))]
    title = headings[0] if headings else Path(path).stem
    anchors = {
        match[2].strip("# `"): match[3] for match in _PERMALINKED.finditer(_FENCED.sub("", text))
    }
    body = _MARKDOWN.render(re.sub(r"\A\s*# .*\n", "", plain))
    for name, anchor in anchors.items():
        shown = re.escape(html.escape(name, quote=False))
        body = re.sub(rf"<(h[23])>({shown})</h", rf'<\1 id="{anchor}">\2</h', body)
    names = [
        Name(title, "Guide", anchors.get(title, "")),
        *(Name(o, "Section", anchors.get(o, o)) for o in headings[1:]),
    ]
    return page(title, body, *names, project=project)


def write_measured(folder: Path) -> None:
    """Write JAX, the shorter pages of PyTorch and of FastAPI in four languages."""
    jax = dict(documentation_pages("jax_docs", "docs/", "JAX"))
    write_docset(folder, jax, name="JAX", version="0.9.1")
    torch = documentation_pages("pytorch_docs_zh", "docs/2.0/docs/docs/", "PyTorch")
    short = {path: one for path, one in torch if len(one.html.encode()) < 11_000}
    write_docset(folder, short, name="PyTorch", version="2.0.0", form="core_data")
    for language, limit in (("en", 6000), ("ru", 2600), ("uk", 2600), ("zh", 2600)):
        rows = SHARED / "fastapi_docs_parallel" / f"corpus_{language}.jsonl"
        for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines()):
            if len(row["text"]) < limit:
                target = folder / "fastapi" / row["_id"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(row["text"], encoding="utf-8")


if __name__ == "__main__":
    write_measured(Path(sys.argv[1]))
