"""Whatever is added, changed, deleted, rebuilt or cut off: a search equals a scan of the truth.

The oracle reads the truth with plain SQL, embeds nothing, and ranks in Python.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import behind
import numpy as np
import pytest
from fakes import FakeEmbedder, document, remove, write
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.auth import AuthContext
from core.language.analysis import terms
from core.settings import Settings
from stores.segments import build, view, views
from stores.segments.types import Candidates
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

WORDS = ["harbour", "tide", "crane", "pilot", "rope", "anchor"]
ROLES = ["boss", "clerk"]
SOURCES = ["a.md", "b.md", "docs/c.md"]
EMBEDDER = FakeEmbedder()
SHARE = 0.8
LOW = {"segment_min_rows": 4, "segment_rebuild_min_rows": 1}


@pytest.fixture(autouse=True)
def _many_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_NEW_SHARE", SHARE)


@dataclass
class Truth:
    """What is in the catalogue, read row by row."""

    ids: list[int]
    chunk_ids: list[str]
    documents: list[int]
    words: list[Counter[str]]
    vectors: dict[str, np.ndarray]


def read_truth(store: Store, collection: Collection) -> Truth:
    name = f"fts_{collection.id}"
    rows = behind.rows(
        store,
        f"""SELECT c.id, c.chunk_id, c.document, f.title, f.keywords, f.section, f.body, e.vector
            FROM chunks c JOIN {name} f ON f.rowid = c.id
            LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
            WHERE c.collection_id = ? ORDER BY c.id""",
        parts(store).model_id,
        collection.id,
    )
    weights = (3, 2, 2, 1)
    words = [
        Counter(
            term for text, w in zip(row[3:7], weights, strict=True) for term in text.split() * w
        )
        for row in rows
    ]
    vectors = {row[1]: np.frombuffer(row[7], "<f4") for row in rows if row[7] is not None}
    return Truth([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], words, vectors)


@dataclass
class Statistics:
    """The rows that BM25 counts: those of the segment, or all of them while there is none."""

    rows: int
    mean: float
    frequency: Counter[str]
    high: int

    @classmethod
    def of(cls, truth: Truth) -> Statistics:
        frequency = Counter(term for row in truth.words for term in row)
        lengths = [sum(row.values()) for row in truth.words]
        return cls(
            len(lengths), sum(lengths) / max(1, len(lengths)), frequency, max(truth.ids, default=0)
        )

    def score(self, row: Counter[str], query: set[str]) -> float:
        total = 0.0
        for term in query & set(row):
            n = self.frequency[term]
            idf = math.log(1 + (self.rows - n + 0.5) / (n + 0.5))
            norm = 1.5 * (0.25 + 0.75 * sum(row.values()) / self.mean)
            total += idf * row[term] / (row[term] + norm)
        return total


def check(
    store: Store,
    collection: Collection,
    counted: Statistics | None,
    auth: AuthContext,
    query: str,
    pool: int,
    sources: tuple[str, ...] = (),
) -> Candidates:
    """Compare a search with the scan of the truth; return it."""
    truth = read_truth(store, collection)
    asked = {term for term in terms(query, "en")}
    vector = EMBEDDER.embed_query(query)
    seen = store.catalogue.visible_documents(auth, collection.id, sources)
    found = store.search.candidates(
        auth, collection.id, terms=[{t} for t in asked], vector=vector, pool=pool, sources=sources
    )
    if is_fulltext(truth, counted):
        assert found.source == "index"
        assert "full text answers" in found.notes[0]
        scored = fulltext_scores(store, collection, asked)
    else:
        assert found.source == "segment"
        assert found.notes == ()
        statistics = counted or Statistics.of(truth)
        scores = [statistics.score(row, asked) for row in truth.words]
        scored = dict(zip(truth.ids, scores, strict=True))
    words, cosines = {}, {}
    for row, key, owner in zip(truth.ids, truth.chunk_ids, truth.documents, strict=True):
        if owner in seen:
            words[key] = scored.get(row, 0.0)
            if key in truth.vectors:
                cosines[key] = float(truth.vectors[key].astype(float) @ vector.astype(float))
    compare(found, words, cosines, pool)
    return found


def is_fulltext(truth: Truth, counted: Statistics | None) -> bool:
    """Tell whether there are too many rows that no segment has."""
    most = LOW["segment_min_rows"]
    if counted is not None:
        most = max(most, int(SHARE * counted.rows))
    return sum(row > (counted.high if counted else 0) for row in truth.ids) >= most


def fulltext_scores(store: Store, collection: Collection, asked: set[str]) -> dict[int, float]:
    name = f"fts_{collection.id}"
    query = f"SELECT rowid, -bm25({name}, 3, 2, 2, 1) FROM {name} WHERE {name} MATCH ?"
    return dict(behind.rows(store, query, " OR ".join(f'"{term}"' for term in sorted(asked))))


def compare(found: Candidates, words: dict, cosines: dict, pool: int) -> None:
    assert found.visible == len(words)
    assert len(set(found.chunk_ids)) == len(found.chunk_ids)
    assert set(found.chunk_ids) <= set(words)
    assert found.best_bm25 == pytest.approx(max(words.values(), default=0.0), rel=1e-5)
    if cosines:
        assert found.mean == pytest.approx(np.mean(list(cosines.values())), abs=1e-6)
        assert found.deviation == pytest.approx(np.std(list(cosines.values())), abs=1e-5)
    for key, bm25, cosine in zip(found.chunk_ids, found.bm25, found.cosine, strict=True):
        assert bm25 == pytest.approx(words[key], rel=1e-5, abs=1e-7)
        assert cosine == pytest.approx(cosines.get(key, math.nan), abs=1e-6, nan_ok=True)
    expected = best(words, pool, 0.0) | best(cosines, pool, -9.0)
    assert set(found.chunk_ids) == expected


def best(scores: dict[str, float], pool: int, above: float) -> set[str]:
    """Take the best; what only rounding tells apart is in the order of ingest."""
    ranked = sorted(scores, key=lambda key: -float(f"{scores[key]:.6g}"))
    return {key for key in ranked[:pool] if scores[key] > above}


operations = st.one_of(
    st.tuples(
        st.just("write"),
        st.lists(
            st.tuples(
                st.integers(0, 7),
                st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), max_size=3),
                st.sampled_from([(), ("boss",), ("clerk",)]),
                st.sampled_from(SOURCES),
            ),
            min_size=1,
            max_size=4,
        ),
    ),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 7), min_size=1, max_size=3)),
    st.tuples(st.just("refresh"), st.none()),
    st.tuples(st.just("crash"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(
        st.just("ask"),
        st.tuples(
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
            st.sets(st.sampled_from(ROLES)),
            st.sampled_from([None, ("a.md",), ("docs/*", "b.md"), ()]),
            st.sampled_from([(), ("docs/*",)]),
            st.integers(1, 6),
        ),
    ),
)


@dataclass
class World:
    """A store that is worked on, with what BM25 counts in it."""

    folder: Path
    values: dict
    store: Store = field(init=False)
    collection: Collection = field(init=False)
    counted: Statistics | None = None

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        values = {"data": self.folder, **self.values}
        self.store = Store(Settings(**values), EMBEDDER.model_id, create=True)
        self.collection = self.store.intake.open_collection("acme", "main", None)

    def write(self, rows: list) -> None:
        built = [
            document(self.collection, f"d{n}", *(" ".join(t) for t in texts), acl=acl, source=src)
            for n, texts, acl, src in {row[0]: row for row in rows}.values()
        ]
        write(self.store, self.collection, built, EMBEDDER)

    def remove(self, numbers: list[int]) -> None:
        remove(self.store, self.collection, [f"d{n}" for n in numbers])

    def refresh(self, _: None) -> None:
        if self.store.search.refresh(self.collection):
            truth = read_truth(self.store, self.collection)
            self.counted = Statistics.of(truth)
        assert self.store.search.problems([self.collection]) == []
        self.notice_removed()

    def notice_removed(self) -> None:
        """A collection that is too small has no segment."""
        if not behind.count(self.store, "segments"):
            self.counted = None

    def crash(self, _: None) -> None:
        """Stop a build when all is written but not yet published."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build.files, "write_manifest", stop)
            patch.setattr(build.Builder, "_clear", lambda *_: None)
            with pytest.raises(KeyboardInterrupt):
                self.store.search.rebuild(self.collection)
                raise KeyboardInterrupt  # too small for a segment
        self.notice_removed()

    def reopen(self, _: None) -> None:
        self.store.close()
        self.open()

    def ask(self, asked: tuple) -> None:
        words, roles, allowed, sources, pool = asked
        auth = AuthContext(tenant="acme", roles=frozenset(roles), allowed_sources=allowed)
        args = (auth, " ".join(words), pool, sources)
        check(self.store, self.collection, self.counted, *args)


def stop(*_: object) -> None:
    raise KeyboardInterrupt


@given(st.lists(operations, max_size=14), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_a_search_equals_a_scan_of_the_truth(steps: list, random: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(view, "MASKS", 2):
        world = World(Path(folder), LOW)
        try:
            for name, argument in steps:
                getattr(world, name)(argument)
                for roles in ([], ["boss"]):
                    world.ask((random.sample(WORDS, 2), roles, None, (), 3))
        finally:
            world.store.close()
