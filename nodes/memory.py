"""The memory agent: choose an action, search notes, read them, answer from them."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from core.budget import ANSWER_STEPS, Room, Usage
from core.errors import CallerError
from core.language.scan import estimate_tokens
from core.recall import FINAL_ANSWER, NOTE, READ_MEMORY, RecallState
from core.types import Call, Claim, Draft, Evidence, Plan, StopReason, Understanding
from graph.context import Context
from graph.reading import ENOUGH_GRADE
from graph.state import MAX_DRAFTS, Outcome, State, Update
from reasoning.rules.recall import (
    about_asked,
    asks_what_was_stated,
    is_of_subject,
    questions_of,
    short_claim,
    stated_about,
)
from tools.types import ToolResult

BEST_GRADE = 3  # of a note of just the subject that is asked for


def choose_action(state: State, runtime: Runtime[Context]) -> Update:
    """Choose the next action; the last one that loops or budget allow must be the answer."""
    context, recall = runtime.context, recall_of(state)
    began = context.clock()
    left = context.budget.steps - ANSWER_STEPS - state["usage"].steps
    forced = recall.must_answer or left <= ANSWER_STEPS
    with context.thinking(state) as ledger:
        if forced or context.budget.exceeded(state["usage"]) is not None:
            action, reason = Call(tool=FINAL_ANSWER), "no other action is left"
        else:
            action, reason = context.reasoner.recall(recall, notes_of(state)), ""
    step = context.step(
        "choose_action",
        began,
        ledger,
        decision=action.tool,
        reason=reason,
        arguments=action.arguments,
    )
    return {
        "recall": recall.model_copy(update={"action": action}),
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }


def keyword_search(state: State, runtime: Runtime[Context]) -> Update:
    """Find notes by words."""
    return _act(state, runtime.context)


def semantic_search(state: State, runtime: Runtime[Context]) -> Update:
    """Find notes by meaning."""
    return _act(state, runtime.context)


def read_memory(state: State, runtime: Runtime[Context]) -> Update:
    """Read notes that were found, with those linked to them."""
    return _act(state, runtime.context)


def final_answer(state: State, runtime: Runtime[Context]) -> Update:
    """Answer from the notes that were read, or leave the question to the documents."""
    context, recall = runtime.context, recall_of(state)
    began = context.clock()
    asked = questions_of(state["query"], recall.question)
    read = [one for one in notes_of(state) if one.evidence_id in recall.read]
    with context.thinking(state, answering=True) as ledger:
        graded = _graded(asked, read, context)
        good = [one for one in graded if one.best_grade >= ENOUGH_GRADE]
        good.sort(key=lambda one: (one.best_grade, one.updated_at), reverse=True)
        draft = Draft(claims=[])
        if good:
            draft = _draft(state["query"], asked, good, context)
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


def recall_of(state: State) -> RecallState:
    """Return what the memory agent knows."""
    recall = state.get("recall")
    if recall is None:
        raise TypeError("memory is not asked")
    return recall


def notes_of(state: State) -> list[Evidence]:
    """Return the notes that came back so far."""
    return [one for one in state.get("evidence") or [] if one.kind == NOTE]


def _act(state: State, context: Context) -> Update:
    """Call the tool of the action, and note what came back."""
    recall = recall_of(state)
    action = recall.action
    if action is None:
        raise TypeError("no action is chosen")
    began, known = context.clock(), {one.evidence_id for one in notes_of(state)}
    notes: list[str] = []
    with context.thinking(state) as ledger:
        ledger.room = Room(context.budget.tokens_for(state["usage"], answering=False), known)
        deadline = context.deadline(state["started"])
        try:
            result = context.tools.run(action.tool, action.arguments, context.auth, deadline)
        except CallerError as error:
            notes.append(f"{action.tool}: {error}")
            result = ToolResult(auth_filter=context.auth.describe())
    names = [one.evidence_id for one in result.evidence]
    new = [one for one in result.evidence if one.evidence_id not in known]
    tokens = sum(estimate_tokens(one.text) for one in new)
    seen: dict[str, Any] = {"read": [*recall.read, *names]}
    if action.tool != READ_MEMORY:
        seen = {"found": [*recall.found, names]}
    values = {"tokens": recall.tokens + tokens, "trajectory": [*recall.trajectory, action]}
    step = context.step(
        action.tool,
        began,
        ledger,
        decision=f"{len(names)} notes",
        reason="; ".join(result.notes),
        tool=action.tool,
        arguments=action.arguments,
        auth_filter=result.auth_filter,
        evidence=[(one.evidence_id, round(one.score, 4)) for one in result.evidence],
    )
    spent = context.spent(state["started"], ledger)
    return {
        "recall": recall.model_copy(update={**seen, **values, "action": None}),
        "evidence": result.evidence,
        "usage": spent.plus(Usage(tool_calls=1, tokens=tokens, dropped=result.dropped)),
        "trail": [step],
        "warnings": [*notes, *ledger.warnings],
    }


def _graded(asked: Plan, read: list[Evidence], context: Context) -> list[Evidence]:
    """Grade the notes of whom each part is about; the others answer nothing."""
    grades: dict[str, dict[str, int]] = {one.evidence_id: {} for one in read}
    for question in asked.questions:
        fit = about_asked(question.text, question.language, read)
        for grade in context.reasoner.grade(question, fit) if fit else []:
            grades[grade.evidence_id][question.id] = grade.grade
        stated = stated_about(question, fit)
        for one in fit:
            if is_of_subject(question.text, question.language, one) or one in stated:
                grades[one.evidence_id][question.id] = BEST_GRADE
    return [one.model_copy(update={"grades": grades[one.evidence_id]}) for one in read]


def _draft(query: Understanding, asked: Plan, good: list[Evidence], context: Context) -> Draft:
    """Say what was stated about a subject, note by note, or the values that answer."""
    claims: list[Claim] = []
    for question in asked.questions:
        for one in stated_about(question, good):
            cited = one.cited(0, len(one.text))
            claims.append(Claim(text=one.text, citations=[cited], question_id=question.id))
    named = {one.question_id for one in claims}
    rest = [one for one in asked.questions if one.id not in named]
    if rest:
        plan = Plan(questions=rest)
        draft = context.reasoner.answer(query, plan, good)
        claims += _short(draft, plan, good, context).claims
    return Draft(claims=claims)


def _short(draft: Draft, asked: Plan, good: list[Evidence], context: Context) -> Draft:
    """Say values by themselves; what was stated with them stays in the citations."""
    by_id = {one.evidence_id: one for one in good}
    claims: list[Claim] = []
    for question in asked.questions:
        own = [one for one in draft.claims if one.question_id == question.id]
        fit = [one for one in good if one.grades.get(question.id, 0) >= ENOUGH_GRADE]
        values = context.reasoner.extract(question, fit) if own else []
        claims += [
            short_claim(one, question, by_id[one.citations[0].evidence_id], values) for one in own
        ]
    return draft.model_copy(update={"claims": claims})
