"""Rules of the memory agent: what is asked of memory, of whom, what comes next, what to say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from core.language.analysis import analyze, content_terms, terms
from core.language.changes import marks_change
from core.notes import NO, WORDS
from core.recall import FINAL_ANSWER, KEYWORD_SEARCH, READ_MEMORY, SEMANTIC_SEARCH, RecallState
from core.types import Call, Claim, Evidence, Finding, Grade, Plan, SubQuestion, Understanding
from languages.language import find_language
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.statements import (
    affirmed,
    gives_time,
    is_certain,
    is_hedged,
    other_person,
    stated_and_denied,
    stated_values,
)

AT_ONCE = 12  # notes read in one action, and listed of all; chosen, not measured
MOST_STATED = 5  # notes that are listed of one subject; chosen, not measured
LONGEST = 8  # words of a value that is said by itself; chosen, not measured
ANSWERS = 2  # the grade of what answers
Grader = Callable[[SubQuestion, Sequence[Evidence]], Sequence[Grade]]
COMMA = re.compile(r"[,，、;；]")
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
    return asks and not general and speaks_of_speaker(question, language)


def speaks_of_speaker(text: str, language: str, *, alone: bool = False) -> bool:
    """Tell whether a text names its speaker or, unless `alone` is meant, their group."""
    names = ("alone",) if alone else ("alone", "group")
    return any(_pattern(language, name).search(text) for name in names)


def is_of_speaker(state: RecallState | None) -> bool:
    """Tell whether memory was asked first, of the speaker alone."""
    if state is None or not state.first:
        return False
    return speaks_of_speaker(state.question, state.language, alone=True)


def is_private(question: str, language: str) -> bool:
    """Tell whether a question is one that no text about others answers: "Where do I live?"."""
    patterns = (_pattern(language, "private"), *_subjects(language).values())
    if any(pattern.search(question) for pattern in patterns):
        return True
    of_theirs = speaks_of_speaker(question, language, alone=True)
    of_theirs = of_theirs and bool(other_person(question, language))
    return of_theirs and _pattern(language, "personal").search(question) is not None


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
    words = lexicon(language)
    if not speaks_of_speaker(question, language) and not asks_what_was_stated(question, language):
        if words.found("addressed", question):
            return []  # "What is your name?"
        pointed = words.found("pronoun", question)
        return [one for one in notes if not (pointed and _is_of_owner(one))]
    if asks_what_was_stated(question, language):
        return list(notes)
    return [one for one in notes if not one.title]


def _is_of_owner(note: Evidence) -> bool:
    """Tell whether a note is of a known attribute of its owner, such as their home."""
    subject = str(note.metadata.get("subject") or WORDS)
    return not subject.startswith(WORDS)


def _is_of_same(question: str, language: str, note: Evidence) -> bool:
    """Tell whether a question and a note speak of the same relative, colleague or animal, if any.

    Their words tell that within one language alone.
    """
    if asks_what_was_stated(question, language) or not speaks_of_speaker(question, language):
        return True
    text = f"{note.metadata.get('context', '')} {note.text}"
    asked, spoken = other_person(question, language), other_person(text, note.language)
    if asked and language == note.language and asked <= set(terms(text, language)):
        return True  # of several
    if asked and not spoken:  # it may name them by their name alone
        return not _is_of_owner(note)
    if language != note.language:
        return bool(asked) == bool(spoken)
    return spoken <= set(terms(question, language)) and asked <= set(terms(text, language))


def says_more(question: SubQuestion, earlier: Evidence, later: Evidence, grade: Grader) -> bool:
    """Tell whether of several things that a note says the one asked for is not what has changed."""
    inside = earlier.text.rstrip(" .。!！")
    if not lexicon(earlier.language).found("joiner", inside) and not COMMA.search(inside):
        return False
    best = max(grade(question, [earlier, later]), key=lambda one: one.grade)
    if best.evidence_id != earlier.evidence_id or best.grade < ANSWERS:
        return False
    asked = set(content_terms(question.text, question.language))
    own, others = (set(content_terms(one.text, one.language)) for one in (earlier, later))
    return bool(asked & own - others) or grade(question, [later])[0].grade < ANSWERS


def is_of_subject(question: SubQuestion, note: Evidence) -> bool:
    """Tell whether a question asks for the subject of a note and for nothing else.

    A subject that has a pattern is asked for in any language, another by its own words, with or
    without a verb of having. That of many things, such as what one likes, is each of them that is
    not denied.
    """
    subject, asks = _asking(question, note)
    if asks is not None:
        return asks and not is_denied_to(question, note)
    owner, _, attribute = subject.partition("|")
    text = _pattern(question.language, "having").sub(" ", question.text)
    words, own = set(content_terms(text, question.language)), set(attribute.split())
    if owner.startswith(WORDS):  # "What is my cat called?" asks for the name in what one has
        naming = set(terms(" ".join(lexicon(question.language).words("naming")), question.language))
        named = any(word[0].isupper() for word in note.text.split()[1:])
        return named and bool(naming & words) and set() < words - naming < own
    return owner != "i" and bool(attribute) and words == own


def is_denied_to(question: SubQuestion, note: Evidence) -> bool:
    """Tell whether a note denies one of the many things that a question asks for."""
    subject, asks = _asking(question, note)
    many = subject not in _subjects(question.language)
    return bool(asks) and many and str(note.metadata.get("value")) == NO


def _asking(question: SubQuestion, note: Evidence) -> tuple[str, bool | None]:
    """Return the subject of a note, and whether it is asked for; None where no pattern tells.

    What one certainly says may be of several subjects: who its speaker is and where they work.
    """
    subject, patterns = str(note.metadata.get("subject", "")), _subjects(question.language)
    certain = is_certain(note.text, note.language)
    more = stated_values(note.text, note.language) if certain else ()
    asks = None
    for one in (subject, *more):
        pattern = patterns.get(one) or patterns.get(one.rpartition("|")[0])
        if pattern is not None and pattern.search(question.text):
            return one, True
        asks = False if pattern is not None and one == subject else asks
    return subject, asks


@cache
def _subjects(language: str) -> dict[str, re.Pattern[str]]:
    found = find_language(language).read("recall").get("subjects", {})
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in found.items()}


def stated_about(question: SubQuestion, notes: Sequence[Evidence]) -> list[Evidence]:
    """Return the notes that have all words a question asks what was stated about, newest first.

    Where it names nothing that is the word for stating it ("what did we decide?"); all notes where
    that tells no kind of statement either ("what did I say?").
    """
    asked = _stated_words(question.text, question.language)
    if asked is None or question.wants not in ("text", "yesno"):
        return []
    fit = [one for one in notes if asked <= set(terms(one.text, question.language))]
    most = MOST_STATED if asked else AT_ONCE
    return sorted(fit, key=lambda one: one.updated_at, reverse=True)[:most]


def _stated_words(question: str, language: str) -> frozenset[str] | None:
    """Return the words of what a question asks what was stated about, None where it does not."""
    found = _pattern(language, "reported").search(question)
    if found is None:
        return None
    anything = _pattern(language, "anything")
    rest = f"{question[: found.start()]} {question[found.end() :]}"
    named = (analyze(anything.sub(" ", text), language) for text in (rest, found[0]))
    words = (frozenset(one.term for one in own if not one.is_function) for own in named)
    return next(filter(None, words), frozenset())


def settle_question(
    question: SubQuestion, notes: Sequence[Evidence]
) -> list[tuple[Evidence, Literal["yes", "no"]]]:
    """Return the notes that state or deny all that a yes-or-no question asks, newest first."""
    language, text = question.language, question.text
    words = lexicon(language)
    reads = not words.found("question", text) and text.rstrip().endswith(("?", "？"))
    plain = affirmed(_pattern(language, "beside").sub(" ", text), language)
    asked = set(content_terms(plain, language))
    # What one has or uses a statement may say in other words: "my dog".
    having = _pattern(language, "having")
    light = asked - set(content_terms(having.sub(" ", plain), language))
    has = having.search(plain) is not None
    reads = reads and (has or len(asked) > 1)  # "And Karin?" asks what was asked before
    if not asked or not (question.wants == "yesno" or reads) or not is_certain(text, language):
        return []
    found: list[tuple[Evidence, Literal["yes", "no"]]] = []
    for one in sorted(notes, key=lambda note: note.updated_at, reverse=True):
        if one.language == language and not is_hedged(one.text, language):
            stated, denied = (
                _all_forms(part, words) for part in stated_and_denied(one.text, language)
            )
            if asked <= stated:
                ended = _ended(one, asked)
                if ended or not marks_change(one.text, language, surely=True):
                    found.append((one, "no" if ended else "yes"))
            elif asked - light and asked - light <= stated | denied:
                # "I don't like dogs" denies no dog.
                owned = _pattern(language, "owned").search(one.text) is not None
                named = asked - light <= denied - stated
                named = named and (owned or len(asked - light) > 1 or not has)
                if named or (asked <= stated | denied and (light or owned or not has)):
                    found.append((one, "no"))
    return found


def _ended(note: Evidence, asked: set[str]) -> bool:
    """Tell whether a note says without a denial that its owner has a thing no more: "sold"."""
    subject, value = (str(note.metadata.get(name)) for name in ("subject", "value"))
    named = subject.startswith(WORDS) and asked <= set(subject.partition("|")[2].split())
    return named and value == NO and is_certain(note.text, note.language)


def _all_forms(text: str, words: Lexicon) -> set[str]:
    found = (words.forms_of(one) for one in terms(text, words.language))
    return {form for forms in found for form in forms}


def is_named(name: str, text: str) -> bool:
    """Tell whether a text has the name, or its first word, as a whole word."""
    first = name.split()[0]
    return re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text, re.IGNORECASE) is not None


def read_all(state: RecallState) -> Call | None:
    """Read the newest notes, then answer, where all that was stated is asked for."""
    if _stated_words(state.question, state.language) != frozenset():
        return None
    newest = Call(tool=READ_MEMORY, arguments={"newest": AT_ONCE})
    return Call(tool=FINAL_ANSWER) if state.trajectory else newest


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
    return reading(state, unread) if unread else Call(tool=FINAL_ANSWER)


def reading(state: RecallState, names: Sequence[str]) -> Call:
    """Return the action that reads notes, or what was stated before them where that is asked."""
    before = _pattern(state.language, "before").search(state.question)
    more = {"before": True} if before else {}
    return Call(tool=READ_MEMORY, arguments={"note_ids": [*names], **more})


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
    start, end = found.get(_asking(question, item)[0], (0, 0))
    if not cited.start <= start < end <= cited.end or not is_of_subject(question, item):
        return claim
    value, timed = item.text[start:end], question.wants in TIMED
    fits = question.wants == "text" or gives_time(value, item.language) == timed
    return claim.model_copy(update={"text": value}) if fits else claim
