"""Erase notes of memory, and take them out of what rests on them: runs, conversations, notes."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping
from typing import Any

from core.auth import AuthContext
from stores.erasure.redaction import NOTE_NOTICE, Hidden, redacted
from stores.erasure.rewriting import (
    Touched,
    phrase_occurs_elsewhere,
    redact_conversations,
    save_redacted,
    typed_in,
)
from stores.runlog.history import collection_ids, forget_notes
from stores.sqlite.sums import NOTE, RUN

OF_IDS = """m.tenant = :tenant AND m.owner = :owner
    AND m.note_id IN (SELECT value FROM json_each(:ids))"""
OF_CONVERSATION = """m.tenant = :tenant AND m.owner = :owner AND (m.conversation = :id
    OR m.run_id IN (SELECT run_id FROM conversation_turns WHERE conversation = :id))"""
_CITING = """CASE WHEN json_valid(m.documents) THEN EXISTS (SELECT 1 FROM json_each(m.documents) d
    WHERE d.value IN (SELECT value FROM json_each(:documents))) ELSE TRUE END"""
# Claims that cite documents of a collection, and damaged ones: nobody can say what those cite.
OF_DOCUMENTS = f"""m.tenant = :tenant AND (m.sum IS NOT {NOTE} OR m.documents <> '[]' AND {_CITING}
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = m.run_id
        AND instr(',' || r.collection || ',', ',' || :collection || ',') = 0))"""
# Claims of these runs that cite these notes.
_OF_RUNS = f"""m.tenant = :tenant AND m.owner = :owner AND m.documents <> '[]' AND {_CITING}
    AND m.run_id IN (SELECT value FROM json_each(:runs))"""
# Runs of the owner that read these notes, or follow one that did; and damaged ones.
_READING = f"""SELECT run_id, collection, question, result, trail, r.sum IS {RUN} AS sound
    FROM runs r WHERE tenant = :tenant AND user = :owner AND CASE WHEN r.sum IS NOT {RUN} THEN TRUE
    ELSE EXISTS (SELECT 1 FROM json_each(json_array(
            json_extract(r.result, '$.access.notes'),
            json_extract(r.result, '$.access.notes_before'))) noted
        CROSS JOIN json_each(noted.value) n
        WHERE n.value IN (SELECT value FROM json_each(:documents)))
    END"""


def erase_notes(
    connection: sqlite3.Connection, which: str, given: Mapping[str, Any]
) -> Counter[str]:
    """Delete notes and all that rests on them within the caller's transaction; count it by kind."""
    notes, touched = redact_notes(connection, which, given)
    conversations = redact_conversations(connection, touched)
    return Counter(notes=notes, runs=len(touched), conversations=len(conversations))


def redact_notes(
    connection: sqlite3.Connection, which: str, given: Mapping[str, Any]
) -> tuple[int, Touched]:
    """Delete notes and redact the runs that read them; return how many, and what was hidden.

    Notes that keep claims of such runs go too. What the owner typed stays where they typed it.
    """
    deleted = 0
    touched: Touched = defaultdict(list)
    waiting = [(which, dict(given))]
    while waiting:
        gone = _deleted(connection, *waiting.pop())
        for (tenant, owner), (count, ids) in gone.items():
            deleted += count
            own = {"tenant": tenant, "owner": owner, "documents": json.dumps(sorted(ids))}
            found = _redact_runs(connection, own, ids)
            for run_id, hidden in found.items():
                touched[run_id].append(hidden)
            if found:
                waiting.append((_OF_RUNS, {**own, "runs": json.dumps(sorted(found))}))
    return deleted, touched


def _deleted(
    connection: sqlite3.Connection, which: str, given: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[int, set[str]]]:
    names = ", ".join(f"CAST({one} AS BLOB)" for one in ("tenant", "owner", "note_id"))
    query = f"DELETE FROM notes AS m WHERE {which} RETURNING {names}"
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in connection.execute(query, given).fetchall():  # a damaged one may be no text
        tenant, owner, note_id = (one.decode("utf-8", "replace") for one in row)
        found[tenant, owner].append(note_id)
    return {owner: (len(ids), set(ids)) for owner, ids in found.items()}


def _redact_runs(
    connection: sqlite3.Connection, own: Mapping[str, str], ids: AbstractCollection[str]
) -> dict[str, Hidden]:
    touched: dict[str, Hidden] = {}
    for row in connection.execute(_READING, own).fetchall():
        if not row["sound"]:
            connection.execute("DELETE FROM runs WHERE run_id = ?", (row["run_id"],))
            continue
        result, trail = json.loads(row["result"]), json.loads(row["trail"])
        forget_notes(result["access"], ids)
        reader = AuthContext(tenant=own["tenant"], user=own["owner"])
        numbers = collection_ids(connection, own["tenant"], row["collection"])
        elsewhere = phrase_occurs_elsewhere(
            connection, numbers[0] if len(numbers) == 1 else None, reader
        )
        typed = typed_in(connection, row["run_id"], row["question"])
        hidden = redacted(result, trail, ids, elsewhere, own=typed, notice=NOTE_NOTICE)
        if hidden is not None:
            touched[row["run_id"]] = hidden
        save_redacted(connection, row["run_id"], result, trail)
    return touched
