"""Answer from the notes that were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from langgraph.runtime import Runtime

from core.metadata import REPLACED
from core.recall import RecallState
from core.types import Claim, Draft, Evidence, Plan, StopReason, SubQuestion, Understanding
from graph.context import Context
from graph.reading import ENOUGH_GRADE, notes_of, recall_of
from graph.state import MAX_DRAFTS, Outcome, State, Update
from reasoning.conflicts import differing
from reasoning.rules.recall import (
    about_asked,
    asks_what_was_stated,
    is_denied_to,
    is_of_subject,
    questions_of,
    says_more,
    settle_question,
    short_claim,
    stated_about,
)

BEST_GRADE = 3  # of a note of just the subject that is asked for


def final_answer(state: State, runtime: Runtime[Context]) -> Update:
    """Answer from the notes that were read, or leave the question to the documents."""
    context, recall = runtime.context, recall_of(state)
    began = context.clock()
    asked = questions_of(state["query"], recall.question)
    found = [one for one in notes_of(state) if one.evidence_id in recall.read]
    read = [one for one in found if REPLACED not in one.metadata]
    with context.thinking(state, answering=True) as ledger:
        graded = _graded(asked, read, context)
        good = [one for one in graded if one.best_grade >= ENOUGH_GRADE]
        good.sort(key=lambda one: (one.best_grade, one.updated_at), reverse=True)
        draft = Draft(claims=[])
        if good:
            draft = _draft(state["query"], asked, good, context)
        earlier = _earlier(draft, asked, found, context)
        draft = Draft(claims=[*draft.claims, *(claim for claim, _ in earlier)])
        shown = {one.evidence_id: one for _, one in earlier}
        graded = [one for one in graded if one.evidence_id not in shown] + [*shown.values()]
    answers = bool(draft.claims)
    step = context.step(
        "final_answer",
        began,
        ledger,
        decision=f"{len(draft.claims)} claims" if answers else "not mentioned",
        reason=f"{len(read)} notes read, {len(good)} answer",
        evidence=[(c.evidence_id, 1.0) for claim in draft.claims for c in claim.citations],
    )
    update: Update = {
        "recall": recall.model_copy(update={"over": True, "action": None}),
        "outcome": _outcome(recall, state, answers=bool(draft.claims)),
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": ledger.warnings,
        "evidence": graded,
    }
    if answers:
        reason = StopReason.enough_evidence
        update |= {"plan": asked, "operations": [], "draft": draft, "stop_reason": reason}
        update |= {"drafts": MAX_DRAFTS, "chosen": {}, "clarification": None}
    elif update["outcome"] == "never" and recall.first:
        update |= {"plan": asked, "stop_reason": StopReason.no_relevant_evidence}
    return update


def _outcome(recall: RecallState, state: State, *, answers: bool) -> Outcome:
    """Return what comes next: what memory does not answer goes on where it came from.

    What somebody stated before stands in no document.
    """
    if answers:
        return "enough"
    if not recall.first:
        return state["outcome"]
    return "never" if asks_what_was_stated(recall.question, recall.language) else "next"


def _graded(asked: Plan, read: list[Evidence], context: Context) -> list[Evidence]:
    """Grade the notes of whom each part is about; the others answer nothing.

    Where notes are of just the subject asked for, no other is an answer.
    """
    grades: dict[str, dict[str, int]] = {one.evidence_id: {} for one in read}
    for question in asked.questions:
        fit = about_asked(question.text, question.language, read)
        fit = [one for one in fit if not is_denied_to(question, one)]
        best = [one for one, _ in settle_question(question, fit)]
        best = best or [one for one in fit if is_of_subject(question, one)]
        best = best or stated_about(question, fit)
        for one in best:
            grades[one.evidence_id][question.id] = BEST_GRADE
        for grade in context.reasoner.grade(question, fit) if fit and not best else []:
            grades[grade.evidence_id][question.id] = grade.grade
        for one in read:  # what differs from an answer is one, too
            same = (
                grades[other.evidence_id].get(question.id, 0)
                for other in differing(one, read, question)
            )
            own = grades[one.evidence_id]
            own[question.id] = max(own.get(question.id, 0), *same, 0)
    return [one.model_copy(update={"grades": grades[one.evidence_id]}) for one in read]


def _draft(query: Understanding, asked: Plan, good: list[Evidence], context: Context) -> Draft:
    """Say what was stated about a subject, note by note, or the values that answer."""
    claims: list[Claim] = []
    for question in asked.questions:
        fit = about_asked(question.text, question.language, good)
        settled = settle_question(question, fit)
        verdict: Literal["yes", "no", ""] = settled[0][1] if settled else ""
        if len({one for _, one in settled}) > 1 and differing(settled[0][0], good, question):
            verdict = ""  # what was stated differs
        stated = [one for one, _ in settled[:1]] or stated_about(question, good)
        claims += [_whole(one, question).model_copy(update={"verdict": verdict}) for one in stated]
    named = {one.question_id for one in claims}
    rest = [one for one in asked.questions if one.id not in named]
    if rest:
        draft = context.reasoner.answer(query, Plan(questions=rest), good)
        claims += _short(draft, rest, good, context)
    return Draft(claims=claims)


def _earlier(
    draft: Draft, asked: Plan, found: Sequence[Evidence], context: Context
) -> list[tuple[Claim, Evidence]]:
    """Return statements of several things that answer where what took their place does not.

    Where nothing answers, what took their place comes with them.
    """
    known = {one.evidence_id: one for one in found}
    more: list[tuple[Claim, Evidence]] = []
    for one in found:
        later = known.get(str(one.metadata.get(REPLACED)))
        if later is None:
            continue
        bare = later.model_copy(update={"metadata": {**later.metadata, "context": ""}})
        for question in asked.questions:
            own = [claim for claim in draft.claims if claim.question_id == question.id]
            cited = {claim.citations[0].evidence_id for claim in own}
            if (own and later.evidence_id not in cited) or any(claim.verdict for claim in own):
                continue
            if says_more(question, one, bare, context.reasoner.grade):
                grades = {"grades": {question.id: ENOUGH_GRADE}}
                pair = [one] if own else [later, one]
                more += [(_whole(o, question), o.model_copy(update=grades)) for o in pair]
    return more


def _short(
    draft: Draft, asked: Sequence[SubQuestion], good: list[Evidence], context: Context
) -> list[Claim]:
    """Say values by themselves; what was stated with them stays in the citations."""
    by_id = {one.evidence_id: one for one in good}
    claims: list[Claim] = []
    for question in asked:
        # Whether a note says yes or no `settle_question` tells alone.
        own = [one.model_copy(update={"verdict": ""}) for one in draft.claims
               if one.question_id == question.id]  # fmt: skip
        own = own or [
            _whole(one, question)
            for one in good
            if not one.title and one.grades.get(question.id, 0) >= ENOUGH_GRADE
        ]
        fit = [one for one in good if one.title and one.grades.get(question.id, 0) >= ENOUGH_GRADE]
        values = context.reasoner.extract(question, fit) if own and fit else []
        claims += [
            short_claim(one, question, by_id[one.citations[0].evidence_id], values) for one in own
        ]
    return claims


def _whole(note: Evidence, question: SubQuestion) -> Claim:
    """Return the claim that says all of a note."""
    cited = note.cited(0, len(note.text))
    return Claim(text=note.text, citations=[cited], question_id=question.id)
