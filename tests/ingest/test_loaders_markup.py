"""Markdown, HTML, notebooks and text become blocks under sections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loading import only

from ingest.types import ParsedDocument


def parse(folder: Path, name: str, content: str | bytes) -> ParsedDocument:
    return only(folder / name, content.encode() if isinstance(content, str) else content)


def shape(document: ParsedDocument) -> list[tuple[str, str, str]]:
    return [(block.kind, block.section, block.text) for block in document.blocks]


MARKDOWN = """---
title: The Guide
tags: [a, b]
author: Doe, John
date: 2024-05-01
theme: {x: 1}
---
# Guide { #guide }

Some **bold**, *soft* and [linked](http://x) text with `co_de`<!-- no -->.

## Limits

### Deep ###

| a | b |
|---|---|
| 1 | `2` |

```python
x  =  1 # [not](link)
```

- one
- two ![picture](p.png)
    - three

/// note | Mind

A note.

///

{* ../../docs_src/x.py hl[1] *}

## Bare
"""


def test_markdown(tmp_path: Path) -> None:
    document = parse(tmp_path, "g.md", MARKDOWN)
    assert document.title == "The Guide"
    assert document.metadata == {
        "title": "The Guide", "keywords": ["a", "b"], "authors": ["Doe, John"],
        "updated_at": "2024-05-01", "published": "2024-05-01",
        "entries": [{"name": "Guide", "anchor": "guide"}],
    }  # fmt: skip
    deep = "Guide › Limits › Deep"
    assert shape(document) == [
        ("text", "Guide", "Some bold, soft and linked text with `co_de`."),
        ("table", deep, "a | b\n1 | `2`"),
        ("code", deep, "x  =  1 # [not](link)"),
        ("text", deep, "- one\n- two picture\n- three\n\nMind\n\nA note."),
        ("text", "Guide › Bare", "Bare"),
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a `**kw**` and **b** c", "a `**kw**` and b c"),
        ("see [`f`](#f)[¶](#f) and docs/<lang>/x", "see `f` and docs/<lang>/x"),
        ("**<b>x</b> y** z\\*", "x y z*"),
        ("snake_case and __init__.py", "snake_case and __init__.py"),
        ("用于**静态**镜像\n的说明", "用于静态镜像的说明"),
        ("wrapped\nline", "wrapped line"),
        ("{ref}`the guide <t>`, {func}`~jax.grad`", "the guide, `jax.grad`"),
        ("[x](u){.external target=_blank} y", "x y"),
        ("a [ref] b\n\n[ref]: http://x", "a ref b"),
        ('!!! warning "Care"\n\n    Body text.\n\nAfter.', "Care\n\nBody text.\n\nAfter."),
        ("```{note} Title\nBody.\n```", "Title\n\nBody."),
        ("(label)=\nText", "Text"),
        ("<p align='center'>Hi <b>you</b></p>", "Hi you"),
    ],
)
def test_markdown_inline_and_dialects(tmp_path: Path, source: str, text: str) -> None:
    document = parse(tmp_path, "x.md", source)
    assert [(block.kind, block.text) for block in document.blocks] == [("text", text)]


def test_html(tmp_path: Path) -> None:
    page = """<html lang="uk"><head><title>Page</title><meta name=keywords content="a, b">
    <meta name=author content="Jane Roe"><script>var x</script></head><body>
    <nav>menu</nav><div style="display: none">spam</div><form>search</form>
    <h1>Top<a class=headerlink href=#>¶</a></h1><p>Say &lt;hi&gt; to <code>f()</code>.<br>Next</p>
    <pre>  a\n    b</pre><h2>Sub</h2><ul><li>one<li>two</ul>
    <table><tr><th>k<th>v<tr><td>1<td>2</table><footer>foot</footer></body></html>"""
    document = parse(tmp_path, "p.html", page)
    assert document.title == "Page"
    assert document.metadata == {
        "language": "uk", "keywords": ["a", "b"], "authors": ["Jane Roe"]
    }  # fmt: skip
    assert shape(document) == [
        ("text", "Top", "Say <hi> to `f()`.\nNext"),
        ("code", "Top", "  a\n    b"),
        ("text", "Top › Sub", "- one\n- two"),
        ("table", "Top › Sub", "k | v\n1 | 2"),
    ]


@pytest.mark.parametrize("tag", ["div", "b", "table", "ul", "span"])
def test_deeply_nested_html_is_read(tmp_path: Path, tag: str) -> None:
    document = parse(tmp_path, "d.html", f"<{tag}>" * 50_000 + "needle")
    assert "needle" in document.blocks[-1].text


def test_page_that_is_all_furniture_keeps_its_words(tmp_path: Path) -> None:
    assert "only" in parse(tmp_path, "n.html", "<nav>only words</nav>").blocks[0].text


def test_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Text"]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "x = 1\nx",
         "outputs": [{"output_type": "execute_result", "execution_count": 1, "metadata": {},
                      "data": {"text/plain": "1", "image/png": "AAAA"}}]},
    ]  # fmt: skip
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    document = parse(tmp_path, "n.ipynb", json.dumps(book))
    assert shape(document) == [
        ("text", "Title", "Text"), ("code", "Title", "x = 1\nx"), ("code", "Title", "Output:\n1")
    ]  # fmt: skip
    assert document.metadata == {"programming_language": "python", "kernel": "python3"}


def test_text_and_its_relatives(tmp_path: Path) -> None:
    plain = parse(tmp_path, "t.txt", "My title\n\nFirst.\r\nSecond.")
    assert (plain.title, plain.blocks[0].text) == ("My title", "My title\n\nFirst.\nSecond.")
    rst = (
        "Top\n===\n\nSee :ref:`that <x>`::\n\n    code\n\n.. note:: Mind\n\n   Body\n\n"
        "Sub\n---\nEnd\n"
    )
    assert shape(parse(tmp_path, "r.rst", rst)) == [
        ("text", "Top", "See that:"), ("code", "Top", "code"), ("text", "Top", "Mind\n\nBody"),
        ("text", "Top › Sub", "End"),
    ]  # fmt: skip
    org = parse(tmp_path, "o.org", "* One\ntext\n#+BEGIN_SRC sh\n ls\n#+END_SRC\n** Two\nmore\n")
    assert [block.section for block in org.blocks] == ["One", "One", "One › Two"]


def test_terms_stand_before_what_is_said_of_them(tmp_path: Path) -> None:
    rst = "Words\n=====\n\nDrift\n    What two clocks\n    differ by.\n\nplain line\nand another\n"
    html = "<dl><dt>Drift</dt><dd>What two clocks differ by.</dd><dt>Rest</dt></dl><p>End.</p>"
    (words,) = parse(tmp_path, "w.rst", rst).blocks
    assert words.text == "Drift: What two clocks\ndiffer by.\n\nplain line\nand another"
    (page,) = parse(tmp_path, "w.html", f"<h1>Words</h1>{html}").blocks
    assert page.text.split("\n\n") == ["Drift: What two clocks differ by.", "Rest", "End."]


@pytest.mark.parametrize(
    ("source", "table"),
    [
        (
            "===== ======\nPort  Use\n===== ======\n"
            "80    pages\n      of all\n81    mail\n===== ======",
            "Port | Use\n80 | pages of all\n81 | mail",
        ),
        ("=== ===\na   b\n=== ===", "a | b"),
        (
            "+----+-------+\n| 80 | pages |\n|    | of me |\n"
            "+----+-------+\n| 81 | mail  |\n+----+-------+",
            "80 | pages of me\n81 | mail",
        ),
    ],
)
def test_tables_drawn_with_characters(tmp_path: Path, source: str, table: str) -> None:
    document = parse(tmp_path, "t.rst", f"Ports\n-----\n\n{source}\n\nEnd.\n")
    assert shape(document) == [("table", "Ports", table), ("text", "Ports", "End.")]


def test_a_table_that_does_not_end_is_text(tmp_path: Path) -> None:
    document = parse(tmp_path, "t.rst", "Ports\n-----\n\n=== ===\na   b\n\nEnd.\n")
    assert "End." in document.blocks[-1].text
