"""Which words of a question a rewrite keeps, and which ones evidence lacks."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import NamedTuple

from core.language.analysis import analyze, content_terms, terms
from core.language.entities import entities
from core.types import Evidence, SubQuestion, TermWeights
from models.embeddings import Embedder, serves

AKIN_LETTERS, AKIN_SHARE = 4, 0.8  # chosen, not measured


def similarity(original: str, proposed: str, language: str, embedder: Embedder | None) -> float:
    """Return that of meaning where the embedder serves the language, else the words kept."""
    meant = meaning(original, proposed, language, embedder)
    return kept_share(original, proposed, language) if meant is None else meant


def meaning(left: str, right: str, language: str, embedder: Embedder | None) -> float | None:
    """Return how much alike two texts are, 0..1; None where the embedder does not serve them."""
    if not serves(embedder, language):
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


class OpenWords(NamedTuple):
    """Say which share of a question's words, by rarity, evidence covers, and which are open."""

    covered: float
    text: str


def open_words(
    question: SubQuestion, evidence: Sequence[Evidence], weights: TermWeights
) -> OpenWords:
    """Return how much of a question is covered, 0..1, and its other words as written."""
    language = question.language
    asked = dict.fromkeys(content_terms(question.query, language))
    present = {
        term for item in evidence for term in terms(f"{item.title} {item.text}", item.language)
    }
    rarity = weights(list(asked))
    total = sum(rarity.values())
    left = {term for term in asked if term not in present}
    words = [
        question.query[token.start : token.end]
        for token in analyze(question.query, language)
        if token.term in left
    ]
    covered = 1.0 - sum(rarity[term] for term in left) / total if total > 0 else 1.0
    return OpenWords(covered, " ".join(dict.fromkeys(words)))


def leading_names(
    question: SubQuestion, evidence: Sequence[Evidence], weights: TermWeights, limit: int
) -> list[str]:
    """Return names in evidence, given best first, that the question does not say.

    A name counts by its rarest word and by the best rank of the evidence that says it. What the
    title of the evidence says as well leads back to it. Ties are in order of appearance.
    """
    asked = set(terms(question.query, question.language))
    found: dict[str, tuple[list[str], int]] = {}  # a name's own terms, and its best rank
    for rank, item in enumerate(evidence, start=1):
        title = set(terms(item.title, item.language))
        for name in dict.fromkeys(one.text for one in entities(item.text, item.language)):
            own = [term for term in terms(name, item.language) if term not in asked]
            if not own or title.issuperset(terms(name, item.language)):
                continue
            found.setdefault(name, (own, rank))
    rarity = weights(sorted({term for own, _ in found.values() for term in own}))
    worth = {n: max(rarity[term] for term in own) / rank for n, (own, rank) in found.items()}
    return sorted(worth, key=lambda name: -worth[name])[:limit]
