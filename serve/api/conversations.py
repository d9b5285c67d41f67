"""/api/v1/conversations: the caller's dialogues, each with its turns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from core.errors import CallerError
from serve.questions import Storable
from serve.searching import Collections
from serve.services import Caller, Services
from stores.runlog.conversations import Conversation

TITLE_CHARS = 400  # chosen, not measured

router = APIRouter(prefix="/api/v1/conversations", tags=["conversations"])

Id = Annotated[str, Path(max_length=64, description="Id of a conversation of the caller.")]


class NewConversation(BaseModel):
    """Begin a conversation about one collection, or several."""

    model_config = ConfigDict(extra="forbid")

    collection: Collections = "default"


class Renamed(Storable):
    """Give a conversation another title."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=TITLE_CHARS)


@router.post("", status_code=201)
async def begin(body: NewConversation, auth: Caller, services: Services) -> dict[str, Any]:
    """Begin a conversation; its first question gives it a title."""

    def create() -> Conversation:
        services.catalogue.collections_named(auth, body.collection)
        return services.runs.create_conversation(auth.tenant, auth.user, body.collection)

    made = await services.runner.do(auth, create)
    return made.describe()


@router.get("")
async def conversations(
    auth: Caller,
    services: Services,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    before: Annotated[str, Query(max_length=64, description="Id of the last one seen.")] = "",
) -> dict[str, Any]:
    """List the caller's conversations, last used first."""
    kept = services.runs
    found = await services.runner.do(auth, lambda: kept.newest_conversations(auth, limit, before))
    return {"conversations": [one.describe() for one in found]}


@router.get("/{conversation_id}")
async def conversation(conversation_id: Id, auth: Caller, services: Services) -> dict[str, Any]:
    """Return a conversation of the caller with its turns, and what it asks back."""
    kept = services.runs

    def load() -> dict[str, Any]:
        found = kept.load_conversation(auth, conversation_id)
        waiting = found.waiting
        return {
            **found.describe(),
            "turns": kept.turns(auth, found),
            "waiting": None if waiting is None else waiting.clarification.model_dump(),
        }

    return await services.runner.do(auth, load)


@router.patch("/{conversation_id}")
async def rename(
    conversation_id: Id, body: Renamed, auth: Caller, services: Services
) -> dict[str, Any]:
    """Give a conversation of the caller another title."""
    kept = services.runs
    title = " ".join(body.title.replace("\x00", "").split())
    if not title:
        raise CallerError("a title needs a word", value=body.title)

    def save() -> dict[str, Any]:
        found = kept.load_conversation(auth, conversation_id)
        kept.rename_conversation(found, title)
        return kept.load_conversation(auth, conversation_id).describe()

    return await services.runner.do(auth, save)


@router.delete("/{conversation_id}", status_code=204)
async def delete(conversation_id: Id, auth: Caller, services: Services) -> Response:
    """Delete a conversation of the caller with its turns, their runs and its history."""

    def forget() -> None:
        with services.runner.claims.hold(auth, conversation_id):
            services.session.forget(auth, conversation_id)
            services.audit.record("deletion", auth, conversation=conversation_id)
            services.jobs.finish_erasure()

    await services.runner.do(auth, forget)
    return Response(status_code=204)
