"""The names in a piece of evidence, and those its title goes by, as index terms."""

from __future__ import annotations

import re
from functools import lru_cache

from core.language.analysis import terms
from core.language.entities import MAX_CHARACTERS, MAX_WORDS, entities
from core.types import Evidence
from stores.segments.links import Name

MAX_NAMES = 64  # of one chunk; the first ones, which is where a chunk says what it is about
_IN_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_COMMA = re.compile(r"[,，、]")


def names_in(item: Evidence) -> list[Name]:
    """Return the names a chunk says, each once, in its order, without those of its own title."""
    own = title_names(item)
    return [name for name in _names(item.text, item.language) if name not in own][:MAX_NAMES]


@lru_cache(maxsize=4096)
def _names(text: str, language: str) -> tuple[Name, ...]:
    found = (tuple(terms(one.text, language)) for one in entities(text, language))
    return tuple(name for name in dict.fromkeys(found) if name)


def title_names(item: Evidence) -> frozenset[Name]:
    """Return what a title goes by: itself, and without what only tells it apart from others.

    That is what stands in brackets at the end ("Always (film)") or after a comma ("Laie, Hawaii").
    """
    return _title_names(item.title, item.language)


@lru_cache(maxsize=4096)
def _title_names(title: str, language: str) -> frozenset[Name]:
    plain = _IN_BRACKETS.sub("", title)
    forms = {title, plain, _COMMA.split(plain, maxsplit=1)[0]}
    # What is longer than any name found in a text can equal none.
    short = [one for one in forms if len(one) <= MAX_CHARACTERS and len(one.split()) <= MAX_WORDS]
    return frozenset(tuple(terms(form, language)) for form in short) - {()}
