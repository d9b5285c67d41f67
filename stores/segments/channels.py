"""Ask both channels of one view and put their candidates together."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from core.errors import OperatorError
from core.settings import Settings
from stores.chroma import ChromaVectors
from stores.fulltext import FullText
from stores.segments.masks import Mask, Selection
from stores.segments.ranking import best_vectors, best_words, nearest
from stores.segments.truth import pending_rows, row_ids
from stores.segments.types import Candidates, Floats, Integers, TermWeights
from stores.segments.view import View


@dataclass(frozen=True)
class _Near:
    """Hold the rows of the vector channel and how cosines spread over all visible rows."""

    rows: Integers
    mean: float = 0.0
    deviation: float = 0.0
    note: str = ""


class Channels:
    """Search one view by words and by vector."""

    def __init__(self, fulltext: FullText, chroma: ChromaVectors, settings: Settings) -> None:
        """Let FTS5 answer for words a view has not counted, Chroma for vectors too many to scan."""
        self._fulltext = fulltext
        self._chroma = chroma
        self._settings = settings

    def search(
        self,
        view: View,
        connection: sqlite3.Connection,
        mask: Mask,
        terms: TermWeights,
        vector: Floats | None,
        pool: int,
    ) -> Candidates:
        """Return the union of the `pool` best rows of each channel."""
        import numpy as np

        scores = self._word_scores(view, connection, terms)
        wordy = best_words(view, scores, mask.visible, pool) if pool > 0 else _none()
        near = _Near(_none())
        if vector is not None:
            vector = view.checked(vector)
            near = self._nearest(view, connection, mask.embedded, vector, pool)
        rows = np.union1d(wordy, near.rows)
        words = scores[rows]
        seen = mask.visible.values(scores) if terms else scores[:0]
        cosine = sentence = None
        if vector is not None:
            cosine, sentence = _similarities(view, rows, vector)
        return Candidates(
            chunk_ids=[key.decode() for key in view.chunk_ids(rows).tolist()],
            bm25=words,
            cosine=cosine,
            sentence=sentence,
            best_bm25=float(seen.max(initial=0)),
            mean=near.mean,
            deviation=near.deviation,
            visible=mask.visible.count,
            source="segment" if view.words else "index",
            notes=(*view.notes, *([near.note] if near.note else [])),
        )

    def _word_scores(
        self, view: View, connection: sqlite3.Connection, terms: TermWeights
    ) -> Floats:
        import numpy as np

        if view.words:
            return view.word_scores(terms)
        scores = np.zeros(view.rows, dtype=np.float32)
        for weight in sorted(set(terms.values())):
            group = [{term} for term, given in terms.items() if given == weight]
            found = self._fulltext.scores(connection, view.collection_id, group)
            if found:
                ids, values = zip(*found, strict=True)
                rows, live = view.places(np.array(ids, dtype=np.int64))
                scores[rows[live]] += np.float32(weight) * np.array(values, np.float32)[live]
        return scores

    def _nearest(
        self,
        view: View,
        connection: sqlite3.Connection,
        embedded: Selection,
        vector: Floats,
        pool: int,
    ) -> _Near:
        if not embedded.count:
            return _Near(_none())
        note = ""
        if view.rows > self._settings.vector_exact_limit:
            try:
                return self._approximate(view, connection, embedded, vector, pool)
            except OperatorError as error:
                note = f"all vectors were scanned: {error.rule}"
        few = embedded.rows is not None
        cosines = view.vectors(embedded.numbers()) @ vector if few else view.scan(vector)
        seen = cosines if few else embedded.values(cosines)
        rows = best_vectors(view, cosines, embedded, vector, pool) if pool > 0 else _none()
        return _Near(rows, *spread(seen), note)

    def _approximate(
        self,
        view: View,
        connection: sqlite3.Connection,
        embedded: Selection,
        vector: Floats,
        pool: int,
    ) -> _Near:
        """Ask Chroma, and scan what it may not know; the spread is that of a sample."""
        import numpy as np

        every = embedded.numbers()
        documents = set(np.unique(view.documents[every]).tolist())
        found = self._chroma.search(view.collection_id, vector, pool, documents, view.version)
        known = row_ids(connection, view.collection_id, [key for key, _ in found])
        waiting = pending_rows(connection, view.collection_id)
        ids = np.union1d(np.array(list(known.values()), dtype=np.int64), waiting)
        places, live = view.places(ids)
        rows = np.intersect1d(places[live], every)
        step = -(-len(every) // self._settings.segment_sample_rows) or 1
        sample = view.exact(every[::step], vector)
        return _Near(nearest(view, rows, vector, pool), *spread(sample))


def spread(cosines: Floats) -> tuple[float, float]:
    """Return mean and standard deviation, 0 where there is nothing."""
    import numpy as np

    if not len(cosines):
        return 0.0, 0.0
    mean = float(cosines.mean(dtype=np.float64))
    gaps = cosines - np.float32(mean)
    return mean, float(np.sqrt(np.dot(gaps, gaps) / len(gaps)))


def _similarities(view: View, rows: Integers, vector: Floats) -> tuple[Floats, Floats]:
    """Return the cosine of each row, and the best one of its sentences; rows in any order."""
    import numpy as np

    cosine = view.exact(rows, vector)
    order = np.argsort(rows)
    sentence = np.empty_like(cosine)
    sentence[order] = view.sentences(rows[order], vector)
    return cosine, np.where(np.isnan(sentence), cosine, sentence)


def _none() -> Integers:
    import numpy as np

    return np.zeros(0, dtype=np.int64)
