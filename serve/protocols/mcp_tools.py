"""Tools of the Model Context Protocol: search, recommend, fetch, ask, plan, collections.

They are the same over stdio, where the local user asks, and over HTTP at `/mcp`, where every
request carries a key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import anyio
import pydantic_core
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    TextContent,
    ToolAnnotations,
)
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from core.auth import AuthContext
from core.budget import Usage
from core.distribution import program_version
from core.errors import CarrelError, shorten
from core.question import checked_question
from serve.api.recommend import RecommendRequest, recommend_on_record
from serve.errors import explained, new_id
from serve.protocols.openai_schemas import DEFAULT_COLLECTION
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
Name = Annotated[
    str, Field(description="Name of a collection; without one `default`, or the only one.")
]
FORM = (
    "a message is one JSON-RPC 2.0 object: a text as its method, an object as its params,"
    " and as its id a text or a whole number"
)


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
        collection: Name = "",
        k: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> dict[str, Any]:
        """Find the passages of a collection that fit a query best, the best first."""

        def found(auth: AuthContext) -> dict[str, Any]:
            return self._passages(auth, query, self._named(auth, collection), k)

        return await self._do(ctx, found)

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
        collection: Name = "",
        k: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 10,
    ) -> dict[str, Any]:
        """Recommend the documents that meet a need (projects, books …), with cited reasons."""

        def work(auth: AuthContext) -> dict[str, Any]:
            named = self._named(auth, collection)
            body = RecommendRequest(need=need, collection=named, k=k)
            return recommend_on_record(self._services, auth, body)

        return await self._do(ctx, work)

    async def ask(self, question: str, ctx: Asked, collection: Name = "") -> CallToolResult:
        """Answer a question from a collection, with citations, or refuse it honestly."""
        name = collection or await self._do(ctx, lambda auth: self._named(auth, ""))
        work = self._services.runner.run(Question(question, name), self._verify(ctx))
        result = (await self._explain(ctx, work)).result
        cited = dict.fromkeys(
            one["source"] for claim in result["claims"] for one in claim["citations"]
        )
        texts = [result["answer"], *(["\n".join(cited)] if cited else [])]
        content = [TextContent(type="text", text=one) for one in texts]
        return CallToolResult(content=[*content], structured_content=storable(result))

    async def plan(self, question: str, ctx: Asked, collection: Name = "") -> dict[str, Any]:
        """Show into which questions and searches a question is taken apart, and run nothing."""

        def planned(auth: AuthContext) -> dict[str, Any]:
            return self._planned(auth, question, self._named(auth, collection))

        return await self._do(ctx, planned)

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

    def _named(self, auth: AuthContext, name: str) -> str:
        known = [] if name else self._session.catalogue.visible_collections(auth)
        return known[0].name if len(known) == 1 else name or DEFAULT_COLLECTION

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
        request = Request(scope, receive)
        await caller(request)
        if scope["method"] == "GET":  # a stream that would never say anything, without sessions
            await JSONResponse(_refused("POST is what is answered here"), 405)(scope, receive, send)
            return
        body = await request.body() if scope["method"] == "POST" else b""
        if scope["method"] == "POST" and (code := _fault(body)):
            await JSONResponse(_refused(FORM, code), 400)(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self._server.session_manager.handle_request(scope, again, send)


def _fault(body: bytes) -> int:
    """Return the code of what is wrong with a message, 0 for nothing.

    One whose id is of another type would be answered by silence.
    """
    try:
        found = pydantic_core.from_json(body)
    except ValueError:
        return PARSE_ERROR
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        return INVALID_REQUEST
    name = found.get("id", "")
    good = isinstance(name, int | str) and not isinstance(name, bool)
    if "method" in found:
        params = found.get("params", {})
        good = good and isinstance(found["method"], str) and isinstance(params, dict)
    else:
        good = good and ("result" in found or "error" in found)
    return 0 if good else INVALID_REQUEST


def _refused(rule: str, code: int = INVALID_REQUEST) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": rule}}


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


class _Answered:
    """Read messages, and answer what is none, which the protocol's own loop is silent about."""

    def __init__(self, read: Any, write: Any) -> None:  # noqa: ANN401 - streams of the protocol
        self._read, self._write = read, write

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as of the stream
        return getattr(self._read, name)

    async def receive(self) -> SessionMessage:
        while True:
            found: SessionMessage | Exception = await self._read.receive()
            if isinstance(found, SessionMessage):
                return found
            kinds = (
                [one["type"] for one in found.errors()]
                if isinstance(found, ValidationError)
                else []
            )
            code = PARSE_ERROR if "json_invalid" in kinds else INVALID_REQUEST
            data = ErrorData(code=code, message=FORM)
            error = JSONRPCError(jsonrpc="2.0", id=None, error=data)
            await self._write.send(SessionMessage(error))

    def __aiter__(self) -> _Answered:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Answered:
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *given: Any) -> None:  # noqa: ANN401 - as Python gives them
        await self._read.__aexit__(*given)


def serve_stdio(services: AppState, auth: AuthContext) -> None:
    """Serve one client over stdin and stdout until it leaves."""
    server = make_mcp(services, lambda _: auth)

    async def serve() -> None:
        try:
            async with stdio_server() as (read, write):
                inner = server._lowlevel_server  # as its own `run_stdio_async` has it
                given = inner.create_initialization_options()
                await inner.run(_Answered(read, write), write, given)
        finally:
            await services.runner.stop()

    anyio.run(serve)
