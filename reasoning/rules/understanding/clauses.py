"""Split a question into the clauses that ask something."""

from __future__ import annotations

import re

from core.language.sentences import sentence_spans
from reasoning.rules.lexicon import Lexicon

# A full stop is left to the sentence splitter, which knows initials, versions and "e.g.".
# Nor does a mark within a title end anything: an even number of quotation marks follows.
SENTENCE_END = re.compile(r'(?:[?？!！。；;]+(?![)\]»”])|\n+)(?=(?:[^"]*"[^"]*")*[^"]*$)')
COMMA = re.compile(r"[,，、]")


def split_clauses(text: str, words: Lexicon, limit: int) -> list[str]:
    """Return up to `limit` clauses, each asking something, in order.

    Sentences that ask nothing are context and stay with the clause that follows them (or, at the
    end, with the one before). A text that asks nothing at all is one clause.
    """
    clauses: list[str] = []
    context = ""
    for sentence, asks in _sentences(text):
        for clause in _coordinated(sentence, words):
            joined = f"{context} {clause}".strip()
            worded = any(character.isalnum() for character in joined)
            if worded and (asks or words.is_question(clause)):
                clauses.append(joined)
                context = ""
            else:
                context = joined
    if context:
        if clauses:
            clauses[-1] = f"{clauses[-1]} {context}"
        else:
            clauses.append(context)
    if len(clauses) > limit:
        clauses[limit - 1 :] = [" ".join(clauses[limit - 1 :])]
    return clauses


def _sentences(text: str) -> list[tuple[str, bool]]:
    """Cut a text into sentences, each with whether it ends with a question mark."""
    parts, start = [], 0
    for end in [*SENTENCE_END.finditer(text), None]:
        part = text[start : end.start() if end else len(text)]
        spans = sentence_spans(part)
        parts += [(part[a:b].rstrip(". "), False) for a, b in spans[:-1]]
        if spans:
            last = part[spans[-1][0] : spans[-1][1]].rstrip(". ")
            parts.append((last, end is not None and any(mark in end.group() for mark in "?？")))
        start = end.end() if end else len(text)
    return [(part, asks) for part, asks in parts if part]


def _coordinated(sentence: str, words: Lexicon) -> list[str]:
    """Split "who maintains it and what does it cost" where a new question begins."""
    if not words.known.spaced:
        return _merge([part.strip() for part in _cuts_unspaced(sentence, words)], words)
    joiner, asked = words.alternatives("joiner"), words.alternatives("question")
    # "and does it …" asks, "and must do …" goes on; "and on which …" asks, ", on which …" without
    # a conjunction only describes.
    subject = rf"\s+(?:{words.alternatives('pronoun')}|(?:the|an?)\b|(?-i:[A-Z]))"
    inverted = rf"{words.alternatives('auxiliary')}{subject}"
    if words.any_of("asking_particle"):  # it alone makes a question: "и были ли …", "і чи …"
        inverted = rf"(?:\w+\s+)?{words.alternatives('asking_particle')}"
    after = rf"\s*(?:,\s*|\s)(?:{joiner}\s+)+"
    led = rf"{words.alternatives('preposition')}\s+{asked}"
    # "сказал, что …" goes on, "…, кто ею заведует" asks.
    resumes = words.alternatives("resumes") if words.any_of("resumes") else asked
    bare = rf"\s*,\s*(?={resumes})|"
    cut = re.compile(rf"{bare}{after}(?={asked}|{inverted}|{led})", re.IGNORECASE)
    return _merge([part.strip() for part in cut.split(sentence)], words)


def _cuts_unspaced(sentence: str, words: Lexicon) -> list[str]:
    joiner = words.alternatives("joiner")
    parts = []
    for piece in COMMA.split(sentence):
        halves = re.split(joiner, piece)
        # A conjunction between nouns is no cut: both sides must ask something.
        if len(halves) > 1 and all(words.is_question(half) for half in halves if half.strip()):
            parts.extend(halves)
        else:
            parts.append(piece)
    return [part for part in parts if part.strip()]


def _merge(parts: list[str], words: Lexicon) -> list[str]:
    """Put a part that asks nothing, or names nothing ("whom or what …"), in front of the next."""
    merged: list[str] = []
    waiting = ""
    given = [part for part in parts if part]
    for place, part in enumerate(given):
        part = f"{waiting} {part}".strip()
        last = place == len(given) - 1
        if words.is_question(part) and (last or words.names_something(part)):
            merged.append(part)
            waiting = ""
        else:
            waiting = part
    if waiting:
        if merged:
            merged[-1] = f"{merged[-1]}, {waiting}"
        else:
            merged.append(waiting)
    return merged
