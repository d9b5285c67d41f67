"""Write the answer from graded evidence alone."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from graph.context import Context
from graph.state import State, Update


def generate(state: State, runtime: Runtime[Context]) -> Update:
    """Draft claims with citations; evidence that verification rejected is not offered again."""
    context = runtime.context
    began = context.clock()
    rejected = set(state.get("unsupported") or [])
    evidence = [
        item
        for item in state.get("evidence") or []
        if item.best_grade >= 2 and item.evidence_id not in rejected
    ]
    draft = context.reasoner.answer(state["query"], state["plan"], evidence)
    cited = [(c.evidence_id, 1.0) for claim in draft.claims for c in claim.citations]
    step = Step(
        node="generate",
        decision=f"{len(draft.claims)} claims",
        reason=f"not answered: {'; '.join(draft.missing)}" if draft.missing else "",
        evidence=cited,
        ms=context.elapsed(began).ms,
    )
    return {
        "draft": draft,
        "drafts": state.get("drafts", 0) + 1,
        "usage": context.elapsed(state["started"]),
        "trail": [step],
    }
