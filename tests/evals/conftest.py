"""Data sets on disk, and a session whose embedder is the fake one.

- `dataset`: writes a folder from documents, queries and judgments and returns it.
- `settings`: settings whose cache is a fresh folder; corpora are embedded by the fake.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder

import app.session
import evals.corpus
from core.settings import Settings

DOCUMENTS = {
    "owl": "The owl hunts mice at night in the old barn.",
    "walrus": "A walrus sleeps in the cold sea beside the ice.",
    "candle": "The candle flame draws melted wax up the wick.",
    "harbour": "The harbour opened for large ships in the north.",
}
QUERIES = {
    "q1": "owl hunts at night",
    "q2": "walrus in the cold sea",
    "q3": "candle wax wick",
    "q4": "nobody judged this one",
}
QRELS = [("q1", "owl", 2), ("q2", "walrus", 1), ("q3", "candle", 1)]

Dataset = Callable[..., Path]


def lines(objects: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    def write(
        documents: Mapping[str, str] = DOCUMENTS,
        queries: Mapping[str, str] = QUERIES,
        qrels: Sequence[tuple[str, str, int]] = QRELS,
        *,
        name: str = "tiny",
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
        packed: bool = False,
        **files: str | bytes | None,
    ) -> Path:
        """Write the three files; a keyword such as `qrels_tsv` replaces one, None leaves it out."""
        folder = tmp_path / name
        folder.mkdir()
        made: dict[str, str | bytes | None] = {
            "corpus.jsonl": lines(
                [{"_id": k, "title": "", "text": v} for k, v in documents.items()]
            ),
            "queries.jsonl": lines(
                [
                    {"_id": k, "text": v, "metadata": dict((metadata or {}).get(k, {}))}
                    for k, v in queries.items()
                ]
            ),
            "qrels.tsv": "query-id\tcorpus-id\tscore\n"
            + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in qrels),
        }
        made |= {"_".join(k.split("_")[:-1]) + "." + k.split("_")[-1]: v for k, v in files.items()}
        for file, content in made.items():
            if content is None:
                continue
            data = content.encode() if isinstance(content, str) else content
            if packed and file.endswith(".jsonl"):
                file, data = f"{file}.gz", gzip.compress(data)
            (folder / file).write_bytes(data)
        return folder

    return write


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    def fake(settings: Settings) -> FakeEmbedder:
        return FakeEmbedder()

    monkeypatch.setattr(app.session, "open_embedder", fake)
    monkeypatch.setattr(evals.corpus, "open_embedder", fake)
    # Whatever listens on this machine, the rules decide.
    return Settings(
        reasoner="rules", data=tmp_path / "data", cache=tmp_path / "cache", eval_resamples=1000
    )
