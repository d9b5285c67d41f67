"""PDF and DOCX are parsed in a child process that may die without losing the run."""

from __future__ import annotations

import io
import logging
import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest
from commands import pdf
from loading import LIMITS, saved
from pypdf import PdfReader, PdfWriter

from ingest.discover import SourceFile
from ingest.loaders.limits import LoadLimits
from ingest.loaders.pdf import page_texts
from ingest.sandbox.pool import Sandbox
from ingest.types import LoadFailure, ParsedDocument
from ingest.usable import load


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def parse(
    path: Path, content: bytes, sandbox: Sandbox, limits: LoadLimits = LIMITS
) -> ParsedDocument | str:
    path.write_bytes(content)
    (item,) = load(SourceFile(path, path.name), limits, sandbox)
    return item.reason if isinstance(item, LoadFailure) else item


def test_pdf_pages(tmp_path: Path, sandbox: Sandbox) -> None:
    document = parse(
        tmp_path / "a.pdf", pdf("A short title) Tj T* (First page.", "Second"), sandbox
    )
    assert isinstance(document, ParsedDocument), document
    assert document.title == "A short title"
    assert [block.page for block in document.blocks] == [1, 2]
    assert "First page." in document.blocks[0].text
    assert document.metadata["pages"] == 2


def test_pdf_reasons(tmp_path: Path, sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reasons = {
        name: parse(tmp_path / f"{name}.pdf", content, sandbox)
        for name, content in {
            "scan": pdf(""),
            "locked": pdf("text of a page", password="secret"),
            "junk": b"%PDF-1.4\n" + os.urandom(2000),
            "empty": b"",
            "long": pdf(*["x"] * 51),
        }.items()
    }
    assert reasons["scan"] == "no text layer; OCR it first"
    assert reasons["locked"] == (
        "the PDF is password-protected; remove the password and ingest again"
    )
    assert "damaged" in str(reasons["junk"])
    assert reasons["empty"] == "the file is empty"
    assert "51 pages; the limit is 50 (ingest.max_pages)" in str(reasons["long"])
    assert not [record for record in caplog.records if record.name.startswith("pypdf")]


def test_pdf_with_an_empty_password_or_a_lost_table_is_read(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    good = pdf("text of a page")
    lost = good.replace(b"startxref\n", b"startxref\n9")  # points past the end
    writer, opened = PdfWriter(PdfReader(io.BytesIO(good))), io.BytesIO()
    writer.encrypt("", owner_password="owner", algorithm="RC4-128")
    writer.write(opened)
    for name, content in (("open", opened.getvalue()), ("lost", lost)):
        document = parse(tmp_path / f"{name}.pdf", content, sandbox)
        assert isinstance(document, ParsedDocument), document
        assert document.blocks[0].text == "text of a page"


def test_docx(tmp_path: Path, sandbox: Sandbox) -> None:
    made = docx.Document()
    made.add_heading("Report", 0)
    made.add_heading("Part", 1)
    made.add_paragraph("Body")
    made.add_paragraph("point", style="List Bullet")
    table = made.add_table(2, 2)
    for at, text in enumerate("abcd"):
        table.cell(at // 2, at % 2).text = text
    made.core_properties.author = "A B"
    made.core_properties.keywords = "x, y"
    document = parse(tmp_path / "d.docx", saved(made), sandbox)
    assert isinstance(document, ParsedDocument), document
    assert document.title == "Report"
    assert (document.metadata["authors"], document.metadata["keywords"]) == (["A B"], ["x", "y"])
    assert [(block.kind, block.section, block.text) for block in document.blocks] == [
        ("text", "", "Report"),
        ("text", "Part", "Body\n- point"),
        ("table", "Part", "a | b\nc | d"),
    ]


def test_docx_reasons(tmp_path: Path, sandbox: Sandbox) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("word/document.xml", b"0" * 30_000_000)
    assert "zip_ratio" in str(parse(tmp_path / "b.docx", bomb.getvalue(), sandbox))
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    assert "OLE container" in str(parse(tmp_path / "o.docx", ole, sandbox))
    assert "damaged" in str(parse(tmp_path / "z.docx", b"PK\x03\x04" + bytes(99), sandbox))


def test_a_hanging_parser_is_killed_and_replaced(tmp_path: Path, sandbox: Sandbox) -> None:
    good = pdf("text of a page")
    assert isinstance(parse(tmp_path / "a.pdf", good, sandbox), ParsedDocument)
    os.kill(sandbox._idle[0].pid, signal.SIGSTOP)
    short = LIMITS.model_copy(update={"timeout_s": 0.3})
    assert "took longer than 0.3 s" in str(parse(tmp_path / "b.pdf", good, sandbox, short))
    assert isinstance(parse(tmp_path / "c.pdf", good, sandbox), ParsedDocument)


def test_a_dead_worker_is_replaced(tmp_path: Path, sandbox: Sandbox) -> None:
    good = pdf("text of a page")
    assert isinstance(parse(tmp_path / "a.pdf", good, sandbox), ParsedDocument)
    os.kill(sandbox._idle[0].pid, signal.SIGSEGV)
    assert isinstance(parse(tmp_path / "b.pdf", good, sandbox), ParsedDocument)


def test_a_file_starved_of_memory_fails_alone(tmp_path: Path, sandbox: Sandbox) -> None:
    starved = LIMITS.model_copy(update={"memory_mb": 1})
    reason = parse(tmp_path / "a.pdf", pdf(*["line of text"] * 15), sandbox, starved)
    assert isinstance(reason, str)
    assert isinstance(parse(tmp_path / "b.pdf", pdf("ok now"), sandbox), ParsedDocument)


def test_paragraphs_of_wrapped_lines() -> None:
    body = (
        "is about as long as the other lines of the para-\ngraph, and its state-of-the-\nart words"
        " keep their hyphens. It goes on until here.\nEnd.\n• point"
    )
    pages = [f"The Journal\nLine {name} {body} {name}\n{n}" for n, name in enumerate("abcde")]
    assert page_texts(pages)[0] == (
        "Line a is about as long as the other lines of the paragraph, and its state-of-the-art"
        " words keep their hyphens. It goes on until here. End.\n\n• point a"
    )
