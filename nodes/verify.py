"""Check every claim of the final text against its cited spans; fail closed."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from core.budget import ANSWER_STEPS, Usage
from core.trace import spent_of_limit
from core.types import LIMITS, Answer, Claim, Evidence, StopReason
from graph.context import Context
from graph.reading import ENOUGH_GRADE, answer_ids, asked_plan, describe_question
from graph.state import MAX_DRAFTS, State, Update
from reasoning.conflicts import find_cases, find_conflicts
from reasoning.rendering import render_answer, render_unsearched
from reasoning.rules.values.versions import is_other_version, version_warnings
from reasoning.verification import settle


def verify(state: State, runtime: Runtime[Context]) -> Update:
    """Cite unsupported claims again or drop them; keep the answer when any stands, else none."""
    context = runtime.context
    began = context.clock()
    draft = state.get("draft")
    # What was graded off topic was never offered, so nothing may rest on it.
    evidence = {
        item.evidence_id: item
        for item in state.get("evidence") or []
        if item.best_grade >= ENOUGH_GRADE
    }
    kept: list[Claim] = []
    dropped: list[tuple[Claim, str]] = []
    again: list[str] = []
    with context.thinking(state, answering=True) as ledger:
        for claim in draft.claims if draft else []:
            stands, reason = settle(claim, evidence, context.reasoner.supports)
            if stands is None:
                dropped.append((claim, reason))
            else:
                kept.append(stands)
                again += [f"cited again: {reason}"] if reason else []
    step = context.step(
        "verify",
        began,
        ledger,
        decision=f"{len(kept)} supported, {len(dropped)} dropped",
        reason="; ".join([*again, *(reason for _, reason in dropped)]),
        evidence=[(c.evidence_id, 1.0) for claim in kept for c in claim.citations],
    )
    usage = context.spent(state["started"], ledger)
    update: Update = {"usage": usage, "trail": [step]}
    if not kept:
        return update | _without_answer(state, dropped, usage, context)
    answer = _answer(state, kept, [reason for _, reason in dropped], list(evidence.values()))
    return update | {"answer": answer, "messages": [AIMessage(content=answer.text)]}


def _answer(
    state: State, kept: list[Claim], dropped: Sequence[str], items: Sequence[Evidence]
) -> Answer:
    """Return the answer of the claims that stand, with what contradicts them and what lacks."""
    asked = {claim.question_id for claim in kept}
    plan = asked_plan(state)
    lacking = [question for question in plan.questions if question.id not in asked]
    missing = list(dict.fromkeys(describe_question(state, question) for question in lacking))
    kept = [*kept, *find_cases(kept, plan, items)]
    query = state["query"]
    found = state.get("evidence") or []  # what denies an answer need not seem to be one
    asked_of = [one for one in found if not is_other_version(query.question, query.language, one)]
    others, conflicts = find_conflicts(kept, plan, asked_of)
    cited = {citation.evidence_id for claim in others for citation in claim.citations}
    shown = cited | {one.evidence_id for one in items}
    items = [one for one in found if one.evidence_id in shown]
    reason, trail = state["stop_reason"], state.get("trail") or []
    searched = {step.question_id for step in trail if step.tool}
    skipped = [
        describe_question(state, one)
        for one in lacking
        if reason in LIMITS and searched.isdisjoint(answer_ids(state, one.id))
    ]
    sought = [one for one in missing if one not in skipped]
    text = render_answer(query, plan, kept, sought, items, others, conflicts)
    if skipped:
        spent = spent_of_limit(trail)
        text += f"\n{render_unsearched(query.language, skipped, reason, spent)}"
    if missing and reason == StopReason.enough_evidence:
        reason = StopReason.required_fields_missing
    warnings = list(dict.fromkeys(state.get("warnings") or []))
    warnings += [f"dropped an unsupported sentence: {why}" for why in dropped]
    warnings += [f"not found: {part}" for part in sought]
    warnings += [f"not searched: {part}" for part in dict.fromkeys(skipped)]
    cited = {citation.evidence_id for claim in kept for citation in claim.citations}
    warnings += version_warnings(query, [i for i in items if i.evidence_id in cited], found)
    return Answer(
        text=text,
        claims=[*kept, *others],
        conflicts=conflicts,
        stop_reason=reason,
        missing=missing,
        warnings=warnings,
    )


def _without_answer(
    state: State, dropped: Sequence[tuple[Claim, str]], usage: Usage, context: Context
) -> Update:
    """Return what is known where no claim stands; there may be another draft."""
    rejected = [c.evidence_id for claim, _ in dropped for c in claim.citations]
    update: Update = {"draft": None}
    update["unsupported"] = [*(state.get("unsupported") or []), *rejected]
    if not dropped:  # nothing answers, and another draft would say so again
        update |= {"drafts": MAX_DRAFTS, "stop_reason": StopReason.no_relevant_evidence}
    elif state.get("drafts", 0) >= MAX_DRAFTS or not _may_go_on(state, usage, context):
        update |= {"drafts": MAX_DRAFTS, "stop_reason": StopReason.unsupported_answer}
    return update


def _may_go_on(state: State, spent: Usage, context: Context) -> bool:
    """Tell whether the budget allows another draft, which may still be good."""
    usage = state["usage"].plus(spent)
    room = usage.steps + ANSWER_STEPS <= context.budget.steps
    return room and context.budget.exceeded(usage, answering=True) is None
