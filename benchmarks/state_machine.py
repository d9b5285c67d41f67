"""A collection as a state machine beside a dict: whatever happens, both hold the same.

Files are added, changed, removed, renamed and copied; they are ingested with and without --prune,
documents are erased, indexes rebuilt, the store closed and opened, and ingests die at any stage.
An ingest dies by an exception at a fault point. Where it can be done without a race, the directory
is put back to what lay on the disk at that moment, so that nothing which ran later counts.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from benchmarks.ingest_corpus import InstantEmbedder
from core import faults
from core.auth import AuthContext
from core.faults import STAGES
from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from ingest.vectors import rebuild
from stores.store import Store
from stores.store import parts as store_parts

AUTH = AuthContext(tenant="acme")
NAMES = [f"{folder}{name}{suffix}" for folder in ("", "sub/") for name in ("one", "two", "three")
         for suffix in (".md", ".jsonl")]  # fmt: skip
TOKEN = re.compile(r"tok\d+")
Expected = dict[str, frozenset[str]]


class Killed(BaseException):
    """Stand for the end of the process."""


class Library(RuleBasedStateMachine):
    """Do anything to a collection; after each step it must hold what the dict holds."""

    def __init__(self) -> None:
        """Begin with an empty folder and an empty collection."""
        super().__init__()
        self._base = Path(tempfile.mkdtemp())
        self._corpus = self._base / "corpus"
        self._corpus.mkdir()
        self._embedder = InstantEmbedder()
        self._settings = Settings(
            data=self._base / "data",
            ingest_batch=3,
            vector_batch=4,
            chunk_size=100,
            chunk_overlap=0,
            segment_min_rows=6,
            min_free_mb=0,
        )
        self._last = 0
        self._indexed: dict[str, str] = {}  # text of each file as it was ingested, by name
        self._erased: set[str] = set()
        self._dirty = False  # an ingest died; only one that prunes says again what is there
        self._open()

    def _open(self) -> None:
        self._store = Store(self._settings, self._embedder.model_id, create=True)
        self._collection = self._store.intake.open_collection("acme", "main", None)

    def teardown(self) -> None:
        """Close and delete everything."""
        self._store.close()
        shutil.rmtree(self._base)

    def _files(self) -> dict[str, str]:
        found = {}
        for path in sorted(self._corpus.rglob("*.*")):
            found[path.relative_to(self._corpus).as_posix()] = path.read_text()
        return found

    def _text(self, name: str, size: int) -> str:
        """Make a text with words that no other has."""
        tokens = [f"tok{self._last + number}" for number in range(size)]
        self._last += size
        if name.endswith(".md"):
            parts = [f"## Part {token}\n\nThe heron of {token} fishes alone.\n" for token in tokens]
            return "# Herons\n\n" + "\n".join(parts)
        rows = [{"_id": f"id-{token}", "text": f"The owl of {token} hunts."} for token in tokens]
        return "".join(json.dumps(row) + "\n" for row in rows)

    def _write(self, name: str, text: str) -> None:
        path = self._corpus / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    @initialize()
    def begin(self) -> None:
        """Have one file, since an ingest of nothing is an error of its own."""
        self._write("first.md", self._text("first.md", 2))

    @rule(name=st.sampled_from(NAMES), size=st.integers(1, 5))
    def add_or_change(self, name: str, size: int) -> None:
        """Write a file, whether there is one of this name or not."""
        self._write(name, self._text(name, size))

    @rule(name=st.sampled_from(NAMES), draw=st.randoms(use_true_random=False))
    def change_a_part(self, name: str, draw: object) -> None:
        """Change one line of a file."""
        path = self._corpus / name
        if path.exists():
            tokens = TOKEN.findall(path.read_text())
            self._last += 1
            path.write_text(path.read_text().replace(tokens[-1], f"tok{self._last}"))

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._corpus / name).unlink(missing_ok=True)

    @rule(old=st.sampled_from(NAMES), new=st.sampled_from(NAMES))
    def rename(self, old: str, new: str) -> None:
        """Rename a file to a name of its kind that is free."""
        source, target = self._corpus / old, self._corpus / new
        if source.exists() and not target.exists() and source.suffix == target.suffix:
            target.parent.mkdir(exist_ok=True)
            source.rename(target)

    @rule(old=st.sampled_from(NAMES), new=st.sampled_from(NAMES))
    def copy(self, old: str, new: str) -> None:
        """Copy a text; records keep their ids, so they cannot be in two files."""
        source, target = self._corpus / old, self._corpus / new
        if source.exists() and not target.exists() and {source.suffix, target.suffix} == {".md"}:
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)

    @rule(prune=st.booleans())
    def ingest(self, prune: bool) -> None:
        """Ingest the folder."""
        prune = prune or self._dirty
        summary = self._run(prune=prune)
        assert not summary.failed, summary.failed
        self._expect(prune=prune)
        assert summary.documents == len(_documents(self._files()).keys() - self._erased)

    @rule(stage=st.sampled_from(STAGES), number=st.integers(1, 4), again=st.booleans())
    def die(self, stage: str, number: int, again: bool) -> None:
        """Let an ingest die at a stage; run it again at once, or go on with what it left."""
        died = self._died(stage, number)
        if again and not self._dirty:
            self._run(prune=False)
            self._expect(prune=False)
        elif died:
            self._dirty = True
        else:
            self._expect(prune=self._dirty)

    @rule(stage=st.sampled_from(STAGES))
    def die_in_a_rebuild(self, stage: str) -> None:
        """Let a rebuild die and make it again."""
        self._dying(stage, 1, self._rebuild)
        self._rebuild()

    @rule()
    def restart(self) -> None:
        """Close the store and open it again."""
        self._store.close()
        self._open()

    @rule()
    def make_indexes_anew(self) -> None:
        """Rebuild all that is derived."""
        self._rebuild()

    @precondition(lambda self: not self._dirty and self._expected())
    @rule(draw=st.randoms(use_true_random=False))
    def erase(self, draw: object) -> None:
        """Erase one document; the next ingest of a changed file may bring it again."""
        name = draw.choice(sorted(self._expected()))  # type: ignore[attr-defined]
        assert self._store.maintenance.erase(AUTH, self._collection, name)
        self._store.maintenance.tidy()  # which drops a collection that is empty now
        self._collection = self._store.intake.open_collection("acme", "main", None)
        self._erased.add(name)

    @invariant()
    def all_indexes_hold_the_same(self) -> None:
        """Compare the truth with the dict, and full text and the index with the truth."""
        rows = self._rows()
        keys = [row["chunk_id"] for row in rows]
        assert len(set(keys)) == len(keys)
        assert len({(row["document_id"], row["ordinal"]) for row in rows}) == len(rows)
        fts = f"SELECT rowid FROM fts_{self._collection.id}"
        indexed = [row[0] for row in store_parts(self._store).database.read().execute(fts)]
        assert sorted(indexed) == sorted(row["id"] for row in rows)
        if self._dirty:
            return
        truth: dict[str, set[str]] = {}
        for row in rows:
            truth.setdefault(row["document_id"], set()).update(TOKEN.findall(row["text"]))
        assert truth == self._expected()
        assert self._store.search.problems([self._collection]) == []
        stored = self._store.search.vectors(self._collection.id, keys)
        for row, vector in zip(rows, stored, strict=True):
            assert (np.frombuffer(row["vector"], dtype="<f4") == vector).all()

    @precondition(lambda self: not self._dirty and self._expected())
    @rule(draw=st.randoms(use_true_random=False))
    def query(self, draw: object) -> None:
        """Find a document by its own words, and by its own vector."""
        rows = self._rows()
        row = draw.choice(rows)  # type: ignore[attr-defined]
        for token in TOKEN.findall(row["text"]):
            found = self._store.search.candidates(
                AUTH, self._collection.id, terms=[{token}], vector=None, pool=5
            )
            assert row["chunk_id"] in found.chunk_ids
        vector = np.frombuffer(row["vector"], dtype="<f4")
        same = {one["chunk_id"] for one in rows if one["vector"] == row["vector"]}
        best = self._store.search.candidates(
            AUTH, self._collection.id, terms=[], vector=vector, pool=len(same)
        )
        assert set(best.chunk_ids) & same
        assert best.cosine is not None and best.cosine.max() > 0.999

    def _rows(self) -> list[dict[str, object]]:
        query = """SELECT c.id, c.chunk_id, c.document, c.ordinal, c.text, d.document_id, e.vector
                   FROM chunks c JOIN documents d ON d.id = c.document
                   LEFT JOIN embeddings e ON e.content_hash = c.content_hash"""
        return [dict(row) for row in store_parts(self._store).database.read().execute(query)]

    def _expected(self) -> Expected:
        found = _documents(self._indexed)
        return {name: tokens for name, tokens in found.items() if name not in self._erased}

    def _expect(self, *, prune: bool) -> None:
        """Do to the dict what an ingest does to the collection."""
        files = self._files()
        if prune:
            kept: dict[str, str] = {}
        else:
            kept = {name: text for name, text in self._indexed.items() if name not in files}
            for name, text in files.items():
                if self._indexed.get(name) != text:  # of a rename the old name goes
                    suffix = Path(name).suffix
                    for old in sorted(kept):
                        if kept[old] == text and Path(old).suffix == suffix:
                            del kept[old]
                            break
        # Erased documents stay away until their file changes or is named again.
        before = self._indexed
        self._indexed = {**kept, **files}
        unchanged = {name for name in self._indexed if before.get(name) == self._indexed[name]}
        partly = _documents({name: self._indexed[name] for name in unchanged})
        whole = {
            name for name in unchanged if set(_documents({name: before[name]})) <= self._erased
        }
        back = set(_documents({name: before[name] for name in whole if name in files}))
        self._erased = {name for name in self._erased if name in partly} - back
        self._dirty = False

    def _run(self, *, prune: bool) -> Summary:
        pipeline = Pipeline(self._store, self._embedder, self._settings, self._collection)
        return pipeline.run([self._corpus], prune=prune)

    def _rebuild(self) -> None:
        rebuild(self._store, self._embedder, self._settings, lambda stage, done, total: None)

    def _died(self, stage: str, number: int) -> bool:
        return self._dying(stage, number, lambda: self._run(prune=self._dirty))

    def _dying(self, stage: str, number: int, work: object) -> bool:
        """Run something that dies when a stage is reached so often; return whether it did."""
        left, snapshot = number, self._base / "snapshot"

        def watch(reached: str) -> None:
            nonlocal left
            left -= reached == stage
            if left or reached != stage:
                return
            if threading.current_thread() is threading.main_thread():
                with store_parts(self._store).database._write_lock:
                    shutil.copytree(self._store.folder, snapshot)
            raise Killed

        faults.watch = watch
        try:
            with suppress(Killed):
                work()  # type: ignore[operator]
        finally:
            faults.watch = None
        if left > 0:
            return False
        self._store.close()
        if snapshot.exists():
            shutil.rmtree(self._store.folder)
            snapshot.rename(self._store.folder)
        self._open()
        return True


def _documents(files: dict[str, str]) -> Expected:
    found: Expected = {}
    for name, text in files.items():
        if name.endswith(".md"):
            found[name] = frozenset(TOKEN.findall(text))
        else:
            found |= {
                f"id-{token}": frozenset({token}) for token in re.findall(r"of (tok\d+)", text)
            }
    return found
