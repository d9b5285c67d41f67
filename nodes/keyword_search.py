"""Find notes by words: one action of the memory agent, carried out as the others are."""

from __future__ import annotations

from datetime import date
from typing import Any

from langgraph.runtime import Runtime

from core.budget import Room, Usage
from core.errors import CallerError
from core.language.relative_dates import format_day
from core.language.scan import estimate_tokens
from core.recall import READ_MEMORY
from core.types import Evidence
from graph.context import Context
from graph.reading import notes_of, recall_of
from graph.state import State, Update
from tools.types import ToolResult

DAY = 10  # characters of a date


def keyword_search(state: State, runtime: Runtime[Context]) -> Update:
    """Find notes by words."""
    return act(state, runtime.context)


def act(state: State, context: Context) -> Update:
    """Call the tool of the action, and note what came back."""
    recall = recall_of(state)
    action = recall.action
    if action is None:
        raise TypeError("no action is chosen")
    began, known = context.clock(), {one.evidence_id for one in notes_of(state)}
    notes: list[str] = []
    with context.thinking(state) as ledger:
        ledger.room = Room(context.budget.tokens_for(state["usage"], answering=False), known)
        deadline = context.deadline(state["started"])
        try:
            result = context.tools.run(action.tool, action.arguments, context.auth, deadline)
        except CallerError as error:
            notes.append(f"{action.tool}: {error}")
            result = ToolResult(auth_filter=context.auth.describe())
    found = [_dated(one, recall.language) for one in result.evidence]
    names = [one.evidence_id for one in found]
    new = [one for one in found if one.evidence_id not in known]
    tokens = sum(estimate_tokens(one.text) for one in new)
    seen: dict[str, Any] = {"read": [*recall.read, *names]}
    if action.tool != READ_MEMORY:
        seen = {"found": [*recall.found, names]}
    values = {"tokens": recall.tokens + tokens, "trajectory": [*recall.trajectory, action]}
    step = context.step(
        action.tool,
        began,
        ledger,
        decision=f"{len(names)} notes",
        reason="; ".join(result.notes),
        tool=action.tool,
        arguments=action.arguments,
        auth_filter=result.auth_filter,
        evidence=[(one.evidence_id, round(one.score, 4)) for one in found],
    )
    spent = context.spent(state["started"], ledger)
    return {
        "recall": recall.model_copy(update={**seen, **values, "action": None}),
        "evidence": found,
        "usage": spent.plus(Usage(tool_calls=1, tokens=tokens, dropped=result.dropped)),
        "trail": [step],
        "warnings": [*notes, *ledger.warnings],
    }


def _dated(note: Evidence, language: str) -> Evidence:
    """Return a note with the day when it was stated as the question's language writes it."""
    day = date.fromisoformat(note.updated_at[:DAY])
    return note.model_copy(update={"section": format_day(day, language)})
