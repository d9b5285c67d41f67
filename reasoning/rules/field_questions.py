"""What a question asks of one document: which fields, and whether it is the one that is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from core.language.analysis import content_terms
from core.types import Evidence
from reasoning.rules.field_table import HAN, Word, forms, words_of
from reasoning.rules.field_words import kind_of, scan
from reasoning.rules.record_values import RECORD_KINDS
from reasoning.rules.topic import QUOTED

# A title of which the question says this share is like the one that is meant.
LIKE = 0.5
_SUBTITLE = re.compile(r"\s*[:=/|—–]\s+")
_LEAST_TITLE = 2


class Meant(Enum):
    """Say whether a question means a document: by its whole title, by its words, or another."""

    named = "named"
    described = "described"
    other = "other"
    unknown = "unknown"


@dataclass(frozen=True)
class FieldQuestion:
    """Hold the fields that a question asks of a document, and whether it means that one.

    `left` are the words that neither the title nor the names of fields explain; it is `clear` when
    they are names alone. `said` are all words of the question and, where it says it, of the title;
    `names` those that name what it asks about.
    """

    fields: frozenset[str]
    meant: Meant
    left: frozenset[str]
    said: frozenset[str]
    names: frozenset[str]
    clear: bool


NOTHING = FieldQuestion(
    frozenset(), Meant.unknown, frozenset(), frozenset(), frozenset(), clear=False
)


def field_question(question: str, item: Evidence) -> FieldQuestion:
    """Return what a question asks of the document of a piece of evidence.

    Nothing, at once, where it names no field and the evidence is no record: looking up every word
    of a text takes long.
    """
    if item.kind not in RECORD_KINDS and not scan(question).mentioned:
        return NOTHING
    rest, whole = without_title(question, item.title)
    spans = [match.span(1) for match in QUOTED.finditer(rest)]
    outside = QUOTED.sub(" ", rest)
    kind = kind_of(outside)
    plain = scan(outside, kind)
    quoted = [word for start, end in spans for word in words_of(rest[start:end])]
    title = said_in(item.title)
    left = [word for word in plain.left if not whole or not _in(word, title)]
    first = next((word.start for word in words_of(outside)), 0)
    names = [*quoted, *(word for word in left if _is_name(word, first))]
    nouns = plain.nouns - {"published"} if any(map(_is_year, left)) else plain.nouns
    fields = frozenset() if kind == "yesno" else nouns or plain.verbs
    meant = _meant(item, [*quoted, *left], names, whole=whole)
    if plain.parts and fields:
        meant = Meant.other
    if meant is Meant.unknown and fields and _like(question, item.title):
        meant = Meant.other
    rare = frozenset().union(*(word.forms for word in left))
    said = said_in(question)[0] | (title[0] if whole else frozenset())
    meaning = frozenset().union(*(word.forms for word in names)) | (title[0] if whole else set())
    clear = all(word in names for word in left)
    return FieldQuestion(fields, meant, rare, said, meaning, clear)


def _meant(item: Evidence, words: list[Word], names: list[Word], *, whole: bool) -> Meant:
    held = said_in(f"{item.title}\n{item.text}")
    if any(not _in(name, held) for name in names):
        return Meant.other
    if whole or (len(words) > 1 and all(_in(word, said_in(item.title)) for word in words)):
        return Meant.named
    if words and all(_in(word, held) for word in words):
        return Meant.described
    return Meant.unknown


def without_title(question: str, title: str) -> tuple[str, bool]:
    """Take a title out of a question; tells whether it was all there, in any form of its words."""
    low = question.casefold()
    for shown in (title, _SUBTITLE.split(title)[0]):
        if not all(word.text.casefold() in low for word in words_of(shown)[:1]):
            continue  # a pattern takes long to make
        pattern = _title_pattern(shown)
        if pattern is not None and (found := pattern.search(question)):
            return f"{question[: found.start()]} {question[found.end() :]}", True
    words = words_of(title)
    said = {form for word in words_of(question) for form in word.forms}
    return question, bool(words) and all(word.forms & said for word in words)


@lru_cache(maxsize=1024)
def _title_pattern(title: str) -> re.Pattern[str] | None:
    words = words_of(title)
    if sum(len(word.text) for word in words) < _LEAST_TITLE:
        return None
    body = r"[\W_]*".join(re.escape(word.text) for word in words)
    return re.compile(rf"{_edge(title, left=True)}{body}{_edge(title, left=False)}", re.IGNORECASE)


def _edge(title: str, *, left: bool) -> str:
    if HAN.search(title):
        return ""
    return r"(?<!\w)" if left else r"(?!\w)"


def _is_year(word: Word) -> bool:
    """Tell whether "in the year 1905" names its year, and so does not ask for it."""
    return word.text.isdigit() and len(word.text) == len("1905")


def _is_name(word: Word, first: int) -> bool:
    """Tell whether a word is a number or a name; every sentence begins with a capital."""
    return word.text[0].isdigit() or (word.text[0].isupper() and word.start > first)


@lru_cache(maxsize=2048)
def said_in(text: str) -> tuple[frozenset[str], str]:
    """Return the forms of the words of a text, and its Han characters, for looking words up."""
    words = words_of(text)
    found = frozenset().union(*(word.forms for word in words))
    return found, "\n".join(word.text for word in words if HAN.search(word.text))


def _in(word: Word, held: tuple[frozenset[str], str]) -> bool:
    found, han = held
    return word.text in han if HAN.search(word.text) else bool(word.forms & found)


def _like(question: str, title: str) -> bool:
    """Tell whether a question says much of a title, so that it may mean another one like it."""
    held = said_in(question)
    words = [word for word in scan(title).left if not HAN.search(word.text)]
    words += [Word(term, 0, forms(term)) for term in content_terms(title, "zh") if HAN.search(term)]
    return bool(words) and sum(_in(word, held) for word in words) >= LIKE * len(words)
