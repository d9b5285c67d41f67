"""How far one text has moved away from another: by meaning where served, else by words."""

from __future__ import annotations

from os.path import commonprefix

from core.language.analysis import content_terms
from models.embeddings import Embedder

AKIN_LETTERS, AKIN_SHARE = 4, 0.8


def similarity(original: str, proposed: str, language: str, embedder: Embedder | None) -> float:
    """Return that of meaning where the embedder serves the language, else the words kept."""
    meant = meaning(original, proposed, language, embedder)
    return kept_share(original, proposed, language) if meant is None else meant


def meaning(left: str, right: str, language: str, embedder: Embedder | None) -> float | None:
    """Return how much alike two texts are, 0..1; None where the embedder does not serve them."""
    if embedder is None or (embedder.languages is not None and language not in embedder.languages):
        return None
    cosine = float(embedder.embed_documents([right])[0] @ embedder.embed_query(left))
    return min(1.0, embedder.similarity(cosine, language))


def kept_share(original: str, proposed: str, language: str) -> float:
    """Return the share of a text's content words that another has as well, 0..1."""
    asked = set(content_terms(original, language))
    kept = asked & set(content_terms(proposed, language))
    return len(kept) / len(asked) if asked else 1.0


def kept_in_any_form(original: str, proposed: str, language: str) -> float:
    """Return the share of words kept, 0..1; "who founded it" keeps that of "its founder"."""
    known = content_terms(proposed, language)
    asked = set(content_terms(original, language))
    kept = [word for word in asked if any(_akin(word, other) for other in known)]
    return len(kept) / len(asked) if asked else 1.0


def _akin(word: str, other: str) -> bool:
    """Tell whether two stems are one, or share most of the shorter one's letters."""
    shared = len(commonprefix([word, other]))
    return word == other or shared >= max(AKIN_LETTERS, AKIN_SHARE * min(len(word), len(other)))
