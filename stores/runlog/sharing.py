"""Conversations that their owners have let others read, as far as those may read what they cite."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

from core.auth import AuthContext
from core.errors import AbsentError, CarrelError
from stores.runlog.conversations import SHARED, Conversation, Conversations
from stores.sqlite.database import CataloguePart
from stores.sqlite.schema import SECRET


class Shares(CataloguePart):
    """Keep who may read a conversation beside its owner; no row is nobody."""

    def share(self, conversation: Conversation, readers: list[str] | None) -> None:
        """Let these principals read it, an empty list: the whole tenant; None ends that."""
        key = f"{SHARED}{conversation.id}"
        with self._database.write() as connection:
            connection.execute("DELETE FROM meta WHERE key = ?", (key,))
            if readers is not None:
                value = json.dumps([sorted(readers), self._digest(conversation.id, readers)])
                connection.execute("INSERT INTO meta VALUES (?, ?)", (key, value))

    def readers_of(self, conversation_id: str) -> list[str] | None:
        """Return who may read it, an empty list for the whole tenant, None for nobody."""
        value = self._value("SELECT value FROM meta WHERE key = ?", (f"{SHARED}{conversation_id}",))
        try:
            readers, digest = json.loads(value or "[null, null]")
        except ValueError:  # damaged: nobody
            return None
        # One that is damaged is none: it may open more than its owner did.
        sound = isinstance(readers, list) and digest == self._digest(conversation_id, readers)
        return readers if sound else None

    def open_conversation(self, auth: AuthContext, name: str) -> Conversation:
        """Return a conversation of somebody else that this caller may read; raises AbsentError."""
        owner = self._one("SELECT tenant, user FROM conversations WHERE id = ?", (name,))
        readers = self.readers_of(name)
        is_reader = readers is not None and (not readers or bool(auth.principals & set(readers)))
        if owner is None or owner["tenant"] != auth.tenant or not is_reader:
            raise AbsentError("there is no such conversation of yours", value=name)
        owning = AuthContext(tenant=owner["tenant"], user=owner["user"])
        return Conversations(self._database).load_conversation(owning, name)

    def list_shared(self, auth: AuthContext, limit: int) -> list[Conversation]:
        """Return what others let this caller read, last used first."""
        rows = self._all(
            """SELECT v.id FROM meta m JOIN conversations v ON v.id = substr(m.key, length(:s) + 1)
               WHERE substr(m.key, 1, length(:s)) = :s AND v.tenant = :tenant AND v.user <> :user
               ORDER BY v.updated_at DESC, v.id DESC""",
            {"s": SHARED, "tenant": auth.tenant, "user": auth.user},
        )
        found: list[Conversation] = []
        for row in rows:
            if len(found) == limit:
                break
            with suppress(CarrelError):  # not for this caller, or damaged
                found.append(self.open_conversation(auth, row["id"]))
        return found

    def _digest(self, conversation_id: str, readers: list[Any]) -> str:
        secret = str(self._value(f"SELECT {SECRET}"))
        text = json.dumps([secret, conversation_id, sorted(map(str, readers))])
        return hashlib.sha256(text.encode()).hexdigest()[:32]
