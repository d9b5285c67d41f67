"""Replanning after a search: undo values, extend the plan, or leave it as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from core.settings import Settings
from core.types import Plan, SubQuestion
from reasoning.planning.compiler import entity_hop
from reasoning.planning.facts import Facts, problems
from reasoning.planning.operation_rules import OPERATION_RULES
from reasoning.planning.running import downstream, other_values


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
        again = downstream(self.operations, _composing(self.operations, moved))
        asking = Retrieve | MapRetrieve
        asked = {
            one.question for one in self.operations if isinstance(one, asking) and one.out in again
        }
        self.backtracks += 1
        self.changed |= moved
        self.done = [name for name in self.done if name not in again]
        self.chosen = {name: ways for name, ways in self.chosen.items() if name not in asked}
        self.rewritten = {name: held for name, held in self.rewritten.items() if name not in again}
        for name in again & self.registers.keys():
            self.changed[name] = Register(kind=self.registers[name].kind)
        self.notes.append(f"nothing found with the values of {', '.join(moved)}: others are tried")
        return True


def _composing(operations: Sequence[AnyOperation], names: Mapping[str, Register]) -> set[str]:
    """Return the registers of the queries that are composed from values."""
    return {
        one.out
        for one in operations
        if isinstance(one, ComposeQuery) and not names.keys().isdisjoint(one.values.values())
    }


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
        held = getattr(operation, name)
        if isinstance(held, list):
            update[name] = list(dict.fromkeys(new if one == old else one for one in held))
        elif isinstance(held, dict):
            update[name] = {key: new if one == old else one for key, one in held.items()}
        elif isinstance(held, Reference):
            update[name] = Reference(ref=new) if held.ref == old else held
        elif held == old and name != "query":
            update[name] = new
    return operation.model_copy(update=update)
