"""OpenDocument texts, and the numbers of lists and headings that stand in their styles."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from xml.etree.ElementTree import fromstring

from loading import only, reason, sections, texts
from odf_files import odf

from ingest.loaders.office.odf import OdfNumbering, add_blocks
from ingest.loaders.outline import Outline

BODY = (
    "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    '<text:h text:outline-level="1">Глава</text:h>'
    '<text:p>Один<text:s text:c="2"/>два<text:tab/>три<text:line-break/>четыре'
    "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>сноска</text:p>"
    "</text:note-body></text:note>.</text:p>"
    '<text:h text:outline-level="2">Раздел</text:h>'
    "<text:list><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p>"
    "</text:list-item></text:list></text:list-item></text:list>"
    "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>k</text:p>"
    "</table:table-cell><table:table-cell><text:p>v</text:p></table:table-cell></table:table-row>"
    "</table:table-header-rows><table:table-row><table:table-cell><text:p>1</text:p>"
    "</table:table-cell><table:table-cell><text:p>2</text:p></table:table-cell></table:table-row>"
    "</table:table><text:p>before<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box>"
    "</draw:frame> after<office:annotation><text:p>a remark</text:p></office:annotation></text:p>"
)
META = (
    "<dc:title>Книга</dc:title><meta:initial-creator>Иван</meta:initial-creator>"
    "<dc:date>2024-05-06T07:08:09</dc:date><meta:keyword>море</meta:keyword>"
)


def test_a_text(tmp_path: Path) -> None:
    document = only(tmp_path / "a.odt", odf("text", BODY, META))
    assert document.title == "Книга" and document.metadata["authors"] == ["Иван"]
    assert document.metadata["keywords"] == ["море"]
    assert sections(document) == ["Глава", "Глава › Раздел", "Глава › Раздел", "Глава › Раздел"]
    first, listed, table, boxed = texts(document)
    assert first == "Один  два\tтри\nчетыре [сноска]."
    assert listed == "- a\n  - b" and table == "k | v\n1 | 2"
    assert "boxed" in boxed and "after" in boxed
    assert "deleted" not in str(document) and "remark" not in str(document)


def test_a_flat_file_is_read_by_its_root(tmp_path: Path) -> None:
    flat = (
        '<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
        "<text:p>flat text</text:p></office:text></office:body></office:document>"
    )
    assert texts(only(tmp_path / "f.xml", flat.encode())) == ["flat text"]


def test_texts_that_cannot_be_read(tmp_path: Path) -> None:
    locked = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    assert "password" in reason(tmp_path / "p.odt", odf("text", "<text:p>x</text:p>", "", locked))
    assert "no text" in reason(tmp_path / "e.odt", odf("text", ""))
    assert "not well formed" in reason(tmp_path / "x.odt", odf("text", "<text:p>"))
    assert "damaged" in reason(tmp_path / "d.odt", odf("text", BODY)[:400])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        container.writestr("mimetype", "application/vnd.oasis.opendocument.text")
    assert "no content.xml" in reason(tmp_path / "n.odt", out.getvalue())


T = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
S = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
STYLES = (
    f"<styles {T} {S}><text:list-style style:name='L'>"
    "<text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/>"
    "<text:list-level-style-number text:level='2' style:num-format='1' text:display-levels='2'"
    " text:start-value='4'/>"
    "<text:list-level-style-number text:level='3' style:num-format='a' style:num-prefix='('"
    " style:num-suffix=')'/><text:list-level-style-number text:level='4' style:num-format=''/>"
    "</text:list-style><text:outline-style>"
    "<text:outline-level-style text:level='1' style:num-format='I'/>"
    "<text:outline-level-style text:level='2' style:num-format='1' text:display-levels='2'/>"
    "</text:outline-style></styles>"
)


def items(*inner: str) -> str:
    return "".join(f"<text:list-item>{one}</text:list-item>" for one in inner)


def numbered(*inner: str, more: str = "") -> str:
    return f"<text:list text:style-name='L' {more}>{items(*inner)}</text:list>"


def read(body: str, styles: str = STYLES) -> list[tuple[str, str]]:
    outline = Outline()
    add_blocks(
        outline, fromstring(f"<body {T}>{body}</body>"), OdfNumbering(fromstring(styles), None)
    )
    return [(block.section, block.text) for block in outline.finish()]


X = "<text:p>x</text:p>"


def test_levels_are_counted_as_their_styles_say() -> None:
    inner = f"<text:list>{items(X, X + f'<text:list>{items(X, X)}</text:list>')}</text:list>"
    ((_, text),) = read(numbered(X, X + inner, X))
    assert text == "1. x\n2. x\n  2.4 x\n  2.5 x\n    (a) x\n    (b) x\n3. x"


def test_lists_begin_anew_go_on_or_have_a_number_of_their_own() -> None:
    on = "text:continue-numbering='true'"
    own = f"<text:list-item text:start-value='7'>{X}</text:list-item>"
    body = numbered(X, X) + numbered(X) + numbered(X, more=on)
    body += f"<text:list text:style-name='L' {on}>{own}</text:list>"
    ((_, text),) = read(body)
    assert text == "1. x\n2. x\n1. x\n2. x\n7. x"


def test_lists_without_numbers_and_further_paragraphs() -> None:
    ((_, text),) = read(numbered(X + "<text:p>more</text:p>"), f"<styles {T}/>")
    assert text == "- x\nmore"


def test_headings_have_their_numbers() -> None:
    body = (
        "<text:h text:outline-level='1'>One</text:h><text:h text:outline-level='2'>A</text:h>"
        f"{X}<text:h text:outline-level='1'>Two</text:h><text:h text:outline-level='2'> </text:h>"
        f"<text:h text:outline-level='2'>B</text:h>{X}"
    )
    assert read(body) == [("I One › I.1 A", "x"), ("II Two › II.1 B", "x")]
