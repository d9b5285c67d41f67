"""How far one text has moved away from another: by meaning where served, else by words."""

from __future__ import annotations

from core.language.analysis import content_terms
from models.embeddings import Embedder


def similarity(original: str, proposed: str, language: str, embedder: Embedder | None) -> float:
    """Return that of meaning where the embedder serves the language, else the words kept."""
    meant = meaning(original, proposed, language, embedder)
    return kept_share(original, proposed, language) if meant is None else meant


def meaning(left: str, right: str, language: str, embedder: Embedder | None) -> float | None:
    """Return how much alike two texts are, 0..1; None where the embedder does not serve them."""
    if embedder is None or (embedder.languages is not None and language not in embedder.languages):
        return None
    cosine = float(embedder.embed_documents([right])[0] @ embedder.embed_query(left))
    return embedder.similarity(cosine, language)


def kept_share(original: str, proposed: str, language: str) -> float:
    """Return the share of a text's content words that another has as well, 0..1."""
    asked = set(content_terms(original, language))
    kept = asked & set(content_terms(proposed, language))
    return len(kept) / len(asked) if asked else 1.0
