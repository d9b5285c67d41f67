"""A page as it looks: its file, its words, and the rights of its document."""

from __future__ import annotations

import os
import time
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from serving import Served

QUOTE = "pressure of the pump is 16 bar"
LINES = (
    "The pump manual",
    "The maximum pressure of the pump is",
    "16 bar. It is closed be-",
    "fore.",
)


def write_pdf(path: Path) -> None:
    """Write a page of text whose lines end within sentences and words."""
    shown = "".join(f"({line}) Tj T*\n" for line in LINES)
    content = f"BT /F1 12 Tf 60 740 Td 16 TL\n{shown}ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        " /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body = "".join(f"{n} 0 obj\n{part}\nendobj\n" for n, part in enumerate(parts, 1))
    path.write_bytes(f"%PDF-1.4\n{body}trailer << /Size 6 /Root 1 0 R >>\n%%EOF".encode())


@pytest.fixture
def manual(served: Served, tmp_path: Path) -> Path:
    """Return a file that only editors may read."""
    write_pdf(path := tmp_path / "pump.pdf")
    session = served.services.session
    target = session.intake.open_collection("acme", tmp_path.name, None)
    assert session.ingest(target, [path], acl=frozenset({"editor"})).documents == 1
    return path


def marked(content: bytes) -> int:
    """Count the pixels of a picture that are yellow."""
    picture = Image.open(BytesIO(content)).convert("RGB")
    return sum(
        count for count, colour in picture.getcolors(1 << 20) or [] if colour[2] < 120 < colour[0]
    )


def test_the_cited_words_are_marked(served: Served, manual: Path) -> None:
    asked = {"collection": manual.parent.name, "document_id": "pump.pdf", "number": 1}
    with served.client("editor") as editor, served.client("reader") as reader:

        def page(client: object = editor, **more: object) -> tuple[int, bytes]:
            answer = client.get("/api/v1/documents/page", params={**asked, **more})  # type: ignore[attr-defined]
            return answer.status_code, answer.content

        status, plain = page()
        assert status == 200 and plain[:4] == b"\x89PNG" and marked(plain) == 0
        status, shown = page(quote=[QUOTE, "closed before"])
        assert status == 200 and 5_000 < marked(shown) < 60_000
        assert page(quote=["words that are not there"]) == (200, plain)
        status, near = page(quote=["maximum pressvre of the pump is 16 bar"])
        assert status == 200 and 2_000 < marked(near) <= marked(shown)
        assert page(number=2)[0] == 404
        assert page(number=0)[0] == page(quote=["x" * 3000])[0] == 422
        assert page(reader)[0] == page(reader, document_id="absent.pdf")[0] == 404


def test_a_file_that_changed_is_not_shown(served: Served, manual: Path) -> None:
    """Whatever lies there now may be for others, even under an old date."""
    asked = {"collection": manual.parent.name, "document_id": "pump.pdf", "number": 1}
    time.sleep(1.1)  # when a document was read is kept in whole seconds
    other = manual.with_name("other.pdf")
    other.write_bytes(manual.read_bytes())
    os.utime(other, (1e9, 1e9))
    os.replace(other, manual)
    with served.client("editor") as editor:
        assert editor.get("/api/v1/documents/page", params=asked).status_code == 404
        manual.unlink()
        assert editor.get("/api/v1/documents/page", params=asked).status_code == 404


def test_what_has_no_picture_is_said_to_have_none(served: Served, tmp_path: Path) -> None:
    """It is not said to have changed."""
    (path := tmp_path / "note.md").write_text("The valve is of brass.")
    session = served.services.session
    target = session.intake.open_collection("acme", tmp_path.name, None)
    session.ingest(target, [path])
    asked = {"collection": tmp_path.name, "document_id": "note.md", "number": 1}
    with served.client("reader") as reader:
        answer = reader.get("/api/v1/documents/page", params=asked)
    assert answer.status_code == 404 and "only a PDF or a picture" in answer.text
