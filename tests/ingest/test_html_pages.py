"""Pages as sites build them: main parts, tables with spans, raised digits."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import only

from core.types import address_of
from ingest.loaders.outline import write_superscript
from ingest.loaders.web import html

LONG = "A sentence of the text that the page is about. " * 8


def texts(page: str) -> list[str]:
    (document,) = html.load("page.html", page)
    return [block.text for block in document.blocks]


def read(page: str) -> str:
    return "\n".join(texts(page))


def test_all_articles_of_a_page_are_read() -> None:
    posts = "".join(f"<article><h2>Post {n}</h2><p>{LONG} n{n}.</p></article>" for n in range(3))
    found = read(f"<body><div>{posts}</div></body>")
    assert [found.count(f"n{n}.") for n in range(3)] == [1, 1, 1]


def test_an_article_within_the_main_part_is_read_once() -> None:
    page = f"<main><article><p>{LONG}once.</p><article><p>inner</p></article></article></main>"
    assert read(page).count("once.") == 1


def test_teasers_do_not_stand_for_the_text() -> None:
    page = f"<div><p>{LONG}</p></div><article><p>Read also this.</p></article>"
    assert "the page is about" in read(page)


def test_the_header_of_an_article_is_text() -> None:
    page = f"<article><header><div>The lead.</div></header><p>{LONG}</p></article>"
    assert "The lead." in read(page)


@pytest.mark.parametrize("name", ["has-double-sidebar", "no-toc main", "with-pagination"])
def test_a_class_that_names_its_neighbours_does_not_hide_the_text(name: str) -> None:
    assert "the page is about" in read(f'<div class="{name}"><p>{LONG}</p></div><p>End.</p>')


def test_a_page_in_noscript_is_read_and_a_note_is_not() -> None:
    page = "<noscript>" + "<p>Words.</p>" * 3 + "</noscript>"
    assert "Words." in read(f"<body>{page}<p>x</p></body>")
    assert "enable" not in read(
        "<body><noscript><p>Please enable it.</p></noscript><p>x</p></body>"
    )


def test_a_caption_and_cells_over_several_rows_and_columns() -> None:
    page = (
        "<table><caption>Rates</caption><tr><th rowspan=2>Group<th colspan=2>A</tr>"
        "<tr><td>1<td>2</tr><tr><td>x<td rowspan='0'>3<td rowspan=9>4</tr></table>"
    )
    assert texts(page) == ["Rates", "Group | A\nGroup | 1 | 2\nx | 3 | 4"]


def test_raised_digits_are_not_part_of_the_number_before_them() -> None:
    page = "<h2>5 m<sup>2</sup></h2><p>10<sup><b>-6</b></sup>, 1<sup>st</sup>, so<sup>[3]</sup></p>"
    (document,) = html.load("page.html", page)
    assert [(b.section, b.text) for b in document.blocks] == [("5 m²", "10⁻⁶, 1st, so[3]")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("6", "⁶"), ("\u22121", "⁻¹"), ("th", "th"), ("n", "n"), ("123456789", "123456789"), ("", "")],
)
def test_only_short_numbers_are_raised(text: str, shown: str) -> None:
    assert write_superscript(text) == shown


def test_raised_tags_without_end_cost_no_depth() -> None:
    assert "end" in read("<p>" + "<sup>" * 1500 + "end")


def test_items_have_the_numbers_that_a_browser_shows() -> None:
    page = (
        "<ol start=3><li>three<ol type=a><li>a</li><li>b</li></ol></li><li>four</li>"
        "<li value=9>nine</li><li>ten</li></ol><ul><li>dot</li></ul><ol start=x><li>one</li></ol>"
    )
    assert read(page).split("\n") == [
        "3. three", "a. a", "b. b", "4. four", "9. nine", "10. ten", "- dot", "1. one",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("math", "shown"),
    [
        ("<math alttext='a+b'><mi>x</mi></math>", "a+b"),
        (
            "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation>"
            "</semantics></math>",
            "x^2",
        ),
        (
            "<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mrow><mi>a</mi><mo>+</mo>"
            "<mn>1</mn></mrow><mi>b</mi></mfrac></math>",
            "x² = (a+1)/b",
        ),
        (
            "<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><msqrt><mi>i</mi></msqrt>"
            "<msub><mi>k</mi><mn>1</mn></msub><mroot><mi>y</mi><mn>3</mn></mroot></math>",
            "∑_i^n√ik_1³√y",
        ),
        (
            "<math><mtable><mtr><mtd>1</mtd><mtd>2</mtd></mtr><mtr><mtd>3</mtd></mtr></mtable></math>",
            "[1, 2; 3]",
        ),
    ],
)
def test_formulas_stand_in_their_line(math: str, shown: str) -> None:
    assert read(f"<p>so {math} holds</p>") == f"so {shown} holds"
    assert read(f"<h2>{math}</h2>") == shown


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.html",
            "<h1 id='kites'>Kites#</h1><section id='wind'><h2>Wind</h2><p>Blows.</p></section>",
        ),
        ("a.md", "# Kites { #kites }\n\n## Wind {#wind .wide}\n\nBlows.\n"),
    ],
)
def test_headings_with_an_id_are_anchors(tmp_path: Path, name: str, content: str) -> None:
    document = only(tmp_path / name, content.encode())
    section = document.blocks[-1].section
    assert section == "Kites › Wind"
    assert address_of(name, section, document.metadata) == f"{name}#wind"
    assert address_of(name, "Kites", document.metadata) == f"{name}#kites"
