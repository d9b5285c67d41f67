"""Compile a valid plan: DAG → linear operations (SPEC M7). No model takes part."""

from __future__ import annotations

from collections.abc import Sequence

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
from core.types import Plan, SubQuestion
from reasoning.planning.facts import producers, uses
from reasoning.planning.slots import escaped, filled

THRESHOLD = 0.1  # hits of an entity hop below this cross-encoder score are dropped

WHOLE = "h0"  # what a search for the whole question writes


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


def compiled(
    plan: Plan, settings: Settings, merge: Merge = "union", synth_from: Sequence[str] = ()
) -> list[AnyOperation]:
    """Return the operations of a valid plan; every register is written before it is read.

    The answer rests on the hits of `synth_from`. Without it a union takes those of all questions;
    an intersection takes those that no other question depends on, since what led there is not
    about the same thing.
    """
    ordered = in_order(plan)
    places = {question.id: place for place, question in enumerate(ordered, start=1)}
    registers = {slot: f"v{places[question.id]}" for question, slot in producers(plan)}
    merged = [WHOLE] if merge == "union" and _shares_tools(plan.whole, ordered) else []
    steps: list[AnyOperation] = [_search(ordered[0], WHOLE, plan.whole, settings) for _ in merged]
    for question in ordered:
        steps += _question(question, places[question.id], registers, settings)
    led_on = {name for question in ordered for name in question.deps if merge != "union"}
    rests_on = synth_from or places.keys() - led_on
    merged += [f"h{place}" for name, place in places.items() if name in rests_on]
    if len(merged) > 1:
        joining = UnionHits if merge == "union" else IntersectHits
        steps.append(joining(out="h", hits=merged))
    last = Synthesize(
        out="answer",
        questions=list(places),
        hits=merged[0] if len(merged) == 1 else "h",
        max_evidence=settings.plan.max_evidence,
    )
    return [*steps, last]


def entity_hop(
    question: SubQuestion, query: str, hits: str, name: str, settings: Settings
) -> list[AnyOperation]:
    """Return the operations that search on with what the best hits name.

    `query` is the question's search text with its slots filled, `hits` the register it starts
    from; `name` ends the names of those it writes, the last of which, `f{name}`, holds the new
    hits.
    """
    fan_out = min(settings.plan.fan_out, settings.plan.max_entities)
    most = top_k(settings)
    return [
        ExtractEntities(
            out=f"e{name}",
            question=question.id,
            hits=hits,
            max_entities=settings.plan.max_entities,
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
            threshold=THRESHOLD,
            top_k=most,
        ),
    ]


def _shares_tools(whole: str, questions: Sequence[SubQuestion]) -> bool:
    """Tell whether parts, side by side, share their tools, so that the whole is searched as well.

    Parts of different systems are different questions; parts that wait for others narrow down what
    the whole asks.
    """
    first, *others = questions
    apart = any(one.deps or _tools(one) != _tools(first) for one in others)
    return bool(whole and others) and not apart


def _search(
    question: SubQuestion, out: str, query: str | Reference, settings: Settings
) -> Retrieve:
    return Retrieve(
        out=out,
        question=question.id,
        query=query,
        tools=_tools(question),
        top_k=top_k(settings),
    )


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
                fan_out=settings.plan.fan_out,
            )
        )
    steps.append(_search(question, f"h{place}", query, settings))
    if question.slot is not None:
        steps.append(
            ExtractAnswer(
                out=registers[question.slot],
                question=question.id,
                slot=question.slot,
                wants=question.wants,
                hits=f"h{place}",
                fan_out=settings.plan.fan_out,
            )
        )
    return steps


def _tools(question: SubQuestion) -> list[str]:
    return list(dict.fromkeys(call.tool for call in question.calls))


def top_k(settings: Settings) -> int:
    """Return how many hits a search of a plan asks for when nobody says otherwise."""
    return min(settings.retrieval.top_k, settings.plan.top_k)
