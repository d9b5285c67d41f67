"""Call the tools that the plan names for the current sub-question."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.budget import Usage
from core.errors import CallerError
from core.language.tokens import estimate_tokens
from core.trace import Step
from core.types import Call, Evidence
from graph.context import Context
from graph.state import State, Update
from tools.types import ToolResult


def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Run the calls one after the other, within the budget; each leaves a step with its filter."""
    context = runtime.context
    question = state["plan"].question(state["current"])
    calls = question.calls[: context.budget.calls_left(state["usage"])]
    held = {item.chunk_id for item in state.get("evidence") or []}
    evidence: list[Evidence] = []
    steps: list[Step] = []
    warnings: list[str] = []
    tokens = 0
    trail = state.get("trail") or []
    # A search may let the chat model write a passage; what that costs is charged here.
    with context.thinking(state["started"], state["usage"], trail) as ledger:
        for call in calls:
            began, asked = context.clock(), len(ledger.calls)
            result = _run(context, call, state["started"], warnings)
            new = [item for item in result.evidence if item.chunk_id not in held]
            tokens += sum(estimate_tokens(item.text) for item in new)
            held |= {item.chunk_id for item in new}
            evidence += result.evidence
            if result.hidden:
                warnings.append(f"{call.tool}: {result.hidden} stale rows were withheld")
            step = _step(question.id, call, result, context.elapsed(began).ms)
            steps.append(step.model_copy(update={"calls": ledger.calls[asked:]}))
    if not steps:
        reason = "the budget of tool calls is used up"
        steps.append(
            Step(node="retrieve", decision="no call", reason=reason, question_id=question.id)
        )
    spent = context.spent(state["started"], ledger)
    return {
        "evidence": evidence,
        "found": list(dict.fromkeys(item.chunk_id for item in evidence)),
        "usage": spent.plus(Usage(tool_calls=len(calls), tokens=tokens, ms=spent.ms)),
        "trail": steps,
        "warnings": list(dict.fromkeys(warnings)),
    }


def _step(question_id: str, call: Call, result: ToolResult, ms: float) -> Step:
    return Step(
        node="retrieve",
        decision=f"{len(result.evidence)} found",
        reason="; ".join(result.notes),
        question_id=question_id,
        tool=call.tool,
        arguments=call.arguments,
        auth_filter=result.auth_filter,
        evidence=[(item.evidence_id, round(item.score, 4)) for item in result.evidence],
        ms=ms,
        stages=result.stages,
    )


def _run(context: Context, call: Call, started: float, warnings: list[str]) -> ToolResult:
    try:
        return context.tools.run(call.tool, call.arguments, context.auth, context.deadline(started))
    except CallerError as error:
        # One refused call must not end the run: the others may still find the answer.
        warnings.append(f"{call.tool}: {error}")
        return ToolResult(auth_filter=context.auth.describe())
