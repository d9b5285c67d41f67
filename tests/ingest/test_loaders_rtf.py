"""RTF of several code pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import only, reason, texts

HEAD = rb"{\rtf1\ansi\ansicpg%d\deff0{\fonttbl{\f0\fcharset%d Arial;}}\f0 "


def escaped(text: str, encoding: str) -> bytes:
    return b"".join(b"\\'%02x" % byte for byte in text.encode(encoding))


@pytest.mark.parametrize(
    ("page", "charset", "encoding", "text"),
    [
        (1251, 204, "cp1251", "Привет, мир"),
        (1252, 0, "cp1252", "Käse für Zoë"),
        (1250, 238, "cp1250", "Zażółć gęślą"),
        (936, 134, "gbk", "你好世界"),
        (932, 128, "cp932", "日本語の文"),
    ],
)
def test_code_pages(tmp_path: Path, page: int, charset: int, encoding: str, text: str) -> None:
    head = HEAD % (page, charset)
    for body in (escaped(text, encoding), text.encode(encoding) if page < 1000 else b""):
        if body and b"\\" not in text.encode(encoding) and b"{" not in text.encode(encoding):
            document = only(tmp_path / "a.rtf", head + body + b"\\par Second\\par}")
            assert texts(document) == [f"{text}\n\nSecond"]


def test_unicode_pictures_and_metadata(tmp_path: Path) -> None:
    content = (
        (HEAD % (1251, 204)) + rb"{\info{\title " + escaped("Отчёт", "cp1251") + rb"}{\author A B}}"
        rb"\u8212?\u-10179?\u-8704? x{\pict\pngblip 89504e47}{\*\generator hidden}\par}"
    )
    document = only(tmp_path / "u.rtf", content)
    assert document.title == "Отчёт" and document.metadata["authors"] == ["A B"]
    assert texts(document) == ["—\U0001f600 x"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no RTF" in reason(tmp_path / "t.rtf", b"just text")
    assert "no text" in reason(tmp_path / "e.rtf", b"{\\rtf1 }")


def test_a_cut_file_gives_what_is_there(tmp_path: Path) -> None:
    content = (HEAD % (1251, 204)) + b"first\\par second\\par {\\b third"
    assert texts(only(tmp_path / "c.rtf", content)) == ["first\n\nsecond\n\nthird"]


def test_notes_text_boxes_list_numbers_and_binary_pictures(tmp_path: Path) -> None:
    picture = rb"{\pict\wmetafile8\bin7 {}\f0}x}"
    box = rb"{\shp{\*\shpinst\shpleft1{\sp{\sn a}{\sv b}}{\shptxt \pard boxed\par}}{\shprslt old}}"
    content = (
        (HEAD % (1252, 0))
        + rb"a claim{\super 1}{\footnote\ftnalt \pard the {\b note}\par more\par} goes on\par "
        + picture
        + rb"{\pntext 1.\tab}item\par "
        + box
        + rb"}"
    )
    (text,) = texts(only(tmp_path / "n.rtf", content))
    assert text.split("\n\n") == ["a claim1 [the note more] goes on", "1.\titem", "boxed"]


def test_a_note_without_end_and_a_lie_about_length(tmp_path: Path) -> None:
    content = (HEAD % (1252, 0)) + rb"a{\footnote b\bin99999999999 c"
    assert texts(only(tmp_path / "x.rtf", content)) == ["a b"]
