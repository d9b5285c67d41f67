"""Whom an explanation is for: "explain pytrees for beginners"."""

from __future__ import annotations

from typing import Literal

from core.language.identifiers import find_identifiers
from reasoning.rules.lexicon import Lexicon

Level = Literal["any", "beginner", "expert"]
NAMED: tuple[Level, ...] = ("beginner", "expert")


def level_asked(text: str, words: Lexicon) -> Level:
    """Return the level that a question, or a wish for an explanation, names."""
    asks = words.is_question(text) or words.starts("explains", text) or find_identifiers(text)
    if not asks:
        return "any"  # "psychology for beginners" are books
    return next((one for one in NAMED if words.found(one, text)), "any")


def without_level(text: str, words: Lexicon) -> str:
    """Return a question without the words that only name its level."""
    if level_asked(text, words) == "any":
        return text
    return " ".join(words.remove(text, *NAMED).split())
