"""Function words by language: they carry grammar, not what a question is about."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "resources"
_LANGUAGES = frozenset({"en", "ru", "uk", "zh"})


@cache
def stopwords(language: str) -> frozenset[str]:
    """Return the casefolded function words of a language; empty for a language without a list."""
    if language not in _LANGUAGES:
        return frozenset()
    lines = (_FOLDER / f"stopwords_{language}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(
        word for line in lines if not line.startswith("#") for word in line.casefold().split()
    )
