"""Versions and values of which documents hold different ones."""

from __future__ import annotations

import re

from core.language.analysis import terms
from core.language.cues import cues
from core.types import Evidence
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.forms import CAPITALISED, NUMBER

DOTTED = re.compile(r"(?<![\w.,/$€£])v?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\w%]|[.,]\d)")
# Chosen, not measured:
ALIKE = 0.75  # of the words of two sentences that say different values of the same thing


def versions_in(text: str, language: str) -> list[str]:
    """Return the versions that a text names: dotted numbers, and those beside "version"."""
    named = cues(language).alternatives("version")
    beside = re.findall(rf"{named}\s?(\d{{1,4}})(?![\d.])", text, re.IGNORECASE)
    return [*DOTTED.findall(text), *beside]


def is_other_version(question: str, language: str, item: Evidence) -> bool:
    """Tell whether a question names a version, and evidence is of another and does not name it."""
    versions = [item.version] if item.version else versions_in(item.title, item.language)
    asked = versions_in(question, language) if versions else []
    text = f"{item.text} {item.section}"
    return bool(asked) and not any(
        f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") or one in text
        for one in asked
        for other in versions
    )


def contradicts(left: str, right: str, language: str) -> bool:
    """Tell whether two sentences say the same with other numbers or names."""
    (one, words), (other, others) = _name_parts(left, language), _name_parts(right, language)
    if not one - other or not other - one:
        return False
    return len(words & others) >= ALIKE * max(1, len(words), len(others))


def _name_parts(text: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the numbers and names of a text, and its other terms."""
    words = lexicon(language)
    names = CAPITALISED.findall(text) if words.known.spaced else []
    written = (one.group().casefold() for one in words.all_of("numeral", text))
    numbers = frozenset([*NUMBER.findall(text), *written])
    bare = frozenset(terms(words.remove(NUMBER.sub(" ", text), "numeral"), language))
    named = frozenset(terms(" ".join(names), language))
    return numbers | named, bare - named
