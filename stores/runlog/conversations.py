"""Conversations: who owns each, its turns, and what it waits for."""

from __future__ import annotations

import datetime
import json
import sqlite3
import uuid
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

from core.auth import AuthContext
from core.errors import AbsentError, OperatorError
from core.types import Clarification
from stores.erasure.notes import OF_CONVERSATION, OF_IDS, erase_notes
from stores.erasure.redaction import HIDDEN, WITHHELD
from stores.erasure.rewriting import note_erasure
from stores.runlog.history import KEPT, Closed, closed_runs, kept, last_turn
from stores.runlog.runs import DAMAGED as RUNS_DAMAGED
from stores.sqlite.database import CataloguePart
from stores.sqlite.sums import CONVERSATION, RUN, TURN, sign

SHARED = "shared:"  # before the id of a conversation that others may read, as a key of `meta`
THREADS = "conversations.sqlite3"  # what the graph knows of them, beside the catalogue


@dataclass(frozen=True)
class Waiting:
    """Hold the run that asked back: its id, the question it was asked, and what it asks."""

    run_id: str
    question: str
    clarification: Clarification


@dataclass(frozen=True)
class Conversation:
    """Hold one conversation of one user; `checkpoint_id` is the state it goes on from, "" none."""

    id: str
    tenant: str
    user: str
    collection: str
    title: str
    created_at: str
    updated_at: str
    checkpoint_id: str
    waiting: Waiting | None
    turns: int

    def describe(self) -> dict[str, Any]:
        """Return the fields that its owner may see."""
        names = ("title", "collection", "created_at", "updated_at", "turns")
        return {"conversation_id": self.id, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class KeptTurn:
    """Hold a turn to be kept: its run, what was asked, and what was asked back and replied."""

    run_id: str
    question: str
    clarification: Clarification | None = None
    reply: str = ""


OWN = "FROM conversations v WHERE v.tenant = :tenant AND v.user = :user"
COLUMNS = f"""v.*, (SELECT count(*) FROM conversation_turns t WHERE t.conversation = v.id) AS turns
    {OWN} AND v.sum IS {CONVERSATION}"""
OF_TURNS = """FROM runs WHERE tenant = :tenant AND user = :user AND run_id IN
    (SELECT run_id FROM conversation_turns WHERE conversation = :id)"""
# Counted in answers and in health; `carrel doctor` says what to do.
DAMAGED = (
    "records conversations",
    "conversations or their turns are damaged and withheld; run `carrel doctor`",
)


class Conversations(CataloguePart):
    """Keep and find conversations; each is found only by the user who began it.

    What its reader may not see now of its runs is left out; what people typed stays.
    """

    def create_conversation(self, tenant: str, user: str, collection: str) -> Conversation:
        name, now = uuid.uuid4().hex, _now()
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, '', ?, ?, '', '', NULL)",
                (name, tenant, user, collection, now, now),
            )
            sign(connection, "conversations", "v.id = ?", name)
        return self.load_conversation(AuthContext(tenant=tenant, user=user), name)

    def load_conversation(self, auth: AuthContext, name: str) -> Conversation:
        given = {"tenant": auth.tenant, "user": auth.user, "id": name}
        row = self._one(f"SELECT {COLUMNS} AND v.id = :id", given)
        if row is None:
            if self._one(f"SELECT 1 {OWN} AND v.id = :id", given):
                self._database.condition.report(*DAMAGED)
                raise OperatorError(
                    "this conversation is damaged in the catalogue",
                    value=name,
                    hint="restore a backup, or begin another",
                )
            raise AbsentError("there is no such conversation of yours", value=name)
        return self._hide_closed(auth, _conversation(row))

    def newest_conversations(
        self, auth: AuthContext, limit: int, before: str = ""
    ) -> list[Conversation]:
        given: dict[str, Any] = {"tenant": auth.tenant, "user": auth.user, "limit": limit}
        damaged = f"SELECT 1 {OWN} AND v.sum IS NOT {CONVERSATION} LIMIT 1"
        if self._one(damaged, given):
            self._database.condition.report(*DAMAGED)
        condition = ""
        if before:
            last = self.load_conversation(auth, before)
            given |= {"time": last.updated_at, "id": last.id}
            condition = "AND (v.updated_at, v.id) < (:time, :id)"
        rows = self._all(
            f"SELECT {COLUMNS} {condition} ORDER BY v.updated_at DESC, v.id DESC LIMIT :limit",
            given,
        )
        return [self._hide_closed(auth, _conversation(row)) for row in rows]

    def _hide_closed(self, auth: AuthContext, conversation: Conversation) -> Conversation:
        waiting = conversation.waiting
        if waiting is None or not self.is_closed(auth, conversation):
            return conversation
        asks = Clarification(question=WITHHELD)
        return replace(conversation, waiting=replace(waiting, clarification=asks))

    def is_closed(self, auth: AuthContext, conversation: Conversation) -> bool:
        reader = self._database.read()
        return bool(closed_runs(reader, auth, last_turn(reader, conversation.id)))

    def turns(self, auth: AuthContext, conversation: Conversation) -> list[dict[str, Any]]:
        rows = self._all(
            f"""SELECT t.run_id, t.question, t.created_at, t.clarification, t.reply, {KEPT},
                   coalesce(json_extract(r.result, '$.answer'), '') AS answer,
                   json_extract(r.result, '$.refused') AS refused,
                   coalesce(json_extract(r.result, '$.stop_reason'), '') AS stop_reason
               FROM conversation_turns t LEFT JOIN runs r
                   ON r.run_id = t.run_id AND r.tenant = :tenant AND r.user = :user
                       AND r.sum IS {RUN}
               WHERE t.conversation = :id AND t.sum IS {TURN} ORDER BY t.id""",
            _owner_fields(conversation),
        )
        if len(rows) < conversation.turns:
            self._database.condition.report(*DAMAGED)
        if any(row["refused"] is None for row in rows):
            # Runs that are damaged, and not only gone, are told of.
            query = f"""SELECT 1 FROM conversation_turns t JOIN runs r ON r.run_id = t.run_id
                WHERE t.conversation = ? AND r.sum IS NOT {RUN} LIMIT 1"""
            if self._one(query, (conversation.id,)):
                self._database.condition.report(*RUNS_DAMAGED)
        turns = [
            {
                "run_id": row["run_id"],
                "question": row["question"],
                "answer": row["answer"],
                "refused": bool(row["refused"]),
                "stop_reason": row["stop_reason"],
                "created_at": row["created_at"],
                "clarification": json.loads(row["clarification"] or "null"),
                "reply": row["reply"],
            }
            for row in rows
        ]
        runs = [kept(row) for row in rows if row["refused"] is not None]
        closed = closed_runs(self._database.read(), auth, runs)
        for turn in turns:
            if turn["run_id"] in closed:
                self._hide(turn, closed[turn["run_id"]])
        return turns

    def _hide(self, turn: dict[str, Any], closed: Closed) -> None:
        """Remove closed text from a turn; a reply may be a title that was offered."""
        result = self._value("SELECT result FROM runs WHERE run_id = ?", (turn["run_id"],))
        turn["answer"] = closed.answer(json.loads(result))
        if turn["clarification"] is not None:
            turn["clarification"] = {"question": WITHHELD, "options": []}
            turn["reply"] = HIDDEN if turn["reply"] else ""

    def rename_conversation(self, conversation: Conversation, title: str) -> None:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE conversations SET title = ? WHERE id = ?", (title, conversation.id)
            )
            sign(connection, "conversations", "v.id = ?", conversation.id)

    def save_turn(
        self,
        conversation: Conversation,
        turn: KeptTurn,
        checkpoint_id: str,
        *,
        title: str,
        waiting: bool = False,
    ) -> None:
        asks = turn.clarification.model_dump() if turn.clarification else None
        shown = "" if asks is None else json.dumps(asks, ensure_ascii=False)
        open_run = {"run_id": turn.run_id, "question": turn.question, "clarification": asks}
        open_text = json.dumps(open_run, ensure_ascii=False) if waiting else ""
        now = _now()
        with self._database.write() as connection:
            connection.execute(
                """INSERT INTO conversation_turns
                       (conversation, run_id, question, created_at, clarification, reply)
                   VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (conversation, run_id) DO UPDATE
                   SET clarification = excluded.clarification, reply = excluded.reply""",
                (conversation.id, turn.run_id, turn.question, now, shown, turn.reply),
            )
            connection.execute(
                """UPDATE conversations SET updated_at = ?, checkpoint_id = ?, waiting = ?,
                       title = CASE title WHEN '' THEN ? ELSE title END WHERE id = ?""",
                (now, checkpoint_id, open_text, title, conversation.id),
            )
            which = "(t.conversation, t.run_id) = (?, ?)"
            sign(connection, "conversation_turns", which, conversation.id, turn.run_id)
            sign(connection, "conversations", "v.id = ?", conversation.id)

    def count_runs(self, conversation: Conversation) -> int:
        return int(self._value(f"SELECT count(*) {OF_TURNS}", _owner_fields(conversation)))

    def delete_conversation(self, conversation: Conversation) -> Counter[str]:
        with self._database.write() as connection:
            counts = _erase(connection, conversation)
            note_erasure(connection)
        self._database.checkpoint()
        return counts

    def would_delete_conversation(self, conversation: Conversation) -> Counter[str]:
        with self._database.undone() as connection:
            return _erase(connection, conversation)


def states_of(connection: Any) -> dict[str, str]:  # noqa: ANN401 - of either catalogue
    """Return the states that conversations go on from, by thread."""
    query = "SELECT id, checkpoint_id FROM conversations WHERE checkpoint_id <> ''"
    return {row[0]: row[1] for row in connection.execute(query).fetchall()}


def _erase(connection: sqlite3.Connection, conversation: Conversation) -> Counter[str]:
    """Delete a conversation with its turns, runs and notes, and what rests on those elsewhere."""
    own = _owner_fields(conversation)
    notes = connection.execute(f"SELECT note_id FROM notes m WHERE {OF_CONVERSATION}", own)
    ids = json.dumps([row[0] for row in notes])
    connection.execute(
        "INSERT OR IGNORE INTO erasure_leftovers VALUES ('thread', ?)", (conversation.id,)
    )
    connection.execute(f"DELETE {OF_TURNS}", own)
    connection.execute("DELETE FROM conversations WHERE id = ?", (conversation.id,))
    connection.execute("DELETE FROM meta WHERE key = ?", (f"{SHARED}{conversation.id}",))
    return erase_notes(connection, OF_IDS, {**own, "ids": ids})


def _owner_fields(conversation: Conversation) -> dict[str, str]:
    return {
        "tenant": conversation.tenant,
        "user": conversation.user,
        "owner": conversation.user,
        "id": conversation.id,
    }


def _conversation(row: sqlite3.Row) -> Conversation:
    waiting = json.loads(row["waiting"]) if row["waiting"] else None
    if waiting is not None:
        asks = Clarification.model_validate(waiting.pop("clarification"))
        waiting = Waiting(**waiting, clarification=asks)
    known = {one.name: row[one.name] for one in fields(Conversation)}
    return Conversation(**{**known, "waiting": waiting})


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
