"""Rules of the memory agent: what is asked of memory, of whom, what comes next, what to say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from core.language.analysis import analyze, content_terms, terms
from core.recall import FINAL_ANSWER, KEYWORD_SEARCH, READ_MEMORY, SEMANTIC_SEARCH, RecallState
from core.types import Call, Claim, Evidence, Finding, Plan, SubQuestion, Understanding
from languages.language import find_language
from reasoning.rules.lexicon import lexicon
from reasoning.statements import gives_time, is_certain, other_person, stated_values

AT_ONCE = 12  # notes read in one action; chosen, not measured
MOST_STATED = 5  # notes that are listed; chosen, not measured
LONGEST = 8  # words of a value that is said by itself; chosen, not measured
TIMED = ("date", "number")
RESOLVED = re.compile(r" \(([^()]*\d{4}[^()]*)\)")  # a day that `with_dates` has put in


@cache
def _pattern(language: str, name: str) -> re.Pattern[str]:
    known = find_language(language)
    found = known.read("recall") or find_language(None).read("recall")
    return re.compile(found[name], re.IGNORECASE)


def asks_memory(question: str, language: str) -> bool:
    """Tell whether a question is about its speaker, or about what they stated before."""
    words = lexicon(language)
    if asks_what_was_stated(question, language):
        return True
    asks = words.is_question(question) or question.rstrip().endswith(("?", "？"))
    general = _pattern(language, "general").search(question)
    return asks and not general and _pattern(language, "own").search(question) is not None


def asks_what_was_stated(question: str, language: str) -> bool:
    """Tell whether a question is about what its speaker stated, which no document tells."""
    return _pattern(language, "reported").search(question) is not None


def about_asked(question: str, language: str, notes: Sequence[Evidence]) -> list[Evidence]:
    """Return the notes of whom a question is about: who is named, else the speaker or theirs.

    What another one stated of themselves is no answer, nor is what is stated of a sister one of
    her brother.
    """
    notes = [one for one in notes if one.title or _is_of_same(question, language, one)]
    named = {one.title for one in notes if one.title and is_named(one.title, question)}
    if named:
        return [one for one in notes if one.title in named]
    own = _pattern(language, "own")
    if not own.search(question) or asks_what_was_stated(question, language):
        return list(notes)
    return [
        one for one in notes if not one.title and _pattern(one.language, "own").search(one.text)
    ]


def _is_of_same(question: str, language: str, note: Evidence) -> bool:
    """Tell whether a question and a note speak of the same relative, colleague or animal, if any.

    Their words tell that within one language alone.
    """
    if asks_what_was_stated(question, language) or not _pattern(language, "own").search(question):
        return True
    asked, spoken = other_person(question, language), other_person(note.text, note.language)
    if language != note.language:
        return bool(asked) == bool(spoken)
    return spoken <= set(terms(question, language)) and asked <= set(terms(note.text, language))


def is_of_subject(question: SubQuestion, note: Evidence) -> bool:
    """Tell whether a question asks for the subject of a note and for nothing else.

    A subject that has a pattern is asked for in any language, another by its own words.
    """
    subject = str(note.metadata.get("subject", ""))
    pattern = _subjects(question.language).get(subject)
    if pattern is not None:
        return pattern.search(question.text) is not None
    owner, _, attribute = subject.partition("|")
    words = set(content_terms(question.text, question.language))
    return owner != "i" and bool(attribute) and words == set(attribute.split())


@cache
def _subjects(language: str) -> dict[str, re.Pattern[str]]:
    found = find_language(language).read("recall").get("subjects", {})
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in found.items()}


def stated_about(question: SubQuestion, notes: Sequence[Evidence]) -> list[Evidence]:
    """Return the notes that have all words a question asks what was stated about, newest first.

    Where it names nothing that is the word for stating it ("what did we decide?"), if any.
    """
    found = _pattern(question.language, "reported").search(question.text)
    if found is None or question.wants != "text":
        return []
    rest = f"{question.text[: found.start()]} {question.text[found.end() :]}"
    named = {one.term for one in analyze(rest, question.language) if not one.is_function}
    asked = named or set(content_terms(found[0], question.language))
    fit = [one for one in notes if asked and asked <= set(terms(one.text, question.language))]
    return sorted(fit, key=lambda one: one.updated_at, reverse=True)[:MOST_STATED]


def is_named(name: str, text: str) -> bool:
    """Tell whether a text has the name, or its first word, as a whole word."""
    first = name.split()[0]
    return re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text, re.IGNORECASE) is not None


def next_action(state: RecallState, notes: Sequence[Evidence]) -> Call:
    """Search by words, then by meaning, then read what both have found of whom is asked about."""
    used = {call.tool for call in state.trajectory}
    for tool in (KEYWORD_SEARCH, SEMANTIC_SEARCH):
        if tool not in used:
            return Call(tool=tool, arguments={"query": state.question})
    known = {one.evidence_id: one for one in notes}
    found = [known[name] for name in state.candidates if name in known]
    names = [one.evidence_id for one in about_asked(state.question, state.language, found)]
    unread = [name for name in names if name not in state.read][:AT_ONCE]
    if unread:
        return Call(tool=READ_MEMORY, arguments={"note_ids": unread})
    return Call(tool=FINAL_ANSWER)


def questions_of(understanding: Understanding, question: str) -> Plan:
    """Return what is asked, part by part; parts that wait for each other are one question."""
    parts = list(zip(understanding.parts, understanding.required_fields, strict=True))
    if len(parts) < 2 or any(part.deps or part.slot for part, _ in parts):
        wants = lexicon(understanding.language).answer_kind(question)
        texts = [(question, wants)]
    else:
        texts = [(part.text, wants) for part, wants in parts]
    return Plan(
        questions=[
            SubQuestion(
                id=f"q{place}",
                text=text,
                query=text,
                language=understanding.language,
                wants=wants,
            )
            for place, (text, wants) in enumerate(texts, start=1)
        ]
    )


def short_claim(
    claim: Claim, question: SubQuestion, item: Evidence, findings: Sequence[Finding]
) -> Claim:
    """Return a claim that says the value alone where a note surely gives what is asked.

    Else the claim stays as it was stated, without the day where its owner stated it. `findings` are
    of what others stated, whom a question names.
    """
    cited = claim.citations[0]
    if not item.title:
        claim = claim.model_copy(update={"text": cited.quote})
    if question.wants == "yesno" or not is_certain(item.text, item.language):
        return claim
    if question.wants == "date":
        resolved = RESOLVED.search(item.text, cited.start, cited.end)
        if resolved is not None:
            return claim.model_copy(update={"text": resolved[1]})
    inside = (
        one.value
        for one in findings
        if (one.evidence_id, one.field) == (item.evidence_id, "text")
        and cited.start <= one.start < one.end <= cited.end
        and len(one.value.split()) <= LONGEST
    )
    value = next(inside, "")
    if value:
        return claim.model_copy(update={"text": value})
    found = stated_values(item.text, item.language)
    start, end = found.get(str(item.metadata.get("subject")), (0, 0))
    if not cited.start <= start < end <= cited.end or not is_of_subject(question, item):
        return claim
    value, timed = item.text[start:end], question.wants in TIMED
    fits = question.wants == "text" or gives_time(value, item.language) == timed
    return claim.model_copy(update={"text": value}) if fits else claim
