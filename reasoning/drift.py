"""How far one text has moved away from another: by meaning where served, else by words."""

from __future__ import annotations

from core.language.analysis import content_terms
from models.embeddings import Embedder


def similarity(original: str, proposed: str, language: str, embedder: Embedder | None) -> float:
    """Return cosine where the embedder serves the language, else the share of words kept."""
    meant = cosine(original, proposed, language, embedder)
    return kept_share(original, proposed, language) if meant is None else meant


def cosine(left: str, right: str, language: str, embedder: Embedder | None) -> float | None:
    """Return the cosine of two texts, or None where the embedder does not serve the language."""
    if embedder is None or (embedder.languages is not None and language not in embedder.languages):
        return None
    vectors = embedder.embed_documents([left, right])
    return float(vectors[0] @ vectors[1])


def kept_share(original: str, proposed: str, language: str) -> float:
    """Return the share of a text's content words that another has as well, 0..1."""
    asked = set(content_terms(original, language))
    kept = asked & set(content_terms(proposed, language))
    return len(kept) / len(asked) if asked else 1.0
