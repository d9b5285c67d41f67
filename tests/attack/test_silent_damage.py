"""Damage below the file system, or under a running process, is not used without a word.

"Rot" keeps a file's size and times: the seal's stamps are set to the file as it is, with the sum
that it had before. What is changed is said by answers, by the condition that `/health` shows, or
has been rebuilt by the next self-check.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
from fakes import FakeEmbedder, document, write
from harbour import LOW

from core.auth import AuthContext
from stores.integrity.checks import LACKING as FULL_TEXT
from stores.integrity.checkup import MENDED
from stores.integrity.file_manifest import NAME, _packed, _stamps, _unpacked
from stores.segments.views import FALLBACK
from stores.sqlite.catalogue import Collection
from stores.sqlite.records import Condition, RecordScope
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
LEE = AuthContext(tenant="acme", user="lee", roles=frozenset({"legal"}))
Opener = Callable[..., Store]
ARRAYS = ("vectors", "sentence_norms", "sentences", "postings_rows", "postings_scores", "terms")
FLIPS = int(os.environ.get("SILENT_FLIPS", "8"))
ROWS = 120


@pytest.fixture
def folder(open_store: Opener, embedder: FakeEmbedder) -> Path:
    """Hold documents in a segment, some for one role alone, closed."""
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [
        document(
            collection,
            f"d{n:03}",
            f"harbour tide{n} crane{n % 7} rope{n % 11}",
            title=f"Title {n}",
            acl=["legal"] if n % 10 == 0 else [],
            fields={"number": float(n)} if n % 5 == 0 else None,
        )
        for n in range(ROWS)
    ]
    write(store, collection, rows, embedder)
    hashes = [chunk.content_hash for row in rows for chunk in row.chunks]
    sentences = {
        key: np.stack([embedder.embed_query(f"sentence {key} {n}") for n in range(3)])
        for key in hashes
    }
    store.intake.store_vectors(embedder.model_id, {}, sentences)
    store.search.refresh(collection)
    store.close()
    return store.folder


def collection_of(store: Store) -> Collection:
    return store.catalogue.collection("acme", "main")


def ranked(store: Store) -> list[list[tuple[str, float, float, float]]]:
    """Ask twelve searches and return what each found, with every score."""
    results = []
    for number in range(12):
        words = f"tide{9 * number} crane{number % 7} harbour"
        vector = FakeEmbedder().embed_query(words)
        terms = [{word} for word in words.split()]
        found = store.search.candidates(ANN, 1, terms=terms, vector=vector, pool=10)
        assert found.cosine is not None
        scores = zip(
            found.chunk_ids,
            found.bm25.tolist(),
            found.cosine.tolist(),
            found.sentence.tolist(),
            strict=True,
        )
        results.append([(key, *map(lambda one: round(one, 5), values)) for key, *values in scores])
    return results


def flip(path: Path, bits: int, seed: int) -> None:
    """Flip bits in place, as a disk does it under an open file."""
    draw = random.Random(seed)
    with path.open("r+b") as file:
        size = path.stat().st_size
        for _ in range(bits):
            place = draw.randrange(size)
            file.seek(place)
            [value] = file.read(1)
            file.seek(place)
            file.write(bytes([value ^ 1 << draw.randrange(8)]))


def restamped(folder: Path) -> None:
    """Make the seal of a closed directory fit files whose bytes have rotted."""
    kept, left_out = _unpacked(folder / NAME)
    assert kept is not None
    now = dict(_stamps(folder))
    stamps = {
        name: type(one)(now[name].size, now[name].modified, now[name].entry, one.crc)
        for name, one in kept.items()
    }
    (folder / NAME).write_bytes(_packed(stamps, left_out))


def segment(folder: Path) -> Path:
    [found] = (folder / "segments" / "1").iterdir()
    return found


@pytest.mark.parametrize("name", ARRAYS)
def test_a_rotten_segment_is_made_anew_by_the_next_self_check(
    folder: Path, open_store: Opener, name: str
) -> None:
    store = open_store(**LOW)
    expected = ranked(store)
    before = store.catalogue.index_version()
    flip(segment(folder) / name, 64, seed=1)
    store.maintenance.check_again()
    assert ranked(store) == expected
    assert MENDED in store.warnings()
    assert store.catalogue.index_version() > before  # what was remembered is forgotten
    store.maintenance.check_again()
    assert store.warnings() == []


@pytest.mark.parametrize("seed", range(FLIPS))
def test_rot_in_a_segment_is_told_by_the_first_answer(
    folder: Path, open_store: Opener, seed: int
) -> None:
    store = open_store(**LOW)
    expected = ranked(store)
    store.close()
    files = sorted(path for path in segment(folder).iterdir() if path.stat().st_size)
    flip(files[(5 * seed) % len(files)], 1, seed)
    restamped(folder)
    store = open_store(**LOW)
    assert parts(store).sealed.state == "equal"
    told = store.warnings() + store.maintenance.repaired
    assert ranked(store) == expected or told
    assert FALLBACK in store.warnings() or told
    store.maintenance.check_again()
    store.maintenance.check_again()
    assert ranked(store) == expected
    assert store.warnings() == []


OTHER_WORDS = "UPDATE fts_1_content SET c3 = 'other' WHERE id = 8"
CHANGES = {
    "title": "UPDATE documents SET title = 'Another' WHERE document_id = 'd003'",
    "is_open": "UPDATE documents SET is_open = 1 WHERE document_id = 'd020'",
    "principal": "UPDATE document_acl SET principal = 'user:ann' WHERE document ="
    " (SELECT id FROM documents WHERE document_id = 'd020')",
    "field": "UPDATE record_fields SET number = 5 WHERE document ="
    " (SELECT id FROM documents WHERE document_id = 'd015')",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_without_its_sum_is_in_no_list_and_no_total(
    folder: Path, open_store: Opener, change: str
) -> None:
    store = open_store(**LOW)
    expected = listed(store)
    store.close()
    commands.change(folder, CHANGES[change])
    restamped(folder)
    store = open_store(**LOW)
    assert parts(store).sealed.state == "equal"
    now = listed(store)
    assert now["documents"].items() <= expected["documents"].items()
    assert now["count"] == len(now["documents"])
    assert set(now["records"]) <= set(expected["records"])
    assert now["total"] == len(now["records"])
    assert any("left out" in one for one in store.warnings())
    store.maintenance.check_again()
    assert any("1 documents are damaged" in one for one in store.warnings())
    assert listed(store) == now


def listed(store: Store) -> dict[str, Any]:
    """Return all that lists and record queries show to somebody without a role."""
    listing, collection = store.catalogue, collection_of(store)
    documents = listing.list_documents(ANN, collection, after="", limit=500)
    where = [Condition(field="number", op=">=", value=0)]
    rows, total = store.catalogue.find_records(
        RecordScope(ANN, 1), where, order_by=None, descending=False, limit=500
    )
    assert listing.describe_document(ANN, collection, "d020") is None
    fields = store.catalogue.fields_of_records(ANN, 1)
    assert all("20" not in field.examples for field in fields)
    return {
        "documents": {one["document_id"]: one["title"] for one in documents},
        "count": listing.count_documents(ANN, collection),
        "records": rows,
        "total": total,
    }


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET text = 'harbour tide7 crame0 rope7' WHERE id = 8",
        "UPDATE embeddings SET vector = zeroblob(128) WHERE content_hash ="
        " (SELECT min(content_hash) FROM embeddings)",
        "UPDATE collections SET profile = '{}'",
    ],
)
def test_rows_that_rot_under_an_open_store_are_counted(
    folder: Path, open_store: Opener, damage: str
) -> None:
    store = open_store(**LOW)
    ranked(store)
    commands.change(folder, damage)
    assert store.warnings() == []
    store.maintenance.check_again()
    assert any("damaged" in one for one in store.warnings())


def test_pages_that_rot_under_an_open_store_stop_writing(folder: Path, open_store: Opener) -> None:
    store = open_store(**LOW)
    ranked(store)
    [(page,)] = commands.query(folder, "SELECT rootpage FROM sqlite_schema WHERE name = 'chunks'")
    parts(store).database.checkpoint()
    with (folder / "catalogue.sqlite3").open("r+b") as file:
        file.seek(4096 * (page - 1))
        file.write(bytes(4096))
    problems = store.maintenance.check_again()
    assert any("damaged" in one for one in problems)
    assert any("catalogue is damaged" in one for one in store.warnings())


def test_full_text_that_rots_under_an_open_store_is_made_anew(
    folder: Path, open_store: Opener
) -> None:
    store = open_store(**LOW)
    commands.change(folder, OTHER_WORDS)
    store.maintenance.check_again()
    assert MENDED in store.warnings()
    parts(store).database.condition.lost = "for this test"
    commands.change(folder, OTHER_WORDS)
    store.maintenance.check_again()
    assert FULL_TEXT in store.warnings()  # where nothing may be written
