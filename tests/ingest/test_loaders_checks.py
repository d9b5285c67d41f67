"""What is refused before parsing, and the real files of the corpus of damaged ones."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import loading
import pytest

from ingest.clean import clean_document
from ingest.discover import SourceFile, discover
from ingest.sandbox.pool import Sandbox
from ingest.types import LoadFailure
from ingest.usable import load

LIMITS = loading.LIMITS.model_copy(
    update={"max_file_mb": 1, "max_pages": 200, "max_characters": 2_000_000, "max_records_mb": 1}
)
PARSER_FILES = Path(__file__).resolve().parents[3] / "shared/data/parser_files/files"


def reason(path: Path) -> str:
    (item,) = load(SourceFile(path, path.name), LIMITS, loading.SHARED)
    assert isinstance(item, LoadFailure), item
    assert item.path == path.name and "\n" not in item.reason
    return item.reason


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", b"", "the file is empty"),
        ("a.md", b" \n\t ", "white space"),
        ("a.md", b"%PDF-1.4 x", "the PDF is damaged"),
        ("a.txt", b"PK\x03\x04 x", "binary content in a .txt file"),
        ("a.html", bytes(range(256)) * 20, "binary content in a .html file"),
        ("a.csv", b"\x00\x01\x02\x03" * 50, "binary content in a .csv file"),
        ("a.txt", b"x" * 2**21, "is 2 MB; the limit is 1 MB (ingest.max_file_mb)"),
        ("a.jsonl.gz", gzip.compress(b"x" * 2**21), "more than 1 MB unpacked"),
        ("a.jsonl.gz", b"\x1f\x8b" + bytes(20), "gzip file is damaged"),
        ("a.ipynb", b"{}", "not a readable notebook"),
        ("a.ipynb", b"not json", "not a readable notebook"),
        ("a.csv", b"only,a,header\n", "a header and no rows"),
        ("a.md", b"<!-- nothing -->\n", "no text found"),
        ("a.xyz", b"text", "format .xyz is not supported"),
    ],
)
def test_refused(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert expected in reason(path)


def test_a_file_that_is_gone_or_not_regular(tmp_path: Path) -> None:
    assert "cannot be read" in reason(tmp_path / "gone.md")
    os.mkfifo(tmp_path / "pipe.md")
    assert reason(tmp_path / "pipe.md") == "not a regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("x")
    path.chmod(0)
    assert "permission denied" in reason(path)


def test_every_real_file_ends_in_documents_or_reasons() -> None:
    if not PARSER_FILES.is_dir():
        pytest.skip(f"no {PARSER_FILES}: the corpus of real files is not part of the repository")
    files, failures = discover([PARSER_FILES])
    outcomes: dict[str, str] = {failure.path: "failure" for failure in failures}
    with Sandbox() as sandbox:
        for file in files:
            started = time.monotonic()
            for item in load(file, LIMITS, sandbox):
                if isinstance(item, LoadFailure):
                    assert item.reason and "cannot be parsed" not in item.reason, item
                    outcomes.setdefault(file.relative, "failure")
                else:
                    assert clean_document(item).title
                    outcomes[file.relative] = "document"
            assert time.monotonic() - started < LIMITS.timeout_s + 5, file.relative
    assert {file.relative for file in files} <= set(outcomes)
    read = sum(outcome == "document" for outcome in outcomes.values())
    assert read >= len(files) * 0.6
