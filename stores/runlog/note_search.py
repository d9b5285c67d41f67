"""Find the notes of one owner, by words and by vectors, under the rights of now.

The statistics are of the owner's own notes: nobody's ranking depends on what others keep.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import log
from typing import Any

import numpy as np

from core.auth import AuthContext
from core.language.analysis import query_terms
from core.notes import FoundNote, Note, NoteLink, OwnerEdit
from stores.runlog.history import KEPT, closed_runs, kept
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.embeddings import Vector
from stores.sqlite.sums import NOTE, RUN

# Counted in answers and in health; `carrel doctor` says what to do.
DAMAGED = ("records notes", "notes of memory are damaged and withheld; run `carrel doctor`")
K1, B = 1.2, 0.75  # of BM25, the usual values
OWNERS = 8  # whose vectors are kept, 15 MB for 10,000 notes; chosen, not measured
BATCH = 50  # notes that are read at once of a ranking; chosen, not measured

OWN = "m.tenant = :tenant AND m.owner = :owner"
CURRENT = """NOT EXISTS (SELECT 1 FROM note_links s
    WHERE s.other = m.id AND s.kind = 'supersedes')"""
TEXTS = (
    *("note_id", "tenant", "owner", "content", "context", "language", "subject", "value"),
    *("importance", "observed_at", "created_at", "changed_at"),
)
LISTS = ("keywords", "tags", "provenance")  # as JSON
_COLUMNS = ", ".join(f"m.{name}" for name in ("id", *TEXTS, *LISTS, "replaces"))
_SOUND = re.sub(r"\bm\.", "o.", NOTE)  # the sum of the other note
LOADED = f"""SELECT {_COLUMNS}, m.sum IS {NOTE} AS sound,
    CASE m.documents WHEN '[]' THEN '' ELSE m.run_id END AS run,
    (SELECT json_group_array(json_array(o.note_id, l.kind, l.strength,
            CASE o.documents WHEN '[]' THEN '' ELSE o.run_id END))
        FROM note_links l JOIN notes o ON o.id = l.other
        WHERE l.note = m.id AND l.kind <> 'supersedes') AS links,
    (SELECT json_array(n.note_id, n.observed_at) FROM note_links l JOIN notes n ON n.id = l.note
        WHERE l.other = m.id AND l.kind = 'supersedes' LIMIT 1) AS newer,
    (SELECT json_array(o.note_id, o.content) FROM note_links l JOIN notes o ON o.id = l.other
        WHERE l.note = m.id AND l.kind = 'supersedes' AND o.documents = '[]'
        AND json_extract(m.provenance, '$.kind') <> 'edit' AND o.sum IS {_SOUND}
        ORDER BY o.id DESC LIMIT 1) AS corrected
    FROM notes m WHERE {OWN}"""


def owner_fields(auth: AuthContext) -> dict[str, Any]:
    """Return the parameters of OWN."""
    return {"tenant": auth.tenant, "owner": auth.user}


class NoteSearch(CataloguePart):
    """Read and rank notes; one whose run is closed to its owner is as if it were not there."""

    def __init__(self, database: Database) -> None:
        """Use an open catalogue."""
        super().__init__(database)
        self._lock = threading.Lock()
        self._matrices: dict[tuple[str, str], tuple[str, int, list[int], Vector]] = {}

    def list_notes(
        self, auth: AuthContext, *, current: bool = False, limit: int = -1, after: str = ""
    ) -> list[Note]:
        given = {**owner_fields(auth), "after": after}
        query = f"SELECT m.id FROM notes m WHERE {OWN}"
        query += f" AND {CURRENT}" if current else ""
        if after:
            query += f""" AND (m.observed_at, m.id) < (SELECT m.observed_at, m.id FROM notes m
                WHERE {OWN} AND m.note_id = :after)"""
        rows = self._all(f"{query} ORDER BY m.observed_at DESC, m.id DESC", given)
        return [one.note for one in self._readable(auth, [(row[0], 0.0) for row in rows], limit)]

    def load_notes(self, auth: AuthContext, note_ids: Sequence[str]) -> dict[str, Note]:
        query = f"""SELECT m.id FROM notes m WHERE {OWN}
            AND m.note_id IN (SELECT value FROM json_each(:ids))"""
        rows = self._all(query, {**owner_fields(auth), "ids": json.dumps(list(note_ids))})
        return {one.note_id: one for one in self._loaded(auth, [row[0] for row in rows]).values()}

    def find_by_words(
        self, auth: AuthContext, text: str, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        given = owner_fields(auth)
        languages = {row[0] for row in self._all(LANGUAGES, given)}
        groups = query_terms(text, languages) if languages else []
        wanted = json.dumps(sorted({term for group in groups for term in group}))
        rows = self._all(MATCHING, {**given, "terms": wanted})
        found: dict[str, dict[int, int]] = defaultdict(dict)
        lengths: dict[int, int] = {}
        for term, note, frequency, length in rows:
            found[term][note], lengths[note] = frequency, length
        count, mean = self._one(STATISTICS, given)
        scores: Counter[int] = Counter()
        for group in groups:
            together: Counter[int] = Counter()
            for term in group:
                together.update(found.get(term, {}))
            weight = log(1 + (count - len(together) + 0.5) / (len(together) + 0.5))
            for note, tf in together.items():
                norm = 1 - B + B * lengths[note] / (mean or 1)
                scores[note] += weight * tf * (K1 + 1) / (tf + K1 * norm)  # type: ignore[assignment]
        best = sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0]))
        return self._readable(auth, best, limit, current=current)

    def find_by_vector(
        self, auth: AuthContext, model: str, vector: Vector, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        ids, rows = self._vectors(auth, model)
        if not ids:
            return []
        scores = rows @ vector
        order = np.argsort(-scores, kind="stable").tolist()
        best = [(ids[place], float(scores[place])) for place in order]
        return self._readable(auth, best, limit, current=current)

    def unembedded_notes(self, auth: AuthContext, model: str) -> dict[str, str]:
        query = f"SELECT m.id FROM notes m WHERE {OWN} AND m.model <> :model"
        rows = self._all(query, {**owner_fields(auth), "model": model})
        found = self._loaded(auth, [row[0] for row in rows])
        return {one.note_id: one.content for one in found.values()}

    def _vectors(self, auth: AuthContext, model: str) -> tuple[list[int], Vector]:
        """Return row ids and vectors, one a row.

        Those of the owners who searched last are kept: reading them takes longer than comparing.
        """
        owner, version = (auth.tenant, auth.user), self._value(VERSION)
        with self._lock:
            kept = self._matrices.pop(owner, None)
            if kept is None or kept[:2] != (model, version):
                query = f"SELECT m.id, m.vector FROM notes m WHERE {OWN} AND m.model = :model"
                rows = self._all(query, {**owner_fields(auth), "model": model})
                joined = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4")
                matrix = joined.reshape(len(rows) or 1, -1)
                kept = model, version, [row[0] for row in rows], matrix
            self._matrices[owner] = kept  # the last of those kept
            while len(self._matrices) > OWNERS:
                self._matrices.pop(next(iter(self._matrices)))
            return kept[2], kept[3]

    def _readable(
        self,
        auth: AuthContext,
        best: Sequence[tuple[int, float]],
        limit: int,
        *,
        current: bool = False,
    ) -> list[FoundNote]:
        """Return the first `limit` of a ranking that the owner may read now, all for -1.

        For one that is superseded, where only `current` ones are asked for, stands the latest.
        """
        found: list[FoundNote] = []
        seen: set[str] = set()
        step = len(best) if limit < 0 else max(limit, BATCH)
        for start in range(0, len(best), step or 1):
            part = best[start : start + step]
            notes = self._loaded(auth, [row_id for row_id, _ in part])
            for row_id, score in part:
                note = notes.get(row_id)
                note = self._latest(auth, note) if note is not None and current else note
                if note is not None and note.note_id not in seen:
                    seen.add(note.note_id)
                    found.append(FoundNote(note=note, score=score))
            if 0 <= limit <= len(found):
                break
        return found if limit < 0 else found[:limit]

    def _latest(self, auth: AuthContext, note: Note) -> Note | None:
        """Return the note that has taken a note's place in the end, None where it is withheld."""
        seen: set[str] = set()
        found: Note | None = note
        while found is not None and found.superseded_by and found.note_id not in seen:
            seen.add(found.note_id)
            found = self.load_notes(auth, [found.superseded_by]).get(found.superseded_by)
            if found is not None and isinstance(found.provenance, OwnerEdit):
                return None  # its owner wrote it over the other
        return None if found is None or found.superseded_by else found

    def _loaded(self, auth: AuthContext, row_ids: Collection[int]) -> dict[int, Note]:
        """Return notes by row id, without those that are withheld and without links to such."""
        query = f"{LOADED} AND m.id IN (SELECT CAST(value AS INTEGER) FROM json_each(:ids))"
        rows = self._all(query, {**owner_fields(auth), "ids": json.dumps(list(row_ids))})
        if not all(row["sound"] for row in rows):
            self._database.condition.report(*DAMAGED)
        links = {row["id"]: json.loads(row["links"]) for row in rows}
        runs = {row["run"] for row in rows} | {link[3] for one in links.values() for link in one}
        hidden = self._closed(auth, runs - {""})
        return {
            row["id"]: _note(row, [link for link in links[row["id"]] if link[3] not in hidden])
            for row in rows
            if row["sound"] and row["run"] not in hidden
        }

    def _closed(self, auth: AuthContext, run_ids: Collection[str]) -> set[str]:
        """Return which runs are closed to the caller now in any part, or gone."""
        if not run_ids:
            return set()
        query = f"""SELECT r.run_id, {KEPT} FROM runs r WHERE r.tenant = :tenant
            AND r.user = :owner AND r.run_id IN (SELECT value FROM json_each(:ids))
            AND r.sum IS {RUN}"""
        rows = self._all(query, {**owner_fields(auth), "ids": json.dumps(sorted(run_ids))})
        closed = closed_runs(self._database.read(), auth.rights, [kept(row) for row in rows])
        return {*run_ids} - {row["run_id"] for row in rows} | closed.keys()


VERSION = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'notes_version'"
LANGUAGES = f"SELECT DISTINCT m.language FROM notes m WHERE {OWN}"
STATISTICS = f"SELECT count(*), avg(m.length) FROM notes m WHERE {OWN}"
MATCHING = """SELECT t.term, t.note, t.frequency, t.length FROM json_each(:terms) w
    CROSS JOIN note_terms t ON t.tenant = :tenant AND t.owner = :owner AND t.term = w.value"""


def _note(row: Any, links: Iterable[Sequence[Any]]) -> Note:  # noqa: ANN401 - a row of LOADED
    newer, older = (
        json.loads(row[name]) if row[name] else ("", "") for name in ("newer", "corrected")
    )
    return Note(
        **{name: row[name] for name in TEXTS},
        **{name: json.loads(row[name]) for name in LISTS},
        replaces=bool(row["replaces"]),
        links=[NoteLink(note_id=one[0], kind=one[1], strength=one[2]) for one in links],
        corrects=older[0],
        corrected=older[1],
        superseded_by=newer[0],
        superseded_at=newer[1],
    )
