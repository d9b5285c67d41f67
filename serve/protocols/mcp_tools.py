"""Tools of the Model Context Protocol: search, recommend, fetch, ask, plan, collections.

They are the same over stdio, where the local user asks, and over HTTP at `/mcp`, where every
request carries a key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from core.auth import AuthContext
from core.budget import Usage
from core.distribution import program_version
from core.errors import CarrelError, shorten
from core.question import checked_question
from serve.api.recommend import RecommendRequest, recommend_on_record
from serve.errors import explained, new_id
from serve.questions import Question, storable
from serve.recommending import MOST_ITEMS
from serve.searching import describe_passages, passages_on_record, search_on_record
from serve.services import AppState, caller, check_standing
from serve.telemetry.logs import log

PATH = "/mcp"
INSTRUCTIONS = (
    "Questions over the user's own documents. `ask` answers with checked citations or refuses; "
    "`search` finds passages, whose `id` `fetch` reads with what stands around it."
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
DIGITS = 10  # of the number of a passage, at most; chosen
AROUND = 20  # passages before and behind one that is fetched, and at most of a document; chosen
Asked = Context[Any, Any]
Verify = Callable[[Asked], AuthContext]
T = TypeVar("T")
Name = Annotated[str, Field(description="Name of a collection.")]


class McpToolServer(MCPServer[Any]):
    """Serve tools whose every error is one line."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Asked | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool by its name; raises ToolError."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                first = cause.errors()[0]
                place = ".".join(map(str, first["loc"])) or name
                raise ToolError(f"{place}: {first['msg']}") from None
            raise ToolError(str(cause if isinstance(cause, ToolError) else error)) from None


class McpTools:
    """Hold the tools over the services of a server."""

    def __init__(self, services: AppState, verify: Verify) -> None:
        """Take who is behind a request, now, from `verify`."""
        self._services, self._session, self._verify = services, services.session, verify

    async def search(
        self,
        query: str,
        ctx: Asked,
        collection: Name = "default",
        k: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> dict[str, Any]:
        """Find the passages of a collection that fit a query best, the best first."""
        return await self._do(ctx, lambda auth: self._passages(auth, query, collection, k))

    async def fetch(
        self,
        id: Annotated[str, Field(description="The `id` of a search result.")],  # noqa: A002
        ctx: Asked,
    ) -> dict[str, Any]:
        """Read a document, or a passage of it with what stands around it, by its id."""
        return await self._do(ctx, lambda auth: self._document(auth, id))

    async def recommend(
        self,
        need: str,
        ctx: Asked,
        collection: Name = "default",
        k: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 10,
    ) -> dict[str, Any]:
        """Recommend the documents that meet a need (projects, books …), with cited reasons."""
        body = RecommendRequest(need=need, collection=collection, k=k)
        return await self._do(ctx, lambda auth: recommend_on_record(self._services, auth, body))

    async def ask(self, question: str, ctx: Asked, collection: Name = "default") -> CallToolResult:
        """Answer a question from a collection, with citations, or refuse it honestly."""
        asked = Question(question, collection)
        work = self._services.runner.run(asked, self._verify(ctx))
        result = (await self._explain(ctx, work)).result
        cited = dict.fromkeys(
            one["source"] for claim in result["claims"] for one in claim["citations"]
        )
        texts = [result["answer"], *(["\n".join(cited)] if cited else [])]
        content = [TextContent(type="text", text=one) for one in texts]
        return CallToolResult(content=[*content], structured_content=storable(result))

    async def plan(self, question: str, ctx: Asked, collection: Name = "default") -> dict[str, Any]:
        """Show into which questions and searches a question is taken apart, and run nothing."""
        return await self._do(ctx, lambda auth: self._planned(auth, question, collection))

    async def collections(self, ctx: Asked) -> dict[str, Any]:
        """List the collections in which you may see a document, with the number of those."""
        return {"collections": await self._do(ctx, self._session.catalogue.list_collections)}

    async def _do(self, ctx: Asked, work: Callable[[AuthContext], T]) -> T:
        auth = self._verify(ctx)
        return await self._explain(ctx, self._services.runner.do(auth, lambda: work(auth)))

    async def _explain(self, ctx: Asked, work: Awaitable[T]) -> T:
        """Await work; what goes wrong becomes one line for the client, and never more."""
        try:
            done = await work
        except ToolError:
            raise
        except Exception as error:
            found = explained(error, self._services.settings.data)
            if found is None:
                number = new_id()
                log.exception("unexpected", extra={"id": number})
                raise ToolError(f"something went wrong here; the log names it {number}") from None
            raise ToolError(str(found)) from None
        self._verify(ctx)  # whose key was revoked meanwhile gets nothing
        return done

    def _passages(self, auth: AuthContext, query: str, collection: str, k: int) -> dict[str, Any]:
        found = search_on_record(self._services, auth, query, collection, "hybrid", k)
        described = describe_passages(self._session, found)
        for one, item in zip(described["results"], found.evidence, strict=True):
            name = one["collection"] or collection
            one["id"] = f"{name}/{one['document_id']}#{item.ordinal}"
        return described

    def _document(self, auth: AuthContext, name: str) -> dict[str, Any]:
        catalogue = self._session.catalogue
        known = [one.name for one in catalogue.visible_collections(auth)]
        collection, document_id, place = _place_of(name, known)
        found = catalogue.visible_collection(auth, collection)
        span = (0, 2 * AROUND) if place is None else (place - AROUND, place + AROUND)
        shown = passages_on_record(self._services, auth, found, document_id, span)
        if shown is None or not shown[1]:
            raise ToolError(
                f"there is no such document, or passage, that you may see: {shorten(name)}"
            )
        described, listed = shown
        return {
            "id": name,
            "title": described["title"],
            "text": "\n\n".join(one["text"] for one in listed),
            "url": described["source"],
            "metadata": {**described, "collection": collection, "passages": len(listed)},
        }

    def _planned(self, auth: AuthContext, question: str, collection: str) -> dict[str, Any]:
        context = self._session.context(auth, collection)
        asked = checked_question(question, self._session.settings)
        with context.thinking({"started": context.clock(), "usage": Usage()}):
            found, operations, notes = context.planned(context.reasoner.understand(asked, []))
        return {
            "questions": [one.model_dump() for one in found.questions],
            "operations": [one.model_dump() for one in operations],
            "warnings": [*self._session.warnings, *notes],
        }


def make_mcp(services: AppState, verify: Verify) -> MCPServer[Any]:
    """Return a server of the tools; `verify` says who is behind a request, now."""
    server = McpToolServer(
        "carrel", version=program_version(), instructions=INSTRUCTIONS, log_level="ERROR"
    )
    tools = McpTools(services, verify)
    every = (tools.search, tools.recommend, tools.fetch, tools.ask, tools.plan, tools.collections)
    for tool in every:
        server.add_tool(tool, annotations=READS)
    return server


def _place_of(name: str, known: Sequence[str]) -> tuple[str, str, int | None]:
    """Return the collection, the document and the passage that an id names."""
    path, _, place = name.rpartition("#")
    if not path or not (place.isascii() and place.isdecimal() and len(place) < DIGITS):
        path, place = name, ""
    for one in sorted(known, key=len, reverse=True):
        if path.startswith(f"{one}/"):
            return one, path[len(one) + 1 :], int(place) if place else None
    raise ToolError(
        f"an id is one that `search` gives, COLLECTION/DOCUMENT#PASSAGE: {shorten(name)}"
    )


class McpEndpoint:
    """Answer `/mcp`: check the key of every request, then let the protocol have it."""

    def __init__(self, services: AppState) -> None:
        """Serve without sessions, so that no answer outlives the key it was asked with."""
        self._server = make_mcp(services, _verified)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within the block."""
        # Hosts and origins are checked before every route, by the operator's settings.
        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._server.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=checked
        )
        async with self._server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await caller(Request(scope, receive))
        await self._server.session_manager.handle_request(scope, receive, send)


def _verified(ctx: Asked) -> AuthContext:
    request = ctx.request_context.request
    auth: AuthContext | None = request.scope.get("carrel.caller") if request is not None else None
    if request is None or auth is None:
        raise ToolError("a request needs a key")
    try:
        check_standing(request)
    except CarrelError as error:
        raise ToolError(str(error)) from None
    return auth


def serve_stdio(services: AppState, auth: AuthContext) -> None:
    """Serve one client over stdin and stdout until it leaves."""
    server = make_mcp(services, lambda _: auth)

    async def serve() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await services.runner.stop()

    anyio.run(serve)
