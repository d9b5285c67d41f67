"""Say which operations of a plan can run next, and undo those whose values were wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from core.operations import (
    AnyOperation,
    ComposeQuery,
    ExtractAnswer,
    ExtractEntities,
    MapRetrieve,
    Register,
    Retrieve,
    Synthesize,
)

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
        held = registers.get(name)
        if held is not None and len(held.findings) > held.skipped + fan_out:
            moved[name] = held.model_copy(update={"skipped": held.skipped + fan_out})
    return moved
