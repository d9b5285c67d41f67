"""Notes of memory: what a user stated, or a verified answer, with where it comes from."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from core.types import Citation, FrozenModel

# What a value says of a subject; what stands before a value that is denied, and before a subject
# that is the words of a statement.
YES, NO, DENIED, WORDS = "yes", "no", "not ", "="
CORRECTION = "correction"  # tags what says little without the statement that it corrects
LinkKind = Literal["semantic", "temporal", "topical", "contradicts"]


def is_other(value: str, than: str) -> bool:
    """Tell whether of two values of one subject only one can hold.

    One that says more words of the same is no other, nor is the denial of a third one.
    """
    if not value or not than or value == than:
        return False
    denies = value.startswith(DENIED), than.startswith(DENIED)
    own, others = (set(one.removeprefix(DENIED).split()) for one in (value, than))
    includes = own <= others or others <= own
    return includes if any(denies) and not all(denies) else not includes and not any(denies)


class TurnSource(FrozenModel):
    """Say that the user stated it in a turn of a conversation: `quote` is what they typed."""

    kind: Literal["turn"] = "turn"
    conversation: str = Field(min_length=1)
    run_id: str = Field(min_length=1)
    quote: str = Field(min_length=1)


class ClaimSource(FrozenModel):
    """Say that it is a verified claim of a run, with the spans that it rests on."""

    kind: Literal["claim"] = "claim"
    run_id: str = Field(min_length=1)
    conversation: str = ""
    citations: list[Citation] = Field(min_length=1)


class OwnerEdit(FrozenModel):
    """Say that its owner wrote it over `earlier`, the id of the version before.

    `origin` is what the first version rests on: without it this one goes too.
    """

    kind: Literal["edit"] = "edit"
    earlier: str = Field(min_length=1)
    origin: TurnSource | ClaimSource


Provenance = Annotated[TurnSource | ClaimSource | OwnerEdit, Field(discriminator="kind")]


def origin_of(provenance: TurnSource | ClaimSource | OwnerEdit) -> TurnSource | ClaimSource:
    """Return the turn or the claim that a note rests on in the end."""
    return provenance.origin if isinstance(provenance, OwnerEdit) else provenance


class NoteLink(FrozenModel):
    """Point from a note to another that bears on it; `strength` is 0..1.

    A link that `contradicts` joins two notes of which it is not clear which one holds.
    """

    note_id: str
    kind: LinkKind
    strength: float = Field(default=1.0, ge=0, le=1)


def _checked_time(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


class NoteDraft(FrozenModel):
    """Hold what is to be written; there is no note without `provenance`.

    `supersedes` are notes of its owner whose place it takes, whatever their subjects.
    `subject` names what it is about and which attribute ("i|name"), `value` what it says of it; ""
    where it is not of that form. With `replaces` a later note of the same subject supersedes an
    earlier one; without, both stay. `importance` is 0..1. `note_id` is the id to write it under,
    "" for a fresh one.
    """

    content: str = Field(min_length=1)
    provenance: Provenance
    context: str = ""
    keywords: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    language: str = "und"
    subject: str = ""
    value: str = ""
    replaces: bool = False
    importance: float = Field(default=0.5, ge=0, le=1)
    observed_at: Annotated[str, AfterValidator(_checked_time)] = ""
    note_id: str = Field(default="", max_length=64)
    supersedes: list[str] = Field(default_factory=list)


class Note(NoteDraft):
    """Hold a note as it is kept, for its owner alone.

    Times are ISO 8601 in UTC: `observed_at` when it was stated, `created_at` when it was written,
    `changed_at` when its links or tags changed last, `superseded_at` when a later one took its
    place, which `superseded_by` names. `corrected` is what an
    earlier statement said whose place it took, which `corrects` names.
    """

    note_id: str
    tenant: str
    owner: str
    created_at: str
    changed_at: str
    links: list[NoteLink] = Field(default_factory=list)
    corrects: str = ""
    corrected: str = ""
    superseded_by: str = ""
    superseded_at: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the fields that its owner is shown."""
        hidden = {"note_id", "tenant", "owner", "subject", "value", "replaces"}
        hidden |= {"supersedes", "corrects", "corrected"}
        return {"note_id": self.note_id, **self.model_dump(exclude=hidden)}


class FoundNote(FrozenModel):
    """Hold a note that a search found; a higher `score` is better within one search only."""

    note: Note
    score: float
