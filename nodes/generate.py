"""Write the answer from graded evidence alone."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.metadata import LISTED_CHUNKS
from core.operations import Synthesize
from core.types import Evidence
from graph.context import Context
from graph.reading import ENOUGH_GRADE, asked_plan, find_evidence, orphans, register
from graph.state import State, Update
from reasoning.rendering import SentenceStream


def generate(state: State, runtime: Runtime[Context]) -> Update:
    """Draft claims with citations; evidence that verification rejected is not offered again.

    Sentences are shown as soon as they are written and verified, the draft's tokens only to a
    reader who wants to see them.
    """
    context = runtime.context
    began = context.clock()
    plan = asked_plan(state)
    evidence = _evidence(state)
    shown = SentenceStream(plan, evidence, runtime.stream_writer, context.settings.stream)
    with context.thinking(state, answering=True) as ledger:
        ledger.on_text, ledger.on_claim = shown.draft, shown.claim
        ledger.on_draft = shown.by_rules
        draft = context.reasoner.answer(state["query"], plan, evidence)
    shown.rest(draft.claims)
    cited = [(c.evidence_id, 1.0) for claim in draft.claims for c in claim.citations]
    step = context.step(
        "generate",
        began,
        ledger,
        decision=f"{len(draft.claims)} claims",
        reason=f"not answered: {'; '.join(draft.missing)}" if draft.missing else "",
        evidence=cited,
    )
    return {
        "draft": draft,
        "drafts": state.get("drafts", 0) + 1,
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }


def _evidence(state: State) -> list[Evidence]:
    """Return what the plan's last operation may answer from; all there is where it came to none.

    A question that waits for what was not found is answered by nothing. A list is never cut.
    """
    last = state["operations"][-1]
    found = state.get("evidence") or []
    if isinstance(last, Synthesize):
        stored = register(state, last.hits)
        found = find_evidence(state, stored.hits) if stored else found
    rejected = set(state.get("unsupported") or [])
    lost = orphans(state)
    good = [
        item.model_copy(update={"grades": {n: g for n, g in item.grades.items() if n not in lost}})
        for item in found
        if item.best_grade >= ENOUGH_GRADE and item.evidence_id not in rejected
    ]
    if not isinstance(last, Synthesize):
        return good
    kept, rest = good[: last.max_evidence], good[last.max_evidence :]
    listed = {key for item in kept for key in item.metadata.get(LISTED_CHUNKS, ())}
    return [*kept, *(item for item in rest if item.chunk_id in listed)]  # as many as it says
