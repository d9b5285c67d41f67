"""Make a question stand alone, take it apart and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.detect import detect_language
from core.types import AnswerKind, Intent, Part, Understanding
from reasoning.planning.slots import escaped, filled, slots_in
from reasoning.rules.decomposition.decompose import across, decompose
from reasoning.rules.decomposition.parts import DecompositionStep
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.understanding.clauses import split_clauses
from reasoning.rules.understanding.confidence import kind_confidence
from reasoning.rules.understanding.topic import entities, is_elliptical, topic
from reasoning.types import Turn

Wanted = list[AnswerKind]


def understand(
    question: str, history: Sequence[Turn], max_parts: int, max_deps: int | None = None
) -> Understanding:
    """Return the stand-alone question with its parts.

    A part that leaves out what it is about gets the topic of the part before it, or of the newest
    question in the history: "and who maintains it?" about "north ward". A part that describes
    what another part can find waits for it. No part waits for more than `max_deps` others,
    where that is given.
    """
    language = detect_language(question)
    words = lexicon(language)
    intent = _intent(question, words)
    split = [] if intent == "recommend" else split_clauses(question, words, max_parts)
    clauses = split or [question]
    steps = [] if intent == "recommend" else _together(question, clauses, words, max_parts)
    subject = _earlier_topic(history)
    if steps and _narrow(steps, max_deps) and not (subject and is_elliptical(question, words)):
        parts, wants = _from_steps([steps], words)
    else:
        parts, wants = _from_clauses(clauses, words, subject, max_parts, max_deps)
    multi = len(parts) > 1
    return Understanding(
        question=_stand_alone(question, parts),
        kind="multi" if multi else "plain",
        confidence=kind_confidence(question, parts, words),
        reason=_reason(parts),
        language=language,
        intent=intent,
        entities=entities(question, words),
        required_fields=wants,
        parts=parts,
    )


def _together(
    question: str, clauses: Sequence[str], words: Lexicon, max_parts: int
) -> list[DecompositionStep]:
    """Return the steps of a question as a whole.

    Where it seems to hold several clauses, they may only describe what one of them asks about.
    """
    if len(clauses) > 1:
        found = across(question, words, max_parts, set())
        if found:
            return found
    steps = decompose(question, words, max_parts)
    last = steps[-1].text if steps else ""
    return steps if len(split_clauses(last, words, max_parts)) < max(2, len(clauses)) else []


def _reason(parts: Sequence[Part]) -> str:
    if len(parts) < 2:
        return "one clause asks something"
    if any(part.deps for part in parts):
        waiting = sum(bool(part.deps) for part in parts)
        return f"{len(parts)} parts, {waiting} of which wait for what others find"
    return f"{len(parts)} clauses ask something"


def _from_clauses(
    clauses: Sequence[str], words: Lexicon, subject: str, max_parts: int, max_deps: int | None
) -> tuple[list[Part], Wanted]:
    """Return the parts of clauses that stand beside each other, each taken apart if it can be."""
    groups: list[list[DecompositionStep]] = []
    topics: list[str] = []
    leads: list[int] = []
    taken: set[str] = set()
    room = max_parts - len(clauses)
    for clause in clauses:
        left_out = bool(subject) and is_elliptical(clause, words)
        topics.append(subject if left_out else "")
        # "what are their websites" waits for those of whom it is, unless the question names them.
        refers = left_out and words.found("theirs", clause) and not entities(subject, words)
        leads.append(len(leads) if refers and leads else 0)
        several = len(clauses) > 1 and not left_out
        steps = decompose(clause, words, room + 1, taken) if several else []
        if not _narrow(steps, max_deps):
            steps = []
        room -= max(0, len(steps) - 1)
        groups.append(steps or [DecompositionStep(escaped(clause))])
        if not left_out:
            subject = topic(clause, words) or subject
    return _from_steps(groups, words, topics, leads)


def _narrow(steps: Sequence[DecompositionStep], max_deps: int | None) -> bool:
    return max_deps is None or all(len(slots_in(step.text)) <= max_deps for step in steps)


def _from_steps(
    groups: Sequence[Sequence[DecompositionStep]],
    words: Lexicon,
    topics: Sequence[str] = (),
    leads: Sequence[int] = (),
) -> tuple[list[Part], Wanted]:
    """Return the parts of groups of steps; braces stay doubled where any step finds a slot.

    `leads` counts the groups up to the one that a group waits for, 0 where it waits for none.
    """
    slotted = any(step.slot for group in groups for step in group)
    parts: list[Part] = []
    wants: Wanted = []
    for place, group in enumerate(groups):
        about = topics[place] if place < len(topics) else ""
        found: dict[str, int] = {}
        led = leads[place] if place < len(leads) else 0
        before = sum(len(one) for one in groups[:led])
        for step in group:
            named = {found[name] for name in slots_in(step.text) if name in found}
            deps = sorted(named or ({before} if led else set()))
            text = step.text if slotted else filled(step.text, {})
            kept = escaped(about) if slotted else about
            parts.append(Part(text=text, about=kept, slot=step.slot, deps=deps))
            wants.append(step.wants or words.answer_kind(step.text))
            if step.slot:
                found[step.slot] = len(parts)
    return parts, wants


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
