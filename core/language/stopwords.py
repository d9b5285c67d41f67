"""Function words by language: they carry grammar, not what a question is about."""

from __future__ import annotations

from languages.language import known_languages


def stopwords(language: str) -> frozenset[str]:
    """Return the casefolded function words of a language; empty for one without a folder."""
    known = known_languages().get(language)
    return known.stopwords if known is not None else frozenset()
