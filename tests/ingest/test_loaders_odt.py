"""OpenDocument texts."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from loading import only, reason, sections, texts
from odf_files import odf

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
