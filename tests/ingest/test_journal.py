"""Kill at every named stage once; documents leave the journal when they have been read back."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from behind import change as alter
from behind import count, rows
from commands import ROOT, write_files
from fakes import FakeEmbedder, Shelf

from benchmarks.truth import canonical, differences, faults
from core.faults import STAGES, VARIABLE, fault
from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from ingest.vectors import recover
from stores.sqlite.files import JournalEntry
from stores.store import Store

VALUES = {"ingest_batch": 2, "vector_batch": 3, "segment_min_rows": 5, "chunk_size": 200,
          "chunk_overlap": 20}  # fmt: skip
INGEST = """
import os, sys
from pathlib import Path
sys.path.insert(0, "tests")
from fakes import FakeEmbedder
from core.settings import Settings
from ingest import pipeline, vectors
from stores.store import Store

data, corpus, values = Path(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3])
settings = Settings(data=data, **values)
for stage in sys.argv[4:]:
    if os.fork():
        os.wait()
        continue
    os.environ["CARREL_FAULT_AT"] = stage
    with Store(settings, "fake", create=True) as opened:
        collection = opened.intake.open_collection("acme", "main", None)
        pipeline.Pipeline(opened, FakeEmbedder(), settings, collection).run([corpus], prune=True)
        if stage.startswith("rebuild"):
            vectors.rebuild(opened, FakeEmbedder(), settings, lambda *_: None)
    os._exit(0)
"""


@pytest.fixture
def corpus(corpus: Path) -> Path:
    more = {f"more/{n}.md": f"# Page {n}\n\nThe text of page {n}.\n" for n in range(9)}
    return write_files(corpus, more)


Ingest = Callable[..., Summary]


@pytest.fixture
def ingest(open_store: Callable[..., Store], embedder: FakeEmbedder, corpus: Path) -> Ingest:
    def run(data: Path, **options: object) -> Summary:
        with open_store(data=data, **VALUES) as store:
            target = store.intake.open_collection("acme", "main", None)
            pipeline = Pipeline(store, embedder, Settings(data=data, **VALUES), target)
            return pipeline.run([corpus], **{"prune": True, **options})  # type: ignore[arg-type]

    return run


def kill_at(data: Path, corpus: Path, *stages: str) -> None:
    """Run one ingest after the other, each in a process that dies at a stage."""
    subprocess.run(
        [sys.executable, "-c", INGEST, str(data), str(corpus), repr(VALUES), *stages],
        cwd=ROOT,
        check=True,
        timeout=900,
    )


def change(corpus: Path) -> None:
    """Change, remove, rename and add."""
    (corpus / "more/0.md").write_text("# Page 0\n\nThe text of page 0 is another one.\n")
    (corpus / "more/1.md").unlink()
    (corpus / "more/2.md").rename(corpus / "more/renamed.md")
    (corpus / "more/added.md").write_text("# Added\n\nThis page is new.\n")


@pytest.mark.parametrize("changed", [False, True])
def test_killed_at_every_stage(ingest: Ingest, corpus: Path, tmp_path: Path, changed: bool) -> None:
    data, whole = tmp_path / "killed", tmp_path / "whole"
    if changed:
        ingest(data)
        change(corpus)
    kill_at(data, corpus, *(f"{stage}:1" for stage in random.Random(7).sample(STAGES, len(STAGES))))
    assert faults(data, "fake") == []
    ingest(data)
    ingest(whole)
    assert faults(data, "fake") == []
    assert differences(canonical(data), canonical(whole)) == []


@pytest.mark.parametrize("stage", ["parsed.after", "embedded.after", "indexed.after"])
def test_a_kill_leaves_the_stage_in_the_journal(
    open_store: Callable[..., Store], corpus: Path, tmp_path: Path, stage: str
) -> None:
    data = tmp_path / "killed"
    kill_at(data, corpus, f"{stage}:2")
    with open_store(data=data, **VALUES) as store:
        found = store.intake.pending_documents()
    assert stage.split(".")[0] in {row["stage"] for row in found}
    assert all((row["tenant"], row["collection"]) == ("acme", "main") for row in found)
    assert faults(data, "fake") == []


def test_what_an_interrupted_run_left_is_told_until_it_is_in(
    ingest: Ingest, open_store: Callable[..., Store], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    ingest(data)
    with open_store(data=data, **VALUES) as store:
        store.intake.reach_stage(1, "embedded", [JournalEntry("gone/1.md", "gone/1.md", 2)])
    (note,) = ingest(data, prune=False).notes
    assert "1 documents" in note and "are not in yet, the first of 'gone/1.md'" in note
    assert ingest(data, prune=True).notes == []
    assert faults(data, "fake") == []


def test_fault_points_are_silent_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in STAGES:
        fault(stage)
    code = "from core.faults import fault\nfor _ in range(3): print(fault('sweep.after'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={VARIABLE: "sweep.after:2"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


WRITTEN = (
    "SELECT d.document_id, d.file, count(*) FROM documents d"
    " JOIN chunks c ON c.document = d.id GROUP BY d.id"
)
LOSSES = {
    "chunks": "DELETE FROM chunks WHERE ordinal = 0",
    "full-text": "DELETE FROM fts_1",
    "current model": "DELETE FROM embeddings",
}


@pytest.mark.parametrize("what", LOSSES)
def test_what_cannot_be_read_back_is_named(
    ingest: Ingest, open_store: Callable[..., Store], tmp_path: Path, what: str
) -> None:
    data = tmp_path / "data"
    ingest(data)
    with open_store(data=data, **VALUES) as store:
        entries = [JournalEntry(*row) for row in rows(store, WRITTEN)]
        store.intake.reach_stage(1, "indexed", entries)
        names = [entry.document_id for entry in entries]
        assert store.maintenance.missing(1, names) == {}
        alter(store, LOSSES[what])
        problems = store.maintenance.missing(1, names)
        assert set(problems) == set(names)
        assert all(what in reason for reason in problems.values())


def test_what_was_lost_is_repaired_by_the_next_run(
    ingest: Ingest, open_store: Callable[..., Store], embedder: FakeEmbedder, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    ingest(data)
    before = canonical(data)
    with open_store(data=data, **VALUES) as store:
        written = rows(store, WRITTEN)
        store.intake.reach_stage(1, "indexed", [JournalEntry("more/3.md", "more/3.md", 1)])
        alter(store, "DELETE FROM fts_1", "DELETE FROM embeddings")
        store.intake.reach_stage(1, "indexed", [JournalEntry(*row) for row in written])
        assert recover(store, embedder, 2) == len(written)
        assert store.intake.pending_documents() == []
    assert differences(canonical(data), before) == []


def test_only_vectors_without_a_text_are_swept(shelf: Shelf, corpus: Path) -> None:
    Pipeline(shelf.store, shelf.embedder, Settings(data=shelf.store.folder), shelf.collection).run(
        [corpus]
    )
    before = count(shelf.store, "embeddings")
    shelf.intake.store_vectors("fake", {"nobody's": shelf.embedder.embed_query("x")})
    assert shelf.intake.sweep_vectors() == 0  # nothing was said to be there
    alter(shelf.store, "UPDATE meta SET value = '1' WHERE key = 'unswept'")
    assert shelf.intake.sweep_vectors() == 1
    assert count(shelf.store, "embeddings") == before
