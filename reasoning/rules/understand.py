"""Make a question stand alone, split it and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.detect import detect_language
from core.types import Intent, Part, Understanding
from reasoning.rules.clauses import split_clauses
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.topic import entities, is_elliptical, topic
from reasoning.types import Turn


def understand(question: str, history: Sequence[Turn], max_parts: int) -> Understanding:
    """Return the stand-alone question with its parts.

    A part that leaves out what it is about gets the topic of the part before it, or of the newest
    question in the history: "and who maintains it?" about "north ward".
    """
    language = detect_language(question)
    words = lexicon(language)
    intent = _intent(question, words)
    clauses = [question] if intent == "recommend" else split_clauses(question, words, max_parts)
    subject = _earlier_topic(history)
    parts: list[Part] = []
    for clause in clauses:
        if subject and is_elliptical(clause, words):
            parts.append(Part(text=clause, about=subject))
        else:
            parts.append(Part(text=clause))
            subject = topic(clause, words) or subject
    multi = len(parts) > 1
    return Understanding(
        question=_stand_alone(question, parts),
        kind="multi" if multi else "plain",
        reason=f"{len(parts)} clauses ask something" if multi else "one clause asks something",
        language=language,
        intent=intent,
        entities=entities(question, words),
        required_fields=[words.answer_kind(part.text) for part in parts],
        parts=parts,
    )


def _intent(question: str, words: Lexicon) -> Intent:
    """Tell a wish for a list of works from a question: it says so, or names only an audience."""
    if words.search("recommend", question):
        return "recommend"
    asks = words.is_question(question)
    return "recommend" if words.search("audience", question) and not asks else "fact"


def _stand_alone(question: str, parts: Sequence[Part]) -> str:
    if len(parts) == 1 and parts[0].about:
        return f"{question.strip()} ({parts[0].about})"
    return question.strip()


def _earlier_topic(history: Sequence[Turn]) -> str:
    """Return the topic that the earlier questions end with; one that says none leaves it."""
    subject = ""
    for turn in history:
        words = lexicon(detect_language(turn.question))
        for clause in split_clauses(turn.question, words, max(1, len(turn.question))):
            if not (subject and is_elliptical(clause, words)):
                subject = topic(clause, words) or subject
    return subject
