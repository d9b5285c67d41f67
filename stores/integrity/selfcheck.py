"""Self-check: sampled chunks must be found by their own vector and by their own rarest words.

It asks through the same search that answers questions, so whatever keeps that from finding what is
there keeps the sample from being found.
"""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.auth import AuthContext
from core.budget import TimeLimit, TimeUpError, limited_time
from core.errors import CarrelError, shorten
from core.language.analysis import terms
from stores.integrity.checks import Check, Defect, readable_collections
from stores.segments.rows import vectors_by_row
from stores.segments.search import SegmentSearch
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.fulltext import rebuild_fulltext
from stores.sqlite.permissions import IS_ROW
from stores.sqlite.sums import SOUND_CHUNK, compared_once

SAMPLE = 8  # chunks of a collection that each self-check searches for; chosen, not measured
RAREST_WORDS = 4  # of a sampled chunk, which must find it; chosen, not measured

# The chunks of a collection that are next to given row ids.
_PLACES = """SELECT (SELECT id FROM chunks
    WHERE collection_id = :collection AND id >= CAST(one.value AS INTEGER)
    ORDER BY id LIMIT 1) FROM json_each(:places) one"""
POOL = 10  # passages of which a vector must find its own; chosen, not measured
SAME = 0.999  # the cosine of a vector with itself is nearer to 1 as float32; chosen, not measured
MOST = 200  # a word in more chunks than this finds too many to prove anything; chosen, not measured
USER = "user:"


@dataclass(frozen=True)
class Sampled:
    """Hold one chunk with what must find it."""

    row: int
    chunk_id: str
    auth: AuthContext
    words: list[str]
    vector: bytes | None


class SampleCheck(Check):
    """What a sample of searches does not find; vectors do not answer while it is so."""

    until = math.inf  # when no more is asked for
    left: Sequence[str] = ()  # what was not found, also not by a rebuilt index

    def check(self) -> list[Defect]:
        """Ask every collection for a sample."""
        found = ((one, self._missed(one)) for one in readable_collections(self._parts))
        return [self._defect(one, why) for one, why in found if why]

    def repair(self, defect: Defect) -> str:
        """Rebuild everything derived of a collection from the catalogue."""
        one = defect.collection
        assert one is not None
        rebuild_fulltext(self._parts.database, one.id)
        self._parts.search.rebuild(one)
        return f"the indexes of '{one.name}' were rebuilt ({defect.why})"

    def settle(self) -> list[str]:
        """Rebuild what was not found and ask again; what is left stays in `left`."""
        condition, done, left = self._parts.database.condition, [], []
        found = self.check()
        condition.clear("sample ")
        for defect in found:
            one, failed = defect.collection, f"repair {defect.name}"
            assert one is not None
            condition.distrusted = f"the indexes are being rebuilt ({defect.why})"
            if not condition.read_only:
                try:
                    done.append(self.repair(defect))
                    condition.clear(failed)
                except (sqlite3.DatabaseError, CarrelError) as error:
                    condition.report(failed, f"a repair failed: {error}")
            if why := self._missed(one):
                left.append(self._defect(one, why))
                condition.report(defect.name, left[-1].warning)
        self.left = [line for one in left for line in one.lines]
        condition.distrusted = left[0].why if left else ""
        return done

    def _missed(self, collection: Collection) -> str:
        store = self._parts
        with limited_time(TimeLimit(self.until)):
            return self_check(store.database, store.search, collection, store.model_id)

    def _defect(self, one: Collection, why: str) -> Defect:
        line = f"'{one.name}' of '{one.tenant}': {why}"
        warning = f"a self-check failed: {why}; run `carrel doctor`"
        return Defect(why, (line,), f"sample {one.id}: ", warning, one)


def self_check(
    database: Database, segments: SegmentSearch, collection: Collection, model: str
) -> str:
    """Ask for a random sample of a collection's chunks, as far as the caller's time goes.

    Return in words what is wrong, "" for nothing.
    """
    asked = vectors = words = 0
    try:
        for one in _sample(database.read(), collection, model):
            if one.vector is not None:
                vector = np.frombuffer(one.vector, dtype="<f4")
                vectors += not _by_vector(segments, collection.id, one, vector)
            if one.words:
                words += not _by_words(database.read(), segments, collection.id, one)
            asked += 1
    except TimeUpError:
        pass  # what was asked until then counts
    except (sqlite3.DatabaseError, CarrelError, ValueError, IndexError) as error:
        return f"its search failed ({shorten(str(error))})"
    for missed, what in ((vectors, "vector"), (words, "words")):
        if missed:
            return f"{missed} of {asked} of its passages are not found by their {what}"
    return ""


def _by_vector(
    segments: SegmentSearch,
    collection_id: int,
    one: Sampled,
    vector: Any,  # noqa: ANN401 - a numpy array
) -> bool:
    found = segments.candidates(one.auth, collection_id, terms=[], vector=vector, pool=POOL)
    if one.chunk_id in found.chunk_ids:
        own = found.cosine[found.chunk_ids.index(one.chunk_id)] if found.cosine is not None else 0
        return bool(own >= SAME)
    # Of passages that say the same only one is shown.
    return found.cosine is not None and bool((found.cosine >= SAME).any())


def _by_words(
    connection: sqlite3.Connection, segments: SegmentSearch, collection_id: int, one: Sampled
) -> bool:
    shares = segments.idf(collection_id, one.words)
    rare = sorted(one.words, key=lambda word: (-shares[word], word))[:RAREST_WORDS]
    found = segments.candidates(
        one.auth, collection_id, terms=[{word} for word in rare], vector=None, pool=MOST
    )
    if one.chunk_id in found.chunk_ids or len(found.chunk_ids) >= MOST:
        return True
    same = connection.execute(  # of passages that say the same only one is shown
        """SELECT 1 FROM json_each(?) given JOIN chunks c ON c.chunk_id = given.value
           WHERE c.text = (SELECT text FROM chunks WHERE id = ?)""",
        (json.dumps(found.chunk_ids), one.row),
    )
    return same.fetchone() is not None


def _sample(connection: sqlite3.Connection, collection: Collection, model: str) -> list[Sampled]:
    low, high = connection.execute(
        "SELECT min(id), max(id) FROM chunks WHERE collection_id = ?", (collection.id,)
    ).fetchone()
    if low is None:
        return []
    places = [random.randint(low, high) for _ in range(SAMPLE)]
    rows = connection.execute(
        f"""{compared_once(f"d.id IN (SELECT document FROM chunks WHERE id IN ({_PLACES}))")}
            SELECT c.id, c.chunk_id, c.text, d.language, d.version, d.id AS document
            FROM chunks c CROSS JOIN d ON d.id = c.document
            WHERE c.id IN ({_PLACES}) AND {SOUND_CHUNK}
                AND d.id NOT IN (SELECT document FROM quarantine) AND NOT {IS_ROW}""",
        {"collection": collection.id, "places": json.dumps(places)},
    ).fetchall()
    return [_sampled(connection, collection, row, model) for row in rows]


def _sampled(
    connection: sqlite3.Connection, collection: Collection, row: sqlite3.Row, model: str
) -> Sampled:
    names = connection.execute(
        "SELECT principal FROM document_acl WHERE document = ?", (row["document"],)
    ).fetchall()
    users = [name[0].removeprefix(USER) for name in names if name[0].startswith(USER)]
    auth = AuthContext(
        tenant=collection.tenant,
        user=users[0] if users else "local",
        roles=frozenset(name[0] for name in names if not name[0].startswith(USER)),
    )
    stored = vectors_by_row(connection, model, np.array([row["id"]], dtype=np.int64))
    words = [word for word in set(terms(row["text"], row["language"])) if "\x00" not in word]
    return Sampled(row["id"], row["chunk_id"], auth, words, stored[0][1] if stored else None)
