"""What stands above a sentence: the heading of its chunk, the words that lead its line."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from core.language.cues import stopwords
from core.language.passages import CODE_KIND, ITEM, RECORD, TABLE, Span
from core.types import Evidence
from reasoning.rules.answering.blocks import QUESTION_ENDS, reports
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.value_spans import has_date

SECTIONS = " › "  # between the headings of a section
LED = ": "  # between a heading and what is quoted below it
UNLED = (RECORD, CODE_KIND)
MOST_REPLIES = 3  # sentences behind a question that may reply to it; chosen, not measured
# Chosen, not measured:
MOST_WORDS, MOST_CHARACTERS, MOST_LINES = 8, 60, 4  # of a heading, words without its number
NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2})+\.?\s+")
# "**Rent.** It is due …", and in plain text "Rent. It is due …" or "Rent: …", of few words.
BOLD = re.compile(r"(?:[-*+•]\s+|\d{1,3}[.)]\s+)?\*\*([^*\n]{2,80})\*\*")
PLAIN = re.compile(
    r"((?=[^\W\d_])[^\s.:：!?！？。，,|]+(?: [^\s.:!?,|]+){0,3})(?:[.:](?=[ \t]+\S)|：(?=\S))"
)
MARKS = "*.:： "
ENDED = re.compile(r"[^\w)）»”\"'*]$")


class Lead(NamedTuple):
    """Hold what leads a sentence, whether it is itself a heading, and whether it leads others."""

    text: str
    heads: bool = False
    leads: bool = False


def heading_of(item: Evidence) -> str:
    """Return what names a chunk: title, heading path, and of a record its keywords and its id."""
    keywords = item.metadata.get("keywords")
    listed = " ".join(str(word) for word in keywords) if isinstance(keywords, list) else ""
    named = item.source.partition("#")[2]
    return f"{item.title} {item.section} {listed} {named}".strip()


def headings_of(item: Evidence) -> list[str]:
    """Return the headings above a chunk, the nearest first, and its title."""
    return [*reversed(item.section.split(SECTIONS)), item.title]


def dated(item: Evidence) -> str:
    """Return the nearest heading of a chunk that holds a day or a month, "" for none.

    A year alone is that of a report, and not when anything in it happened.
    """
    above = headings_of(item)
    return next((one for one in above if has_date(one, item.language)), "")


@lru_cache(maxsize=2048)
def leads(text: str, spans: tuple[Span, ...], kind: str, language: str) -> tuple[Lead, ...]:
    """Return what leads each sentence: the last line that is a heading, the words before its line.

    Of a table it is its first line. A question leads the sentences that may reply to it.
    """
    if kind in UNLED:
        return (Lead(""),) * len(spans)
    if kind == TABLE:
        first = text[slice(*spans[0])] if spans else ""
        return tuple(Lead(first, place == 0, place == 0) for place in range(len(spans)))
    found: list[Lead] = []
    heading, lead, until = "", "", 0
    question, replies = "", 0
    for start, end in spans:
        if start >= until:
            match = run_in(text, start, language)
            lead = match.group(1) if match is not None else ""
            until = (text.find("\n", end) + 1 or len(text)) if match is not None else end
        alone = is_heading(text, start, end)
        heading = text[start:end] if alone else heading
        heads = alone or (bool(lead) and text[start:end].strip(MARKS) == lead)
        sentence, replies = text[start:end], replies - 1
        leads = heads or sentence.endswith(QUESTION_ENDS) or reports(sentence, lexicon(language))
        if leads:
            question, replies = ("" if heads else sentence), MOST_REPLIES + 1
        asked = question if 0 < replies <= MOST_REPLIES else ""
        found.append(Lead(f"{heading} {lead} {asked}", heads, leads))
    return tuple(found)


def run_in(text: str, start: int, language: str) -> re.Match[str] | None:
    """Find the words that lead the line that begins at `start`, as a heading does."""
    if start and text[start - 1] not in "\n ":
        return None
    bold = BOLD.match(text, start)
    if bold is not None or text[:start].rpartition("\n")[2].strip():
        return bold
    plain = PLAIN.match(text, start)
    first = plain.group(1).split()[0].casefold() if plain is not None else ""
    return None if first in stopwords(language) or text[start].islower() else plain


def is_heading(text: str, start: int, end: int) -> bool:
    """Tell whether text[start:end] is a paragraph of short lines that ends like no sentence."""
    apart = text[:start].rstrip(" ").endswith("\n") or start == 0
    alone = apart and text[end:].startswith("\n\n")  # what nothing stands below heads nothing
    paragraph = text[start:end]
    lines = [NUMBERED.sub("", line) for line in paragraph.splitlines()]
    few = all(len(one) <= MOST_CHARACTERS and len(one.split()) <= MOST_WORDS for one in lines)
    return (
        alone
        and few
        and len(lines) <= MOST_LINES
        and not ENDED.search(paragraph)
        and not ITEM.match(paragraph)
    )
