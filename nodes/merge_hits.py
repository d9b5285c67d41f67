"""Join, intersect or filter the hits of earlier operations."""

from __future__ import annotations

from itertools import chain, zip_longest

from langgraph.runtime import Runtime

from core.operations import FilterCe, IntersectHits, Register, UnionHits
from graph.context import Context
from graph.reading import asked_plan, find_evidence, operation_of, register
from graph.state import State, Update


def merge_hits(state: State, runtime: Runtime[Context]) -> Update:
    """Write the hits of one operation: in turn from each input, of documents all share, or good."""
    context = runtime.context
    began = context.clock()
    operation = operation_of(state)
    note = ""
    if isinstance(operation, UnionHits):
        hits = _in_turn([_hits(state, name) for name in operation.hits])
    elif isinstance(operation, IntersectHits):
        hits = _shared(state, [_hits(state, name) for name in operation.hits])
    elif isinstance(operation, FilterCe):
        hits, note = _relevant(state, operation, context)
    else:
        raise TypeError(f"{operation.op} merges nothing")
    step = context.step(
        "merge_hits",
        began,
        decision=f"{len(hits)} hits",
        reason="; ".join(part for part in (f"{operation.op} {operation.out}", note) if part),
        question_id=getattr(operation, "question", ""),
        evidence=[(item.evidence_id, item.score) for item in find_evidence(state, hits)],
    )
    return {
        "registers": {operation.out: Register(kind="hits", hits=hits)},
        "usage": context.elapsed(state["started"]),
        "trail": [step],
    }


def _hits(state: State, name: str) -> list[str]:
    stored = register(state, name)
    return stored.hits if stored else []


def _in_turn(inputs: list[list[str]]) -> list[str]:
    """Return the first of each input, then the second of each, and so on; each hit once."""
    rounds = chain.from_iterable(zip_longest(*inputs))
    return list(dict.fromkeys(name for name in rounds if name is not None))


def _shared(state: State, inputs: list[list[str]]) -> list[str]:
    documents = [{item.document_key for item in find_evidence(state, names)} for names in inputs]
    common = set.intersection(*documents)
    items = find_evidence(state, _in_turn(inputs))
    return [item.chunk_id for item in items if item.document_key in common]


def _relevant(state: State, operation: FilterCe, context: Context) -> tuple[list[str], str]:
    question = next(
        (one for one in asked_plan(state).questions if one.id == operation.question),
        state["plan"].question(operation.question),
    )
    kept, note = context.tools.filter(
        question.text,
        find_evidence(state, _hits(state, operation.hits)),
        context.auth,
        threshold=operation.threshold,
        top_k=operation.top_k,
        deadline=context.deadline(state["started"]),
    )
    return [item.chunk_id for item in kept], note
