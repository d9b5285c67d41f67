"""Drop evidence that says the same as better evidence."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

from core.language.cues import negations
from core.language.scan import TOKEN
from core.types import Evidence
from retrievers.types import Searched

SPACED = 12  # a text with fewer spaces than one in so many characters has none between words

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


class _Fingerprint(NamedTuple):
    """What of a text is compared: its words in a row, and the words that change a fact."""

    shingles: frozenset[tuple[str, ...]]
    facts: Counter[str]


def near_duplicates(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the first of texts whose shingles have a Jaccard similarity of `near_duplicate`.

    Texts that differ in a number or a denial are never the same, however long they are. Shingles
    are made only of texts whose words agree, which few do. Hits behind `near_duplicate_pool` stay.
    """
    settings = searched.index.settings
    kept: list[_Text] = []
    dropped: list[str] = []
    for item in evidence[: settings.near_duplicate_pool]:
        text = _Text(item, settings.near_duplicate_words)
        twins = (other for other in kept if text.repeats(other, settings.near_duplicate))
        better = next(twins, None)
        if better is None:
            kept.append(text)
        else:
            same = item.document_key == better.item.document_key
            where = "" if same else f" of {item.source}"
            dropped.append(f"{item.chunk_id}{where} (as {better.item.chunk_id})")
    rest = evidence[settings.near_duplicate_pool :]
    return [text.item for text in kept] + rest, f"dropped {', '.join(dropped)}" if dropped else ""


class _Text:
    """Hold a text for comparison; what is dear to make is made when it is needed."""

    def __init__(self, item: Evidence, run: int) -> None:
        self.item = item
        self._run = run
        found = _WORD.findall(item.text.casefold())
        # Without spaces between words, characters stand in for them.
        spaced = len(item.text) < SPACED * len(found)
        self._words = frozenset(found if spaced else "".join(found))
        self._fingerprint: _Fingerprint | None = None

    def repeats(self, other: _Text, least: float) -> bool:
        """Tell whether two texts say the same."""
        # A changed word spoils several shingles, so sets of words differ by less than theirs.
        rough = 2 * least - 1
        small, large = sorted((len(self._words), len(other._words)))
        if small < rough * large:
            return False
        shared = len(self._words & other._words)
        if shared < rough * (small + large - shared):
            return False
        return _same(self.fingerprint(), other.fingerprint(), least)

    def fingerprint(self) -> _Fingerprint:
        """Return the shingles, made once."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.item.text, self._run)
        return self._fingerprint


def fingerprint(text: str, words: int) -> _Fingerprint:
    """Cut a text into overlapping runs of `words` folded words, a Chinese character being one."""
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
    return _Fingerprint(shingles, facts)


def _same(one: _Fingerprint, other: _Fingerprint, least: float) -> bool:
    shared = len(one.shingles & other.shingles)
    union = len(one.shingles) + len(other.shingles) - shared
    return shared >= least * union and one.facts == other.facts
