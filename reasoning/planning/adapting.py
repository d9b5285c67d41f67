"""What may become of a search that is over: undo values, extend the plan, or let it be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.operations import AnyOperation, ComposeQuery, MapRetrieve, Retrieve
from core.registers import FilledQuery, Register
from core.settings import Settings
from reasoning.planning.running import downstream, other_values


@dataclass
class Course:
    """Hold what of a run may still change: its operations and what they have written."""

    operations: list[AnyOperation]
    registers: Mapping[str, Register]
    done: list[str]
    chosen: dict[str, list[FilledQuery]]
    attempts: dict[str, int]
    rewritten: Mapping[str, object]
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
        if self.backtracks >= settings.max_backtracks or isinstance(search, MapRetrieve):
            return False
        moved = other_values(search, self.operations, self.registers, settings.plan_fan_out)
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
        self.attempts = {name: count for name, count in self.attempts.items() if name not in again}
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
