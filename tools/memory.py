"""The notes of a caller: written with their vectors, and found by words and by meaning together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from core.auth import AuthContext
from core.errors import ModelError
from core.notes import FoundNote, Note, NoteDraft
from models.embeddings import Embedder
from retrievers.fusion import RRF_CONSTANT
from stores.ports import Notes

POOL = 50  # notes of each ranking that are fused; chosen, not measured


class Memory:
    """Keep and find notes; without an embedder by words alone."""

    def __init__(self, notes: Notes, embedder: Embedder | None) -> None:
        """Use the notes of an open store."""
        self.notes = notes
        self._embedder = embedder

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
        embedder = self._embedder
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
        if self._embedder is None:
            return []
        self.embed(auth)
        with suppress(ModelError):
            vector, model = self._embedder.embed_query(text), self._embedder.model_id
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
