"""Which notes a turn leaves: of what it states, or of the answer that it asks to keep."""

from __future__ import annotations

from typing import NamedTuple

from core.auth import AuthContext
from core.language.detect import detect_language
from core.notes import ClaimSource, NoteDraft, TurnSource
from core.recall import NOTE
from core.trace import RunRecord
from core.types import Claim, StopReason
from reasoning.rules.lexicon import lexicon
from reasoning.statements import asks_to_keep, find_statements, repeats_answer
from stores.ports import RunLog
from stores.runlog.conversations import Conversation

TAG = "answer"  # of a verified claim


class TurnNotes(NamedTuple):
    """Hold the notes of a turn, and what its reader is shown of them: their own words alone.

    The words of an answer may be those of documents that are closed to them tomorrow.
    """

    drafts: list[NoteDraft]
    shown: tuple[str, ...]


def notes_of_turn(
    runs: RunLog, auth: AuthContext, conversation: Conversation, typed: str
) -> TurnNotes:
    """Return what of a turn is worth a note: what it states, or the answer it asks to keep."""
    drafts = find_statements(typed, TurnSource(conversation=conversation.id, run_id="-", quote="-"))
    if not drafts and not asks_to_keep(typed):
        return TurnNotes([], ())
    asked = [
        turn
        for turn in runs.turns(auth, conversation)
        if turn["answer"] and turn["stop_reason"] != StopReason.nothing_asked
    ]
    if drafts:
        answers = [turn["answer"] for turn in asked]
        drafts = [one for one in drafts if not repeats_answer(one, answers)]
        return TurnNotes(drafts, tuple(one.content for one in drafts))
    if not asked or asked[-1]["refused"]:
        return TurnNotes([], ())
    last = asked[-1]
    run = runs.load(auth, last["run_id"])
    text = lexicon(detect_language(typed)).message("answer_to").format(question=last["question"])
    return TurnNotes(
        claim_drafts(run, conversation.id), (text,) if run.result.get("claims") else ()
    )


def of_run(draft: NoteDraft, run_id: str) -> NoteDraft:
    """Return a note of a turn with the run that the turn has got."""
    source = draft.provenance
    if not isinstance(source, TurnSource):
        return draft
    return draft.model_copy(update={"provenance": source.model_copy(update={"run_id": run_id})})


def claim_drafts(run: RunRecord, conversation: str) -> list[NoteDraft]:
    """Return a note for each verified claim of a run that cites no note."""
    notes = {one.document_id for one in run.evidence if one.kind == NOTE}
    claims = [Claim.model_validate(one) for one in run.result.get("claims", [])]
    return [
        NoteDraft(
            content=one.text,
            provenance=ClaimSource(
                run_id=run.run_id, conversation=conversation, citations=one.citations
            ),
            tags=[TAG],
        )
        for one in claims
        if one.citations and not notes & {cited.document_id for cited in one.citations}
    ]
