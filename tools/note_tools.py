"""Memory: the notes of a caller, found by words and by meaning, and the tools that read them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Any, ClassVar

from pydantic import Field

from core.auth import AuthContext
from core.errors import ModelError
from core.language.changes import points_back
from core.language.relative_dates import format_day, with_dates
from core.metadata import CORRECTS, REPLACED
from core.notes import ClaimSource, FoundNote, Note, NoteDraft, origin_of
from core.recall import KEYWORD_SEARCH, NOTE, READ_MEMORY, SEMANTIC_SEARCH
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.embeddings import Embedder
from retrievers.fusion import RRF_CONSTANT
from retrievers.types import Index
from stores.ports import Notes
from tools.types import Tool, ToolResult

POOL = 50  # notes of each ranking that are fused; chosen, not measured


class Memory:
    """Keep and find notes; without an embedder by words alone."""

    def __init__(self, notes: Notes, embedder: Embedder | None) -> None:
        self.notes = notes
        self.embedder = embedder

    def remember(self, auth: AuthContext, drafts: Sequence[NoteDraft]) -> list[Note]:
        """Write notes, and embed those that have no vector yet."""
        written = self.notes.write_notes(auth, drafts) if drafts else []
        if not written:
            return []
        self.embed(auth)
        found = self.notes.load_notes(auth, [one.note_id for one in written])
        return list(found.values())

    def embed(self, auth: AuthContext) -> None:
        """Embed the notes of a caller that have no vector of this model, as far as it answers."""
        embedder = self.embedder
        if embedder is None:
            return
        texts = self.notes.unembedded_notes(auth, embedder.model_id)
        if not texts:
            return
        with suppress(ModelError):  # they are found by words, and embedded by the next call
            vectors = dict(zip(texts, embedder.embed_documents([*texts.values()]), strict=True))
            self.notes.store_note_vectors(auth, embedder.model_id, vectors, embedder.similarity)

    def find_by_words(
        self, auth: AuthContext, text: str, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        """Return the notes with words of a text, best first."""
        return self.notes.find_by_words(auth, text, limit, current=current)

    def find_by_meaning(
        self, auth: AuthContext, text: str, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        """Return the notes that mean what a text means, best first; none without an embedder."""
        if self.embedder is None:
            return []
        self.embed(auth)
        with suppress(ModelError):
            vector, model = self.embedder.embed_query(text), self.embedder.model_id
            return self.notes.find_by_vector(auth, model, vector, limit, current=current)
        return []

    def search(
        self, auth: AuthContext, text: str, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        """Return notes by words and by meaning, fused by their ranks, best first; all for -1."""
        scores: dict[str, float] = defaultdict(float)
        notes: dict[str, Note] = {}
        for find in (self.find_by_words, self.find_by_meaning):
            pool = limit if limit < 0 else max(POOL, limit)
            for rank, one in enumerate(find(auth, text, pool, current=current), 1):
                notes[one.note.note_id] = one.note
                scores[one.note.note_id] += 1 / (RRF_CONSTANT + rank)
        best = sorted(notes.values(), key=lambda note: -scores[note.note_id])
        found = [FoundNote(note=one, score=scores[one.note_id]) for one in best]
        return found if limit < 0 else found[:limit]


FOUND = 20  # notes of one search; chosen, not measured
MOST_READ = 50
SPEAKER = "speaker:"  # begins the tag of a note that somebody else than its owner stated
ENDED = re.compile(r"[^\w)）»”\"'*]$")  # else a statement looks like a heading
LINKS = 10  # linked notes that are read with those asked for; chosen, not measured


def note_evidence(
    note: Note, tool: str, query: str, score: float, *, context: str = ""
) -> Evidence:
    """Return a note as evidence: its days resolved by the day it was stated on.

    `context` is what it cannot be understood without, as is what it corrects.
    `title` is who stated it, "" for its owner, of an answer its document; `section` is the day.
    """
    speaker = next((tag[len(SPEAKER) :] for tag in note.tags if tag.startswith(SPEAKER)), "")
    stated = note.observed_at or note.created_at
    origin, day = origin_of(note.provenance), date.fromisoformat(stated[:10])
    cited = origin.citations[0].source if isinstance(origin, ClaimSource) else ""
    text = note.content.removeprefix(f"{speaker}: ") if speaker else note.content
    stop = "" if ENDED.search(text) else find_language(note.language).full_stop
    return Evidence(
        evidence_id=note.note_id,
        chunk_id=note.note_id,
        document_id=note.note_id,
        document_key=note.note_id,
        source=origin.conversation or origin.run_id,
        title=speaker or cited,
        section=format_day(day, note.language),
        text=with_dates(f"{text}{stop}", note.language, day),
        kind=NOTE,
        language=note.language,
        updated_at=stated,
        metadata={
            "conversation": origin.conversation,
            "subject": note.subject,
            "value": note.value,
            "context": f"{context} {note.corrected}".strip(),
            **({CORRECTS: note.corrects} if note.corrects else {}),
        },
        tool=tool,
        query=query,
        score=score,
    )


class NoteSearchArguments(FrozenModel):
    """Say what to look for."""

    query: str = Field(min_length=1)
    limit: int = Field(FOUND, ge=1, le=MOST_READ)


class NoteReadArguments(FrozenModel):
    """Name the notes to read, or how many of the newest; with `links` those linked come too.

    With `before` the statement whose place a note has taken stands for it.
    """

    note_ids: list[str] = Field(default_factory=list, max_length=MOST_READ)
    newest: int = Field(0, ge=0, le=MOST_READ)
    links: bool = True
    before: bool = False


class MemoryTool(Tool):
    """Fetch notes of the verified caller, and of nobody else."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._memory = Memory(index.notes, index.embedder)


class KeywordSearch(MemoryTool):
    """Search notes by words."""

    name = KEYWORD_SEARCH
    purpose = "Find notes with the words, names or numbers of the question."
    not_for: ClassVar = ["documents"]
    arguments = NoteSearchArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the notes that fit the query, best first."""
        given = self._checked(NoteSearchArguments, arguments, auth, deadline)
        evidence = [
            note_evidence(one.note, self.name, given.query, one.score)
            for one in self._find(auth, given.query, given.limit)
        ]
        return ToolResult(evidence=evidence, auth_filter=auth.describe())

    def _find(self, auth: AuthContext, text: str, limit: int) -> list[FoundNote]:
        return self._memory.find_by_words(auth, text, limit)


class SemanticSearch(KeywordSearch):
    """Search notes by meaning; those without a vector are embedded first."""

    name = SEMANTIC_SEARCH
    purpose = "Find notes that mean what the question means, also in other words."

    def _find(self, auth: AuthContext, text: str, limit: int) -> list[FoundNote]:
        return self._memory.find_by_meaning(auth, text, limit)


class ReadMemory(MemoryTool):
    """Read notes with their links."""

    name = READ_MEMORY
    purpose = "Read notes that were found, with the notes linked to them, or the newest."
    not_for: ClassVar = ["finding notes: it needs their ids"]
    arguments = NoteReadArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the notes in the order asked for, then those linked to them that still hold.

        Last come those whose place they took: they may say more than what has changed.
        """
        given = self._checked(NoteReadArguments, arguments, auth, deadline)
        known = self._memory.notes.load_notes(auth, given.note_ids)
        if given.newest:
            last = self._memory.notes.list_notes(auth, current=True, limit=given.newest)
            known |= {one.note_id: one for one in last}
        asked = [known[name] for name in given.note_ids or known if name in known]
        linked = [one.note_id for note in asked for one in note.links if one.note_id not in known]
        names = list(dict.fromkeys(linked))[:LINKS] if given.links else []
        more = self._memory.notes.load_notes(auth, names) if names else {}
        notes = [*asked, *(more[name] for name in names if name in more)]
        if given.before:
            notes = [self._before(auth, one) for one in notes]
            notes = list({one.note_id: one for one in notes}.values())
        shown = ", ".join(given.note_ids)
        evidence = [
            note_evidence(
                note, self.name, shown, 1 / (1 + place), context=self._antecedent(auth, note)
            )
            for place, note in enumerate(notes)
            if given.before or not note.superseded_by
        ]
        later = {str(one.metadata[CORRECTS]): one for one in evidence if CORRECTS in one.metadata}
        replaced = self._memory.notes.load_notes(auth, [*later]) if not given.before else {}
        for name, note in replaced.items():
            found = note_evidence(note, self.name, shown, later[name].score)
            mark = {REPLACED: later[name].evidence_id}
            evidence.append(found.model_copy(update={"metadata": {**found.metadata, **mark}}))
        return ToolResult(evidence=evidence, auth_filter=auth.describe())

    def _before(self, auth: AuthContext, note: Note) -> Note:
        """Return the note whose place a note has taken, the note itself where it took none."""
        return self._memory.notes.load_notes(auth, [note.corrects]).get(note.corrects, note)

    def _antecedent(self, auth: AuthContext, note: Note) -> str:
        """Return the statements before a note that tell of whom it is: "My sister is Ann."."""
        found: list[str] = []
        while points_back(note.content, note.language) and len(found) < LINKS:
            beside = [one.note_id for one in note.links if one.kind == "temporal"]
            near = self._memory.notes.load_notes(auth, beside).values()
            before = [one for one in near if one.created_at < note.created_at]
            if not before:
                break
            note = before[0]
            found.insert(0, note.content)
        return " ".join(found)
