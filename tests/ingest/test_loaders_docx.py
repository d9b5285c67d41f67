"""DOCX: also what stands outside the plain paragraphs of the body."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from loading import only, reason, sections, texts

W = nsdecls("w")
NOTES = (
    f"<w:footnotes {W}><w:footnote w:type='separator' w:id='0'><w:p><w:r><w:t>---</w:t></w:r></w:p>"
    "</w:footnote><w:footnote w:id='2'><w:p><w:r><w:t>the note</w:t></w:r></w:p></w:footnote>"
    "</w:footnotes>"
)


def saved(*paragraphs: str) -> bytes:
    """Return a document whose body holds this XML."""
    document = docx.Document()
    body = document.element.body
    for xml in paragraphs:
        body.insert(len(body) - 1, parse_xml(xml.replace(">", f" {W}>", 1)))
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"


def test_content_controls_insertions_and_deletions(tmp_path: Path) -> None:
    content = saved(
        f"<w:sdt><w:sdtContent><w:p>{run('in a control')}</w:p></w:sdtContent></w:sdt>",
        f"<w:p>{run('kept ')}<w:ins>{run('new ')}</w:ins><w:del><w:r><w:delText>old</w:delText>"
        f"</w:r></w:del><w:sdt><w:sdtContent>{run('inline')}</w:sdtContent></w:sdt>"
        f"<w:moveFrom>{run('moved')}</w:moveFrom><w:r><w:tab/><w:br/></w:r></w:p>",
        "<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val='Table of Contents'/>"
        f"</w:docPartObj></w:sdtPr><w:sdtContent><w:p>{run('Chapter ... 5')}</w:p></w:sdtContent>"
        "</w:sdt>",
    )
    assert texts(only(tmp_path / "c.docx", content)) == ["in a control\n\nkept new inline\t\n"]


def test_text_boxes_are_read_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent><w:p>{run('boxed')}</w:p></w:txbxContent>"
    content = saved(
        "<w:p xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'>"
        f"{run('around')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert texts(only(tmp_path / "b.docx", content)) == ["around\n\nboxed"]


def test_notes_stand_behind_their_paragraph(tmp_path: Path) -> None:
    content = saved(f"<w:p>{run('a claim')}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>")
    out = io.BytesIO()
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            part = old.read(name).decode("latin-1")
            if name == "word/_rels/document.xml.rels":
                added = f'<Relationship Id="rIdN" Type="{kind}" Target="footnotes.xml"/>'
                part = part.replace("</Relationships>", f"{added}</Relationships>")
            new.writestr(name, part.encode("latin-1"))
        new.writestr("word/footnotes.xml", NOTES)
    assert texts(only(tmp_path / "n.docx", out.getvalue())) == ["a claim [the note]"]


def test_merged_and_nested_cells(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Table", 1)
    table = document.add_table(3, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "tall"
    table.cell(1, 1).text = "b"
    table.cell(2, 1).add_table(1, 1).cell(0, 0).text = "inner"
    out = io.BytesIO()
    document.save(out)
    found = only(tmp_path / "t.docx", out.getvalue())
    assert texts(found) == ["wide\ntall | b\ntall | inner"] and sections(found) == ["Table"]


def test_documents_that_cannot_be_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    docx.Document().save(out)
    assert "no text" in reason(tmp_path / "e.docx", out.getvalue())
    assert "damaged" in reason(tmp_path / "d.docx", out.getvalue()[:3000])
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as container:
        container.writestr("[Content_Types].xml", "<Types/>")
        container.writestr("readme", "x")
    assert "no DOCX" in reason(tmp_path / "o.docx", other.getvalue())
