"""A renamed file keeps its documents: not parsed, not embedded, as if ingested afresh."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from commands import FILES, write_files
from fakes import FakeEmbedder

from benchmarks.truth import canonical, differences, faults, open_truth
from core import faults as faults_of_core
from core.settings import Settings
from ingest import reading
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from stores.store import Store


class CountingEmbedder(FakeEmbedder):
    """Count the texts that are embedded."""

    texts = 0

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += len(texts)
        return super().embed_documents(texts)


class Box:
    """Ingest a folder and remember what that took."""

    def __init__(self, open_store: Callable[..., Store], data: Path, corpus: Path) -> None:
        self.embedder, self.data, self.corpus = CountingEmbedder(), data, corpus
        self._open = open_store

    def ingest(self, *paths: Path, **options: object) -> Summary:
        prune, batch = bool(options.pop("prune", False)), options.pop("batch", 256)
        self.embedder.texts = 0
        with self._open(data=self.data) as store:
            target = store.intake.open_collection("acme", "main", None)
            settings = Settings(data=self.data, ingest_batch=batch)  # type: ignore[arg-type]
            pipeline = Pipeline(store, self.embedder, settings, target, **options)  # type: ignore[arg-type]
            summary = pipeline.run(paths or [self.corpus], prune=prune)
        assert faults(self.data, "fake") == []
        return summary

    def equals(self, fresh: Box) -> None:
        """Check that the directory is as if its folder had been ingested afresh."""
        fresh.ingest()
        assert differences(canonical(self.data), canonical(fresh.data)) == []


@pytest.fixture
def box(open_store: Callable[..., Store], corpus: Path, tmp_path: Path) -> Box:
    return Box(open_store, tmp_path / "data", corpus)


@pytest.fixture
def fresh(open_store: Callable[..., Store], corpus: Path, tmp_path: Path) -> Box:
    return Box(open_store, tmp_path / "fresh", corpus)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the files that are parsed from now on."""
    names: list[str] = []
    load = reading.load

    def noted(source: object, *rest: object) -> object:
        names.append(source.relative)  # type: ignore[attr-defined]
        return load(source, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "load", noted)
    return names


def stop(stage: str) -> None:
    if stage == "indexed.after":
        raise KeyboardInterrupt


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("guide/candle.md", "guide/fire.md"),
        ("guide/candle.md", "deep/er/fire.md"),
        ("guide/tea.md", "饮料/drink.md"),
        ("books.csv", "shelf.csv"),
        ("notes.jsonl", "guide/beasts.jsonl"),
    ],
)
def test_a_renamed_file_is_not_read_again(
    box: Box, fresh: Box, corpus: Path, parsed: list[str], old: str, new: str, prune: bool
) -> None:
    box.ingest()
    parsed.clear()
    (corpus / new).parent.mkdir(parents=True, exist_ok=True)
    (corpus / old).rename(corpus / new)
    summary = box.ingest(prune=prune)
    assert (summary.renamed, summary.indexed, summary.unchanged) == (1, 0, 5)
    assert (summary.removed, summary.failed, summary.ok) == (0, [], True)
    assert (parsed, box.embedder.texts) == ([], 0)
    box.equals(fresh)
    assert box.ingest().unchanged == 6


def test_a_title_made_of_the_name_is_read_again(
    box: Box, fresh: Box, corpus: Path, parsed: list[str]
) -> None:
    (corpus / "herons.md").write_text("A heron fishes.\n", encoding="utf-8")
    box.ingest()
    parsed.clear()
    (corpus / "herons.md").rename(corpus / "storks.md")
    summary = box.ingest()
    assert (summary.renamed, parsed) == (1, ["storks.md"])
    box.equals(fresh)


def test_a_file_with_failures_is_read_again(box: Box, fresh: Box, corpus: Path) -> None:
    with (corpus / "notes.jsonl").open("a", encoding="utf-8") as notes:
        notes.write("not json\n")
    box.ingest()
    (corpus / "notes.jsonl").rename(corpus / "beasts.jsonl")
    summary = box.ingest()
    assert [failure.path for failure in summary.failed] == ["beasts.jsonl:3"]
    assert (summary.renamed, box.embedder.texts) == (1, 0)
    box.equals(fresh)


def test_records_without_ids_are_numbered_under_the_new_name(
    box: Box, fresh: Box, corpus: Path
) -> None:
    rows = [{"text": "A heron fishes."}, {"text": "A stork stands."}]
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    box.ingest()
    (corpus / "a.jsonl").rename(corpus / "birdlist.jsonl")
    assert box.ingest().renamed == 1
    box.equals(fresh)


def test_a_rename_that_was_interrupted_loses_nothing(
    box: Box, fresh: Box, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"_id": f"bird-{n}", "title": f"Heron {n}", "text": "It fishes."} for n in range(9)]
    (corpus / "flock.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    box.ingest()
    (corpus / "flock.jsonl").rename(corpus / "birdlist.jsonl")

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(faults_of_core, "watch", stop)
        box.ingest(batch=5)
    with closing(open_truth(box.data)) as connection:
        query = "SELECT DISTINCT file FROM documents WHERE document_id LIKE 'bird-%'"
        assert len(connection.execute(query).fetchall()) == 2  # in the middle of it
    box.ingest()
    box.equals(fresh)


def test_a_copy_is_not_a_rename(box: Box, corpus: Path) -> None:
    box.ingest()
    shutil.copyfile(corpus / "guide/candle.md", corpus / "guide/fire.md")
    summary = box.ingest()
    assert (summary.renamed, summary.indexed, summary.unchanged) == (0, 1, 6)
    assert box.embedder.texts == 0  # the same text has its vector


def to_another_kind(corpus: Path) -> None:
    (corpus / "guide/candle.md").rename(corpus / "guide/candle.txt")


def with_a_copy(corpus: Path) -> None:
    shutil.copyfile(corpus / "guide/candle.md", corpus / "b.md")
    (corpus / "guide/candle.md").rename(corpus / "a.md")


def onto_another_file(corpus: Path) -> None:
    (corpus / "guide/candle.md").replace(corpus / "guide/tea.md")


def in_a_circle(corpus: Path) -> None:
    (corpus / "guide/candle.md").rename(corpus / "kept")
    (corpus / "guide/tea.md").rename(corpus / "guide/candle.md")
    (corpus / "kept").rename(corpus / "guide/tea.md")


@pytest.mark.parametrize(
    ("rename", "prune", "expected"),  # files renamed, read again, removed; texts embedded
    [
        (to_another_kind, True, (0, 1, 1, 1)),
        (with_a_copy, False, (1, 1, 0, 0)),
        (onto_another_file, False, (1, 0, 0, 0)),
        (in_a_circle, False, (0, 2, 0, 0)),
    ],
)
def test_renames_that_are_more_than_a_name(
    box: Box,
    fresh: Box,
    corpus: Path,
    rename: Callable[[Path], None],
    prune: bool,
    expected: tuple[int, int, int, int],
) -> None:
    box.ingest()
    rename(corpus)
    summary = box.ingest(prune=prune)
    counts = (summary.renamed, summary.indexed, summary.removed, box.embedder.texts)
    assert (counts, summary.failed) == (expected, [])
    box.equals(fresh)


def test_a_moved_folder_with_a_copy_loses_nothing(box: Box, fresh: Box, corpus: Path) -> None:
    box.ingest()
    shutil.copyfile(corpus / "guide/candle.md", corpus / "a.md")
    moved = corpus.rename(corpus.with_name("moved"))
    fresh.corpus = box.corpus = moved
    assert box.ingest().failed == []
    box.equals(fresh)


def test_uploads_are_never_renames(box: Box, corpus: Path) -> None:
    path = write_files(corpus, {"first.md": FILES["guide/candle.md"]}) / "first.md"
    box.ingest(path, renames=False)
    second = path.rename(path.with_name("second.md"))
    summary = box.ingest(second, renames=False)
    assert (summary.renamed, summary.indexed) == (0, 1)
    names = ("first.md", "second.md", "collections", "files", "journal", "vectors", "sentences")
    assert len(canonical(box.data)) == len(names)


def test_a_changed_part_of_a_long_document_is_embedded_alone(box: Box, corpus: Path) -> None:
    parts = [f"## Part {n}\n\n" + f"Sentence {n} of many that are here. " * 40 for n in range(9)]
    path = corpus / "long.md"
    path.write_text("# Long\n\n" + "\n\n".join(parts))
    box.ingest()
    whole = box.embedder.texts
    path.write_text(path.read_text().replace("Sentence 4", "Phrase 4"))
    assert box.ingest().indexed == 1
    assert 0 < box.embedder.texts <= whole / 9


def test_a_file_that_is_put_back_while_it_was_half_written(
    box: Box, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fingerprint must not outlive the documents it was of."""
    box.ingest()
    before = canonical(box.data)
    path = corpus / "notes.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("walrus", "seal") * 1, encoding="utf-8")

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(faults_of_core, "watch", stop)
        box.ingest()
    path.write_text(text, encoding="utf-8")
    box.ingest()
    assert differences(canonical(box.data), before) == []
