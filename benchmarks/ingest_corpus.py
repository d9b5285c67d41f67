"""Real files for the benchmarks of ingest, once or many times over, and stand-in embedders.

Data sets are folders with `files.tar.gz` (documentation as it is) or `*.jsonl.gz` (records). A
copy has other ids and a mark in every line or sentence, so that it shares no vector.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from models.embeddings import Embedder, SpanEmbedder, Vectors
from models.onnx_runtime import Span

DATASETS = ("jax_docs", "scifact", "books_described")
CORPORA = ("corpus.jsonl.gz", "books.jsonl.gz")
_ENDS = re.compile(r"(?<=[.!?]) |(?<=\w)$", re.MULTILINE)


def write_copies(data: Path, target: Path, copies: int, *, limit: int | None = None) -> int:
    """Write the data sets `copies` times below `target`; return how many documents that are.

    `limit` is how many documents are taken of each data set.
    """
    total = 0
    for name in DATASETS:
        source = data / name
        if (source / "files.tar.gz").exists():
            total += _write_files(source / "files.tar.gz", target / name, copies, limit)
        for corpus in CORPORA:
            if (source / corpus).exists():
                total += _write_records(source / corpus, target / name, copies, limit)
    if not total:
        raise SystemExit(f"no data sets at {data}: {', '.join(DATASETS)}")
    return total


def marked(text: str, copy: int) -> str:
    """Make every line and sentence of a text another one."""
    return text if not copy else _ENDS.sub(f" copy{copy} ", text)


def _write_files(archive: Path, target: Path, copies: int, limit: int | None) -> int:
    written = 0
    with tarfile.open(archive) as members:
        for member in members:
            handle = members.extractfile(member) if member.isfile() else None
            if handle is None or (limit is not None and written >= limit):
                continue
            written += 1
            text = handle.read().decode("utf-8", "replace")
            for copy in range(copies):
                path = target / str(copy) / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_marked_file(path, text, copy), encoding="utf-8")
    return written * copies


def _marked_file(path: Path, text: str, copy: int) -> str:
    if path.suffix != ".ipynb" or not copy:
        return marked(text, copy)
    notebook = json.loads(text)
    for cell in notebook.get("cells", []):
        source = cell.get("source", "")
        cell["source"] = marked("".join(source), copy)
    return json.dumps(notebook, ensure_ascii=False)


def _write_records(archive: Path, target: Path, copies: int, limit: int | None) -> int:
    with gzip.open(archive, "rt", encoding="utf-8") as handle:
        rows = [json.loads(line) for line in handle][:limit]
    target.mkdir(parents=True, exist_ok=True)
    for copy in range(copies):
        with (target / f"part{copy}.jsonl").open("w", encoding="utf-8") as out:
            for row in rows:
                changed = {
                    **row,
                    "_id": f"{row['_id']}-{copy}",
                    "title": marked(row["title"], copy),
                    "text": marked(row["text"], copy),
                }
                out.write(json.dumps(changed, ensure_ascii=False) + "\n")
    return len(rows) * copies


class InstantEmbedder:
    """Give every text a random unit vector of its own, in next to no time."""

    dimension = 384
    languages = None
    model_id = "instant"
    seconds = 0.0  # that a text takes: of a model on another machine

    def similarity(self, cosine: float, *languages: str) -> float:
        """Return the cosine where it is not negative."""
        return max(0.0, cosine)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return rows that depend on the texts alone."""
        time.sleep(self.seconds * len(texts))
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            draw = np.random.Generator(np.random.PCG64(int.from_bytes(seed)))
            row[:] = draw.standard_normal(self.dimension, dtype=np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return one row."""
        return np.asarray(self.embed_documents([text])[0], dtype=np.float32)


class BusyEmbedder:
    """Measure how long an embedder is at work."""

    def __init__(self, inner: Embedder) -> None:
        """Count the calls of `inner`."""
        self._inner = inner
        self.busy_s = 0.0
        self.texts = 0
        self.model_id = inner.model_id
        self.dimension = inner.dimension
        self.languages = inner.languages
        self.similarity = inner.similarity

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed and count."""
        began = time.perf_counter()
        rows = self._inner.embed_documents(texts)
        self.busy_s += time.perf_counter() - began
        self.texts += len(texts)
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        return self._inner.embed_query(text)


class BusySpanEmbedder(BusyEmbedder):
    """Do the same for an embedder that tells sentences apart."""

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Embed and count."""
        assert isinstance(self._inner, SpanEmbedder)
        began = time.perf_counter()
        found = self._inner.embed_passages(texts, spans)
        self.busy_s += time.perf_counter() - began
        self.texts += len(texts)
        return found


def counted(embedder: Embedder) -> BusyEmbedder:
    """Return the embedder with its clock; it can all that the original can."""
    return (BusySpanEmbedder if isinstance(embedder, SpanEmbedder) else BusyEmbedder)(embedder)
