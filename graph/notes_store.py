"""The notes of one caller behind LangGraph's `BaseStore`: Studio and other graphs see them so."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError

from core.auth import AuthContext
from core.errors import CallerError, PolicyError
from core.notes import FoundNote, Note, NoteDraft
from tools.note_tools import Memory

NOTES = "notes"
Namespace = tuple[str, ...]
SOURCED = ("provenance", "observed_at")
FOUNDED = "the memory keeps what a turn of the caller states or a verified claim, with its source"


class NotesCaller(NamedTuple):
    """Hold the verified caller and their memory."""

    auth: AuthContext
    memory: Memory


def namespace_of(auth: AuthContext) -> Namespace:
    """Return where a caller's notes are: LangGraph allows no full stop in a label."""
    return (*(name.replace(".", "%2E") for name in (auth.tenant, auth.user)), NOTES)


class NotesStore(BaseStore):
    """Read and write the notes of one caller; any other namespace is refused.

    A value to put has `content`, `provenance` and `observed_at` of a `NoteDraft`; put under the key
    of a note its content is edited, and None deletes it. Searches with a query find what holds now,
    those without list all notes.
    """

    def __init__(self, caller: Callable[[], NotesCaller]) -> None:
        """Serve the caller that `caller` gives, asked with each batch."""
        self._caller = caller

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: first what reads, then what writes, of one key the last."""
        caller, given = self._caller(), list(ops)
        results = [self._read(caller, op) for op in given]
        puts = {op.key: op for op in given if isinstance(op, PutOp)}
        for op in puts.values():
            self._put(caller, op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations on a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, caller: NotesCaller, op: Op) -> Result:
        own = namespace_of(caller.auth)
        if isinstance(op, ListNamespacesOp):
            shown = InMemoryStore()
            if caller.memory.notes.list_notes(caller.auth, limit=1):
                shown.put(own, NOTES, {})
            return shown.batch([op])[0]
        if isinstance(op, SearchOp):
            check_namespace(own, op.namespace_prefix, own[: len(op.namespace_prefix)])
            return self._search(caller, op)
        check_namespace(own, op.namespace, own)
        if not isinstance(op, GetOp):
            return None
        found = caller.memory.notes.load_notes(caller.auth, [op.key])
        return Item(**_fields(own, found[op.key])) if found else None

    def _search(self, caller: NotesCaller, op: SearchOp) -> Result:
        auth, memory, own = caller.auth, caller.memory, namespace_of(caller.auth)
        end = op.offset + op.limit
        if op.query:
            found = memory.search(auth, op.query, -1 if op.filter else end)
        else:
            listed = memory.notes.list_notes(auth, limit=-1 if op.filter else end)
            found = [FoundNote(note=one, score=0) for one in listed]
        if op.filter:
            fitting = _fitting([one.note for one in found], op.filter)
            found = [one for one in found if one.note.note_id in fitting]
        return [
            SearchItem(**_fields(own, one.note), score=one.score if op.query else None)
            for one in found[op.offset : end]
        ]

    def _put(self, caller: NotesCaller, op: PutOp) -> None:
        auth, notes = caller.auth, caller.memory.notes
        if op.value is None:
            if notes.load_notes(auth, [op.key]):
                notes.delete_note(auth, op.key)
            return
        note = notes.load_notes(auth, [op.key]).get(op.key)
        shown = note.describe() if note else {name: op.value.get(name) for name in SOURCED}
        if given := sorted(
            name for name, one in op.value.items() if name != "content" and shown.get(name) != one
        ):
            rule = f"of a note that is put only content, {' and '.join(SOURCED)} are given"
            raise CallerError(f"{rule}, of a known one only content", value=", ".join(given))
        if note:
            notes.edit_note(auth, op.key, str(op.value.get("content", "")))
            return
        try:
            draft = NoteDraft.model_validate({**op.value, "note_id": op.key})
        except ValidationError as error:
            raise CallerError(FOUNDED, value=error.errors()[0]["msg"]) from None
        if not caller.memory.remember(auth, [draft]):
            raise CallerError(FOUNDED, value=draft.content)


def check_namespace(own: Namespace, given: Namespace, allowed: Namespace) -> None:
    """Raise PolicyError for a namespace that is not the caller's."""
    if tuple(given) != allowed:
        rule = "the memory of another user is closed"
        raise PolicyError(rule, value=".".join(given), hint=f"yours is {'.'.join(own)}")


def _fitting(notes: Iterable[Note], wanted: dict[str, Any]) -> set[str]:
    """Return the ids of notes that meet a filter, as LangGraph's own store understands it."""
    shown = InMemoryStore()
    values = {one.note_id: one.describe() for one in notes}
    shown.batch([PutOp((NOTES,), key, value) for key, value in values.items()])
    return {one.key for one in shown.search((NOTES,), filter=wanted, limit=len(values) or 1)}


def _fields(own: Namespace, note: Note) -> dict[str, Any]:
    return {
        "namespace": own,
        "key": note.note_id,
        "value": note.describe(),
        "created_at": datetime.datetime.fromisoformat(note.created_at),
        "updated_at": datetime.datetime.fromisoformat(note.changed_at),
    }
