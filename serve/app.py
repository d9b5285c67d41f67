"""The application: routes, checks before them, and one shape for all errors."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from core.errors import CarrelError, disk_error, shorten
from serve import page_routes
from serve.access.guard import BodyLimit, Guard, unexpected_body
from serve.access.hosts import HostRule, OriginRule
from serve.api import (
    audit,
    chat,
    conversations,
    documents,
    drawings,
    feedback,
    health,
    jobs,
    keys,
    me,
    runs,
    search,
    settings,
)
from serve.app_state import AppState
from serve.errors import error_body, plain_body, status_of
from serve.openapi import document_errors
from serve.protocols.openai.requests import CONVERSATION_HEADER
from serve.protocols.openai.routes import EVENTS_HEADER
from serve.protocols.routers import protocol_routers
from serve.queries import known_query
from serve.runs.pool import RETRY_SECONDS
from stores.sqlite.database import damaged

ROUTERS: tuple[APIRouter, ...] = (
    chat.router,
    conversations.router,
    search.router,
    runs.router,
    drawings.router,
    feedback.router,
    documents.router,
    jobs.router,
    keys.router,
    health.router,
    audit.router,
    me.router,
    page_routes.router,
    settings.router,
)
# For short reads of the catalogue; of anyio's 40 all that a crowd needed stay when it has gone.
SHORT_THREADS = 8
OPENAPI = "/api/v1/openapi.json"


def make_app(desk: AppState, *, host: str, routers: Sequence[APIRouter] | None = None) -> ASGIApp:
    """Return the application over the desk's session, as it is known under `host`.

    The session stays open when the application ends: it belongs to the caller.
    """
    guarded = make_api(desk, routers)
    origins = desk.settings.serve.origins
    inner: ASGIApp = guarded
    if origins:
        inner = CORSMiddleware(
            guarded,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", EVENTS_HEADER, CONVERSATION_HEADER],
            expose_headers=[CONVERSATION_HEADER],
        )
    bodies = BodyLimit(desk.settings)
    desk.followers.append(bodies.use)
    guard = Guard(
        inner,
        HostRule(host, desk.settings.serve.hosts),
        OriginRule(origins),
        bodies,
        desk.metrics,
    )
    return desk.tracing.wrapped(guard) if desk.tracing else guard


def make_api(desk: AppState, routers: Sequence[APIRouter] | None = None) -> FastAPI:
    """Return the routes, without `routers` all there are, and their error handlers.

    The checks before them are not part of it.
    """
    app = FastAPI(
        title="Carrel",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url=OPENAPI,
        lifespan=_lifespan,
        dependencies=[Depends(known_query)],
    )
    app.state.desk = desk
    for router in (*ROUTERS, *protocol_routers(desk)) if routers is None else routers:
        app.include_router(router)
    document_errors(app)
    app.add_exception_handler(CarrelError, _carrel_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(sqlite3.DatabaseError, _database_error)
    app.add_exception_handler(OSError, _disk_error)
    app.add_exception_handler(Exception, _unexpected)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    desk: AppState = app.state.desk
    current_default_thread_limiter().total_tokens = SHORT_THREADS
    search = desk.session.store.search
    for collection in desk.catalogue.collections():
        search.refresh_in_background(collection)
    await asyncio.to_thread(desk.jobs.resume)
    watching = asyncio.create_task(desk.metrics.watch_loop())
    desk.checks.start()
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await desk.runner.stop()
        await asyncio.to_thread(desk.checks.close)
        await asyncio.to_thread(desk.jobs.close)
        await asyncio.to_thread(desk.audit.close)
        if desk.tracing is not None:
            await asyncio.to_thread(desk.tracing.close)


def _carrel_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CarrelError)
    status, _, headers = status_of(error)
    return JSONResponse(error_body(error, request.scope["carrel.id"]), status, headers)


def _database_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, sqlite3.DatabaseError)
    if isinstance(error, sqlite3.ProgrammingError):
        raise error  # a mistake in this program
    parts: AppState = request.app.state.desk
    response = _carrel_error(request, damaged(parts.settings.data, error))
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _disk_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    found = disk_error(error)
    if found is None:
        raise error  # a mistake in this program
    return _carrel_error(request, found)


def _unexpected(request: Request, error: Exception) -> Response:
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
    cause = error.__cause__
    if isinstance(cause, CarrelError):  # raised while FastAPI read the body
        return _carrel_error(request, cause)
    code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "bad_request")
    rule = "there is nothing here" if error.status_code == 404 else shorten(error.detail)
    body = plain_body(request.scope["carrel.id"], code, rule, hint=f"see {OPENAPI}")
    return JSONResponse(body, error.status_code, error.headers)
