"""/api/v1/collections, /documents, /tree and /jobs: what a caller may see, and what changes it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import ClientDisconnect

from app.pages import page_picture
from core.auth import AuthContext, checked_principal
from core.errors import CallerError
from serve.errors import NotFound, Refused
from serve.examples import example_questions
from serve.searching import passages_on_record
from serve.services import AppState, Caller, DocumentWriter, Services, check_standing, with_role
from serve.study.page import study_page
from serve.study.study import advised_study
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import WriteAccess

router = APIRouter(prefix="/api/v1")

MOST = 2**31  # more passages than any document has

BEFORE_NAMES = "`\"'«“„(["  # signs that no order minds
SortBy = Literal["title", "source", "format", "language", "version", "chunks", "updated"]

CollectionName = Annotated[str, Query(max_length=64)]
DocumentId = Annotated[str, Query(max_length=1000)]


@router.get("/collections", tags=["documents"])
async def collections(auth: Caller, services: Services) -> dict[str, Any]:
    """List the collections in which the caller may see a document, with the number of those.

    An admin is shown the readers of what comes later, where they are set (`default_acl`).
    """

    def listed() -> list[dict[str, Any]]:
        found = services.catalogue.list_collections(auth)
        for one in found if services.settings.serve.admin_role in auth.roles else ():
            of = services.catalogue.visible_collection(auth, one["name"])
            if acl := services.session.intake.default_access(of):
                one["default_acl"] = acl
        return found

    found = await services.runner.do(auth, listed)
    return {"collections": found, **_list_warnings(services)}


@router.get("/report", tags=["documents"])
async def report(
    auth: Caller, services: Services, collection: CollectionName = "default"
) -> dict[str, Any]:
    """Return the figures of what the caller sees of collections, with advice, and the page.

    Several names are joined by commas; nothing is set.
    """

    def studied() -> dict[str, Any]:
        named = services.session.catalogue.collections_named(auth, collection)
        found = [advised_study(services.session, auth, one) for one in named]
        return {"collections": [one.model_dump() for one in found], "page": study_page(found)}

    return await services.runner.do(auth, studied)


@router.get("/documents", tags=["documents"])
async def documents(
    auth: Caller,
    services: Services,
    collection: CollectionName = "default",
    after: Annotated[str, Query(max_length=1000, description="The last id already seen.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    q: Annotated[str, Query(max_length=200, description="Only with this in a name.")] = "",
    sort: SortBy | None = None,
    descending: Literal["true", "false"] = "false",
    offset: Annotated[int, Query(ge=0, le=MOST, description="With `q` or `sort`.")] = 0,
) -> dict[str, Any]:
    """List documents that the caller may see, ordered by id, or sorted; `q` also counts them."""

    def listed() -> dict[str, Any]:
        found = services.session.catalogue.visible_collection(auth, collection)
        listing = services.catalogue.list_documents
        if not q and sort is None:
            return {"documents": listing(auth, found, after=after, limit=limit)}
        word = q.strip().casefold()
        rows = [one for one in listing(auth, found) if word in _names(one)]
        if sort is not None:
            rows.sort(key=lambda one: _sort_key(one, sort), reverse=descending == "true")
        return {"documents": rows[offset : offset + limit], "total": len(rows)}

    return {**await services.runner.do(auth, listed), **_list_warnings(services)}


def _names(document: dict[str, Any]) -> str:
    return "\n".join(document[name] for name in ("title", "source", "document_id")).casefold()


def _sort_key(document: dict[str, Any], by: SortBy) -> Any:  # noqa: ANN401 - of one kind by column
    if by == "updated":
        return document["updated_at"] or document["indexed_at"]
    value = document[by]
    return value.casefold().lstrip(BEFORE_NAMES) if isinstance(value, str) else value


@router.get("/examples", tags=["documents"])
async def examples(
    auth: Caller, services: Services, collection: CollectionName = "default"
) -> dict[str, Any]:
    """Return what to begin with: questions made from names of documents the caller may see."""
    found = await services.runner.do(
        auth, lambda: example_questions(services.catalogue, auth, collection)
    )
    return {"questions": found}


@router.post(
    "/documents",
    tags=["documents"],
    status_code=202,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def upload(
    request: Request,
    auth: DocumentWriter,
    services: Services,
    name: Annotated[
        str, Query(max_length=800, description="File name, which says its format; / after folders.")
    ],
    collection: CollectionName = "default",
    role: Annotated[list[str] | None, Query(max_length=50, description="Who may read it.")] = None,
) -> dict[str, Any]:
    """Take a document, the body as it is, and ingest it in the background; returns the job."""
    key: str = request.scope["carrel.key"]
    job, path = services.jobs.prepare(auth, collection, name, role or [], key)
    try:
        if not await _write_body(request, path):
            raise Refused(400, "empty", "an upload has at least one byte", value=name)
        check_standing(request)  # a body may take a minute to arrive
        facts = {"job": job.id, "collection": collection, "readers": role or []}
        facts |= services.audit.log.document(job.name)
        await services.runner.do(auth, lambda: services.audit.record("upload", auth, **facts))
    except BaseException:
        services.jobs.discard(job)
        raise
    await asyncio.to_thread(services.jobs.start, job)
    return job.describe()


@router.get("/documents/passages", tags=["documents"])
async def passages(
    auth: Caller,
    services: Services,
    document_id: DocumentId,
    collection: CollectionName = "default",
    around: Annotated[int, Query(ge=0, le=MOST, description="Number of a passage, from 0.")] = 0,
    before: Annotated[int, Query(ge=0, le=200)] = 5,
    after: Annotated[int, Query(ge=0, le=200)] = 5,
) -> dict[str, Any]:
    """Return a document that the caller may see, and its passages around one of them."""

    def read() -> dict[str, Any]:
        found = _find_collection(services, auth, collection, document_id)
        span = around - before, around + after
        shown = passages_on_record(services, auth, found, document_id, span)
        if shown is None:
            raise _missing(document_id)
        return {"document": shown[0], "passages": shown[1]}

    return await services.runner.do(auth, read)


Quotes = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]] | None,
    Query(max_length=10, description="Words of the page to be marked."),
]


@router.get("/documents/page", tags=["documents"], response_class=Response)
async def page(
    auth: Caller,
    services: Services,
    document_id: DocumentId,
    number: Annotated[int, Query(ge=1, le=MOST, description="Page, from 1.")],
    collection: CollectionName = "default",
    quote: Quotes = None,
) -> Response:
    """Return a page of a PDF or a picture as it looks (PNG), while its file is as it was read."""

    def draw() -> bytes:
        found = _find_collection(services, auth, collection, document_id)
        shown = page_picture(services.session, auth, found, document_id, number, quote or [])
        services.audit.record(
            "retrieval",
            auth,
            tool="page",
            collection=collection,
            filter=auth.describe(),
            **services.audit.log.document(document_id),
        )
        return shown

    return Response(await services.runner.do(auth, draw), media_type="image/png")


@router.delete("/documents", tags=["documents"], status_code=204, response_class=Response)
async def delete(
    auth: DocumentWriter,
    services: Services,
    document_id: DocumentId,
    collection: CollectionName = "default",
) -> None:
    """Delete a document that the caller may see, and its text in stored runs."""

    def erase() -> None:
        found = _find_collection(services, auth, collection, document_id)
        log = services.audit.log
        if not services.session.maintenance.erase(auth, found, document_id):
            raise _missing(document_id)
        services.audit.record("deletion", auth, collection=collection, **log.document(document_id))
        services.jobs.after_deletion(auth, collection)

    await services.runner.do(auth, erase)


class ReadersRequest(BaseModel):
    """Say who may read a document: the roles and user:NAME of `acl`, or with `everyone` all."""

    model_config = ConfigDict(extra="forbid")

    acl: list[str] = Field(default_factory=list, max_length=50)
    everyone: bool = False

    def readers(self) -> list[str]:
        """Return them, empty for the whole tenant; raises CallerError for neither or both."""
        if bool(self.acl) == self.everyone:
            raise CallerError(
                "a body has either `acl`, who may read it, or `everyone`: true",
                value=self.model_dump_json(),
                hint='such as {"acl": ["staff"]}',
            )
        return sorted({checked_principal(one) for one in self.acl})


@router.put("/documents", tags=["documents"])
async def set_readers(
    body: ReadersRequest,
    auth: DocumentWriter,
    services: Services,
    document_id: DocumentId,
    collection: CollectionName = "default",
) -> dict[str, Any]:
    """Replace who may read a document that the caller may see, with all that its file holds.

    Stored runs and conversations obey at once.
    """
    readers = body.readers()

    def change() -> dict[str, Any]:
        found = [_find_collection(services, auth, collection, document_id)]
        log = services.audit.log if services.settings.audit.enabled else None
        set_access, access = services.session.intake.set_access, WriteAccess(auth)
        done, before = set_access(found, document_id, readers, by=auth, access=access, log=log)
        return {**done.describe(), "before": before}

    return await services.runner.do(auth, change)


@router.put("/collections", tags=["documents"])
async def set_collection_readers(
    body: ReadersRequest,
    auth: DocumentWriter,
    services: Services,
    collection: CollectionName = "default",
    later: Annotated[
        Literal["true", "false"],
        Query(description="true: what comes later without a list of its own; takes an admin."),
    ] = "false",
) -> dict[str, Any]:
    """Replace who may read the documents of a collection, of all that the caller may change.

    What comes later has the readers of its own ingest, else those that `later` has set.
    """
    readers = body.readers()
    if later == "true":
        with_role(auth, {services.settings.serve.admin_role})

    def change() -> dict[str, Any]:
        found = services.session.catalogue.visible_collection(auth, collection)
        log = services.audit.log if services.settings.audit.enabled else None
        if later == "true":
            before = services.session.intake.set_default_access(found, readers, by=auth, log=log)
            return {"collection": collection, "default": readers, "before": before}
        set_access, access = services.session.intake.set_all_access, WriteAccess(auth)
        return set_access(found, readers, by=auth, access=access, log=log).describe()

    return await services.runner.do(auth, change)


Depth = Annotated[int, Query(ge=0, le=100, description="Levels below the root.")]


@router.get("/tree", tags=["documents"])
async def tree(
    auth: Caller, services: Services, collection: CollectionName = "default", depth: Depth = 1
) -> dict[str, Any]:
    """Return the nodes that the caller sees, from the root down, with cited summaries."""
    found = await services.runner.do(auth, lambda: _tree(services, auth, collection, depth))
    if found is None:
        raise NotFound("the caller sees no tree of this collection", value=collection)
    return found


@router.post("/tree", tags=["documents"], status_code=202)
async def build_tree(
    request: Request,
    auth: DocumentWriter,
    services: Services,
    collection: CollectionName = "default",
) -> dict[str, Any]:
    """Build what the tree of a collection lacks in the background; returns the job.

    The `tree` of the job is its size as the caller sees it, once it is done.
    """
    key: str = request.scope["carrel.key"]
    start = services.jobs.build_tree
    return (await services.runner.do(auth, lambda: start(auth, collection, key))).describe()


def _tree(
    services: AppState, auth: AuthContext, collection: str, depth: int
) -> dict[str, Any] | None:
    """Return what the caller sees of a tree, None for nothing."""
    target = services.session.catalogue.visible_collection(auth, collection)
    found = services.session.describe_tree(auth, target, depth)
    if found is not None:
        cited = [c for one in found["tree"] for text in one["summary"] for c in text["citations"]]
        given = {"evidence": [one["chunk_id"] for one in cited], "filter": auth.describe()}
        services.audit.record("retrieval", auth, tool="tree", collection=collection, **given)
    return found


def _list_warnings(services: AppState) -> dict[str, list[str]]:
    """Return the warnings that a list comes with, nothing where the data is whole."""
    warnings = services.session.store.warnings()
    return {"warnings": warnings} if warnings else {}


def _find_collection(
    services: AppState, auth: AuthContext, collection: str, document_id: str
) -> Collection:
    try:
        return services.session.catalogue.visible_collection(auth, collection)
    except CallerError:
        raise _missing(document_id) from None


def _missing(document_id: str) -> NotFound:
    return NotFound("there is no such document in this collection", value=document_id)


async def _write_body(request: Request, path: Path) -> int:
    written = 0
    with path.open("xb") as file:
        try:
            async for piece in request.stream():
                written += len(piece)
                await asyncio.to_thread(file.write, piece)
        except ClientDisconnect:
            raise Refused(499, "client_gone", "the client has left") from None
        await asyncio.to_thread(_to_disk, file)
    return written


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())  # a job that is kept must find its file


JobId = Annotated[str, PathParameter(max_length=64, description="Id of a job of the caller.")]


@router.get("/jobs", tags=["jobs"])
async def jobs(
    auth: Caller,
    services: Services,
    everyone: Annotated[
        Literal["true", "false"],
        Query(alias="all", description="Those of the whole tenant, for its admins."),
    ] = "false",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List the newest jobs of the caller, the newest first."""
    if of_tenant := everyone == "true":
        with_role(auth, {services.settings.serve.admin_role})
    found = await services.runner.do(
        auth, lambda: services.jobs.newest(auth, limit, everyone=of_tenant)
    )
    return {"jobs": [one.describe() for one in found]}


@router.get("/jobs/{job_id}", tags=["jobs"])
async def job(job_id: JobId, auth: Caller, services: Services) -> dict[str, Any]:
    """Return how far a job of the caller is, and what a tree that was built has become."""
    found = await asyncio.to_thread(services.jobs.find, auth, job_id)
    row = found.row
    if row.kind != "tree" or row.state != "done":
        return found.describe()
    own = await services.runner.do(auth, lambda: _tree(services, auth, row.collection, 0))
    return found.describe() | {"tree": own and own | {"seconds": row.seconds}}


@router.delete("/jobs/{job_id}", tags=["jobs"], status_code=204, response_class=Response)
async def cancel(job_id: JobId, auth: Caller, services: Services) -> None:
    """Cancel an upload of the caller; what of it was ingested already stays."""
    await asyncio.to_thread(services.jobs.cancel, auth, job_id)
