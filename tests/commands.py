"""Run the command line in this process or as a real one, over a small corpus.

The embedded model is loaded once for all commands of a test run; everything else of a command is
rebuilt, as in a process of its own.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from app import session as composing
from cli import app

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-c", "from cli.app import main; main()"]
HEIGHT = "What is the maximum height of the candle flame?"

FILES = {
    "guide/candle.md": (
        "---\nauthors: [Ann Wick]\nkeywords: [wax]\n---\n# Candles\n\n## Burning\n\n"
        "A candle burns because the wick draws melted wax up to the flame. The maximum height of"
        " the flame is 42 mm.\n\n## Safety\n\nNever leave a burning candle alone in a room: its"
        " safety comes first.\n"
    ),
    "guide/чайник.txt": (
        "Чайник\n\nЧайник закипает за три минуты. Объём чайника составляет два литра воды.\n"
    ),
    "guide/bread.html": (
        '<html lang="uk"><head><title>Хліб</title></head><body><h1>Хліб</h1><p>Хліб печуть у печі'
        " сорок хвилин. Тісто має підійти двічі.</p></body></html>"
    ),
    "guide/tea.md": "# 茶\n\n绿茶应当用八十度的水冲泡。红茶的冲泡时间是四分钟。\n",
    "books.csv": (
        "id,title,author,year\nb1,The Chemical History of a Candle,Michael Faraday,1861\n"
        "b2,Opticks,Isaac Newton,1704\n"
    ),
    "notes.jsonl": "".join(
        json.dumps(line, ensure_ascii=False) + "\n"
        for line in (
            {"_id": "n1", "title": "Walruses", "text": "A walrus sleeps in the sea.",
             "metadata": {"language": "en", "version": "2"}},
            {"_id": "n2", "title": "Owls", "text": "An owl hunts at night.", "metadata": {}},
        )
    ),
}  # fmt: skip
DOCUMENTS = 8


@dataclass(frozen=True)
class Done:
    """Hold what a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one JSON object on stdout; anything beside it is an error."""
        assert self.out.endswith("\n") and self.out.count("\n") == 1, self.out
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def failed(self, code: int, *words: str) -> None:
        """Check that the command ended with this code and one line that holds these words."""
        assert self.code == code, (self.code, self.out, self.err)
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("carrel: ")
        assert lines[0].endswith("."), lines[0]
        assert not [word for word in words if word not in lines[0]], lines[0]
        assert "Traceback" not in self.out + self.err
        assert "unexpected" not in self.err
        assert not self.out or self.json


Carrel = Callable[..., Done]


def in_process(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    """Return a function that runs one command in this process."""
    monkeypatch.setattr(composing, "open_embedder", _open_embedder)

    def carrel(*arguments: object, data: Path | None = None) -> Done:
        given = [str(argument) for argument in arguments]
        if data is not None:
            given += ["--data", str(data)]
        capsys.readouterr()
        code = app.run(given)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Done(code, out, err)

    return carrel


_embedders: dict[str, Any] = {}
_really_open = composing.open_embedder


def _open_embedder(settings: Any) -> Any:
    if settings.embedder not in _embedders:
        _embedders[settings.embedder] = _really_open(settings)
    return _embedders[settings.embedder]


def process(
    *arguments: object,
    data: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    user: int | None = None,
) -> Done:
    """Run one command as a process of its own."""
    given = [*map(str, arguments), *(["--data", str(data)] if data else [])]
    done = subprocess.run(
        [*COMMAND, *given],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        input=stdin.encode(),
        capture_output=True,
        timeout=120,
        user=user,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def write_files(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """Write files below a folder and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def made_once(base: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Return a data directory that the first worker of a run who asks for it makes: a template.

    `base` is what pytest keeps temporary files in. One process owns a data directory, so each
    worker takes a copy.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with FileLock(base / f"{name}.lock"):
        if not (base / name).exists():
            make(base / f"{name}.new")
            (base / f"{name}.new").rename(base / name)
    return base / name


def built_library(base: Path) -> Path:
    """Return the data directory of the ingested FILES, which is to be copied."""
    return made_once(base, "library", _ingest_files)


def _ingest_files(data: Path) -> None:
    # A process of its own, since the fixtures of a test are not there yet.
    done = process("ingest", write_files(data.with_name("corpus")), "--json", data=data)
    assert done.code == 0, done.err
    assert done.json["documents"] == DOCUMENTS


def copied(data: Path, to: Path) -> Path:
    """Copy a data directory, for a test that damages it."""
    shutil.copytree(data, to)
    return to


def query(data: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Read the catalogue behind the application's back."""
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        return connection.execute(sql, values).fetchall()


def change(data: Path, *statements: str) -> None:
    """Change the catalogue behind the application's back."""
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@dataclass(frozen=True)
class Index:
    """Hold what a data directory contains, independent of row numbers."""

    documents: frozenset[tuple[str, ...]]
    chunks: frozenset[str]
    full_text: frozenset[str]
    vectors: frozenset[str]

    @property
    def consistent(self) -> bool:
        """Tell whether the derived indexes hold exactly the chunks."""
        return self.chunks == self.full_text == self.vectors


def index_of(data: Path) -> Index:
    """Read the catalogue, the full-text index and which chunks have a vector."""
    tables = query(data, "SELECT id FROM collections")
    full_text: list[tuple[Any, ...]] = []
    for (number,) in tables:
        full_text += query(
            data, f"SELECT c.chunk_id FROM fts_{number} f LEFT JOIN chunks c ON c.id = f.rowid"
        )
    vectors = query(
        data,
        "SELECT DISTINCT c.chunk_id FROM chunks c"
        " JOIN embeddings e ON e.content_hash = c.content_hash",
    )
    chunks = query(data, "SELECT chunk_id FROM chunks")
    assert len(full_text) == len(set(full_text))
    assert len(vectors) == len(set(vectors))
    return Index(
        documents=frozenset(query(data, "SELECT document_id, file, content_hash FROM documents")),
        chunks=frozenset(row[0] for row in chunks),
        full_text=frozenset(row[0] for row in full_text),
        vectors=frozenset(row[0] for row in vectors),
    )


def pdf(*pages: str, password: str = "") -> bytes:
    """Write a PDF by hand, a page per text, locked when a password is given."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 14 TL 50 750 Td ({text}) Tj ET".encode() if text else b""
        objects.append(b"<< /Length %d >> stream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    out = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    out += b"startxref\n%d\n%%%%EOF" % start
    if not password:
        return out
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(out)))
    writer.encrypt(password, algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    return locked.getvalue()


def sources(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sources of search results."""
    return [str(result["source"]) for result in results]
