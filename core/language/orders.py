"""What of a document gives orders to a program that reads it: it is no answer."""

from __future__ import annotations

import re
from functools import lru_cache

from languages.language import Language, known_languages

_SENTENCE = re.compile(r"[^\s.!?。！？][^.!?。！？\n]*[.!?。！？]*")


def gives_orders(text: str, start: int, end: int) -> bool:
    """Tell whether a stretch of a text has an order, or goes on behind one in its paragraph."""
    return any(first < end and start < last for first, last in _found(text))


@lru_cache(maxsize=256)  # passages at once; chosen, not measured
def _found(text: str) -> tuple[tuple[int, int], ...]:
    """Return where orders begin, and where their paragraphs end."""
    sentences = [one for one in _SENTENCE.finditer(text) if _orders().search(one.group())]
    ends = [(one.start(), text.find("\n\n", one.end())) for one in sentences]
    return tuple((start, len(text) if end < 0 else end) for start, end in ends)


@lru_cache(maxsize=1)
def _orders() -> re.Pattern[str]:
    """Return what gives orders, in every language."""
    listed = [_filled(one, own) for own in known_languages().values() for one in own.orders]
    return re.compile("|".join(f"(?:{one})" for one in listed), re.IGNORECASE | re.MULTILINE)


def _filled(pattern: str, language: Language) -> str:
    for name, words in language.order_words.items():
        pattern = pattern.replace(f"<{name}>", f"(?:{words})")
    return pattern
