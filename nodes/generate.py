"""Write the answer from graded evidence alone."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from graph.context import Context
from graph.state import State, Update
from reasoning.sentence_stream import SentenceStream


def generate(state: State, runtime: Runtime[Context]) -> Update:
    """Draft claims with citations; evidence that verification rejected is not offered again.

    Sentences are shown as soon as they are written and verified, the draft's tokens only to a
    reader who wants to see them.
    """
    context = runtime.context
    began = context.clock()
    rejected = set(state.get("unsupported") or [])
    evidence = [
        item
        for item in state.get("evidence") or []
        if item.best_grade >= 2 and item.evidence_id not in rejected
    ]
    shown = SentenceStream(state["plan"], evidence, runtime.stream_writer, context.settings.stream)
    started, trail = state["started"], state.get("trail") or []
    with context.thinking(started, state["usage"], trail, answering=True) as ledger:
        ledger.on_text, ledger.on_claim = shown.draft, shown.claim
        draft = context.reasoner.answer(state["query"], state["plan"], evidence)
    shown.rest(draft.claims)
    cited = [(c.evidence_id, 1.0) for claim in draft.claims for c in claim.citations]
    step = Step(
        node="generate",
        decision=f"{len(draft.claims)} claims",
        reason=f"not answered: {'; '.join(draft.missing)}" if draft.missing else "",
        evidence=cited,
        ms=context.elapsed(began).ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    return {
        "draft": draft,
        "drafts": state.get("drafts", 0) + 1,
        "usage": context.spent(started, ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }
