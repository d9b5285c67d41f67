"""Make a question stand alone, take it apart and say what kind it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.analysis import content_terms
from core.language.detect import detect_language
from core.language.sentences import sentence_spans
from core.types import AnswerKind, Intent, Part, Understanding
from reasoning.planning.slots import escaped, filled, slots_in
from reasoning.rules.answering.summaries import asked_summary, topic_asked
from reasoning.rules.decomposition.decompose import DecompositionStep, across, decompose
from reasoning.rules.follow_up import stand_alone_turns
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.topic import asked_about, entities, is_elliptical, topic
from reasoning.types import Turn

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
    # "…, who has no licence, …" describes: a comma ends it.
    aside = rf"[^,]*,\s*(?!(?:{joiner}|{asked})\b)\w"
    bare = rf"\s*,\s*(?={resumes})(?!{aside})|"
    cut = re.compile(rf"{bare}{after}(?={asked}|{inverted}|{led})", re.IGNORECASE)
    parts = [part.strip() for part in cut.split(sentence)]
    return _merge(parts if words.found("either", sentence) else _completed(parts, words), words)


def _completed(parts: list[str], words: Lexicon) -> list[str]:
    """Give a part that only asks what the next one asks about: "when and by whom was …"."""
    bare = [words.is_question(one) and not words.names_something(one) for one in parts]
    return [
        f"{part} {asked_about(after, words)}".strip() if only else part
        for part, after, only in zip(parts, [*parts[1:], ""], bare, strict=True)
    ]


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


# Parts that wait for each other were found by clear words; parts side by side less so.
CHAINED, BESIDE = 0.9, 0.8  # chosen, not measured
# What each sign of a hidden second question takes from the confidence that a question is plain.
NAME, MOST_NAMES = 0.15, 3  # chosen, not measured
MARKER, SAME, LONG = 0.2, 0.3, 0.15  # chosen, not measured
LONG_WORDS = 12  # chosen, not measured


def kind_confidence(question: str, parts: Sequence[Part], lists: Lexicon) -> float:
    """Return 0..1: how sure the kind of a question is.

    A plain question is less sure with each name beyond its first, with a word that begins a
    description, with a word that compares, and when it is long.
    """
    if len(parts) > 1:
        return CHAINED if any(part.deps for part in parts) else BESIDE
    names = len(entities(question, lists))
    sure = 1.0 - NAME * min(MOST_NAMES, max(0, names - 1))
    inner = question[1:].lstrip()
    if lists.found("described", inner):
        sure -= MARKER
    if lists.found("same", question) or lists.found("both", question):
        sure -= SAME
    if len(set(content_terms(question, lists.language))) > LONG_WORDS:
        sure -= LONG
    return round(max(0.0, sure), 2)


Wanted = list[AnswerKind]
# Steps, the topic that they leave out, and how many groups there are up to the one they wait for.
Group = tuple[Sequence[DecompositionStep], str, int]


def understand(
    question: str, history: Sequence[Turn], max_parts: int, max_deps: int | None = None
) -> Understanding:
    """Return the stand-alone question with its parts.

    A part that leaves out what it is about gets the topic of the part before it, or of the newest
    question in the history: "and who maintains it?" about "north ward". A part that describes
    what another part can find waits for it. No part waits for more than `max_deps` others,
    where that is given.
    """
    *earlier, question = stand_alone_turns(question, history)
    language = detect_language(question)
    whole = asked_summary(question, language)
    words = lexicon(language)
    intent = _intent(question, words)
    split = [] if intent == "recommend" else split_clauses(question, words, max_parts)
    clauses = split or [question]
    steps = [] if intent == "recommend" else _together(question, clauses, words, max_parts)
    subject, asked = _earlier_topic(earlier)
    wished = whole is not None and (whole.sure or whole.topic)
    name = topic_asked(question, language) if len(clauses) == 1 and not wished else ""
    if whole is not None and wished:  # "tl;dr of this" is one clause
        step = DecompositionStep(escaped(question))
        parts, wants = _from_steps([([step], subject if whole.here else "", 0)], words)
    elif name:
        kind: AnswerKind = words.answer_kind(name) if words.is_question(name) else "topic"
        parts, wants = [Part(text=name)], [kind]
    elif steps and _narrow(steps, max_deps) and not (subject and is_elliptical(question, words)):
        parts, wants = _from_steps([(steps, "", 0)], words)
    else:
        parts, wants = _from_clauses(clauses, words, (subject, asked), max_parts, max_deps)
    multi = len(parts) > 1
    left_out = f" ({parts[0].about})" if parts[0].about and not multi else ""
    return Understanding(
        question=f"{question.strip()}{left_out}",
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
    clauses: Sequence[str],
    words: Lexicon,
    earlier: tuple[str, str],
    max_parts: int,
    max_deps: int | None,
) -> tuple[list[Part], Wanted]:
    """Return the parts of clauses that stand beside each other, each taken apart if it can be."""
    subject, whole = earlier
    groups: list[Group] = []
    taken: set[str] = set()
    room = max_parts - len(clauses)
    for clause in clauses:
        left_out = bool(subject) and is_elliptical(clause, words)
        # "what are their websites" waits for those of whom it is, unless the question names them.
        refers = left_out and words.found("theirs", clause) and not entities(subject, words)
        several = len(clauses) > 1 and not left_out
        steps = decompose(clause, words, room + 1, taken) if several else []
        if not _narrow(steps, max_deps):
            steps = []
        room -= max(0, len(steps) - 1)
        steps = steps or [DecompositionStep(escaped(clause))]
        about = subject if words.names_something(clause) else whole or subject
        groups.append((steps, about if left_out else "", len(groups) if refers else 0))
        if not left_out:
            subject, whole = topic(clause, words) or subject, asked_about(clause, words)
    return _from_steps(groups, words)


def _narrow(steps: Sequence[DecompositionStep], max_deps: int | None) -> bool:
    return max_deps is None or all(len(slots_in(step.text)) <= max_deps for step in steps)


def _from_steps(groups: Sequence[Group], words: Lexicon) -> tuple[list[Part], Wanted]:
    """Return the parts of groups of steps; braces stay doubled where any step finds a slot."""
    slotted = any(step.slot for group, _, _ in groups for step in group)
    parts: list[Part] = []
    wants: Wanted = []
    for group, about, led in groups:
        found: dict[str, int] = {}
        before = sum(len(one) for one, _, _ in groups[:led])
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
    asks = words.is_question(question) or words.starts("explains", question)
    return "recommend" if words.search("audience", question) and not asks else "fact"


def _earlier_topic(earlier: Sequence[str]) -> tuple[str, str]:
    """Return the topic that the earlier questions end with, and all that the last one asks about.

    One that says none leaves it.
    """
    subject = asked = ""
    for question in earlier:
        words = lexicon(detect_language(question))
        whole = asked_summary(question, words.language)
        if whole is not None:
            subject = whole.name or subject
            continue
        for clause in split_clauses(question, words, max(1, len(question))):
            if not (subject and is_elliptical(clause, words)):
                subject, asked = topic(clause, words) or subject, asked_about(clause, words)
    return subject, asked
