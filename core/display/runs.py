"""Runs: the question, its answer with sources, why it ended, its plan and its path."""

from __future__ import annotations

from typing import Any

from core.display.answers import answer_text, cited_passages, source_lines
from core.display.evidence import EvidenceList, evidence_view
from core.display.html import bullets, facts, folded, table
from core.display.markup import Markup, element, escaped, joined, line
from core.display.path import path_drawing, visits
from core.display.plan_drawing import outcome_of, plan_of
from core.display.plans import plan_view
from core.display.view import View
from core.trace import RunRecord, Step
from core.types import Answer, Evidence, Plan

NUMBERS = {"#", "ms"}
SHOWN = 20  # pieces of evidence that a run lists; `evidence_of` has all
USAGE = {
    "steps": "steps",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "model_calls": "model calls",
    "model_tokens": "of them the model's",
    "degraded": "decided by the rules instead",
}


def answer_of(run: RunRecord) -> Answer:
    """Return the answer of a run, or its refusal."""
    held = run.result
    names = ("claims", "refused", "stop_reason", "missing", "warnings")
    known = {name: held[name] for name in names if name in held}
    return Answer.model_validate({"text": held.get("answer", ""), **known})


def evidence_of(run: RunRecord) -> EvidenceList:
    """Return the evidence of a run, best first; a record keeps no document keys."""
    held: list[dict[str, Any]] = run.result.get("evidence") or []
    return EvidenceList(Evidence.model_validate({"document_key": "", **one}) for one in held)


def run_view(run: RunRecord) -> View:
    """Show a run: answer, cited passages, stop reason, budget used, plan, path, evidence."""
    answer, evidence, plan = answer_of(run), evidence_of(run), plan_of(run)
    by_chunk = {item.chunk_id: item for item in evidence}
    body = joined(
        element("p", {"class": "question"}, escaped(line(run.question))),
        answer_text(answer),
        *cited_passages(answer.claims, by_chunk),
        facts([("stopped:", answer.stop_reason.value), *_used(run)]),
        bullets(answer.warnings, "warnings"),
        _plan_part(plan, run),
        path_view(run).body,
        _evidence_part(evidence),
    )
    return View(body, _text(run, answer))


def run_plan_view(run: RunRecord) -> View:
    """Show the plan of a run with the values it found and what was not answered."""
    return plan_view(plan_of(run), outcome_of(run))


def path_view(run: RunRecord) -> View:
    """Show the path of a run through the graph, with how often it went each way."""
    way = visits(run.trail)
    drawn = path_drawing(run)
    return View(folded(f"Path: {len(way)} visits", drawn), " → ".join(way))


def steps_view(run: RunRecord) -> View:
    """Show every step of a run: what was decided and why, and how long it took."""
    rows = [_step(number, step) for number, step in enumerate(run.trail, start=1)]
    titles = ["#", "node", "for", "decision", "why", "ms"]
    text = "\n".join(
        f"{step.node} {step.question_id} {_decision(step)} ({line(step.reason)})"
        for step in run.trail
    )
    return View(table(titles, rows, NUMBERS), text)


def _plan_part(plan: Plan, run: RunRecord) -> Markup:
    return plan_view(plan, outcome_of(run)).body if len(plan.questions) > 1 else Markup("")


def _evidence_part(evidence: EvidenceList) -> Markup:
    best = EvidenceList(evidence[:SHOWN])
    title = f"Evidence: {len(evidence)}"
    if len(best) < len(evidence):
        title += f", the best {len(best)}"
    return folded(title, evidence_view(best).body, opened=False)


def _used(run: RunRecord) -> list[tuple[str, object]]:
    used: dict[str, Any] = run.result.get("usage") or {}
    counts = [(f"{told}:", used[name]) for name, told in USAGE.items() if used.get(name)]
    return [*counts, ("time:", f"{used.get('ms', 0):.0f} ms"), ("run:", run.run_id)]


def _step(number: int, step: Step) -> list[Markup]:
    why = f"{step.reason} (by the rules: {step.degraded})" if step.degraded else step.reason
    cells = [number, step.node, step.question_id, _decision(step), why, f"{step.ms:.1f}"]
    return [escaped(cell) for cell in cells]


def _decision(step: Step) -> str:
    return f"{step.tool}: {line(step.decision)}" if step.tool else line(step.decision)


def _text(run: RunRecord, answer: Answer) -> str:
    used = ", ".join(f"{name} {value}" for name, value in _used(run))
    told = [f"warning: {one}" for one in answer.warnings]
    stopped = f"stopped: {answer.stop_reason.value}, {used}"
    return "\n".join([answer.text, *source_lines(answer.claims), *told, stopped])
