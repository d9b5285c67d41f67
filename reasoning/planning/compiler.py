"""Compile a valid plan: DAG → JSON plan → linear operations (SPEC M7). No model takes part."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from core.operations import (
    ENTITY,
    AnyOperation,
    ComposeQuery,
    ExtractAnswer,
    ExtractEntities,
    FilterCe,
    IntersectHits,
    MapRetrieve,
    Merge,
    Reference,
    Retrieve,
    Synthesize,
    UnionHits,
)
from core.settings import Settings
from core.types import Plan, SubQuestion, Value
from reasoning.planning.facts import producers, uses
from reasoning.planning.slots import escaped, filled

WHOLE = "h0"  # what a search for the whole question writes


class JsonPlan(Value):
    """Hold a plan whose questions stand in the order in which they can run.

    The hits of the questions in `synth_from` are merged, and at most `max_evidence` of them go to
    the answer.
    """

    questions: list[SubQuestion]
    whole: str = ""
    merge: Merge = "union"
    synth_from: list[str] = Field(min_length=1)
    max_evidence: int = Field(ge=1)


def in_order(plan: Plan) -> list[SubQuestion]:
    """Return the questions of a valid plan, each after what it depends on.

    Of those that could come next the first of the plan does, so independent questions keep their
    order (Kahn's algorithm with a stable choice).
    """
    waiting, done, ordered = list(plan.questions), set[str](), list[SubQuestion]()
    while waiting:
        ready = next(question for question in waiting if done.issuperset(question.deps))
        waiting.remove(ready)
        done.add(ready.id)
        ordered.append(ready)
    return ordered


def json_plan(
    plan: Plan, settings: Settings, merge: Merge = "union", synth_from: Sequence[str] = ()
) -> JsonPlan:
    """Order a valid plan and say what its answer rests on.

    Without `synth_from` a union takes the hits of all questions; an intersection takes those that
    no other question depends on, since what led there is not about the same thing.
    """
    ordered = in_order(plan)
    led_on = {name for question in ordered for name in question.deps}
    chosen = [
        question.id
        for question in ordered
        if (question.id in synth_from)
        or (not synth_from and (merge == "union" or question.id not in led_on))
    ]
    return JsonPlan(
        questions=ordered,
        whole=plan.whole,
        merge=merge,
        synth_from=chosen,
        max_evidence=settings.plan_max_evidence,
    )


def operations_of(plan: JsonPlan, settings: Settings) -> list[AnyOperation]:
    """Return the operations of an ordered plan; every register is written before it is read."""
    registers = {slot: f"v{place}" for place, slot in _slots(plan)}
    steps: list[AnyOperation] = []
    hits: dict[str, str] = {}
    beside = _whole(plan, settings)
    steps += beside
    for place, question in enumerate(plan.questions, start=1):
        hits[question.id] = f"h{place}"
        steps += _question(question, place, registers, settings)
    merged = [*[one.out for one in beside], *[hits[name] for name in plan.synth_from]]
    if len(merged) > 1:
        joining = UnionHits if plan.merge == "union" else IntersectHits
        steps.append(joining(out="h", hits=merged))
    source = merged[0] if len(merged) == 1 else "h"
    answered = [question.id for question in plan.questions]
    steps.append(
        Synthesize(out="answer", questions=answered, hits=source, max_evidence=plan.max_evidence)
    )
    return steps


def compiled(
    plan: Plan, settings: Settings, merge: Merge = "union", synth_from: Sequence[str] = ()
) -> list[AnyOperation]:
    """Return the operations of a valid plan."""
    return operations_of(json_plan(plan, settings, merge, synth_from), settings)


def entity_hop(
    question: SubQuestion, query: str, hits: str, name: str, settings: Settings
) -> list[AnyOperation]:
    """Return the operations that search on with what the best hits name.

    `query` is the question's search text with its slots filled, `hits` the register it starts
    from; `name` ends the names of those it writes, the last of which, `f{name}`, holds the new
    hits.
    """
    fan_out = min(settings.plan_fan_out, settings.plan_max_entities)
    most = top_k(settings)
    return [
        ExtractEntities(
            out=f"e{name}",
            question=question.id,
            hits=hits,
            max_entities=settings.plan_max_entities,
        ),
        MapRetrieve(
            out=f"m{name}",
            question=question.id,
            template=f"{escaped(query)} {{{ENTITY}}}",
            entities=f"e{name}",
            tools=_tools(question),
            top_k=most,
            fan_out=fan_out,
        ),
        FilterCe(
            out=f"f{name}",
            question=question.id,
            hits=f"m{name}",
            threshold=settings.plan_threshold,
            top_k=most,
        ),
    ]


def _whole(plan: JsonPlan, settings: Settings) -> list[Retrieve]:
    """Return a search for the whole question where its parts, side by side, share their tools.

    Parts of different systems are different questions; parts that wait for others narrow down what
    the whole asks.
    """
    first, *others = plan.questions
    apart = any(one.deps or _tools(one) != _tools(first) for one in others)
    if not plan.whole or not others or apart or plan.merge != "union":
        return []
    return [
        Retrieve(
            out=WHOLE,
            question=first.id,
            query=plan.whole,
            tools=_tools(first),
            top_k=top_k(settings),
        )
    ]


def _slots(plan: JsonPlan) -> list[tuple[int, str]]:
    places = {question.id: place for place, question in enumerate(plan.questions, start=1)}
    found = producers(Plan(questions=plan.questions))
    return [(places[question.id], slot) for question, slot in found]


def _question(
    question: SubQuestion, place: int, registers: dict[str, str], settings: Settings
) -> list[AnyOperation]:
    """Return what finds the evidence of one question, and the value of its slot."""
    steps: list[AnyOperation] = []
    query: str | Reference = filled(question.query, {})
    needed = uses(question)
    if needed:
        query = Reference(ref=f"t{place}")
        steps.append(
            ComposeQuery(
                out=query.ref,
                question=question.id,
                template=question.query,
                values={name: registers[name] for name in needed},
                fan_out=settings.plan_fan_out,
            )
        )
    steps.append(
        Retrieve(
            out=f"h{place}",
            question=question.id,
            query=query,
            tools=_tools(question),
            top_k=top_k(settings),
        )
    )
    if question.slot is not None:
        steps.append(
            ExtractAnswer(
                out=registers[question.slot],
                question=question.id,
                slot=question.slot,
                wants=question.wants,
                hits=f"h{place}",
                fan_out=settings.plan_fan_out,
            )
        )
    return steps


def _tools(question: SubQuestion) -> list[str]:
    return list(dict.fromkeys(call.tool for call in question.calls))


def top_k(settings: Settings) -> int:
    """Return how many hits a search of a plan asks for when nobody says otherwise."""
    return min(settings.top_k, settings.plan_top_k)
