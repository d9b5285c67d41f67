"""The application: routes, checks before them, one shape for all errors, and their document."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from core.auth import AuthContext
from core.errors import CarrelError, ModelError, StorageError, shorten
from models.embeddings import Embedder
from models.vectors import Vectors
from serve import login_routes, page_routes
from serve.access.guard import Guard, unexpected_body
from serve.access.network import HostRule, OriginRule
from serve.api import (
    admin,
    chat,
    conversations,
    documents,
    memory,
    recommend,
    runs,
    sources,
    status,
)
from serve.errors import Refused, error_body, explained, plain_body, status_of
from serve.protocols.langserve import langserve_router
from serve.protocols.langserve_schemas import FailureDetail
from serve.protocols.mcp_tools import PATH, McpEndpoint
from serve.protocols.openai import EVENTS_HEADER, openai_router
from serve.protocols.openai_embeddings import Embed, embeddings_router
from serve.protocols.openai_responses import responses_router
from serve.protocols.openai_schemas import CONVERSATION_HEADER, ErrorReply
from serve.runs.pool import RETRY_SECONDS
from serve.services import AppState, caller

REF = "#/components/schemas/{model}"
OPEN = re.compile(r"/api/v1/(health|ready)|/|/page/.*|/log(in.*|out)")  # what needs no key
JSON = "application/json"


class ApiErrorDetail(BaseModel):
    """Say which rule was broken, the actual value, and what to do; `id` finds it in the log."""

    id: str
    code: str
    rule: str
    value: str | None
    hint: str
    message: str


class ApiError(BaseModel):
    """Hold the one shape of all errors of /api."""

    error: ApiErrorDetail


ERRORS: dict[str, type[BaseModel]] = {"/v1/": ErrorReply, "/agent/": FailureDetail}


def document_errors(app: FastAPI) -> None:
    """Have the application's page of routes name the errors and the key of every route."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = complete_document(
                get_openapi(title=app.title, version=app.version, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation does


def complete_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with errors by protocol in place of FastAPI's own, and with the key."""
    components = document.setdefault("components", {})
    models: list[type[BaseModel]] = [ApiError, ErrorReply, FailureDetail]
    _, made = models_json_schema([(model, "serialization") for model in models], ref_template=REF)
    components.setdefault("schemas", {}).update(made["$defs"])
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        kind = next((ERRORS[start] for start in ERRORS if path.startswith(start)), ApiError)
        content = {JSON: {"schema": {"$ref": REF.format(model=kind.__name__)}}}
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"description": kind.__doc__, "content": content}
            operation["security"] = [] if OPEN.fullmatch(path) else [{"key": []}]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document


STRICT = "/api/"  # clients of other protocols send parameters of their own


async def check_query(request: Request) -> None:
    """Refuse a parameter in the query that the route does not take."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    if not route.path.startswith(STRICT):
        return
    known = {field.alias for field in route.dependant.query_params}
    for name in request.query_params:
        if name not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise Refused(
                422, "invalid", "the route takes no such parameter", value=name, hint=takes
            )


def protocol_routers(services: AppState) -> tuple[APIRouter, ...]:
    """Return the routes under `/agent` (LangServe) and `/v1` (OpenAI)."""

    def collections(auth: AuthContext) -> Sequence[str]:
        """Name the collections in which the caller may see a document."""
        return [one.name for one in services.session.catalogue.visible_collections(auth)]

    def begin(auth: AuthContext, collection: str) -> str:
        """Begin a conversation of the caller and return its id."""
        return services.runs.create_conversation(auth.tenant, auth.user, collection).id

    return (
        langserve_router(services.runner, caller, services.settings),
        openai_router(services.runner, caller, collections, services.settings, begin),
        responses_router(services.runner, caller, collections, services.settings),
        embeddings_router(caller, collections, _embedding(services)),
    )


def _embedding(services: AppState) -> Embed:
    """Return what has the embedder of a collection work for a caller, and remembers no text."""

    async def embed(
        auth: AuthContext, name: str, work: Callable[[Embedder], list[Vectors]]
    ) -> list[Vectors]:
        def do() -> list[Vectors]:
            session = services.session
            index = session.index(session.catalogue.visible_collection(auth, name))
            if session.embedder is None or index.embedder is None:
                raise ModelError("this collection has no embedder", hint=index.keywords_only)
            return work(session.embedder)

        return await services.runner.do(auth, do)

    return embed


ROUTERS: tuple[APIRouter, ...] = tuple(
    one.router
    for one in (
        chat,
        recommend,
        conversations,
        memory,
        runs,
        documents,
        sources,
        admin,
        status,
        page_routes,
        login_routes,
    )
)
# For short reads of the catalogue; of anyio's 40 all that a crowd needed stay when it has gone.
SHORT_THREADS = 8
OPENAPI = "/api/v1/openapi.json"


def make_app(
    services: AppState, *, host: str, routers: Sequence[APIRouter] | None = None
) -> ASGIApp:
    """Return the application over the services' session, known under `host`.

    The session stays open when the application ends: it belongs to the caller.
    """
    guarded = make_api(services, routers)
    origins = services.settings.serve.origins
    inner: ASGIApp = guarded
    if origins:
        inner = CORSMiddleware(
            guarded,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", EVENTS_HEADER, CONVERSATION_HEADER],
            expose_headers=[CONVERSATION_HEADER],
        )
    guard = Guard(
        inner,
        HostRule(host, services.settings.serve.hosts),
        OriginRule(origins),
        lambda: services.settings,
        services.metrics,
    )
    return services.tracing.wrap(guard) if services.tracing else guard


def make_api(services: AppState, routers: Sequence[APIRouter] | None = None) -> FastAPI:
    """Return the routes, without `routers` all there are, and their error handlers.

    The checks before them are not part of it.
    """
    app = FastAPI(
        title="Carrel",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url=OPENAPI,
        lifespan=_lifespan,
        dependencies=[Depends(check_query)],
    )
    app.state.services = services
    app.state.mcp = McpEndpoint(services)
    app.router.routes.append(Route(PATH, app.state.mcp, include_in_schema=False))
    for router in (*ROUTERS, *protocol_routers(services)) if routers is None else routers:
        app.include_router(router)
    document_errors(app)
    for kind in (CarrelError, StorageError, OSError):
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _answer_unexpected)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: AppState = app.state.services
    current_default_thread_limiter().total_tokens = SHORT_THREADS
    search = services.session.store.search
    for collection in services.catalogue.collections():
        search.refresh_in_background(collection)
    await asyncio.to_thread(services.jobs.resume)
    watching = asyncio.create_task(services.metrics.watch_loop())
    services.checks.start()
    try:
        async with app.state.mcp.running():
            yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await services.runner.stop()
        await asyncio.to_thread(services.checks.close)
        await asyncio.to_thread(services.jobs.close)
        await asyncio.to_thread(services.audit.close)
        if services.tracing is not None:
            await asyncio.to_thread(services.tracing.close)


def _answer_error(request: Request, error: Exception) -> Response:
    services: AppState = request.app.state.services
    found = explained(error, services.settings.data)
    if found is None:
        raise error  # a mistake in this program
    status, _, headers = status_of(found)
    if isinstance(error, StorageError):
        headers = {**headers, "Retry-After": str(RETRY_SECONDS)}
    return JSONResponse(error_body(found, request.scope["carrel.id"]), status, headers)


def _answer_unexpected(request: Request, error: Exception) -> Response:
    return JSONResponse(unexpected_body(request.scope["carrel.id"]), 500)  # the guard logs it


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    value = first.get("input")
    body = plain_body(
        request.scope["carrel.id"],
        "invalid",
        f"{place}: {first['msg']}",
        value=None if value is None or isinstance(value, dict | list) else shorten(value),
        hint=f"see {OPENAPI}",
    )
    return JSONResponse(body, 422)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, CarrelError):  # raised while FastAPI read the body
        return _answer_error(request, error)
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if error.status_code == 404 and wants_page:  # somebody with a browser, who reads no JSON
        return Response(
            page_routes.page_files()[page_routes.INDEX].content, 404, media_type="text/html"
        )
    code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "bad_request")
    rule = "there is nothing here" if error.status_code == 404 else shorten(error.detail)
    body = plain_body(request.scope["carrel.id"], code, rule, hint=f"see {OPENAPI}")
    return JSONResponse(body, error.status_code, error.headers)
