"""Grade which notes answer a question: by meaning, by the reader and by the words they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.language.analysis import content_terms
from core.types import Evidence, Grade, SubQuestion
from models.embeddings import Embedder, Reads
from models.vectors import SpanPassage, Vectors

# Weights of the features, the constant, and the log odds from which a note answers, or is near
# (`scripts/train_memory.py`).
WEIGHTS = (3.37, 1.25, 0.17, 0.28, 1.64, -1.25, 0.26)
CONSTANT = -3.05
LEAST, NEAR = -0.7, -3.0
FOREIGN = 2.0  # taken from the log odds; chosen, not measured
READ = 8  # notes that are read, those that mean most alike; chosen, not measured
UNREAD, MOST = -8.0, 12.0  # log odds of a note that was not read, and at most


def note_features(question: SubQuestion, notes: Sequence[Evidence], embedder: Embedder) -> Vectors:
    """Return a row for each note.

    Its similarity to the question, 0..1, how much less it is than that of the most similar one,
    the reader's log odds, the part of the question's words that it has, whether any, of how many
    (as a power of 2) that have as great a part it is one, and how much more the reader's log odds
    are than those of the best of the others.
    """
    texts = [f"{one.metadata.get('context', '')} {one.text}".strip() for one in notes]
    asked, language = set(content_terms(question.text, question.language)), question.language
    cosines = embedder.embed_documents(texts) @ embedder.embed_query(question.text)
    alike = np.array(
        [embedder.similarity(float(c), language, one.language)
         for c, one in zip(cosines, notes, strict=True)]
    )  # fmt: skip
    odds = np.full(len(notes), UNREAD)
    if isinstance(embedder, Reads) and embedder.reads:
        best = np.argsort(-cosines)[:READ].tolist()
        passages = [SpanPassage("", texts[at], ((0, len(texts[at])),)) for at in best]
        for at, rows in zip(best, embedder.read(question.text, passages), strict=True):
            odds[at] = np.clip(rows[0][0], UNREAD, MOST)
    shared = [
        asked & set(content_terms(text, one.language))
        for text, one in zip(texts, notes, strict=True)
    ]
    part = np.array([len(one) / max(1, len(asked)) for one in shared])
    equals = np.array([max(1, (part >= own).sum()) for own in part])
    second = np.sort(np.append(odds, UNREAD))[-2]
    lead = odds - np.where(odds == odds.max(), second, odds.max())
    columns = [alike, cosines - cosines.max(), odds, part, part > 0]
    return np.stack([*columns, np.log2(equals) * (part > 0), lead], axis=1)


def grade_notes(
    question: SubQuestion, notes: Sequence[Evidence], embedder: Embedder
) -> list[Grade]:
    """Return the grades of notes: 2 for the one that answers, 1 where it is only near, else 0."""
    features = note_features(question, notes, embedder)
    odds = features @ np.array(WEIGHTS) + CONSTANT
    # Of another language without a name in common only what surely answers will do.
    foreign = np.array([one.language != question.language for one in notes])
    odds -= FOREIGN * (foreign & (features[:, 4] == 0))
    best = float(odds.max())
    level = 2 if best > LEAST else int(best > NEAR)
    return [
        Grade(
            evidence_id=one.evidence_id,
            grade=level if own == best else 0,
            reason=f"log odds {own:.1f}",
        )
        for one, own in zip(notes, odds.tolist(), strict=True)
    ]
