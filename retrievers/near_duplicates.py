"""Drop evidence that says the same as better evidence."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any

from core.language.cues import negations
from core.language.scan import TOKEN
from core.types import Evidence
from retrievers.types import Searched

COMPARED = 50  # best hits among which repeats are looked for
SHINGLE_WORDS = 3  # words in a row that are compared at a time

SPACED = 12  # a text with fewer spaces than one in so many characters has none between words

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


def near_duplicates(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the first of texts whose shingles have a Jaccard similarity of `near_duplicate`.

    Texts that differ in a number or a denial are never the same, however long they are. Shingles
    are made only of texts whose words agree, which few do. Hits behind `COMPARED` stay.
    """
    settings = searched.index.settings
    least, words = settings.selection.near_duplicate, SHINGLE_WORDS
    kept: list[Evidence] = []
    dropped: list[str] = []
    for item in evidence[:COMPARED]:
        twins = (other for other in kept if _repeats(item.text, other.text, words, least))
        better = next(twins, None)
        if better is None:
            kept.append(item)
        else:
            where = "" if item.document_key == better.document_key else f" of {item.source}"
            dropped.append(f"{item.chunk_id}{where} (as {better.chunk_id})")
    kept += evidence[COMPARED:]
    return kept, f"dropped {', '.join(dropped)}" if dropped else ""


def _repeats(one: str, other: str, words: int, least: float) -> bool:
    # A changed word spoils several shingles, so sets of words differ by less than theirs.
    if not _alike(_words(one), _words(other), 2 * least - 1):
        return False
    (shingles, facts), (others, other_facts) = _fingerprint(one, words), _fingerprint(other, words)
    return facts == other_facts and _alike(shingles, others, least)


def _alike(one: frozenset[Any], other: frozenset[Any], least: float) -> bool:
    """Tell whether two sets have a Jaccard similarity of `least`."""
    small, large = sorted((len(one), len(other)))
    if small < least * large:  # quicker than to compare them
        return False
    shared = len(one & other)
    return shared >= least * (small + large - shared)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    found = _WORD.findall(text.casefold())
    # Without spaces between words, characters stand in for them.
    spaced = len(text) < SPACED * len(found)
    return frozenset(found if spaced else "".join(found))


@lru_cache(maxsize=1024)
def _fingerprint(text: str, words: int) -> tuple[frozenset[tuple[str, ...]], Counter[str]]:
    """Return a text's runs of `words` folded words, and the words that change a fact.

    A Chinese character is a word.
    """
    tokens: list[str] = []
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    for match in TOKEN.finditer(folded):
        token = match.group()
        tokens.extend(token if match.lastgroup in ("han", "unspaced") else [token])
    tokens = tokens or [text.strip()]  # nothing but signs
    runs = max(1, len(tokens) - words + 1)
    shingles = frozenset(tuple(tokens[at : at + words]) for at in range(runs))
    deny = negations()
    facts = Counter(t for t in tokens if t in deny or _DIGIT.search(t))
    return shingles, facts
