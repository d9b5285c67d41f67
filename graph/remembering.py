"""Notes of a turn, written after it is kept: what it states, or the answer that it asks to keep."""

from __future__ import annotations

from typing import Any

from core.auth import AuthContext
from core.notes import ClaimSource, Note, NoteDraft, TurnSource
from core.types import Claim
from reasoning.statements import asks_to_keep, find_statements, repeats_answer
from stores.ports import RunLog
from stores.runlog.conversations import Conversation
from tools.memory import Memory

TAG = "answer"  # of a verified claim


def remember_turn(
    memory: Memory, runs: RunLog, auth: AuthContext, conversation: Conversation, source: TurnSource
) -> list[Note]:
    """Write what the user typed in a turn, the quote of `source`, as far as it is worth a note."""
    drafts = find_statements(source.quote, source)
    if not drafts and not asks_to_keep(source.quote):
        return []
    earlier = [
        turn
        for turn in runs.turns(auth, conversation)
        if turn["run_id"] != source.run_id and turn["answer"]
    ]
    if drafts:
        answers = [turn["answer"] for turn in earlier]
        return memory.remember(auth, [one for one in drafts if not repeats_answer(one, answers)])
    if not earlier or earlier[-1]["refused"]:
        return []
    result = runs.load(auth, earlier[-1]["run_id"]).result
    return memory.remember(auth, claim_drafts(earlier[-1]["run_id"], conversation.id, result))


def claim_drafts(run_id: str, conversation: str, result: dict[str, Any]) -> list[NoteDraft]:
    """Return a note for each verified claim of a run that has citations."""
    claims = [Claim.model_validate(one) for one in result.get("claims", [])]
    return [
        NoteDraft(
            content=one.text,
            provenance=ClaimSource(
                run_id=run_id, conversation=conversation, citations=one.citations
            ),
            tags=[TAG],
        )
        for one in claims
        if one.citations
    ]
