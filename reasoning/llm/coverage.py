"""Tell whether questions that a model proposes ask what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix

from core.language.analysis import content_terms
from core.settings import Settings
from models.embeddings import Embedder
from reasoning.drift import meaning
from reasoning.llm.replies import Unfit

AKIN_LETTERS, AKIN_SHARE = 4, 0.8


class Coverage:
    """Compare texts of one language by their words, and by meaning where it is served."""

    def __init__(self, language: str, settings: Settings, embedder: Embedder | None) -> None:
        """Ask for a similarity of at least `drift_similarity`."""
        self._language = language
        self._least = settings.drift_similarity
        self._embedder = embedder

    def require(self, rule: str, original: str, texts: Sequence[str]) -> None:
        """Raise Unfit with the rule unless the texts keep the original, together or one of them.

        One is compared by itself as well because "Since when?" has no words but common ones, which
        count only where there are no others.
        """
        whole = " ".join(texts)
        kept = max(kept_in_any_form(original, text, self._language) for text in [whole, *texts])
        if kept >= self._least:
            return
        meant = meaning(original, whole, self._language, self._embedder)
        if meant is None or meant < self._least:
            similarity = max(kept, meant or 0.0)
            raise Unfit(f"{rule} (similarity {similarity:.2f}, at least {self._least})")


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
