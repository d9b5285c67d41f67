"""Grade evidence 0..3 for a sub-question by its best sentence."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import Settings
from core.types import Evidence, Grade
from reasoning.rules.relevance import Relevance
from reasoning.rules.sentences import Sentence, missing_entities
from reasoning.rules.wanted import Wanted

# When no document of the collection uses this share of a question's words, or the word for what
# it asks about, only a sentence that clearly means the same can answer it.
ABSENT, SAME_MEANING = 0.4, 0.9
# A number or a date is there or not; a person or a place may be named by a common word.
CHECKED_KINDS = ("number", "date")
OFF_TOPIC, RELATED, PARTLY, ANSWERS = range(4)


def grade(
    relevance: Relevance, wanted: Wanted, evidence: Sequence[Evidence], settings: Settings
) -> list[Grade]:
    """Return one grade for each piece of evidence, in the given order."""
    best: dict[str, Sentence] = {}
    for sentence in relevance.sentences(wanted, evidence):
        held = best.get(sentence.evidence.chunk_id)
        if held is None or (sentence.has_kind and not held.has_kind and _near(sentence, held)):
            best[sentence.evidence.chunk_id] = sentence
    return [_grade(wanted, item, best.get(item.chunk_id), settings) for item in evidence]


def _near(sentence: Sentence, held: Sentence) -> bool:
    return sentence.score >= 0.8 * held.score


def _grade(wanted: Wanted, item: Evidence, sentence: Sentence | None, settings: Settings) -> Grade:
    if sentence is None:
        return Grade(evidence_id=item.evidence_id, grade=OFF_TOPIC, reason="no sentence in it")
    score = sentence.score
    reason = f"best sentence scores {score:.2f} ({len(sentence.matched)} of "
    reason += f"{wanted.own} words"
    reason += f", meaning {sentence.semantic:.2f})" if sentence.semantic is not None else ")"
    level = (
        ANSWERS
        if score >= settings.grade_answers
        else PARTLY
        if score >= settings.grade_partly
        else RELATED
        if score >= settings.grade_related
        else OFF_TOPIC
    )
    if level >= PARTLY and missing_entities(wanted, item):
        level, reason = RELATED, f"{reason}; names nothing the question names"
    if level >= PARTLY and _never_written(wanted, sentence):
        level, reason = RELATED, f"{reason}; no document uses {wanted.absent:.0%} of the words"
    if (
        level >= PARTLY
        and not (sentence.matched or sentence.field)
        and (sentence.semantic or 0.0) < SAME_MEANING
    ):
        level, reason = RELATED, f"{reason}; none of the words asked about is in it"
    if level >= PARTLY and wanted.wants in CHECKED_KINDS and not sentence.has_kind:
        level, reason = RELATED, f"{reason}; holds no {wanted.wants}"
    return Grade(evidence_id=item.evidence_id, grade=level, reason=reason)


def _never_written(wanted: Wanted, sentence: Sentence) -> bool:
    if sentence.field:
        return False
    if sentence.semantic is None:  # words alone: inflection the analysis misses is no proof
        return wanted.absent >= ABSENT
    return (wanted.absent >= ABSENT or wanted.focus_absent) and sentence.semantic < SAME_MEANING
