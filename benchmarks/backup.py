"""Back up while documents are written, restore, and compare with what was acknowledged.

python -m benchmarks.backup [--chunks 50000] [--backups 10]

Documents of five chunks each, with made-up words and vectors of the embedder's model, are written
one after the other; an id is acknowledged when its write has returned. Meanwhile backups are taken,
half of them sealed. Each must hold exactly the first documents in order, with all their chunks and
vectors, and none fewer than were acknowledged when it began. The last one is then restored by
`carrel restore`, which rebuilds all indexes and checks them. The exit code is 1 when a document
is missing, or when restoring takes more than 5 minutes for 50,000 chunks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.erasure_corpus import word
from core.settings import Settings
from models.loading import open_embedder
from stores.backup.archive import make_backup, unpack
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow
from stores.store import Store
from stores.store import parts as store_parts

CHUNKS = 5
WORDS = 90
BAR_SECONDS, BAR_CHUNKS = 300, 50_000
KEY = b"a key of the benchmark, kept nowhere"


def hashed(*parts: object) -> str:
    """Return a name for parts, in the form that ids have."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def document(
    collection: Collection, number: int, words: list[str], draw: random.Random
) -> DocumentRow:
    """Make a document of some chunks."""
    chunks = []
    for ordinal in range(CHUNKS):
        text = f"Part {ordinal} of {number}. " + " ".join(draw.choices(words, k=WORDS))
        chunk_id = hashed(collection.name, number, ordinal)
        row = ChunkRow(chunk_id, ordinal, text, "text", "", None, WORDS, hashed(text))
        chunks.append(row)
    name = f"d{number:06}"
    return DocumentRow(
        key=hashed(name),
        document_id=name,
        file=name,
        source=name,
        title=f"Document {number}",
        format="text",
        language="en",
        is_record=False,
        version="",
        updated_at="",
        content_hash=hashed(name, number),
        metadata={},
        fields=[],
        chunks=chunks,
    )


def write_all(
    store: Store, model: str, dimension: int, count: int, acknowledged: list[int], seed: int
) -> None:
    """Write documents one by one."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    words = [word(draw, "en", 3) for _ in range(20_000)]
    collection = store.intake.open_collection("acme", "main", None)
    for number in range(count):
        row = document(collection, number, words, draw)
        made = numbers.normal(size=(CHUNKS, dimension)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        vectors = {chunk.content_hash: made[at] for at, chunk in enumerate(row.chunks)}
        sentences = {key: np.stack([vector, vector]) for key, vector in vectors.items()}
        store.intake.write_vectors(collection.id, model, vectors, sentences, [])
        store.intake.write_batch(collection, Changes([row]), OPERATOR)
        acknowledged[0] = number + 1


def lost(backup: Path, key: bytes | None, folder: Path, least: int) -> int:
    """Return how many documents of a backup are not as they must be."""
    folder.mkdir()
    manifest = unpack(backup, folder, key=key, max_gb=100)
    with closing(sqlite3.connect(folder / "catalogue.sqlite3")) as connection:
        found = connection.execute(
            "SELECT d.document_id, count(e.vector) FROM documents d"
            " JOIN chunks c ON c.document = d.id"
            " LEFT JOIN embeddings e ON e.content_hash = c.content_hash GROUP BY 1 ORDER BY 1"
        ).fetchall()
    wanted = [(f"d{number:06}", CHUNKS) for number in range(manifest.documents)]
    wrong = sum(one != other for one, other in zip(found, wanted, strict=False))
    return wrong + abs(len(found) - len(wanted)) + max(0, least - len(found))


def backed_up(store: Store, folder: Path, given: argparse.Namespace, model: tuple[str, int]) -> Any:  # noqa: ANN401
    """Write and back up side by side; return figures of the backups and the last of them."""
    acknowledged, rows = [0], []
    count = given.chunks // CHUNKS
    arguments = (store, *model, count, acknowledged, given.seed)
    writing = threading.Thread(target=write_all, args=arguments)
    writing.start()
    for number in range(given.backups):
        while writing.is_alive() and acknowledged[0] < count * (number + 1) // (given.backups + 1):
            time.sleep(0.05)
        least, began = acknowledged[0], time.perf_counter()
        key = KEY if number % 2 else None
        make_backup(store_parts(store).database, folder / f"b{number}", lambda *_: None, key=key)
        rows.append((number, key, least, acknowledged[0], time.perf_counter() - began))
    writing.join()
    return rows


def restored(backup: Path, data: Path) -> dict[str, Any]:
    """Restore at the command line, in a process of its own."""
    program = "from cli.app import main; main()"
    command = [sys.executable, "-c", program, "restore", str(backup), "--data", str(data), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found | {"cpu_seconds": used.ru_utime + used.ru_stime}


def measure(given: argparse.Namespace) -> bool:
    """Measure and print; return whether nothing was lost and the bar is met."""
    embedder = open_embedder(Settings())
    model = (embedder.model_id, embedder.dimension)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store(Settings(data=folder / "data"), embedder.model_id, create=True) as store:
            rows = backed_up(store, folder, given, model)
            make_backup(store_parts(store).database, folder / "last", lambda *_: None)
        wrong = 0
        print(f"{'backup':>6} {'sealed':>6} {'MB':>7} {'before':>7} {'after':>7} {'s':>6} lost")
        for number, key, least, most, seconds in rows:
            size = (folder / f"b{number}").stat().st_size / 1e6
            missing = lost(folder / f"b{number}", key, folder / f"r{number}", least)
            sealed = "yes" if key else "no"
            line = f"{number:6} {sealed:>6} {size:7.1f} {least:7} {most:7} {seconds:6.1f} {missing}"
            print(line)
            wrong += missing
        done = restored(folder / "last", folder / "restored")
        bar = BAR_SECONDS * max(1.0, done["chunks"] / BAR_CHUNKS)
        whole = done["chunks"] == done["vectors"] == given.chunks // CHUNKS * CHUNKS
        print(
            f"restored: {done['documents']} documents, {done['chunks']} chunks, {done['vectors']}"
            f" vectors in {done['seconds']} s (bar {bar:.0f} s), {done['cpu_seconds']:.0f} s of the"
            f" processors, {done['embedded']} embedded"
        )
        return not wrong and whole and done["seconds"] <= bar


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--backups", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(0 if measure(parser.parse_args()) else 1)


if __name__ == "__main__":
    main()
