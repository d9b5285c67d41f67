"""Old Office files are refused with advice; what is something else under their name is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import only, reason, texts

from ingest.loaders.formats import known_formats

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(("name", "target"), [("a.doc", "DOCX"), ("a.ppt", "PPTX")])
def test_refused(tmp_path: Path, name: str, target: str) -> None:
    expected = f"format .{name.split('.')[1]} is not read; save it as {target}"
    assert reason(tmp_path / name, OLE) == expected
    assert ".doc " not in known_formats() and ".ppt " not in known_formats()


def test_read_as_what_it_is(tmp_path: Path) -> None:
    assert texts(only(tmp_path / "r.doc", b"{\\rtf1 rich text}")) == ["rich text"]
    page = b"<html><body><p>a page</p></body></html>"
    assert texts(only(tmp_path / "h.doc", page)) == ["a page"]


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r", "gb2312", "iso-8859-1"])
def test_the_declared_encoding_of_a_page(tmp_path: Path, charset: str) -> None:
    text = {"gb2312": "图书馆开放", "iso-8859-1": "Käse"}.get(charset, "Дом")
    page = f"<html><head><meta charset='{charset}'></head><body><p>{text}</p></body></html>"
    assert texts(only(tmp_path / "p.html", page.encode(charset))) == [text]


def test_a_wrong_declaration_is_not_believed(tmp_path: Path) -> None:
    page = "<html><head><meta charset='iso-8859-1'></head><body>Библиотека открыта</body></html>"
    assert texts(only(tmp_path / "w.html", page.encode("cp1251"))) == ["Библиотека открыта"]
