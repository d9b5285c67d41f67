"""/login and /logout: a browser signs in through the operator's provider, and out again."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from core.auth import checked_name
from serve.access.auth import AuthenticatedCaller
from serve.access.sign_in import CALLBACK, WAY_SECONDS, SignIn
from serve.errors import NotAuthenticated, NotFound
from serve.services import Admin, AppState, Services, session_cookie

WAY = "carrel_login"
SEE_OTHER = 303

router = APIRouter(tags=["login"])


class SignedOut(BaseModel):
    """Say where the browser goes to leave the provider too; empty for nowhere."""

    provider: str


class EndedSessions(BaseModel):
    """Say how many sessions were ended."""

    ended: int


@router.get("/login", response_class=Response, status_code=SEE_OTHER)
async def login(services: Services) -> Response:
    """Send the browser to the provider."""
    sign_in = _sign_in(services)
    url, kept = await asyncio.to_thread(sign_in.begin)
    response = Response(status_code=SEE_OTHER, headers={"Location": url})
    _set(response, sign_in, WAY, kept, CALLBACK, WAY_SECONDS)
    return response


@router.get(CALLBACK, response_class=Response, status_code=SEE_OTHER)
async def callback(request: Request, services: Services) -> Response:
    """Take what the provider answers: the browser is signed in, and goes to the page."""
    sign_in = _sign_in(services)
    address = request.client.host if request.client else ""
    given, kept = dict(request.query_params), request.cookies.get(WAY, "")
    try:
        auth = await asyncio.to_thread(sign_in.finish, given, kept)
    except NotAuthenticated:
        await services.limits.wrong_key(address)
        services.audit.note("login_failed", None, address=address)
        raise
    services.audit.note_login(AuthenticatedCaller(auth, "session"), address)
    response = Response(status_code=SEE_OTHER, headers={"Location": sign_in.home})
    seconds = 60 * services.settings.oidc.session_minutes
    _set(response, sign_in, session_cookie(services), sign_in.sessions.begin(auth), "/", seconds)
    _set(response, sign_in, WAY, "", CALLBACK, 0)
    return response


@router.post("/logout")
async def logout(request: Request, response: Response, services: Services) -> SignedOut:
    """End the browser's session here; the page then leaves the provider."""
    sign_in = _sign_in(services)
    name = session_cookie(services)
    was = sign_in.sessions.end(request.cookies.get(name, ""))
    _set(response, sign_in, name, "", "/", 0)
    return SignedOut(provider=sign_in.farewell() if was else "")


@router.delete("/api/v1/sessions")
async def end_sessions(
    user: Annotated[str, Field(max_length=64)], auth: Admin, services: Services
) -> EndedSessions:
    """Sign a user of the admin's tenant out of every browser; tokens hold until they expire."""
    sessions = _sign_in(services).sessions
    return EndedSessions(ended=sessions.end_all_of(auth.tenant, checked_name("user", user)))


def _sign_in(services: AppState) -> SignIn:
    found = services.authenticator.sign_in
    if found is None:
        raise NotFound("people sign in here with a key alone")
    return found


def _set(
    response: Response, sign_in: SignIn, name: str, value: str, path: str, seconds: int
) -> None:
    """Set a cookie that no script reads and that other sites' pages do not send along."""
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=sign_in.is_https,
        httponly=True,
        samesite="lax",  # not strict: the provider sends the browser back
    )
