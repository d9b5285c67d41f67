"""Notes of memory: written with what they rest on, superseded and not overwritten, and deleted."""

from __future__ import annotations

import datetime
import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from core.auth import AuthContext
from core.errors import AbsentError, CallerError
from core.language.analysis import analyze, content_terms, terms
from core.language.changes import marks_change, names_several
from core.language.detect import detect_language
from core.notes import (
    DENIED,
    NO,
    WORDS,
    ClaimSource,
    Note,
    NoteDraft,
    OwnerEdit,
    TurnSource,
    is_other,
    origin_of,
)
from stores.erasure.notes import OF_IDS, erase_notes
from stores.erasure.rewriting import note_erasure
from stores.runlog.note_search import CURRENT, OWN, NoteSearch, owner_fields
from stores.sqlite.embeddings import Vector
from stores.sqlite.sums import NOTE, RUN, sign

LONGEST = 2000  # characters of a note; chosen, not measured
KEYWORDS = TAGS = 8  # the most of each that a note has; chosen, not measured
NEIGHBOURS = 3  # that a new note is linked with by each kind of link; chosen, not measured
SHARED, SHARE = 2, 0.3  # words in common, and their part of the new note's; chosen, not measured
SIMILAR = 0.5  # half way between unrelated texts and such that say the same
AGAIN = 0.1  # by how much what is stated once more is more important; chosen, not measured

_TURN = """SELECT 1 FROM conversation_turns t JOIN conversations v ON v.id = t.conversation
    WHERE v.tenant = :tenant AND v.user = :owner AND v.id = :conversation AND t.run_id = :run_id
    AND (instr(t.question, :quote) > 0 OR instr(t.reply, :quote) > 0)"""
_CLAIMS = f"""SELECT json_extract(r.result, '$.claims') FROM runs r WHERE r.tenant = :tenant
    AND r.user = :owner AND r.run_id = :run_id AND r.sum IS {RUN}"""
_NAMES = (
    *("note_id", "tenant", "owner", "content", "context", "keywords", "tags", "language"),
    *("subject", "value", "replaces", "importance", "provenance", "conversation", "run_id"),
    *("documents", "observed_at", "created_at", "changed_at"),
)
_INSERT = f"""INSERT INTO notes ({", ".join(_NAMES)})
    VALUES ({", ".join(f":{name}" for name in _NAMES)})"""
_OTHERS = ", ".join(name for name in _NAMES if name != "note_id")
# The current note of a conversation, and of the same documents, with the same words or the same
# subject and value. One of another conversation is a note of its own: it lives longer or shorter.
_SAME = f"""SELECT m.id FROM notes m WHERE {OWN} AND {CURRENT} AND m.documents = :documents
    AND m.conversation = :conversation AND (m.content = :content OR m.subject <> ''
        AND m.subject = :subject AND m.value <> '' AND m.value = :value) LIMIT 1"""
# Other notes that share words with a new one, those that share most first.
_SHARING = f"""SELECT t.note, json_group_array(t.term) AS shared FROM json_each(:terms) w
    CROSS JOIN note_terms t ON t.tenant = :tenant AND t.owner = :owner AND t.term = w.value
    WHERE t.note <> :new GROUP BY t.note HAVING count(*) >= {SHARED}
    ORDER BY count(*) DESC, t.note DESC LIMIT {NEIGHBOURS}"""
_LINK = """INSERT INTO note_links VALUES (?, ?, ?, ?)
    ON CONFLICT (note, other, kind)
    DO UPDATE SET strength = max(note_links.strength, excluded.strength)"""


class KeptNotes(NoteSearch):
    """Keep the notes of every user."""

    def write_notes(self, auth: AuthContext, drafts: Sequence[NoteDraft]) -> list[Note]:
        with self._database.write() as connection:
            written = [
                _written(connection, auth, draft)
                for draft in drafts
                if _is_founded(connection, auth, draft)
            ]
        loaded = self._loaded(auth, written)
        return [loaded[one] for one in dict.fromkeys(written) if one in loaded]

    def load_note(self, auth: AuthContext, note_id: str) -> Note:
        found = self.load_notes(auth, [note_id])
        if not found:
            raise AbsentError("there is no such note of yours", value=note_id)
        return found[note_id]

    def store_note_vectors(
        self,
        auth: AuthContext,
        model: str,
        vectors: Mapping[str, Vector],
        similarity: Callable[[float], float],
    ) -> None:
        query = f"SELECT m.id FROM notes m WHERE {OWN} AND m.note_id = :note_id"
        if not vectors:
            return
        added = np.stack([*vectors.values()])
        with self._database.write() as connection:
            known, rows = self._vectors(auth, model)
            rows = np.concatenate([rows, added]) if known else added
            ids: list[int | None] = [*known]
            for note_id, vector in vectors.items():
                given = {**owner_fields(auth), "note_id": note_id}
                row = connection.execute(query, given).fetchone()
                if row is not None:  # it was not deleted meanwhile
                    _keep_vector(connection, row[0], model, vector)
                    cosines = rows[: len(ids)] @ vector
                    for place in np.argsort(-cosines)[:NEIGHBOURS].tolist():
                        strength = min(1.0, similarity(float(cosines[place])))
                        other = ids[place]
                        if other is not None and strength >= SIMILAR:
                            _link(connection, row[0], other, "semantic", strength)
                ids.append(None if row is None else row[0])

    def edit_note(self, auth: AuthContext, note_id: str, content: str) -> Note:
        text = _checked(content)
        note = self.load_note(auth, note_id)
        earlier, now = _new_id(), _now()
        source = OwnerEdit(earlier=earlier, origin=origin_of(note.provenance))
        with self._database.write() as connection:
            row_id = _row_id(connection, auth, note_id)
            copied = connection.execute(
                f"INSERT INTO notes (note_id, {_OTHERS}) SELECT ?, {_OTHERS} FROM notes"
                " WHERE id = ?",
                (earlier, row_id),
            ).lastrowid
            assert copied is not None
            language = detect_language(text)
            connection.execute(
                """UPDATE notes SET content = ?, keywords = ?, language = ?, value = '',
                       provenance = ?, observed_at = ?, changed_at = ?, model = '', vector = NULL
                   WHERE id = ?""",
                (
                    text,
                    _json(keywords_of(text, language)),
                    language,
                    source.model_dump_json(),
                    *(now, now, row_id),
                ),
            )
            connection.execute(_LINK, (row_id, copied, "supersedes", 1.0))
            _index(connection, copied, note.content, note.context, note.language)
            _index(connection, row_id, text, note.context, language)
            sign(connection, "notes", "m.id IN (?, ?)", row_id, copied)
        return self.load_note(auth, note_id)

    def delete_note(self, auth: AuthContext, note_id: str) -> Counter[str]:
        with self._database.write() as connection:
            counts = self._erase(connection, auth, note_id)
            note_erasure(connection)
        self._database.checkpoint()
        return counts

    def would_delete_note(self, auth: AuthContext, note_id: str) -> Counter[str]:
        with self._database.undone() as connection:
            return self._erase(connection, auth, note_id)

    def _erase(
        self, connection: sqlite3.Connection, auth: AuthContext, note_id: str
    ) -> Counter[str]:
        """Delete a note with its earlier versions, and what rests on them."""
        note: Note | None = self.load_note(auth, note_id)
        going: list[str] = []
        while note is not None:
            going.append(note.note_id)
            source = note.provenance
            earlier = source.earlier if isinstance(source, OwnerEdit) else ""
            note = self.load_notes(auth, [earlier]).get(earlier)
        given = {**owner_fields(auth), "ids": _json(going)}
        _forget_context(connection, given)
        return erase_notes(connection, OF_IDS, given)


def _forget_context(connection: sqlite3.Connection, given: Mapping[str, str]) -> None:
    """Take what was typed beside these notes, which has their words, out of others of the turn."""
    of_turn = f"SELECT run_id FROM notes m WHERE {OF_IDS}"
    rows = connection.execute(
        f"""UPDATE notes AS m SET context = '' WHERE {OWN} AND m.context <> ''
            AND m.sum IS {NOTE} AND m.run_id IN ({of_turn}) RETURNING id, content, language""",
        given,
    ).fetchall()
    for row in rows:
        _index(connection, row["id"], row["content"], "", row["language"])
        sign(connection, "notes", "m.id = ?", row["id"])


def _keep_vector(connection: sqlite3.Connection, row_id: int, model: str, vector: Vector) -> None:
    stored = vector.astype("<f4").tobytes()
    connection.execute(
        "UPDATE notes SET model = ?, vector = ? WHERE id = ?", (model, stored, row_id)
    )


def keywords_of(text: str, language: str) -> list[str]:
    """Return the first content words of a text, as they are written."""
    found = {
        one.term: text[one.start : one.end]
        for one in reversed(analyze(text, language))
        if not one.is_function
    }
    return list(reversed(found.values()))[:KEYWORDS]


def _is_founded(connection: sqlite3.Connection, auth: AuthContext, draft: NoteDraft) -> bool:
    """Tell whether the turn or the claim that a note rests on is the caller's, and is there."""
    source = draft.provenance
    given = {**owner_fields(auth), **source.model_dump(include={"run_id"})}
    if isinstance(source, TurnSource):
        if draft.content != source.quote:
            return False
        given |= {"conversation": source.conversation, "quote": source.quote}
        return connection.execute(_TURN, given).fetchone() is not None
    if not isinstance(source, ClaimSource):
        return False
    row = connection.execute(_CLAIMS, given).fetchone()
    wanted = {(one.chunk_id, one.start, one.end) for one in source.citations}
    return (
        any(
            claim["text"] == draft.content
            and wanted
            <= {(one["chunk_id"], one["start"], one["end"]) for one in claim["citations"]}
            for claim in json.loads(row[0] or "[]") or []
        )
        if row
        else False
    )


def _written(connection: sqlite3.Connection, auth: AuthContext, draft: NoteDraft) -> int:
    """Write one note, or strengthen the one that says the same; return its row id."""
    now = _now()
    if draft.language == "und":
        draft = draft.model_copy(update={"language": detect_language(draft.content)})
    known = {
        **owner_fields(auth),
        **draft.model_dump(include={"content", "subject", "value"}),
        **_origin_fields(draft),
    }
    if not draft.note_id and (row := connection.execute(_SAME, known).fetchone()):
        connection.execute(
            "UPDATE notes SET importance = min(1.0, importance + ?), changed_at = ? WHERE id = ?",
            (AGAIN, now, row[0]),
        )
        sign(connection, "notes", "m.id = ?", row[0])
        return int(row[0])
    row_id = _inserted(connection, auth, draft, now)
    _supersede(connection, auth, draft, row_id)
    _link_subject(connection, auth, draft, row_id)
    _link_neighbours(connection, auth, row_id, draft)
    return row_id


def _inserted(connection: sqlite3.Connection, auth: AuthContext, draft: NoteDraft, now: str) -> int:
    values = {
        **draft.model_dump(exclude={"provenance", "note_id", "supersedes"}),
        **owner_fields(auth),
        "note_id": draft.note_id or _new_id(),
        "keywords": _json(draft.keywords or keywords_of(draft.content, draft.language)),
        "tags": _json(draft.tags),
        "provenance": draft.provenance.model_dump_json(),
        **_origin_fields(draft),
        "observed_at": draft.observed_at or now,
        "created_at": now,
        "changed_at": now,
    }
    row_id = connection.execute(_INSERT, values).lastrowid
    assert row_id is not None
    _index(connection, row_id, draft.content, draft.context, draft.language)
    sign(connection, "notes", "m.id = ?", row_id)
    return row_id


def _origin_fields(draft: NoteDraft) -> dict[str, str]:
    source = origin_of(draft.provenance)
    cited = source.citations if isinstance(source, ClaimSource) else []
    return {
        "conversation": source.conversation,
        "run_id": source.run_id,
        "documents": _json(sorted({one.document_id for one in cited})),
    }


def _index(
    connection: sqlite3.Connection, row_id: int, content: str, context: str, language: str
) -> None:
    """Index the words of a note: its own twice, those of its context once, as with passages."""
    words = terms(content, language)
    counted = Counter({term: 2 * count for term, count in Counter(words).items()})
    counted.update(terms(context, language))
    connection.execute("DELETE FROM note_terms WHERE note = ?", (row_id,))
    connection.executemany(
        """INSERT INTO note_terms SELECT m.tenant, m.owner, ?2, m.id, ?3, ?4 FROM notes m
           WHERE m.id = ?1""",
        [(row_id, term, count, counted.total()) for term, count in counted.items()],
    )
    connection.execute("UPDATE notes SET length = ? WHERE id = ?", (counted.total(), row_id))


def _supersede(
    connection: sqlite3.Connection, auth: AuthContext, draft: NoteDraft, row_id: int
) -> None:
    """Let a note take the place of those that it names."""
    given = {**owner_fields(auth), "ids": _json(draft.supersedes)}
    for row in connection.execute(f"SELECT m.id FROM notes m WHERE {OF_IDS}", given).fetchall():
        connection.execute(_LINK, (row_id, row[0], "supersedes", 1.0))


def _link_subject(
    connection: sqlite3.Connection, auth: AuthContext, draft: NoteDraft, row_id: int
) -> None:
    """Let the later of two notes of one subject supersede the other, or note the contradiction.

    One with another value gives way only to what says that it changed; so does one that says more
    than what is no longer so.
    """
    if not draft.subject:
        return
    rows = connection.execute(
        f"""SELECT m.id, m.subject, m.value, m.content, m.language,
                m.observed_at <= (SELECT observed_at FROM notes WHERE id = :new) AS before
            FROM notes m WHERE {OWN} AND m.id <> :new AND {CURRENT} AND (m.subject = :subject
                OR substr(m.subject, 1, length(:kind)) = :kind AND m.value <> :value)""",
        {
            **owner_fields(auth),
            **draft.model_dump(include={"subject", "value"}),
            "kind": draft.subject.partition("|")[0] if draft.subject.startswith(WORDS) else "-",
            "new": row_id,
        },
    ).fetchall()
    for row in rows:
        again = row["value"] == draft.value != ""
        later = draft.model_dump(include={"content", "language"}) if row["before"] else row
        other = is_other(draft.value, row["value"])
        holds = not other or marks_change(later["content"], later["language"])
        if (draft.replaces or again) and row["subject"] == draft.subject and holds:
            if not _are_apart(draft.value, row["value"]):
                pair = (row_id, row["id"]) if row["before"] else (row["id"], row_id)
                connection.execute(_LINK, (*pair, "supersedes", 1.0))
        elif _ends(draft, row):
            connection.execute(_LINK, (row_id, row["id"], "supersedes", 1.0))
        elif row["subject"] == draft.subject or _includes(draft.subject, row["subject"]):
            _link(connection, row_id, row["id"], "contradicts", 1.0)


def _ends(draft: NoteDraft, row: sqlite3.Row) -> bool:
    """Tell whether a note says that what an earlier one says more of is no longer so.

    Of several things the end of one leaves the others, so that both notes stay.
    """
    if not row["before"] or not marks_change(draft.content, draft.language):
        return False
    if draft.value != NO:
        denied = draft.subject == row["subject"] and draft.value.startswith(DENIED)
        return denied and is_other(draft.value, row["value"])
    if names_several(row["content"], row["language"]):
        return False
    return _words(draft.subject) <= _words(row["subject"])


def _are_apart(one: str, other: str) -> bool:
    """Tell whether one of two values denies another than the other gives."""
    denies = one.startswith(DENIED), other.startswith(DENIED)
    return any(denies) and not _includes(one.removeprefix(DENIED), other.removeprefix(DENIED))


def _includes(one: str, other: str) -> bool:
    """Tell whether one of two texts has all words of the other."""
    own, others = _words(one), _words(other)
    return own <= others or others <= own


def _words(text: str) -> set[str]:
    return set(text.replace("|", " ").split())


def _link_neighbours(
    connection: sqlite3.Connection, auth: AuthContext, row_id: int, draft: NoteDraft
) -> None:
    """Link a new note with the one before in its conversation, and with those of its topic.

    What it has in common with those of its topic becomes a tag of both.
    """
    source = origin_of(draft.provenance)
    before = """SELECT id FROM notes WHERE conversation = ? AND id < ? AND tenant = ? AND owner = ?
        ORDER BY id DESC LIMIT 1"""
    own = (source.conversation, row_id, auth.tenant, auth.user)
    if source.conversation and (row := connection.execute(before, own).fetchone()):
        _link(connection, row_id, row[0], "temporal", 1.0)
    wanted = set(content_terms(draft.content, draft.language))
    given = {**owner_fields(auth), "terms": _json(sorted(wanted)), "new": row_id}
    for row in connection.execute(_SHARING, given).fetchall():
        shared = json.loads(row["shared"])
        if len(shared) >= SHARE * len(wanted):
            _link(connection, row_id, row["note"], "topical", len(shared) / len(wanted))
            for one in (row_id, row["note"]):
                _add_tags(connection, one, shared)


def _add_tags(connection: sqlite3.Connection, row_id: int, shared: Sequence[str]) -> None:
    row = connection.execute("SELECT tags, keywords FROM notes WHERE id = ?", (row_id,)).fetchone()
    tags = json.loads(row["tags"])
    added = list(dict.fromkeys([*tags, *shared]))[:TAGS]
    if added != tags:
        connection.execute(
            "UPDATE notes SET tags = ?, changed_at = ? WHERE id = ?", (_json(added), _now(), row_id)
        )
        sign(connection, "notes", "m.id = ?", row_id)


def _link(connection: sqlite3.Connection, one: int, other: int, kind: str, strength: float) -> None:
    """Link two notes, each with the other."""
    if one != other:
        connection.executemany(_LINK, [(one, other, kind, strength), (other, one, kind, strength)])


def _row_id(connection: sqlite3.Connection, auth: AuthContext, note_id: str) -> int:
    query = f"SELECT m.id FROM notes m WHERE {OWN} AND m.note_id = :note_id AND m.sum IS {NOTE}"
    row = connection.execute(query, {**owner_fields(auth), "note_id": note_id}).fetchone()
    if row is None:
        raise AbsentError("there is no such note of yours", value=note_id)
    return int(row[0])


def _checked(content: str) -> str:
    text = " ".join(content.replace("\x00", "").split())
    if not 0 < len(text) <= LONGEST:
        rule = f"a note has 1 to {LONGEST} characters"
        raise CallerError(rule, value=len(text), hint="shorten it, or delete the note")
    return text


def _new_id() -> str:
    return uuid.uuid4().hex[:16]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
