"""Which notes a turn leaves: of what it states, or of the answer that it asks to keep."""

from __future__ import annotations

from typing import NamedTuple

from core.auth import AuthContext
from core.language.analysis import content_terms
from core.language.changes import without_correction
from core.language.detect import detect_language
from core.notes import CORRECTION, ClaimSource, Note, NoteDraft, TurnSource, origin_of
from core.recall import NOTE
from core.trace import RunRecord
from core.types import Claim, StopReason
from reasoning.corrections import (
    LEAST,
    gives_other_value,
    may_correct,
    superseding_odds,
)
from reasoning.rules.lexicon import lexicon
from reasoning.statements import asks_to_keep, find_statements, only_states, repeats_answer
from reasoning.worth import DOUBT, Worth, doubting
from stores.ports import RunLog
from stores.runlog.conversations import Conversation
from tools.note_tools import Memory

TAG = "answer"  # of a verified claim
LIKE = 5  # notes that may be of the same thing as a new one; chosen, not measured


class TurnNotes(NamedTuple):
    """Hold the notes of a turn, and what its reader is shown of them: their own words alone.

    The words of an answer may be those of documents that are closed to them tomorrow.
    """

    drafts: list[NoteDraft]
    shown: tuple[str, ...]


def notes_of_turn(
    runs: RunLog,
    memory: Memory,
    auth: AuthContext,
    conversation: Conversation,
    typed: str,
    worth: Worth,
) -> TurnNotes:
    """Return what of a turn is worth a note: what it states, or the answer it asks to keep."""
    source = TurnSource(conversation=conversation.id, run_id="-", quote="-")
    waits = conversation.waiting is not None  # what only names something is its reply
    drafts = find_statements(typed, source, doubting(worth) if waits else worth)
    newest = memory.notes.list_notes(auth, current=True, limit=1)
    last = next((one for one in newest if _conversation(one) == conversation.id), None)
    if not drafts and not waits:
        drafts = _correction(typed, source, last, memory, auth) or _change(
            typed, source, last, memory, auth
        )
    drafts = [one if one.supersedes else _with_earlier(one, last, memory, auth) for one in drafts]
    if not drafts and not asks_to_keep(typed):
        return TurnNotes([], ())
    asked = [
        turn
        for turn in runs.turns(auth, conversation)
        if turn["answer"] and turn["stop_reason"] != StopReason.nothing_asked
    ]
    if drafts:
        answers = [turn["answer"] for turn in asked if not turn["refused"]]
        drafts = [one for one in drafts if not repeats_answer(one, answers)]
        return TurnNotes(drafts, tuple(one.content for one in drafts))
    if not asked or asked[-1]["refused"]:
        return TurnNotes([], ())
    answered = asked[-1]
    run = runs.load(auth, answered["run_id"])
    text = (
        lexicon(detect_language(typed)).message("answer_to").format(question=answered["question"])
    )
    return TurnNotes(
        claim_drafts(run, conversation.id), (text,) if run.result.get("claims") else ()
    )


def _conversation(note: Note) -> str:
    return origin_of(note.provenance).conversation


def _correction(
    typed: str, source: TurnSource, last: Note | None, memory: Memory, auth: AuthContext
) -> list[NoteDraft]:
    """Return the note of a turn that only gives another value of what was stated last.

    One that names what an earlier statement is of gives the value of that.
    """
    if last is None:
        return []
    text, language = typed.strip(), detect_language(typed)
    if language != last.language and len(text) < len(last.content):
        language = last.language  # "No, 5 June." is too short to tell
    if not gives_other_value(text, language, last.content):
        return []
    quoted = source.model_copy(update={"quote": text})
    draft = NoteDraft(content=text, provenance=quoted, language=language, tags=[CORRECTION])
    named = _with_earlier(draft, last, memory, auth)
    if named.supersedes or not may_correct(text, language, last.content):
        return [named]
    return [draft.model_copy(update={"supersedes": [last.note_id]})]


def _change(
    typed: str, source: TurnSource, last: Note | None, memory: Memory, auth: AuthContext
) -> list[NoteDraft]:
    """Return the note of a turn that says what has changed: "Ada is a doctor now"."""
    text, language = typed.strip(), detect_language(typed)
    if not only_states(text, language):
        return []
    quoted = source.model_copy(update={"quote": text})
    draft = NoteDraft(content=text, provenance=quoted, language=language)
    draft = _with_earlier(draft, last, memory, auth, LEAST + DOUBT)
    replaced = memory.notes.load_notes(auth, draft.supersedes).values()
    # "Sorry, the doorbell rang" begins as a correction of what was stated last.
    own, *others = (
        set(content_terms(without_correction(one, language), language))
        for one in (text, *(note.content for note in replaced))
    )
    named = all(own & one for one in others)
    return [draft] if replaced and named else []


def _with_earlier(
    draft: NoteDraft, last: Note | None, memory: Memory, auth: AuthContext, least: float = LEAST
) -> NoteDraft:
    """Return a note with the ids of those whose place it takes."""
    found = [one.note for one in memory.search(auth, draft.content, LIKE)]
    known = {one.note_id: one for one in (*([last] if last is not None else []), *found)}
    odds = superseding_odds(
        draft, [*known.values()], last.note_id if last is not None else "", memory.embedder
    )
    best = max(zip(odds, known, strict=True), default=(least, ""))
    if best[0] <= least:
        return draft.model_copy(update={"supersedes": []})
    # What it surely corrects is one thing: no other of the words that it shares with it.
    replaces = draft.replaces and known[best[1]].subject == draft.subject
    return draft.model_copy(update={"supersedes": [best[1]], "replaces": replaces})


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
