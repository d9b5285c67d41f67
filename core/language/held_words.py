"""Words that a text has in any form of theirs, in any language of their script."""

from __future__ import annotations

import re
from functools import lru_cache

from core.language.analysis import terms
from core.language.words import languages_of

WORD = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")
HAN = re.compile(r"[\u3400-\u9fff]")


def has_words(value: str, text: str) -> bool:
    """Tell whether a value has all words of a text, in any form of theirs."""
    wanted = WORD.findall(text.casefold())
    folded = value.casefold()
    held: set[str] = set()
    for word in WORD.findall(folded):
        held |= forms_of(word)
    return bool(wanted) and all(
        word in folded if HAN.search(word) else bool(forms_of(word) & held) for word in wanted
    )


@lru_cache(maxsize=65536)
def forms_of(word: str) -> frozenset[str]:
    """Return a word with what its inflections share in each language of its script."""
    found = (term for language in languages_of(word) for term in terms(word, language)[:1])
    return frozenset([word, *found])
