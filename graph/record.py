"""A finished run as it is kept, and as it is printed with --json."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, cast

from core.auth import AuthContext
from core.budget import Usage
from core.errors import CarrelError
from core.operations import AnyOperation
from core.registers import FilledQuery
from core.trace import RunRecord, Step
from core.types import Answer, Claim, Clarification, Evidence, Finding, Plan, StopReason
from graph.ranking import ranked_evidence, rankings_of
from graph.state import State
from reasoning.planning.binding import bound_plan, one_line
from reasoning.planning.facts import producers


def run_record(
    auth: AuthContext,
    collection: str,
    question: str,
    pipeline: str,
    state: dict[str, Any],
    trail: list[Step],
    *,
    index_version: int,
    warnings: Sequence[str],
    run_id: str = "",
) -> RunRecord:
    """Return the record of a run that has ended in this state, under a new id where none is given.

    A run that asks back has ended for now; the one that its reply goes on with has the same id.
    """
    run_id = run_id or uuid.uuid4().hex[:12]
    return RunRecord(
        run_id=run_id,
        tenant=auth.tenant,
        user=auth.user,
        collection=collection,
        question=question,
        pipeline=pipeline,
        created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        index_version=index_version,
        result=run_result(run_id, state, warnings),
        trail=trail,
    )


def run_result(run_id: str, state: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """Return a run as it is printed with --json and kept."""
    answer: Answer | None = state.get("answer")
    asks: Clarification | None = state.get("clarification")
    if asks is not None:
        answer = Answer(text="", stop_reason=StopReason.clarification_needed)
    if answer is None:
        raise CarrelError("the run ended without an answer or a refusal", value=run_id)
    usage: Usage = state.get("usage") or Usage()
    found: list[Evidence] = state.get("evidence") or []
    of = {item.evidence_id: item.collection for item in found if item.collection}
    ranked = ranked_evidence(found, rankings_of(cast("State", state)))
    return {
        "run_id": run_id,
        "answer": answer.text,
        "claims": [_claim(claim, of) for claim in answer.claims],
        "refused": answer.refused,
        "stop_reason": answer.stop_reason.value,
        "evidence": [item.model_dump(exclude={"document_key"}) for item in ranked],
        "usage": {
            "steps": usage.steps,
            "tool_calls": usage.tool_calls,
            "tokens": usage.tokens,
            "model_calls": usage.model_calls,
            "model_tokens": usage.model_tokens,
            "degraded": usage.degraded,
            "cost": round(usage.cost, 6),
            "ms": round(usage.ms, 1),
        },
        "plan": _plan(state),
        "missing": answer.missing,
        "warnings": [*warnings, *answer.warnings],
        "clarification": None if asks is None else asks.model_dump(),
    }


def _claim(claim: Claim, of: dict[str, str]) -> dict[str, Any]:
    """Return a claim; of several collections each citation names its own."""
    told = claim.model_dump()
    for citation in told["citations"]:
        citation["collection"] = of.get(citation["evidence_id"], "")
    return told


def _plan(state: dict[str, Any]) -> dict[str, Any]:
    """Return the plan as it was run, with the values of its slots and where they stand."""
    plan: Plan | None = state.get("plan")
    if plan is None:
        return {"questions": [], "operations": [], "slots": []}
    chosen: dict[str, list[FilledQuery]] = state.get("chosen") or {}
    operations: list[AnyOperation] = state.get("operations") or []
    return {
        "path": state.get("path", ""),
        "questions": [question.model_dump() for question in plan.questions],
        "asked": [
            {"id": question.id, "text": question.text}
            for question in bound_plan(plan, chosen).questions
        ],
        "operations": [operation.model_dump() for operation in operations],
        "ran": state.get("done") or [],
        "slots": [
            {
                "slot": slot,
                "value": one_line(finding.value),
                "question": made.id,
                "evidence_id": finding.evidence_id,
                "field": finding.field,
                "start": finding.start,
                "end": finding.end,
            }
            for made, slot in producers(plan)
            for finding in _values(slot, chosen)
        ],
        "backtracks": state.get("backtracks", 0),
        "replans": state.get("replans", 0),
    }


def _values(slot: str, chosen: dict[str, list[FilledQuery]]) -> list[Finding]:
    """Return the values of a slot that questions were asked with, each once."""
    used = [way.values[slot] for ways in chosen.values() for way in ways if slot in way.values]
    return list(dict.fromkeys(used))
