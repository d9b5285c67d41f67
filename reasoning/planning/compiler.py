"""Compile a plan to operations, say which can run next, and write one as text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from core.operations import (
    ENTITY,
    TEXTS,
    AnyOperation,
    ComposeQuery,
    ExtractAnswer,
    ExtractEntities,
    FilterCe,
    IntersectHits,
    MapRetrieve,
    Merge,
    Reference,
    Register,
    Retrieve,
    Synthesize,
    UnionHits,
)
from core.settings import Settings
from core.types import Plan, SubQuestion
from reasoning.planning.slots import escaped, filled, producers, uses

# Chosen, not measured:
THRESHOLD = 0.1  # hits of an entity hop below this cross-encoder score are dropped

FULL_QUESTION = "h0"  # what a search for the whole question writes


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
    merged = [FULL_QUESTION] if merge == "union" and _shares_tools(plan.whole, ordered) else []
    steps: list[AnyOperation] = [
        _search(ordered[0], FULL_QUESTION, plan.whole, settings) for _ in merged
    ]
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


def _shares_tools(question: str, questions: Sequence[SubQuestion]) -> bool:
    """Tell whether parts, side by side, share their tools, so that the whole is searched as well.

    Parts of different systems are different questions; parts that wait for others narrow down what
    the whole asks.
    """
    first, *others = questions
    apart = any(one.deps or _tools(one) != _tools(first) for one in others)
    return bool(question and others) and not apart


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


NodeName = Literal["retrieve", "extract", "compose_query", "merge_hits", "generate"]
SEARCHES = (Retrieve, MapRetrieve)


def node_of(operation: AnyOperation) -> NodeName:
    """Return the node of the graph that carries out an operation."""
    if isinstance(operation, SEARCHES):
        return "retrieve"
    if isinstance(operation, ExtractAnswer | ExtractEntities):
        return "extract"
    if isinstance(operation, ComposeQuery):
        return "compose_query"
    return "generate" if isinstance(operation, Synthesize) else "merge_hits"


def ready(operations: Sequence[AnyOperation], done: Collection[str]) -> list[AnyOperation]:
    """Return the operations of the next wave: those that read only what is written.

    All of them go to the node of the first, so that they end together; the answer comes last.
    """
    able = [
        operation
        for operation in operations
        if operation.out not in done and all(name in done for name, _ in operation.reads())
    ]
    able = [operation for operation in able if not isinstance(operation, Synthesize)]
    return [operation for operation in able if node_of(operation) == node_of(able[0])]


def operation_named(operations: Sequence[AnyOperation], out: str) -> AnyOperation:
    """Return the operation that writes this register."""
    return next(operation for operation in operations if operation.out == out)


def downstream(operations: Sequence[AnyOperation], outs: Collection[str]) -> set[str]:
    """Return the registers of these operations and of all that read them, directly or not."""
    found = set(outs)
    for operation in operations:
        if any(name in found for name, _ in operation.reads()):
            found.add(operation.out)
    return found


def other_values(
    operation: AnyOperation,
    operations: Sequence[AnyOperation],
    registers: Mapping[str, Register],
    fan_out: int,
) -> dict[str, Register]:
    """Return the value registers of a search that found nothing, moved on to untried values.

    Empty when no slot that its query rests on has any left.
    """
    read = [name for name, kind in operation.reads() if kind == "queries"]
    composing = [operation_named(operations, name) for name in read]
    names = {name for made in composing for name, kind in made.reads() if kind == "values"}
    moved = {}
    for name in sorted(names):
        stored = registers.get(name)
        if stored is not None and len(stored.findings) > stored.skipped + fan_out:
            moved[name] = stored.model_copy(update={"skipped": stored.skipped + fan_out})
    return moved


_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")


def render_operation(operation: AnyOperation) -> str:
    """Return one operation on one line: `h1 = RETRIEVE(question="q1", query="…", tools=[])`.

    A text stands in double quotes with JSON's escapes, so whatever it says stays one string; a bare
    name is a register.
    """
    given = [
        f"{field}={_shown(getattr(operation, field), field in operation.READS.keys() - TEXTS)}"
        for field in type(operation).model_fields
        if field not in ("op", "out")
    ]
    return f"{operation.out} = {operation.op}({', '.join(given)})"


def quoted(text: str) -> str:
    """Return a JSON string of visible characters; all others, of any script, are escaped."""
    shown = json.dumps(text, ensure_ascii=False)
    return _BEYOND_ASCII.sub(
        lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], shown
    )


def _shown(value: Any, bare: bool) -> str:  # noqa: ANN401 - whatever a field holds
    if isinstance(value, Reference):
        return value.ref
    if isinstance(value, str):
        return value if bare else quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_shown(item, bare) for item in value)}]"
    if isinstance(value, dict):
        items = (f"{quoted(name)}: {_shown(item, bare)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    return json.dumps(value)
