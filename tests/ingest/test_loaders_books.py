"""Electronic books: EPUB and FictionBook."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from loading import loaded, only, reason, sections, texts

OPF = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata><dc:title>Кобзар</dc:title><dc:creator>Тарас Шевченко</dc:creator>
<dc:language>uk</dc:language><dc:date>1840-04-26</dc:date><dc:subject>Поезія</dc:subject>
<dc:identifier>urn:isbn:9660300001</dc:identifier></metadata>
<manifest>{items}</manifest><spine toc="ncx">{spine}</spine></package>"""
CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OPS/book.opf"/></rootfiles></container>"""
CHAPTER = """<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><style/></head>
<body><h1>{title}</h1><p><a id="x"/>{text}</p></body></html>"""
NAV = """<html xmlns="http://www.w3.org/1999/xhtml"><body><nav epub:type="toc"><ol>
<li><a href="text/c1.xhtml">Частина перша</a></li><li><a href="text/c2.xhtml#a">Друга</a></li>
</ol></nav></body></html>"""
NCX = """<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel>
<text>Частина перша</text></navLabel><content src="text/c1.xhtml"/></navPoint></navMap></ncx>"""


def epub(**extra: str) -> bytes:
    """Return a book of two chapters; `extra` adds members or replaces them ("_" is "/")."""
    items = "".join(
        f'<item id="c{n}" href="text/c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in (2, 1, 3)
    )
    items += '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
    items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    spine = "".join(f'<itemref idref="c{n}"/>' for n in (1, 2))
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": OPF.format(items=items, spine=spine),
        "OPS/nav.xhtml": NAV,
        "OPS/text/c1.xhtml": CHAPTER.format(title="I", text="Реве та стогне Дніпр широкий"),
        "OPS/text/c2.xhtml": CHAPTER.format(title="Друга", text="Садок вишневий коло хати"),
    } | {name.replace("__", "/"): text for name, text in extra.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        for name, text in members.items():
            if text:
                container.writestr(name, text)
    return out.getvalue()


def test_the_spine_in_order_under_its_titles(tmp_path: Path) -> None:
    document = only(tmp_path / "k.epub", epub())
    assert sections(document) == ["Частина перша › I", "Друга"]
    assert texts(document) == ["Реве та стогне Дніпр широкий", "Садок вишневий коло хати"]
    assert document.title == "Кобзар"
    assert document.metadata == {
        "title": "Кобзар", "authors": ["Тарас Шевченко"], "language": "uk", "year": 1840,
        "updated_at": "1840-04-26", "published": "1840-04-26", "keywords": ["Поезія"],
        "isbn": "9660300001",
    }  # fmt: skip


def test_titles_of_old_books(tmp_path: Path) -> None:
    book = epub(**{"OPS__nav.xhtml": "", "OPS__toc.ncx": NCX})
    assert sections(only(tmp_path / "o.epub", book))[0] == "Частина перша › I"


def test_a_missing_chapter_costs_itself_only(tmp_path: Path) -> None:
    documents, failures = loaded(tmp_path / "m.epub", epub(**{"OPS__text__c1.xhtml": ""}))
    assert texts(documents[0]) == ["Садок вишневий коло хати"]
    assert list(failures) == ["m.epub: OPS/text/c1.xhtml"]


ENCRYPTED = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<enc:EncryptedData xmlns:enc="http://www.w3.org/2001/04/xmlenc#">
<enc:EncryptionMethod Algorithm="{}"/><enc:CipherData>
<enc:CipherReference URI="OPS/text/c1.xhtml"/></enc:CipherData></enc:EncryptedData></encryption>"""


def test_copy_protection(tmp_path: Path) -> None:
    locked = epub(**{"META-INF__encryption.xml": ENCRYPTED.format("http://x#aes256-cbc")})
    assert "DRM" in reason(tmp_path / "d.epub", locked)
    fonts = epub(**{"META-INF__encryption.xml": ENCRYPTED.format("http://ns.adobe.com/pdf/enc#RC")})
    assert only(tmp_path / "f.epub", fonts).title == "Кобзар"


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"META-INF__container.xml": "", "OPS__book.opf": ""}, "no package"),
        ({"OPS__book.opf": OPF.format(items="", spine="")}, "no spine"),
        ({"OPS__book.opf": "<package"}, "not well formed"),
        ({"OPS__book.opf": '<!DOCTYPE x [<!ENTITY a "b">]><package>&a;</package>'}, "entities"),
    ],
)
def test_books_that_cannot_be_read(tmp_path: Path, extra: dict[str, str], expected: str) -> None:
    assert expected in reason(tmp_path / "x.epub", epub(**extra))


def test_links_never_leave_the_container(tmp_path: Path) -> None:
    items = '<item id="c1" href="../../../../etc/passwd" media-type="text/html"/>'
    opf = OPF.format(items=items, spine='<itemref idref="c1"/><itemref idref="no"/>')
    documents, failures = loaded(tmp_path / "t.epub", epub(**{"OPS__book.opf": opf}))
    assert not documents and "root" not in str(failures)
    assert len(failures) == 3


FB2 = """<?xml version="1.0" encoding="windows-1251"?>
<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink">
<description><title-info><genre>prose</genre><author><first-name>Лев</first-name>
<last-name>Толстой</last-name></author><book-title>Детство</book-title>
<annotation><p>Первая повесть трилогии.</p></annotation><lang>ru</lang></title-info>
<publish-info><year>1852</year></publish-info></description>
<body><section><title><p>Глава I</p><p>Учитель</p></title><p>12-го августа 18.. года</p>
<poem><stanza><v>раз</v><v>два</v></stanza></poem></section></body>
<body name="notes"><section><title><p>1</p></title><p>примечание</p></section></body>
<binary id="cover">QUJD</binary></FictionBook>"""


def test_fiction_book(tmp_path: Path) -> None:
    document = only(tmp_path / "d.fb2", FB2.encode("cp1251"))
    assert document.title == "Детство" and document.metadata["authors"] == ["Лев Толстой"]
    assert document.metadata["year"] == 1852 and document.metadata["language"] == "ru"
    assert sections(document) == ["", "Глава I Учитель", "Notes › 1"]
    annotation, chapter, note = document.blocks
    assert (annotation.kind, annotation.text) == ("annotation", "Первая повесть трилогии.")
    assert chapter.text == "12-го августа 18.. года\nраз\nдва" and note.text == "примечание"
    assert "QUJD" not in str(document)
