"""/api/v1/conversations: the caller's dialogues, each with its turns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from core.auth import AuthContext
from core.errors import AbsentError, CallerError, CarrelError
from serve.api.documents import ReadersRequest
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
    """List the caller's conversations, last used first; `shared` are those of others, newest ones.

    The first page alone has those.
    """
    kept, shares = services.runs, services.session.accounts.shares()

    def listed() -> dict[str, Any]:
        own = [one.describe() for one in kept.newest_conversations(auth, limit, before)]
        given = [] if before else shares.list_shared(auth, limit)
        shared = [
            one.describe()
            | {"user": one.user, "collection": _named_to(services, auth, one.collection)}
            for one in given
        ]
        return {"conversations": own, "shared": shared}

    return await services.runner.do(auth, listed)


@router.get("/{conversation_id}")
async def conversation(conversation_id: Id, auth: Caller, services: Services) -> dict[str, Any]:
    """Return a conversation of the caller with its turns, and what it asks back.

    Of one that another user shares it has what the caller may read; `user` says whose it is.
    """
    kept, shares = services.runs, services.session.accounts.shares()

    def load() -> dict[str, Any]:
        try:
            found = kept.load_conversation(auth, conversation_id)
        except AbsentError:
            found = shares.open_conversation(auth, conversation_id)
        is_own, waiting = found.user == auth.user, found.waiting
        described = found.describe()
        if not is_own:
            waiting, described["collection"] = None, _named_to(services, auth, found.collection)
        return {
            **described,
            "user": found.user,
            "readers": shares.readers_of(found.id) if is_own else None,
            "turns": kept.turns(auth, found),
            "waiting": None if waiting is None else waiting.clarification.model_dump(),
        }

    return await services.runner.do(auth, load)


def _named_to(services: Services, auth: AuthContext, names: str) -> str:
    """Return the names of collections that the caller sees, "" where any of them is hidden."""
    try:
        services.catalogue.collections_named(auth, names)
    except CarrelError:
        return ""
    return names


@router.put("/{conversation_id}/readers")
async def set_conversation_readers(
    conversation_id: Id, body: ReadersRequest, auth: Caller, services: Services
) -> dict[str, Any]:
    """Let others of the tenant read a conversation of the caller, as it goes on.

    They see the questions, and the answers whose sources they may read themselves.
    """
    readers = body.readers()

    def share() -> dict[str, Any]:
        found = services.runs.load_conversation(auth, conversation_id)
        services.session.accounts.shares().share(found, readers)
        facts = {"conversation": conversation_id, "readers": readers}
        services.audit.record("access_changed", auth, **facts)
        return {**found.describe(), "readers": readers}

    return await services.runner.do(auth, share)


@router.delete("/{conversation_id}/readers", status_code=204, response_class=Response)
async def unshare(conversation_id: Id, auth: Caller, services: Services) -> None:
    """Let nobody else read a conversation of the caller any more."""

    def end() -> None:
        found = services.runs.load_conversation(auth, conversation_id)
        services.session.accounts.shares().share(found, None)
        facts = {"conversation": conversation_id, "readers": [f"user:{auth.user}"]}
        services.audit.record("access_changed", auth, **facts)

    await services.runner.do(auth, end)


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
