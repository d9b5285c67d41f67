"""/api/v1/memory: what is remembered of the caller."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field

from serve.questions import Storable
from serve.services import Caller, Services

NOTE_CHARS = 4000  # of a body; what a note may have is less

router = APIRouter(prefix="/api/v1/memory", tags=["memory"])

Id = Annotated[str, Path(max_length=64, description="Id of a note of the caller.")]


class EditedNote(Storable):
    """Say something else in a note."""

    model_config = ConfigDict(extra="forbid")

    content: str = Field(min_length=1, max_length=NOTE_CHARS)


@router.get("")
async def notes(
    auth: Caller,
    services: Services,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str, Query(max_length=64, description="Id of the last one seen.")] = "",
) -> dict[str, Any]:
    """List the caller's notes, newest first, also those that later ones supersede."""
    kept = services.session.notes
    found = await services.runner.do(auth, lambda: kept.list_notes(auth, limit=limit, after=after))
    return {"notes": [one.describe() for one in found]}


@router.get("/export")
async def export(auth: Caller, services: Services) -> dict[str, Any]:
    """Return all notes of the caller."""
    kept = services.session.notes
    found = await services.runner.do(auth, lambda: kept.list_notes(auth))
    return {"notes": [one.describe() for one in found]}


@router.get("/{note_id}")
async def note(note_id: Id, auth: Caller, services: Services) -> dict[str, Any]:
    """Return a note of the caller: what it says, where it comes from, and its links."""
    kept = services.session.notes
    found = await services.runner.do(auth, lambda: kept.load_note(auth, note_id))
    return found.describe()


@router.patch("/{note_id}")
async def edit(note_id: Id, body: EditedNote, auth: Caller, services: Services) -> dict[str, Any]:
    """Write a new version of a note under its id; the version before stays as superseded."""
    kept = services.session.notes
    found = await services.runner.do(auth, lambda: kept.edit_note(auth, note_id, body.content))
    return found.describe()


@router.delete("/{note_id}", status_code=204)
async def delete(note_id: Id, auth: Caller, services: Services) -> Response:
    """Delete a note of the caller with its earlier versions and what rests on them."""

    def forget() -> None:
        services.session.notes.delete_note(auth, note_id)
        services.audit.record("deletion", auth, note=note_id)
        services.jobs.finish_erasure()

    await services.runner.do(auth, forget)
    return Response(status_code=204)
