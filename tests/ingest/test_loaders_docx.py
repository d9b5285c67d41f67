"""DOCX: numbers that Word counts, formulas, and what stands outside the plain paragraphs."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import docx
import loading
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from loading import only, reason, sections, texts

from ingest.loaders.office.docx_text import linear
from ingest.loaders.outline import ordinal, picture_text

W, M = nsdecls("w"), 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def level(at: int, text: str, kind: str = "decimal", more: str = "") -> str:
    return (
        f"<w:lvl w:ilvl='{at}'><w:start w:val='1'/><w:numFmt w:val='{kind}'/>{more}"
        f"<w:lvlText w:val='{text}'/></w:lvl>"
    )


PART = "<w:pStyle w:val='Part'/>"
CLAUSES = level(0, "%1.") + level(1, "%1.%2") + level(2, "%3)", "russianLower")
SCHEMES = (
    f"<w:abstractNum w:abstractNumId='90'>{CLAUSES}</w:abstractNum>"
    f"<w:abstractNum w:abstractNumId='91'>{level(0, 'o', 'bullet')}"
    f"{level(1, '第%2条', 'chineseCounting')}</w:abstractNum>"
    f"<w:abstractNum w:abstractNumId='92'>"
    f"{level(0, 'Part %1', 'upperRoman', more=PART)}"
    f"{level(1, '%1.%2', more='<w:isLgl/>')}</w:abstractNum>"
)
LISTS = (
    "<w:num w:numId='90'><w:abstractNumId w:val='90'/></w:num>"
    "<w:num w:numId='91'><w:abstractNumId w:val='91'/></w:num>"
    "<w:num w:numId='92'><w:abstractNumId w:val='92'/></w:num>"
    "<w:num w:numId='93'><w:abstractNumId w:val='90'/><w:lvlOverride w:ilvl='0'>"
    "<w:startOverride w:val='7'/></w:lvlOverride></w:num>"
)
STYLES = (
    "<w:style w:type='paragraph' w:styleId='Part'><w:name w:val='Partie'/><w:pPr>"
    "<w:numPr><w:numId w:val='92'/></w:numPr><w:outlineLvl w:val='0'/></w:pPr></w:style>"
)


def item(number: int, at: int, text: str = "x") -> str:
    properties = f"<w:numPr><w:ilvl w:val='{at}'/><w:numId w:val='{number}'/></w:numPr>"
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def styled(style: str, text: str) -> str:
    return f"<w:p><w:pPr><w:pStyle w:val='{style}'/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def saved(*paragraphs: str) -> bytes:
    document = docx.Document()
    numbering = document.part.numbering_part.element
    for element in list(numbering):
        numbering.remove(element)
    for element in parse_xml(f"<w:numbering {W}>{SCHEMES}{LISTS}</w:numbering>"):
        numbering.append(element)
    for element in parse_xml(f"<w:styles {W}>{STYLES}</w:styles>"):
        document.styles.element.append(element)
    for xml in paragraphs:
        body = document.element.body
        body.insert(len(body) - 1, parse_xml(xml.replace(">", f" {W} {M}>", 1)))
    return loading.saved(document)


def read(tmp_path: Path, *paragraphs: str) -> str:
    return "\n".join(texts(only(tmp_path / "n.docx", saved(*paragraphs))))


def test_clauses_have_the_numbers_that_word_shows(tmp_path: Path) -> None:
    levels = [0, 1, 1, 2, 2, 0, 1, 2]
    found = read(tmp_path, *(item(90, at) for at in levels))
    assert found == "1. x\n1.1 x\n1.2 x\nа) x\nб) x\n2. x\n2.1 x\nа) x"


def test_a_list_that_begins_anew_and_one_that_goes_on(tmp_path: Path) -> None:
    found = read(tmp_path, item(90, 0), item(93, 0), item(93, 0), item(90, 0))
    assert found == "1. x\n7. x\n8. x\n9. x"


def test_bullets_chinese_counts_and_lists_that_are_not_there(tmp_path: Path) -> None:
    found = read(tmp_path, item(91, 0), item(91, 1), item(91, 1), item(5, 0), item(0, 0, "plain"))
    assert found == "- x\n第一条 x\n第二条 x\n- x\n\nplain"


def test_a_style_with_an_outline_level_is_a_numbered_heading(tmp_path: Path) -> None:
    content = saved(styled("Part", "One"), "<w:p></w:p>", styled("Part", "Two"), item(92, 1))
    found = only(tmp_path / "h.docx", content)
    assert sections(found) == ["Part I One", "Part II Two"]
    assert texts(found) == ["Part I One", "2.1 x"]


def test_a_column_of_numbers_in_a_table(tmp_path: Path) -> None:
    rows = "".join(
        f"<w:tr><w:tc>{item(90, 0, '')}</w:tc><w:tc><w:p><w:r><w:t>{name}</w:t></w:r></w:p></w:tc>"
        "</w:tr>"
        for name in ("first", "second")
    )
    assert read(tmp_path, f"<w:tbl>{rows}</w:tbl>") == "1. | first\n2. | second"


def test_raised_digits_symbols_and_pictures(tmp_path: Path) -> None:
    drawing = (
        "<w:drawing><wp:inline xmlns:wp='http://schemas.openxmlformats.org/drawingml/2006/"
        "wordprocessingDrawing'><wp:docPr id='1' name='P' descr='A map of the town'/></wp:inline>"
        "</w:drawing>"
    )
    paragraph = (
        "<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr>"
        "<w:t>6</w:t></w:r><w:r><w:sym w:font='Symbol' w:char='F06D'/></w:r><w:r><w:t>m</w:t>"
        f"{drawing}</w:r></w:p>"
    )
    assert read(tmp_path, paragraph) == "10⁶μm [A map of the town]"


def test_a_long_heading_keeps_all_its_words(tmp_path: Path) -> None:
    long = " ".join(f"word{n}" for n in range(80))
    found = only(tmp_path / "l.docx", saved(styled("Heading1", long), "<w:p></w:p>"))
    assert texts(found) == [long] and found.blocks[0].section.endswith("…")


@pytest.mark.parametrize(
    ("xml", "shown"),
    [
        ("<m:f><m:num>a+b</m:num><m:den>2</m:den></m:f>", "(a+b)/2"),
        ("<m:sSup><m:e>x</m:e><m:sup>2</m:sup></m:sSup>", "x²"),
        ("<m:sSubSup><m:e>x</m:e><m:sub>i</m:sub><m:sup>k+1</m:sup></m:sSubSup>", "x_i^(k+1)"),
        ("<m:rad><m:radPr/><m:deg/><m:e>b</m:e></m:rad>", "√b"),
        ("<m:rad><m:deg>3</m:deg><m:e>b</m:e></m:rad>", "³√b"),
        (
            "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>i=1</m:sub><m:sup>n</m:sup>"
            "<m:e>i</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        ("<m:d><m:dPr><m:begChr m:val='['/></m:dPr><m:e>a</m:e><m:e>b</m:e></m:d>", "[a|b)"),
        ("<m:func><m:fName>sin</m:fName><m:e>x</m:e></m:func>", "sin x"),
        ("<m:m><m:mr><m:e>1</m:e><m:e>2</m:e></m:mr><m:mr><m:e>3</m:e></m:mr></m:m>", "[1, 2; 3]"),
        ("<m:eqArr><m:e>a</m:e><m:e>b</m:e></m:eqArr>", "a; b"),
    ],
)
def test_formulas_in_one_line(xml: str, shown: str) -> None:
    text = xml
    for sign in ("a+b", "k+1", "i=1", "sin", "a", "b", "2", "x", "i", "3", "n", "1"):
        text = text.replace(f">{sign}<", f"><m:r><m:t>{sign}</m:t></m:r><")
    assert linear(parse_xml(f"<m:oMath {M}>{text}</m:oMath>")).strip() == shown


@pytest.mark.parametrize(
    ("number", "kind", "shown"),
    [
        (4, "lowerRoman", "iv"),
        (1999, "upperRoman", "MCMXCIX"),
        (28, "lowerLetter", "bb"),
        (29, "russianUpper", "АА"),
        (12, "chineseCounting", "十二"),
        (305, "chineseCountingThousand", "三百零五"),
        (20, "ideographTraditional", "二十"),
        (3, "decimalEnclosedCircle", "③"),
        (7, "decimalZero", "07"),
        (0, "lowerRoman", "0"),
        (5, "unheard-of", "5"),
    ],
)
def test_ways_of_counting(number: int, kind: str, shown: str) -> None:
    assert ordinal(number, kind) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("A red car", " [A red car]"),
        ("图形用户界面", " [图形用户界面]"),
        ("pic.jpg", ""),
        ("Logo", ""),
    ]
    + [("C:\\a b\\c d", ""), ("http://a/b c", ""), (" ", "")],
)
def test_descriptions_of_pictures(said: str, shown: str) -> None:
    assert picture_text(said) == shown


NOTES = (
    f"<w:footnotes {W}><w:footnote w:type='separator' w:id='0'><w:p><w:r><w:t>---</w:t></w:r></w:p>"
    "</w:footnote><w:footnote w:id='2'><w:p><w:r><w:t>the note</w:t></w:r></w:p></w:footnote>"
    "</w:footnotes>"
)


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
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    added = (
        f'<Relationship Id="rIdN" Type="{kind}" Target="footnotes.xml"/></Relationships>'.encode()
    )

    def related(name: str, part: bytes) -> bytes:
        if name != "word/_rels/document.xml.rels":
            return part
        return part.replace(b"</Relationships>", added)

    noted = loading.with_parts(content, related, **{"word/footnotes.xml": NOTES})
    assert texts(only(tmp_path / "n.docx", noted)) == ["a claim [the note]"]


def test_merged_and_nested_cells(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Table", 1)
    table = document.add_table(3, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "tall"
    table.cell(1, 1).text = "b"
    table.cell(2, 1).add_table(1, 1).cell(0, 0).text = "inner"
    found = only(tmp_path / "t.docx", loading.saved(document))
    assert texts(found) == ["wide\ntall | b\ntall | inner"] and sections(found) == ["Table"]


def test_documents_that_cannot_be_read(tmp_path: Path) -> None:
    empty = loading.saved(docx.Document())
    assert "no text" in reason(tmp_path / "e.docx", empty)
    assert "damaged" in reason(tmp_path / "d.docx", empty[:3000])
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as container:
        container.writestr("[Content_Types].xml", "<Types/>")
        container.writestr("readme", "x")
    assert "no DOCX" in reason(tmp_path / "o.docx", other.getvalue())
