"""Decide from several signals whether to answer, search again, go on, or give up."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from core.operations import MapRetrieve
from core.types import Clarification, StopReason
from graph.context import Context
from graph.reading import (
    ENOUGH_GRADE,
    Search,
    answer_ids,
    asked_plan,
    best_grade,
    held_evidence,
    orphans,
    register,
    searches_of,
)
from graph.state import Outcome, State, Update
from reasoning.clarifying import not_found
from reasoning.open_words import open_words
from reasoning.planning.adapting import ReplanState, extended
from reasoning.planning.compiler import WHOLE
from reasoning.planning.running import ready

COVERED = 0.9  # a question whose evidence covers this share of its words needs no other hop

# What a course may change of the state, by the same names.
COURSE = "operations done chosen rewritten backtracks replans covered".split()


class Decision(NamedTuple):
    """Hold the outcome, the stop reason it would end with, and the signals in words."""

    outcome: Outcome
    reason: StopReason
    why: str


def stop_condition(state: State, runtime: Runtime[Context]) -> Update:
    """Weigh budget, grades, required fields, rewrites and what is still open.

    A search that found nothing has its values undone, is written again, or extends the plan, each
    within its limit; then it is over.
    """
    context = runtime.context
    began = context.clock()
    usage = state["usage"].plus(context.elapsed(state["started"]))
    limit = context.budget.exceeded(usage)
    kept: dict[str, Any] = {key: copy(state.get(key)) for key in COURSE if state.get(key)}
    course = ReplanState(registers=state.get("registers") or {}, **kept)
    searches = searches_of(state)
    failed = [one for one in searches if best_grade(state, one.question) < ENOUGH_GRADE]
    again = [] if limit else [one for one in failed if course.undo_values(one, context.settings)]
    weak = [one for one in failed if one not in again and _weak(one, course, context)]
    weak = [] if limit else weak
    open_still = {one.out for one in (*again, *weak)}
    course.done += [out for out in state["wave"] if out not in open_still]
    fixed = context.given is not None and context.given.fixed
    for search in [] if limit or fixed else searches:
        _follow(state, search, course, context)
    verdict = _verdict(state, course, bool(weak), limit)
    asks = _asks_back(state, verdict, context)
    if asks is not None:
        why = f"{verdict.why}; {len(asks.options)} related documents to ask about"
        verdict = Decision("unclear", verdict.reason, why)
    served = {one.question for one in searches}
    step = context.step(
        "stop_condition",
        began,
        decision=verdict.outcome,
        reason="; ".join([*course.notes, _reason(verdict)]),
        question_id=served.pop() if len(served) == 1 else "",
        arguments={"backtracks": course.backtracks, "replans": course.replans},
    )
    return {
        **{key: getattr(course, key) for key in COURSE},
        "registers": course.changed,
        "wave": [one.out for one in weak] or state["wave"],
        "clarification": asks,
        "outcome": verdict.outcome,
        "stop_reason": verdict.reason,
        "usage": context.elapsed(state["started"]),
        "trail": [step],
        "warnings": [] if limit is None else [f"stopped early: {limit.value}"],
    }


def _weak(search: Search, course: ReplanState, context: Context) -> bool:
    """Tell whether a search that found nothing is to be written again."""
    if isinstance(search, MapRetrieve) or search.out == WHOLE:
        return False
    return context.settings.answering.max_rewrites > 0 and search.out not in course.rewritten


def _follow(state: State, search: Search, course: ReplanState, context: Context) -> None:
    """Extend a planned run by what the evidence of a search names but does not say."""
    settings = context.settings
    single = len(state["plan"].questions) == 1
    most = settings.plan.max_hops if single else settings.plan.max_replans
    failed = best_grade(state, search.question) < ENOUGH_GRADE
    if (
        state["path"] != "planned"
        or search.out == WHOLE
        or course.replans >= most
        or search.out not in course.done
    ):
        return
    sure = state["query"].confidence >= settings.plan.plain_confidence
    if not failed and (not single or (state["query"].kind == "plain" and sure)):
        return
    names = answer_ids(state, search.question)
    question = next((one for one in asked_plan(state).questions if one.id in names), None)
    held = register(state, search.out)
    if question is None or held is None or not held.hits:
        return
    found = held_evidence(state, held.hits)
    best = max(item.grades.get(name, 0) for item in found for name in names)
    used = [item for item in found if any(item.grades.get(n, 0) == best for n in names)]
    left = open_words(question, used, context.tools.term_weights())
    grew = left.covered > course.covered.get(question.id, -1.0)
    if left.covered >= COVERED or not grew:
        return
    query = left.text or question.query
    asked = question.model_copy(update={"id": search.question})  # of several values, the question
    longer = extended(course.operations, search, asked, query, course.done, state["plan"], settings)
    if longer != course.operations:
        course.operations = longer
        course.replans += 1
        course.covered[question.id] = left.covered
        course.notes.append(f"{left.covered:.0%} of the words are covered, not: {query}")


def _asks_back(state: State, verdict: Decision, context: Context) -> Clarification | None:
    """Return what to ask instead of a refusal; when a limit was met there is nothing to go on."""
    refuses = verdict.outcome == "never" and verdict.reason == StopReason.no_relevant_evidence
    if not refuses or not context.may_ask(state.get("clarified", 0)):
        return None
    return not_found(state["query"].question, state.get("evidence") or [])


def _reason(verdict: Decision) -> str:
    ends = verdict.outcome in ("enough", "never")
    return f"{verdict.reason.value}: {verdict.why}" if ends else verdict.why


def _verdict(state: State, course: ReplanState, weak: bool, limit: StopReason | None) -> Decision:
    asked = [question.id for question in state["plan"].questions]
    lost = orphans(state)
    found = [name for name in asked if best_grade(state, name) >= ENOUGH_GRADE]
    answered = [name for name in found if name not in lost]
    sourced = f"{len(answered)} of {len(asked)} sub-questions have evidence"
    if limit is not None:
        # Partial evidence is worth an answer; the limit stays the reason it ended.
        return Decision("enough" if answered else "never", limit, f"{limit.value}, {sourced}")
    if weak:
        why = f"nothing answers yet, {sourced}"
        return Decision("weak", StopReason.no_relevant_evidence, why)
    following = ready(course.operations, course.done)
    if following:
        then = ", ".join(f"{one.op} {one.out}" for one in following)
        return Decision("next", StopReason.enough_evidence, f"{sourced}; next {then}")
    if not answered:
        return Decision("never", StopReason.no_relevant_evidence, sourced)
    if len(answered) < len(asked):
        return Decision("enough", StopReason.required_fields_missing, sourced)
    return Decision("enough", StopReason.enough_evidence, sourced)
