"""Hostile and misnamed files end in text or in a reason, and the next file is read."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from pathlib import Path

import loading
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from benchmarks.hostile_containers import bad_names, entities, members_of, packed
from benchmarks.hostile_files import SECRET, Canary
from benchmarks.hostile_pdf import loops, simple
from benchmarks.mutations import MUTATIONS, mutated
from benchmarks.parser_files import outcome_of
from ingest.discover import SourceFile, discover
from ingest.sandbox.pool import Sandbox

LIMITS = loading.LIMITS.model_copy(
    update={"max_file_mb": 4, "max_pages": 200, "max_characters": 1_000_000}
)
HTML = b"<!DOCTYPE html><html><body><h1>Heading</h1><p>text</p></body></html>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(99)
SEEDS = {
    "a.md": b"---\ntitle: T\n---\n# H\n\ntext [a](b)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "a.html": HTML, "a.txt": "Текст и ещё text\n".encode("cp1251") * 9, "a.pdf": simple(),
    "a.csv": b"id,title,year\n1,A,1999\n2,B,2001\n", "a.rst": b"H\n=\n\n.. note:: x\n\n   y\n",
    "a.jsonl": b'{"_id": "a", "text": "x"}\n{"_id": "b", "name": "y", "n": [1, {"c": 2}]}\n',
    "a.json": b'[{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]', "a.xml": b"<a><b>text</b></a>",
    "a.eml": b"Subject: s\nContent-Type: text/html; charset=utf-8\n\n<p>text</p>",
    "a.rtf": rb"{\rtf1\ansi text \b bold\b0}", "a.org": b"* One\ntext\n",
    "a.ipynb": b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "a.docx": packed(members_of("docx")), "a.xlsx": packed(members_of("xlsx")),
    "a.epub": packed(members_of("epub")), "a.odt": packed(members_of("odt")),
    "a.zip": packed(members_of("zip")), "a.mrc": b"00026nam a2200025 a 4500\x1e\x1d",
}  # fmt: skip


def outcome(folder: Path, name: str, content: bytes, box: Sandbox | None = None) -> tuple[str, str]:
    """Return the faults and the text or reason of a file; the faults are those of the benchmark."""
    path = folder / name
    path.write_bytes(content)
    found, text = outcome_of(SourceFile(path, name), LIMITS, box or loading.SHARED)
    return " ".join(found.faults(seconds=60)), text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", simple(), "text"),
        ("a.md", HTML, "Heading"),
        ("a.docx", HTML, "Heading"),
        ("a.docx", simple(), "text"),
        ("a.zip", packed(members_of("docx")), "text"),
        ("a.pdf", packed(members_of("docx")), "text"),
        ("a.txt", packed(members_of("epub")), "text"),
        ("a.pdf", PNG, "it is an image"),
        ("a.epub", PNG, "it is an image"),
        ("a.txt", PNG, "it is an image"),
        ("a.txt", packed(members_of("zip")), "it is a ZIP container"),
        ("a.json", b"\x80\x04\x95" + bytes(40), "it is a pickle"),
        ("a.docx", b"plain text", "damaged or no ZIP"),
        ("a.md", b"a\x00b\x1b[2J\x07c" + b" text" * 99, "ab[2Jc text"),
        ("a.md", "dark\u202egnp\u200b\ufeff text".encode(), "darkgnp text"),
    ],
)
def test_what_the_content_is_counts(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    faults, text = outcome(tmp_path, name, content)
    assert expected in text and faults == ""


def test_entities_and_names_get_nothing_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    (tmp_path / "in").mkdir()
    with Canary() as canary:
        for name, content in (*entities(canary.address, str(secret)), *bad_names()):
            faults, text = outcome(tmp_path / "in", name, content)
            assert faults == "" and SECRET not in text, name
            (tmp_path / "in" / name).unlink()
    assert canary.calls == 0
    assert {path.name for path in tmp_path.rglob("*")} == {"in", "secret.txt"}


@pytest.mark.parametrize(
    "name", ["kids-loop", "kids-mutual", "form-loop", "previous-loop", "deep-arrays", "script"]
)
def test_pdf_loops(tmp_path: Path, name: str) -> None:
    assert outcome(tmp_path, "a.pdf", loops("http://127.0.0.1:9")[name])[0] == ""


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32), name=st.sampled_from(sorted(SEEDS)), kind=st.sampled_from(MUTATIONS)
)
def test_damage_ends_in_text_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, seed: int, name: str, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "other").write_bytes(SEEDS["a.docx"])
    content = mutated(SEEDS[name], kind, random.Random(seed), folder / "other")
    faults, text = outcome(folder, name, content)
    assert faults == "", text


def test_odd_things_in_folders(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "good.md").write_text("text")
    (tmp_path / "\x1b[2J\u202ename.md").write_text("text")
    with open(os.fsencode(tmp_path) + b"/\xff\xfe.md", "w") as handle:
        handle.write("text")
    (tmp_path / "w.pt").write_bytes(b"\x80\x02")
    files, failures = discover([tmp_path])
    assert {file.relative for file in files} == {
        "good.md",
        "\ufffd[2J\ufffdname.md",
        "\ufffd\ufffd.md",
    }
    reasons = {failure.path: failure.reason for failure in failures}
    assert reasons["pipe.md"] == "not a regular file"
    assert "a pickle runs code" in reasons["w.pt"]
    for file in files:
        assert outcome_of(file, LIMITS, loading.SHARED)[0].documents == 1


def test_folders_deeper_than_the_stack() -> None:
    top = tempfile.mkdtemp()
    try:
        descriptor = os.open(top, os.O_RDONLY)
        for _ in range(1_100):
            os.mkdir("d", dir_fd=descriptor)
            below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        with os.fdopen(os.open("x.md", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor), "w") as out:
            out.write("text")
        os.close(descriptor)
        files, _ = discover([Path(top)])
    finally:
        # Python's own removal of trees recurses.
        subprocess.run(["rm", "-rf", top], check=True)
    assert [file.relative.endswith("/d/x.md") for file in files] == [True]
