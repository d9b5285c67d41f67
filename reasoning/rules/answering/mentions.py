"""Questions for all that documents say about something: "What do the documents say about X?"."""

from __future__ import annotations

import re
from functools import lru_cache

from core.language.passages import LONGEST
from languages.language import find_language
from reasoning.rules.lexicon import lexicon

QUOTES = "\"'“”‘’«»„《》「」『』`"
END_MARKS = " \t\n?？.。!！…"


@lru_cache(maxsize=8)
def _forms(language: str) -> list[re.Pattern[str]]:
    patterns = find_language(language).read("mentions")
    if not patterns:
        return []
    parts = {**patterns["parts"], "NAME": r"(?P<name>.+?)"}
    named = re.compile("|".join(sorted(parts, key=len, reverse=True)))

    def filled(text: str) -> str:
        return named.sub(lambda match: parts[match[0]], text)

    # A part may name another one.
    texts = (filled(filled(f"PLEASE{one}LAST")) for one in patterns["forms"])
    return [re.compile(one, re.IGNORECASE) for one in texts]


def topic_asked(question: str, language: str) -> str:
    """Return what a question wants all that is written about, "" where it asks something else.

    It may be a question itself: "Tell me about how to start the compressor".
    """
    whole = " ".join(question.split()).strip(END_MARKS)
    if len(whole) > LONGEST:
        return ""
    found = (form.fullmatch(whole) for form in _forms(language))
    name = next((one["name"].strip(f"{END_MARKS}{QUOTES}") for one in found if one), "")
    words = lexicon(language)
    points = name.casefold() in words.any_of("pronoun", "reference", "addressed")
    return "" if points or not words.names_something(name) else name
