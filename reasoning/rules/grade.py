"""Grade evidence 0..3 for a sub-question by its likeliest sentence."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import terms
from core.language.cues import cues
from core.language.passages import TABLE
from core.language.table_rows import cells_of
from core.recall import NOTE
from core.settings import Settings
from core.types import AnswerSpan, Evidence, Grade
from languages.language import find_language
from reasoning.rules.answering.blocks import announces, follows
from reasoning.rules.answering.documentation import asked_definitions, says_identifier
from reasoning.rules.answering.features import LEAST_LEXICAL
from reasoning.rules.answering.headings import heading_of
from reasoning.rules.answering.named import (
    is_entry,
    is_other_entry,
    lacking_action,
    lacking_things,
    terms_above,
    terms_before,
)
from reasoning.rules.answering.relevance import UNREADABLE, Relevance, Sentence
from reasoning.rules.answering.wanted import QueryTerms
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.fields import asks_for_field
from reasoning.rules.values.versions import is_other_framework, is_other_version

# A number or a date is there or not; a person or a place may be named by a common word.
CHECKED_KINDS = ("number", "date")
# Words say nothing across languages, so the meaning must be nearer the same than unrelated: of
# questions that nothing answers 5 % pass so, 32 % without (n = 241), of others 78 and 94 %
# (n = 440).
# Where documents speak the language of the question, those of others must be nearer still, or the
# reader sure: of 135 questions over mixed collections (XQuAD en-ru, en-zh, ru-en; articles it did
# not learn) 50 are answered by the right sentence and 9 by another, 30 and 7 without the reader, 65
# and 13 at .5; of 60 about none, none. At .5 documents of other makes answer (by eye).
HALF_ALIKE, MORE_ALIKE = 0.5, 0.8
SURE_ACROSS, SURE_ALIKE = 4.0, 0.6
# Where the reader's own log odds are lower, and less than this share of a question's words besides
# names is found, nothing answers. Of 180 questions of six collections 3 more are answered rightly
# at -3 than at -1.5, of 120 near misses 2 more are answered; without the rule 6 and 16.
DENIED, MOST_WORDS = -3.0, 0.8
# Log odds from which the reader is trusted though a thing of the question is not named: "bikes" for
# bicycles. Of 31 right answers that were refused for it 20 have them, of 23 to nothing 5 (528
# questions of another hand).
TRUSTED = 0.4
LEAST_RULED = 2  # words of a question that a rule has; chosen, not measured
OFF_TOPIC, RELATED, PARTLY, ANSWERS = range(4)


def grade(
    relevance: Relevance, wanted: QueryTerms, evidence: Sequence[Evidence], settings: Settings
) -> list[Grade]:
    """Return one grade for each piece of evidence, in the given order."""
    best = _best(relevance, wanted, evidence)
    own = any(item.language == wanted.language for item in evidence)
    alike = MORE_ALIKE if own else HALF_ALIKE
    grades = [_grade(wanted, item, best.get(item.chunk_id), settings, alike) for item in evidence]
    grades = [
        _named(wanted, one, best.get(item.chunk_id), _beside(item, evidence))
        for item, one in zip(evidence, grades, strict=True)
    ]
    grades = _announced(evidence, best, _own_first(wanted, evidence, grades))
    grades = _together(wanted, evidence, grades)
    return _defining(wanted, evidence, grades) if settings.is_documentation else grades


def _own_first(
    wanted: QueryTerms, evidence: Sequence[Evidence], grades: list[Grade]
) -> list[Grade]:
    """Leave out what is in another language where something in that of the question answers."""
    own = any(
        one.grade == ANSWERS and item.language == wanted.language
        for item, one in zip(evidence, grades, strict=True)
    )
    return [
        one.model_copy(update={"grade": RELATED, "reason": f"{one.reason}; in another language"})
        if own and one.grade > RELATED and item.language != wanted.language
        else one
        for item, one in zip(evidence, grades, strict=True)
    ]


def _defining(wanted: QueryTerms, evidence: Sequence[Evidence], grades: list[Grade]) -> list[Grade]:
    """Let what defines the name asked about answer: its signature says so without a sentence.

    What says no identifier of the question answers nothing.
    """
    grades = [
        one.model_copy(update={"grade": RELATED, "reason": f"of another name; {one.reason}"})
        if one.grade > RELATED and not says_identifier(wanted, item)
        else one
        for item, one in zip(evidence, grades, strict=True)
    ]
    names = {one.item.evidence_id: one.name for one in asked_definitions(wanted, evidence)}
    return [
        one.model_copy(update={"grade": ANSWERS, "reason": f"it defines {name}; {one.reason}"})
        if (name := names.get(one.evidence_id)) and one.grade < ANSWERS
        else one
        for one in grades
    ]


def bound(
    relevance: Relevance, wanted: QueryTerms, evidence: Sequence[Evidence], grades: Sequence[Grade]
) -> list[Grade]:
    """Return what somebody else has graded, with what was read in it.

    Related at most where the kind asked for is lacking.
    """
    if not any(one.grade >= PARTLY for one in grades):
        return list(grades)
    best = _best(relevance, wanted, evidence)
    found = {item.evidence_id: _reading(best.get(item.chunk_id)) for item in evidence}
    grades = [one.model_copy(update={"reading": found.get(one.evidence_id)}) for one in grades]
    lacking = {item.evidence_id for item in evidence if _lacks(wanted, best.get(item.chunk_id))}
    return [
        one.model_copy(update={"grade": RELATED, "reason": f"{one.reason}; no {wanted.wants}"})
        if one.evidence_id in lacking and one.grade >= PARTLY
        else one
        for one in grades
    ]


def _best(
    relevance: Relevance, wanted: QueryTerms, evidence: Sequence[Evidence]
) -> dict[str, Sentence]:
    """Return the likeliest sentence of each chunk, one with the kind asked for if there is any."""
    best: dict[str, Sentence] = {}
    for sentence in relevance.sentences(wanted, evidence):
        earlier = best.get(sentence.evidence.chunk_id)
        if earlier is None or (sentence.has_kind and not earlier.has_kind):
            best[sentence.evidence.chunk_id] = sentence
    return best


def _checked(wanted: QueryTerms) -> bool:
    return bool(wanted.form) or wanted.wants in CHECKED_KINDS


def _lacks(wanted: QueryTerms, sentence: Sentence | None) -> bool:
    return _checked(wanted) and (sentence is None or not sentence.has_kind)


def _announced(
    evidence: Sequence[Evidence], best: dict[str, Sentence], grades: list[Grade]
) -> list[Grade]:
    """Give what a best sentence announces in the next chunk the grade of that sentence."""
    by_chunk = {item.chunk_id: grade for item, grade in zip(evidence, grades, strict=True)}
    found = []
    for item, own in zip(evidence, grades, strict=True):
        before = follows(item, evidence, -1)
        sentence = best.get(before.chunk_id) if before is not None and announces(before) else None
        if before is not None and sentence is not None:
            other = by_chunk[before.chunk_id]
            if sentence.end == len(before.text.rstrip()) and other.grade > own.grade:
                reason = f"announced by what stands before it: {other.reason}"
                own = own.model_copy(update={"grade": other.grade, "reason": reason})
        found.append(own)
    return found


def _together(wanted: QueryTerms, evidence: Sequence[Evidence], grades: list[Grade]) -> list[Grade]:
    """Give all chunks of a section that says how to do what is asked for the grade of the best."""
    sections: dict[tuple[str, str], int] = {}
    for item, one in zip(evidence, grades, strict=True):
        if wanted.is_explained_by(item):
            key = (item.document_key, item.section)
            sections[key] = max(sections.get(key, 0), one.grade)
    return [
        one.model_copy(update={"grade": level, "reason": "of the section that says how"})
        if (level := sections.get((item.document_key, item.section), 0)) > one.grade
        else one
        for item, one in zip(evidence, grades, strict=True)
    ]


def _beside(item: Evidence, evidence: Sequence[Evidence]) -> str:
    """Return what evidence says of its document, in small letters."""
    same = [one for one in evidence if one.document_key == item.document_key]
    return "\n".join(f"{heading_of(one)}\n{one.text}" for one in same).casefold()


def _named(wanted: QueryTerms, grade: Grade, sentence: Sentence | None, beside: str) -> Grade:
    """Grade down where a year or code of a question is lacking, or a thing it names."""
    if grade.grade < PARTLY or sentence is None or wanted.wants == "topic":
        return grade
    lacking = [one for one in wanted.codes if one.casefold() not in beside]
    # What a note says is not in the collection.
    if sentence.evidence.language == wanted.language and sentence.evidence.kind != NOTE:
        lacking += wanted.unknown_names
    if sentence.read is None or sentence.odds < TRUSTED:
        lacking += lacking_things(wanted, sentence, beside)
    lacking += filter(None, [lacking_action(wanted, sentence)])
    shown = cues(wanted.language)  # who asks for an example is served by one that is not called so
    lacking = [one for one in lacking if not shown.found("example", one)]
    if not lacking:
        return grade
    reason = f"{grade.reason}; does not say {', '.join(lacking)}"
    return grade.model_copy(update={"grade": RELATED, "reason": reason})


def _is_denied(wanted: QueryTerms, sentence: Sentence) -> bool:
    """Tell whether the reader finds nothing, and words of the question are lacking, too.

    Of a record, which it does not read, and in a language that it has learnt no questions in, all
    but the names are lacking.
    """
    if not wanted.is_readable or is_entry(wanted, sentence):
        return False
    share = wanted.share_of(sentence.matched)
    if sentence.read is None:
        return sentence.evidence.kind in UNREADABLE and not share
    if _asks_for_column(wanted, sentence):
        return False
    points = lexicon(sentence.evidence.language).found("reference", sentence.text)
    around = terms_before(sentence) if points else terms_above(sentence)
    share = wanted.share_of(sentence.matched | wanted.matched(around))
    learnt = find_language(wanted.language).reader
    return sentence.read < DENIED and (share < MOST_WORDS if learnt else not share)


def _asks_for_column(wanted: QueryTerms, sentence: Sentence) -> bool:
    """Tell whether a row of a table that a question names has a column of what it asks for.

    Columns have names of their own: what something costs is its price.
    """
    item = sentence.evidence
    cells = cells_of(sentence.text) if item.kind == TABLE else []
    if not cells or not wanted.matched(frozenset(terms(cells[0], item.language))):
        return False
    names = cells_of(item.text.partition("\n")[0])
    return any(asks_for_field(wanted.text, name) for name in names)


def _rules_on(wanted: QueryTerms, sentence: Sentence) -> bool:
    """Tell whether a sentence permits or forbids all that a question asks whether one may."""
    if wanted.wants != "yesno" or wanted.own < LEAST_RULED or not sentence.is_answer:
        return False
    asked, words = lexicon(wanted.language), lexicon(sentence.evidence.language)
    ruled = any(
        words.found(name, sentence.text) for name in ("permitting", "exclusive", "negation")
    )
    return ruled and asked.found("permitting", wanted.text) and len(sentence.matched) >= wanted.own


def _reading(sentence: Sentence | None) -> AnswerSpan | None:
    if sentence is None or not sentence.is_answer:
        return None  # an order to a program, or a heading, states nothing that could contradict
    return AnswerSpan(
        start=sentence.start, end=sentence.end, value=sentence.value, odds=sentence.odds
    )


def _grade(
    wanted: QueryTerms, item: Evidence, sentence: Sentence | None, settings: Settings, alike: float
) -> Grade:
    if sentence is None:
        return Grade(evidence_id=item.evidence_id, grade=OFF_TOPIC, reason="no sentence in it")
    score = sentence.score
    reason = f"best sentence answers with {score:.2f} ({len(sentence.matched)} of "
    reason += f"{wanted.own} words"
    reason += f", cosine {sentence.semantic:.2f})" if sentence.semantic is not None else ")"
    steps = (
        settings.answering.grade_related,
        settings.answering.grade_partly,
        settings.answering.grade_answers,
    )
    level = sum(score >= step for step in steps)
    says_all = wanted.wants == "topic" and sentence.has_kind and sentence.is_answer
    says_all = says_all or _rules_on(wanted, sentence)
    if says_all or (sentence.is_answer and is_entry(wanted, sentence)):
        level = ANSWERS
    across = item.language != wanted.language and sentence.lexical < LEAST_LEXICAL
    across = across and not (wanted.codes and is_entry(wanted, sentence))
    if sentence.read is not None and sentence.read >= SURE_ACROSS:
        alike = min(alike, SURE_ALIKE)
    if level >= PARTLY and across and (sentence.semantic or 0.0) < alike:
        level, reason = RELATED, f"{reason}; too far for what words cannot compare"
    if level >= PARTLY and item.kind == NOTE and not across and not sentence.matched:
        level, reason = RELATED, f"{reason}; a note without a word of the question"
    if level >= PARTLY and sentence.names_missing:
        level, reason = RELATED, f"{reason}; names nothing the question names"
    if level >= PARTLY and is_other_version(wanted.written, wanted.language, item):
        level, reason = RELATED, f"{reason}; of another version"
    if level >= PARTLY and is_other_framework(wanted.frameworks, item):
        level, reason = RELATED, f"{reason}; of another framework"
    if level >= PARTLY and is_other_entry(wanted, sentence):
        level, reason = RELATED, f"{reason}; of another code"
    if level >= PARTLY and _is_denied(wanted, sentence):
        level, reason = RELATED, f"{reason}; the reader finds no answer in it"
    if level >= PARTLY and _lacks(wanted, sentence):
        level, reason = RELATED, f"{reason}; holds no {wanted.form or wanted.wants}"
    return Grade(
        evidence_id=item.evidence_id, grade=level, reason=reason, reading=_reading(sentence)
    )
