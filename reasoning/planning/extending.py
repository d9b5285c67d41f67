"""Extend a plan by a hop to what the best evidence names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from core.errors import CallerError
from core.operations import AnyOperation, Reference, UnionHits
from core.settings import Settings
from core.types import Plan, SubQuestion
from reasoning.planning.compiler import entity_hop
from reasoning.planning.operation_rules import checked_operations


def extended(
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
    place = next(n for n, held in enumerate(operations) if held.out == search.out) + 1
    later = [
        held if held.out in done else renamed(held, search.out, both) for held in operations[place:]
    ]
    try:
        return checked_operations([*operations[:place], *hop, *later], settings, plan)
    except CallerError:
        return list(operations)  # the plan is as long as it may be, or its names are taken


def renamed(operation: AnyOperation, old: str, new: str) -> AnyOperation:
    """Return an operation that reads another register in the place of one."""
    update: dict[str, Any] = {}
    for field in operation.READS:
        held = getattr(operation, field)
        if isinstance(held, list):
            update[field] = list(dict.fromkeys(new if name == old else name for name in held))
        elif isinstance(held, dict):
            update[field] = {key: new if name == old else name for key, name in held.items()}
        elif isinstance(held, Reference):
            update[field] = Reference(ref=new) if held.ref == old else held
        elif held == old and field != "query":
            update[field] = new
    return operation.model_copy(update=update)
