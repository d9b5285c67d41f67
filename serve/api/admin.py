"""/api/v1/keys, /audit and /settings: what an admin does for their own tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from core.auth import MOST_SOURCES, AuthContext, checked_name
from core.errors import PolicyError
from core.metadata import ANY
from serve.access.auth import ANONYMOUS
from serve.errors import NotFound
from serve.services import Admin, Services
from stores.accounts.keys import OPERATOR, Key

router = APIRouter(prefix="/api/v1")

DAYS = 36_500  # a hundred years


class KeyRequest(BaseModel):
    """Make a key; without a user it is a user of its own, without days it does not expire.

    `sources` (shell patterns) and `version_policy` (any, latest or one version) confine it; an
    admin who is confined makes keys that are confined alike.
    """

    model_config = ConfigDict(extra="forbid")

    user: str = Field("", max_length=64)
    roles: list[str] = Field(default_factory=list, max_length=50)
    expires_days: int | None = Field(None, ge=1, le=DAYS)
    sources: list[str] | None = Field(None, max_length=MOST_SOURCES)
    version_policy: str = Field(ANY, min_length=1, max_length=64)


@router.get("/keys", tags=["keys"])
async def keys(auth: Admin, services: Services) -> dict[str, Any]:
    """List the keys of the caller's tenant, the oldest first, without their secrets."""
    found = await services.runner.do(auth, lambda: services.keys.listed(auth.tenant))
    return {"keys": [key.describe() for key in found]}


@router.post("/keys", tags=["keys"], status_code=201)
async def create(body: KeyRequest, auth: Admin, services: Services) -> dict[str, Any]:
    """Make a key for a caller of the same tenant; its secret is in this answer alone.

    Its name is the admin's own, or one that nobody has used: it would read what they asked.
    """
    user = checked_name("user", body.user) if body.user else ""
    roles = frozenset(checked_name("role", role) for role in body.roles)

    others = user not in ("", auth.user)
    if others and (user == ANONYMOUS or services.authenticator.takes_tokens):
        raise PolicyError("an admin cannot make keys for this name", value=user, hint=OPERATOR)

    sources, policy = _within(auth, body)

    def make() -> tuple[str, Key]:
        text, key = services.keys.create(
            auth.tenant,
            user=user,
            roles=roles,
            sources=sources,
            version_policy=policy,
            days=body.expires_days or 0,
            unused=others,
        )
        services.audit.record("key_created", auth, **key.facts())
        return text, key

    text, key = await services.runner.do(auth, make)
    return {"key": text, **key.describe()}


def _within(auth: AuthContext, body: KeyRequest) -> tuple[Sequence[str] | None, str]:
    """Return the limits of a new key: no wider than those of its maker."""
    sources, policy = body.sources, body.version_policy
    if auth.allowed_sources is not None:
        sources = list(auth.allowed_sources) if sources is None else sources
        if beyond := sorted(set(sources) - set(auth.allowed_sources)):
            rule, hint = "your key is confined to sources of its own", "choose among them"
            raise PolicyError(rule, value=beyond[0], hint=f"{hint}: {auth.allowed_sources}")
    if auth.version_policy != ANY:
        if policy not in (ANY, auth.version_policy):
            rule = "your key is confined to another version"
            raise PolicyError(rule, value=policy, hint=f"yours is {auth.version_policy}")
        policy = auth.version_policy
    return sources, policy


@router.delete("/keys/{key_id}", tags=["keys"], status_code=204, response_class=Response)
async def revoke(
    key_id: Annotated[str, Path(max_length=64, description="Id of a key of the tenant.")],
    auth: Admin,
    services: Services,
) -> None:
    """Revoke a key of the same tenant for good."""

    def work() -> None:
        if key_id not in {key.id for key in services.keys.listed(auth.tenant)}:
            raise NotFound("there is no such key in your tenant")  # may be a secret by mistake
        services.keys.revoke(key_id)
        services.audit.record("key_revoked", auth, key=key_id)

    await services.runner.do(auth, work)


@router.get("/audit", tags=["audit"])
async def audit(
    auth: Admin,
    services: Services,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="The last `seq` seen.")] = None,
    kind: Annotated[str | None, Query(max_length=32)] = None,
    document: Annotated[
        str | None, Query(max_length=1000, description="Id of a document, or name of an upload.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """List what was recorded of the admin's own tenant, the newest first."""
    newest = services.audit.log.newest
    wanted = partial(newest, before=before, kind=kind, document=document, limit=limit)
    found = await services.runner.do(auth, lambda: wanted(auth.tenant))
    more = found[-1]["seq"] if len(found) == limit else None
    return {"events": found, "next": more}


@router.post("/settings/reload", tags=["settings"])
async def reload(auth: Admin, services: Services) -> dict[str, Any]:
    """Read the settings again and take over those that can change while the server runs."""
    if auth.tenant != services.settings.serve.operator_tenant:
        raise PolicyError(
            "the settings are the operator's",
            hint="an admin of the tenant serve.operator_tenant may, or send the process SIGHUP",
        )
    done = await asyncio.to_thread(services.reload.now, services, auth)
    return done.describe()
