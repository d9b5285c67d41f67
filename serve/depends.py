"""What routes ask FastAPI for: the verified caller, and the parts of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from core.auth import AuthContext
from core.errors import PolicyError
from serve.app_state import AppState
from serve.errors import NotAuthenticated
from serve.types import RunEvent, Runner


def desk(request: Request) -> AppState:
    """Return the parts of this server."""
    parts: AppState = request.app.state.desk
    return parts


async def parts_of(request: Request) -> AppState:
    """Return the parts of this server; not on a thread, as FastAPI calls what is not async."""
    return desk(request)


async def caller(request: Request) -> AuthContext:
    """Return who is calling, verified; raises NotAuthenticated (401), LimitExceeded (429)."""
    parts = desk(request)
    header = request.headers.get("authorization")
    address = request.client.host if request.client else ""
    try:
        entry = parts.authenticator.authenticate(header)
    except NotAuthenticated:
        if header is not None:
            await parts.limits.wrong_key(address)
            parts.audit.note("login_failed", None, address=address)
        raise
    parts.audit.entered(entry, address)
    request.scope["carrel.caller"] = entry.auth  # for the log
    request.scope["carrel.key"] = entry.key.id if entry.key else ""  # for jobs
    route = getattr(request.scope.get("route"), "path", "")
    request.scope["carrel.limits"] = await parts.limits.enter(entry.auth, entry.key, route)
    return entry.auth


def check_standing(request: Request) -> None:
    """Raise NotAuthenticated when who sent a request that is still at work may do so no longer.

    To be asked before each piece of a stream: a key may be revoked, also beside this process, and a
    token expires.
    """
    auth = request.scope.get("carrel.caller")
    header = request.headers.get("authorization")
    if auth is not None and desk(request).authenticator.caller(header) != auth:
        raise NotAuthenticated("the caller's rights have changed meanwhile", hint="ask again")


async def while_standing(
    request: Request, events: AsyncIterator[RunEvent]
) -> AsyncIterator[RunEvent]:
    """Yield the events of a run for as long as who asked may have them (`check_standing`)."""
    async for event in events:
        check_standing(request)
        yield event


async def runner(request: Request) -> Runner:
    """Return what runs questions."""
    return desk(request).runner


async def admin(request: Request) -> AuthContext:
    """Return the caller who has the admin's role; raises PolicyError (403)."""
    return with_role(await caller(request), {desk(request).settings.serve.admin_role})


async def writer(request: Request) -> AuthContext:
    """Return the caller who may change documents; raises PolicyError (403)."""
    return with_role(await caller(request), set(desk(request).settings.serve.writer_roles))


def with_role(auth: AuthContext, roles: set[str]) -> AuthContext:
    """Return the caller when they have one of the roles."""
    if not auth.roles & roles:
        raise PolicyError(
            f"this needs the role {' or '.join(sorted(roles))}",
            hint="ask the operator for a key with it",
        )
    return auth


Caller = Annotated[AuthContext, Depends(caller)]
Admin = Annotated[AuthContext, Depends(admin)]
DocumentWriter = Annotated[AuthContext, Depends(writer)]
Parts = Annotated[AppState, Depends(parts_of)]
Asking = Annotated[Runner, Depends(runner)]
