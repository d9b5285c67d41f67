"""Choose the memory agent's next action."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.budget import ANSWER_STEPS
from core.recall import FINAL_ANSWER
from core.types import Call
from graph.context import Context
from graph.reading import notes_of, recall_of
from graph.state import State, Update
from reasoning.rules.recall import read_all


def choose_action(state: State, runtime: Runtime[Context]) -> Update:
    """Choose the next action; the last one that loops or budget allow must be the answer."""
    context, recall = runtime.context, recall_of(state)
    began = context.clock()
    left = context.budget.steps - ANSWER_STEPS - state["usage"].steps
    forced = recall.must_answer or left <= ANSWER_STEPS
    with context.thinking(state) as ledger:
        if forced or context.budget.exceeded(state["usage"]) is not None:
            action, reason = Call(tool=FINAL_ANSWER), "no other action is left"
        else:
            reason = ""
            action = read_all(recall) or context.reasoner.recall(recall, notes_of(state))
    step = context.step(
        "choose_action",
        began,
        ledger,
        decision=action.tool,
        reason=reason,
        arguments=action.arguments,
    )
    return {
        "recall": recall.model_copy(update={"action": action}),
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }
