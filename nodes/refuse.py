"""Say honestly that the documents do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from core.budget import TimeUpError
from core.errors import CallerError
from core.language.scan import words_replaced
from core.recall import NOTE
from core.trace import Step, spent_of_limit
from core.types import Answer, Evidence, Plan, StopReason
from graph.context import Context
from graph.reading import NOTED, asked_plan, orphans
from graph.state import State, Update
from reasoning.clarifying import plain_text
from reasoning.rendering import Help, render_refusal
from reasoning.rules.answering.summaries import SUMMARISE, only_summarises, part_asked
from reasoning.rules.recall import is_of_speaker
from reasoning.rules.values.versions import is_other_version, version_warnings
from reasoning.types import Reasoner

NEAR = 1  # the grade of what is related
# Nothing more is looked for where a limit ended the run.
SEARCHED = (StopReason.no_relevant_evidence, StopReason.unsupported_answer)


def refuse(state: State, runtime: Runtime[Context]) -> Update:
    """Name what was looked for, where, and why it stopped."""
    context = runtime.context
    began = context.clock()
    if state.get("reply"):
        return _reply(state, context, began)
    reason = state["stop_reason"]
    plan = asked_plan(state) if state.get("plan") else None
    if plan is not None:  # what waits for a value that was not found is no question yet
        waiting = orphans(state)
        asked = [question for question in plan.questions if question.id not in waiting]
        plan = plan.model_copy(update={"questions": asked or plan.questions})
    tools = [step.tool for step in state.get("trail") or [] if step.tool]
    part = part_asked(plan)
    similar = [
        plain_text(item.section if part else item.title or item.source)
        for item in state.get("evidence") or []
        if item.tool == SUMMARISE
        or is_other_version(state["query"].question, state["query"].language, item)
    ]
    given, steps = _help(state, plan, context)
    recall = state.get("recall")
    if is_of_speaker(recall):  # of whom what comes nearest in the documents tells nothing
        given, similar = given._replace(near=None, passage=None), []
    given = given._replace(
        similar=list(dict.fromkeys(similar)),
        part=part,
        recalled=recall is not None and recall.first,
        stated=_stated(state),
        spent=spent_of_limit(state.get("trail") or []),
    )
    text = render_refusal(state["query"], plan, tools, reason, given)
    answer = Answer(
        text=text,
        refused=True,
        stop_reason=reason,
        missing=[question.text for question in plan.questions] if plan else [],
        warnings=list(dict.fromkeys([*(state.get("warnings") or []), *_warnings(state, given)])),
    )
    return _ended(state, context, began, answer, steps, _found_out(given))


def _found_out(given: Help) -> dict[str, Any]:
    """Return what is not there, by where it is not, as `lacking` of the messages names the places.

    And what the documents would answer.
    """
    near, found = given.near, dict[str, Any]()
    if near is not None:
        places = {"anywhere": near.lacking, "here": near.lacking_here, near.kind: []}
        place = next((one for one, words in places.items() if words), near.kind)
        found = {place: places[place]} if near.evidence_id or place != "text" else {}
        found |= {"better": near.better} if near.better else {}
    return found | ({"unfiltered": True} if given.unfiltered else {})


def _stated(state: State) -> Evidence | None:
    """Return the note that is near a question without answering it."""
    notes = (one for one in state.get("evidence") or [] if one.kind == NOTE and not one.title)
    return next((one for one in notes if one.best_grade == NEAR), None)


def _reply(state: State, context: Context, began: float) -> Update:
    """Say what is to be said to a turn that asks nothing."""
    warnings = list(dict.fromkeys(state.get("warnings") or []))
    answer = Answer(text=state["reply"], stop_reason=StopReason.nothing_asked, warnings=warnings)
    return _ended(state, context, began, answer, [], {})


def _ended(
    state: State,
    context: Context,
    began: float,
    answer: Answer,
    steps: list[Step],
    lacks: dict[str, Any],
) -> Update:
    is_left = state["usage"].steps < context.budget.steps
    step = context.step(
        "refuse",
        began,
        decision=answer.stop_reason.value,
        reason=answer.text.splitlines()[0],
        arguments=lacks,
    )
    spent = context.elapsed(state["started"])
    marks = {} if answer.refused else {NOTED: True}
    return {
        "answer": answer,
        "messages": [AIMessage(answer.text, additional_kwargs=marks)],
        # However little is left, a refusal is given.
        "usage": spent.model_copy(update={"steps": int(is_left), "tool_calls": len(steps)}),
        "trail": [*steps, step],
    }


def _warnings(state: State, given: Help) -> list[str]:
    """Warn of what was found about the question, or comes nearest, in another version only."""
    near = given.passage
    found = [
        item
        for item in state.get("evidence") or []
        if item.best_grade
        or (near is not None and (item.title, item.section) == (near.title, near.section))
    ]
    return version_warnings(state["query"], found)


def _help(state: State, plan: Plan | None, context: Context) -> tuple[Help, list[Step]]:
    """Look for what comes nearest, and without what the caller chose to narrow it.

    Nothing more is looked for at a limit.
    """
    given = Help(filters=context.tools.filters, rights=context.auth)
    if plan is None or state["stop_reason"] not in SEARCHED:
        return given, []
    steps: list[Step] = []
    try:
        with context.thinking(state, answering=True):
            given = _nearest(given, plan, state.get("evidence") or [], context.reasoner)
            near = given.near
            better = _respelled(state, plan, context) if near and near.lacking else ""
            if near is not None and better:
                given = given._replace(near=near.model_copy(update={"better": better}))
            if given.filters or context.auth != context.auth.unconfined:
                steps, answers = _searched_wider(state, plan, context)
                given = given._replace(unfiltered=answers)
    except TimeUpError:  # what is known by then will do
        pass
    return given, steps


def _nearest(given: Help, plan: Plan, evidence: Sequence[Evidence], reasoner: Reasoner) -> Help:
    """Add what comes nearest to the first question for which anything does."""
    passages = {
        item.evidence_id: item for item in evidence if item.tool != SUMMARISE and item.kind != NOTE
    }
    for question in plan.questions:
        if only_summarises(question):  # of a whole that is not there no sentence is near
            continue
        near = reasoner.nearest(question, list(passages.values()))
        if given.near is None or near.evidence_id:
            given = given._replace(near=near, passage=passages.get(near.evidence_id))
        if given.passage is not None:
            break
    return given


def _respelled(state: State, plan: Plan, context: Context) -> str:
    """Return the first question with words of its evidence in place of ones close to them.

    It is asked back, never answered: what was typed may be meant. Empty where the evidence answers
    it no more. No other document is named by it, so that it is closed with those of the run.
    """
    question, evidence = plan.questions[0], state.get("evidence") or []
    near = context.tools.respellings(question.text, state["query"].language, context.auth)
    text = "\n".join(f"{one.title} {one.section} {one.text}" for one in evidence).casefold()
    near = {typed: meant for typed, meant in near.items() if meant.casefold() in text}
    if not near:
        return ""
    update = {name: words_replaced(getattr(question, name), near) for name in ("text", "query")}
    if not context.reasoner.nearest(question.model_copy(update=update), evidence).answers:
        return ""
    whole = state["query"].question if len(plan.questions) == 1 else question.text
    return words_replaced(whole, near)


def _searched_wider(state: State, plan: Plan, context: Context) -> tuple[list[Step], bool]:
    """Make the first search again without what narrows it, if the budget has a call left.

    That is filters and, of an operator, sources and version; what confines others is a right.

    Of what it finds nothing is kept but whether it answers: it was not asked for.
    """
    calls = [step for step in state.get("trail") or [] if step.tool]
    texts = [step for step in calls if "query" in step.arguments]
    first = next(iter(texts or calls), None)
    if first is None or not context.budget.calls_left(state["usage"]):
        return [], False
    began, deadline, parts = context.clock(), context.deadline(state["started"]), context.apart

    def search() -> dict[str, Any]:
        tools = parts.tools.without_filters()
        try:
            result = tools.run(first.tool, first.arguments, context.auth.unconfined, deadline)
        except CallerError:
            return {}
        near = parts.reasoner.nearest(plan.questions[0], result.evidence)
        found = {"found": len(result.evidence), "answers": near.answers}
        return {**found, "auth_filter": result.auth_filter}

    wider = context.seen("unfiltered", (first.tool, first.arguments), search)
    if not wider:
        return [], False
    step = context.step(
        "refuse",
        began,
        decision=f"{wider['found']} found without the filters",
        tool=first.tool,
        arguments=first.arguments,
        auth_filter=wider["auth_filter"],
    )
    return [step], bool(wider["answers"])
