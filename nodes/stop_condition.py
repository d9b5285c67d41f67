"""Decide whether to answer, search again, go on, change the plan, or give up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from core.budget import SEARCH_STEPS
from core.operations import (
    AnyOperation,
    ComposeQuery,
    FilledQuery,
    MapRetrieve,
    Reference,
    Register,
    Retrieve,
    UnionHits,
)
from core.recall import NOTE
from core.settings import Settings
from core.types import Clarification, Plan, StopReason, SubQuestion
from graph.context import Context
from graph.reading import (
    ENOUGH_GRADE,
    Search,
    answer_ids,
    asked_plan,
    best_grade,
    find_evidence,
    orphans,
    register,
    searches_of,
)
from graph.state import Outcome, State, Update
from reasoning.clarifying import not_found
from reasoning.planning.compiler import FULL_QUESTION, downstream, entity_hop, other_values, ready
from reasoning.planning.rules import OPERATION_RULES
from reasoning.planning.slots import Facts, problems
from reasoning.question_words import open_words
from reasoning.rules.recall import is_of_speaker


@dataclass
class ReplanState:
    """What replanning may still change of a run: its operations and what they have written."""

    operations: list[AnyOperation]
    registers: Mapping[str, Register]
    done: list[str] = field(default_factory=list)
    chosen: dict[str, list[FilledQuery]] = field(default_factory=dict)
    rewritten: Mapping[str, object] = field(default_factory=dict)
    backtracks: int = 0
    replans: int = 0
    covered: dict[str, float] = field(default_factory=dict)
    changed: dict[str, Register] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def undo_values(self, search: Retrieve | MapRetrieve, settings: Settings) -> bool:
        """Make the run search with other values of the slots that this search rests on.

        What was found with the undone ones stays as evidence; everything downstream runs again.
        Returns False when none is left or the limit is reached.
        """
        if self.backtracks >= settings.plan.max_backtracks or isinstance(search, MapRetrieve):
            return False
        moved = other_values(search, self.operations, self.registers, settings.plan.fan_out)
        if not moved:
            return False
        composing = {
            one.out
            for one in self.operations
            if isinstance(one, ComposeQuery) and not moved.keys().isdisjoint(one.values.values())
        }
        again = downstream(self.operations, composing)
        asking = Retrieve | MapRetrieve
        asked = {
            one.question for one in self.operations if isinstance(one, asking) and one.out in again
        }
        self.backtracks += 1
        self.changed |= moved
        self.done = [name for name in self.done if name not in again]
        self.chosen = {name: ways for name, ways in self.chosen.items() if name not in asked}
        self.rewritten = {name: text for name, text in self.rewritten.items() if name not in again}
        for name in again & self.registers.keys():
            self.changed[name] = Register(kind=self.registers[name].kind)
        self.notes.append(f"nothing found with the values of {', '.join(moved)}: others are tried")
        return True


def add_hop(
    operations: Sequence[AnyOperation],
    search: AnyOperation,
    question: SubQuestion,
    query: str,
    done: Collection[str],
    plan: Plan,
    settings: Settings,
) -> list[AnyOperation]:
    """Return the operations with an entity hop after a search; unchanged when a rule forbids it.

    `query` is plain text. What still has to read the hits of the search reads them together with
    those of the hop.
    """
    hops = sum(1 for operation in operations if operation.op == "EXTRACT_ENTITIES") + 1
    name = f"x{hops}"
    both = f"u{name}"
    hop = [
        *entity_hop(question, query, search.out, name, settings),
        UnionHits(out=both, hits=[search.out, f"f{name}"]),
    ]
    place = next(n for n, earlier in enumerate(operations) if earlier.out == search.out) + 1
    later = [
        one if one.out in done else _renamed(one, search.out, both) for one in operations[place:]
    ]
    longer = [*operations[:place], *hop, *later]
    if any(problems(OPERATION_RULES, Facts(plan, settings, operations=longer))):
        return list(operations)  # the plan is as long as it may be, or its names are taken
    return longer


def _renamed(operation: AnyOperation, old: str, new: str) -> AnyOperation:
    """Return an operation that reads another register in the place of one."""
    update: dict[str, Any] = {}
    for name in operation.READS:
        value = getattr(operation, name)
        if isinstance(value, list):
            update[name] = list(dict.fromkeys(new if one == old else one for one in value))
        elif isinstance(value, dict):
            update[name] = {key: new if one == old else one for key, one in value.items()}
        elif isinstance(value, Reference):
            update[name] = Reference(ref=new) if value.ref == old else value
        elif value == old and name != "query":
            update[name] = new
    return operation.model_copy(update=update)


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
    limit = context.budget.exceeded(usage.model_copy(update={"steps": state["usage"].steps}))
    room = context.budget.steps_left(usage)  # too little ends a run only where more is wanted
    goes_on = limit is None and room >= SEARCH_STEPS
    kept: dict[str, Any] = {key: copy(state.get(key)) for key in COURSE if state.get(key)}
    course = ReplanState(registers=state.get("registers") or {}, **kept)
    searches = searches_of(state)
    failed = [one for one in searches if best_grade(state, one.question) < ENOUGH_GRADE]
    again = [one for one in failed if goes_on and course.undo_values(one, context.settings)]
    may_rewrite = not limit and context.settings.answering.max_rewrites > 0
    failing = [one for one in failed if may_rewrite and one not in again]
    wanted = [one for one in failing if _is_rewritable(one, course)]
    weak = wanted[: max(0, room - 1) // (SEARCH_STEPS - 1)]  # each is proposed, made and graded
    open_still = {one.out for one in (*again, *weak)}
    course.done += [out for out in state["wave"] if out not in open_still]
    fixed = context.given is not None and context.given.fixed
    for search in searches if goes_on and not fixed else []:
        _follow(state, search, course, context)
    verdict = _verdict(state, course, weak=bool(weak), limit=limit)
    if room < SEARCH_STEPS and (wanted or verdict.outcome == "next"):
        limit = StopReason.max_steps
        verdict = _verdict(state, course, weak=False, limit=limit)
    asks = _asks_back(state, verdict, context)
    if asks is not None:
        why = f"{verdict.why}; {len(asks.options)} related documents to ask about"
        verdict = Decision("unclear", verdict.reason, why)
    served = {one.question for one in searches}
    ends = f"{verdict.reason.value}: " if verdict.outcome in ("enough", "never") else ""
    step = context.step(
        "stop_condition",
        began,
        decision=verdict.outcome,
        reason="; ".join([*course.notes, f"{ends}{verdict.why}"]),
        question_id=served.pop() if len(served) == 1 else "",
        arguments={
            **{"backtracks": course.backtracks, "replans": course.replans},
            **context.budget.spent(limit, usage),
        },
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


def _is_rewritable(search: Search, course: ReplanState) -> bool:
    """Tell whether a search may be written in other words, which it is once."""
    whole = isinstance(search, MapRetrieve) or search.out == FULL_QUESTION
    return not whole and search.out not in course.rewritten


def _follow(state: State, search: Search, course: ReplanState, context: Context) -> None:
    """Extend a planned run by what the evidence of a search names but does not say."""
    settings = context.settings
    single = len(state["plan"].questions) == 1
    most = settings.plan.max_hops if single else settings.plan.max_replans
    failed = best_grade(state, search.question) < ENOUGH_GRADE
    if (
        state["path"] != "planned"
        or search.out == FULL_QUESTION
        or course.replans >= most
        or search.out not in course.done
    ):
        return
    sure = state["query"].confidence >= settings.plan.plain_confidence
    if not failed and (not single or (state["query"].kind == "plain" and sure)):
        return
    names = answer_ids(state, search.question)
    question = next((one for one in asked_plan(state).questions if one.id in names), None)
    stored = register(state, search.out)
    if question is None or stored is None or not stored.hits:
        return
    found = find_evidence(state, stored.hits)
    best = max(item.grades.get(name, 0) for item in found for name in names)
    used = [item for item in found if any(item.grades.get(n, 0) == best for n in names)]
    left = open_words(question, used, context.tools.term_weights())
    grew = left.covered > course.covered.get(question.id, -1.0)
    if left.covered >= COVERED or not grew:
        return
    query = left.text or question.query
    asked = question.model_copy(update={"id": search.question})  # of several values, the question
    longer = add_hop(course.operations, search, asked, query, course.done, state["plan"], settings)
    if longer != course.operations:
        course.operations = longer
        course.replans += 1
        course.covered[question.id] = left.covered
        course.notes.append(f"{left.covered:.0%} of the words are covered, not: {query}")


def _asks_back(state: State, verdict: Decision, context: Context) -> Clarification | None:
    """Return what to ask instead of a refusal; when a limit was met there is nothing to go on."""
    refuses = verdict.outcome == "never" and verdict.reason == StopReason.no_relevant_evidence
    may_ask = context.may_ask(state.get("clarified", 0)) and not state.get("reply")
    if not refuses or not may_ask or is_of_speaker(state.get("recall")):
        return None
    found = [one for one in state.get("evidence") or [] if one.kind != NOTE]
    return not_found(state["query"].question, found)


def _verdict(
    state: State, course: ReplanState, *, weak: bool, limit: StopReason | None
) -> Decision:
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
