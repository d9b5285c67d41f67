"""/api/v1/sources: sources on the web that a caller keeps in sync, with the rights of an upload."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field

from app.syncing import forget_source
from core.auth import AuthContext, checked_name, checked_principal
from core.errors import CallerError
from ingest.connectors.address import parse_address
from ingest.connectors.network import check_host
from serve.services import DocumentWriter, Services, with_role
from stores.runlog.sources import SourceRow

router = APIRouter(prefix="/api/v1", tags=["sources"])

MOST = 100  # sources of one caller; chosen, not measured
NETWORK = frozenset({"http", "https", "git+http", "git+https", "webdav", "webdavs", "s3"})
LEAST_S = 60  # between two syncs; chosen, not measured
OPERATOR = "ask the operator to add it with `carrel source add`"
Name = Annotated[str, PathParameter(max_length=64, description="Name of a source of the caller.")]


class SourceRequest(BaseModel):
    """Say what is to be kept in sync: where, into which collection, how often, for whom."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=64)
    address: str = Field(max_length=2000, description="https://… or git+https://…, without a user.")
    collection: str = Field("default", max_length=64)
    every: int = Field(0, ge=0, le=366 * 86_400, description="Seconds, 60 at least; 0: by hand.")
    acl: list[str] = Field(default_factory=list, max_length=50)


@router.get("/sources")
async def sources(
    auth: DocumentWriter,
    services: Services,
    everyone: Annotated[
        Literal["true", "false"],
        Query(alias="all", description="Those of the whole tenant, for its admins."),
    ] = "false",
) -> dict[str, Any]:
    """List the sources that the caller has added, and how the last sync of each ended."""
    if of_tenant := everyone == "true":
        with_role(auth, {services.settings.serve.admin_role})
    rows, owner = services.session.accounts.sources(), None if of_tenant else auth
    found = await services.runner.do(auth, lambda: rows.list_sources(auth.tenant, owner))
    return {"sources": [one.describe() for one in found]}


@router.post("/sources", status_code=201)
async def add_source(
    body: SourceRequest, request: Request, auth: DocumentWriter, services: Services
) -> dict[str, Any]:
    """Add a source of public addresses that wants no secret; nothing is read yet."""
    key: str = request.scope["carrel.key"]

    def added() -> dict[str, Any]:
        row = _checked(body, auth)
        row.sent_by(auth, key)
        rows = services.session.accounts.sources()
        services.session.maintenance.check_writable()
        if len(rows.list_sources(auth.tenant, auth)) >= MOST:
            raise CallerError(f"a caller has at most {MOST} sources", hint="remove one first")
        rows.add(row)
        return row.describe()

    return await services.runner.do(auth, added)


def _checked(body: SourceRequest, auth: AuthContext) -> SourceRow:
    """Return the source that is asked for: neither this machine nor its secrets are a caller's."""
    checked_name("source", body.name)
    checked_name("collection", body.collection)
    readers = frozenset(checked_principal(one) for one in body.acl)
    if 0 < body.every < LEAST_S:
        raise CallerError(f"`every` is 0 or at least {LEAST_S} seconds", value=body.every)
    if body.address.partition("://")[0].lower() not in NETWORK:
        raise CallerError("a source over HTTP is on the network", value=body.address, hint=OPERATOR)
    found = parse_address(body.name, body.address)
    if found.user:
        raise CallerError("a source over HTTP has no secret", value=found.rest, hint=OPERATOR)
    if found.host:
        check_host(found.host)
    options = {"private": False}
    row = SourceRow(
        auth.tenant, auth.user, body.name, body.collection, found.text, options, readers
    )
    row.every = body.every
    return row


@router.post("/sources/{name}/sync", status_code=202)
async def sync(name: Name, auth: DocumentWriter, services: Services) -> dict[str, Any]:
    """Sync a source of the caller in the background; returns the job."""
    rows, jobs = services.session.accounts.sources(), services.jobs
    found = services.runner.do(auth, lambda: jobs.sync(rows.find(auth.tenant, name, auth)))
    return (await found).describe()


@router.delete("/sources/{name}", status_code=204, response_class=Response)
async def remove(
    name: Name,
    auth: DocumentWriter,
    services: Services,
    documents: Annotated[bool, Query(description="Delete what it has brought as well.")] = False,
) -> None:
    """Remove a source of the caller; its documents stay, unless they are to go."""
    rows = services.session.accounts.sources()

    def removed() -> None:
        row = rows.find(auth.tenant, name, auth)
        gone = forget_source(services.session, row, documents=documents, auth=auth)
        if gone:
            facts = {"collection": row.collection, "documents": gone}
            services.audit.record("deletion", auth, **facts)

    await services.runner.do(auth, removed)
