"""The tools of the Model Context Protocol through its official client, over HTTP and stdio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from serving import Served

QUESTION = "How high is the candle flame?"
SECRET = "What is the budget of the museum?"
TOOLS = {"recommend", "search", "fetch", "ask", "plan", "collections"}


@asynccontextmanager
async def client(served: Served, kind: str) -> AsyncIterator[ClientSession]:
    headers = served.headers[kind]
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(f"{served.url}/mcp", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield session


def call(served: Served, kind: str, tool: str, **given: Any) -> CallToolResult:
    async def run() -> CallToolResult:
        async with client(served, kind) as session:
            found = await session.call_tool(tool, given)
            assert isinstance(found, CallToolResult)
            return found

    return anyio.run(run)


def text_of(found: CallToolResult) -> str:
    return "\n".join(one.text for one in found.content if isinstance(one, TextContent))


def test_the_tools_say_what_they_take(served: Served) -> None:
    async def run() -> None:
        async with client(served, "reader") as session:
            listed = (await session.list_tools()).tools
            assert {one.name for one in listed} == TOOLS
            assert all(one.description for one in listed)
            assert all(one.annotations and one.annotations.read_only_hint for one in listed)

    anyio.run(run)


def test_an_answer_begins_with_its_text(served: Served) -> None:
    found = call(served, "reader", "ask", question=QUESTION, collection="guide")
    assert text_of(found).startswith("The maximum height of the candle flame is 42 mm.")
    assert found.structured_content is not None
    assert found.structured_content["claims"][0]["citations"][0]["source"] == "candle.md"
    assert "candle.md" in text_of(found)


def test_what_is_found_can_be_fetched(served: Served) -> None:
    found = call(served, "reader", "search", query="candle flame", collection="guide", k=1)
    assert found.structured_content is not None
    [first] = found.structured_content["results"]
    whole = call(served, "reader", "fetch", id=first["id"]).structured_content
    assert whole is not None and whole["title"] == "Candles"
    assert "melted wax" in whole["text"] and whole["url"] == "candle.md"
    plain = call(served, "reader", "fetch", id=first["id"].rpartition("#")[0]).structured_content
    assert plain is not None and plain["text"] == whole["text"]


def test_the_only_collection_needs_no_name(served: Served) -> None:
    assert "42 mm" in text_of(call(served, "reader", "ask", question=QUESTION))
    found = call(served, "editor", "search", query="candle")  # who sees two of them
    assert found.is_error and "closed" in text_of(found)


def test_a_plan_runs_nothing(served: Served) -> None:
    found = call(served, "reader", "plan", question=QUESTION, collection="guide")
    assert found.structured_content is not None
    assert [one["text"] for one in found.structured_content["questions"]] == [QUESTION[:-1]]


def test_each_caller_gets_what_they_may_read(served: Served) -> None:
    names = {}
    for kind in ("reader", "editor", "other tenant"):
        found = call(served, kind, "collections").structured_content
        assert found is not None
        names[kind] = {one["name"] for one in found["collections"]}
    assert names["editor"] >= {"closed", "guide"}
    assert "closed" not in names["reader"] | names["other tenant"]
    told = text_of(call(served, "editor", "ask", question=SECRET, collection="closed"))
    assert "900 euros" in told
    passage = call(served, "editor", "search", query="budget", collection="closed", k=1)
    assert passage.structured_content is not None
    name = passage.structured_content["results"][0]["id"]
    for kind in ("reader", "other tenant"):
        for tool, given in (
            ("ask", {"question": SECRET, "collection": "closed"}),
            ("search", {"query": "budget", "collection": "closed"}),
            ("recommend", {"need": "budget", "collection": "closed"}),
            ("fetch", {"id": name}),
        ):
            refused = call(served, kind, tool, **given)
            assert refused.is_error
            assert "900" not in text_of(refused)


def test_callers_at_once_are_kept_apart(served: Served) -> None:
    def asked(kind: str) -> str:
        question = "How many tunnels does a mole dig?" if kind == "other tenant" else QUESTION
        return text_of(call(served, kind, "ask", question=question, collection="guide"))

    kinds = ["reader", "other tenant"] * 4
    with ThreadPoolExecutor(8) as pool:
        for kind, told in zip(kinds, pool.map(asked, kinds), strict=True):
            assert ("eleven" in told) == (kind == "other tenant")
            assert ("42 mm" in told) == (kind == "reader")


@pytest.mark.parametrize("kind", ["no key", "wrong key", "revoked", "expired"])
def test_nobody_gets_in_without_a_key(served: Served, kind: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with served.client(kind) as http:
        answer = http.post("/mcp", json=body, headers={"Accept": "application/json"})
    assert answer.status_code == 401
    assert "tools" not in answer.text


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("ask", {"question": ""}, "question"),
        ("ask", {"question": 7}, "question: Input should be a valid string"),
        ("search", {"query": "x", "k": 0}, "k: Input should be greater than or equal to 1"),
        ("search", {"query": "x", "collection": "none"}, "the collection must exist: none"),
        ("fetch", {"id": "nothing"}, "an id is one that `search` gives"),
        ("fetch", {"id": "guide/none.md"}, "there is no such document, or passage"),
        ("fetch", {"id": "guide/candle.md#999"}, "there is no such document, or passage"),
        ("fetch", {"id": f"guide/candle.md#{'9' * 30}"}, "there is no such document"),
        ("nothing", {}, "nothing"),
    ],
)
def test_bad_input_gets_one_line(
    served: Served, tool: str, given: dict[str, Any], says: str
) -> None:
    found = call(served, "reader", tool, **given)
    assert found.is_error
    assert says in text_of(found) and "\n" not in text_of(found)


def listing(name: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", "id": ' + name + b', "method": "tools/list"}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        *((body, -32700) for body in (b"", b"{", b"\xff\xfe", b"[" * 9000, listing(b"9" * 5000))),
        *((body, -32600) for body in (b"[]", b"null", b'{"jsonrpc": "1.0"}', listing(b"{}"))),
        *((listing(name), -32600) for name in (b"NaN", b"1e999", b"1.5", b"null", b"true", b"[1]")),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}', -32600),
        (b"[" + listing(b"1") + b"]", -32600),
    ],
)
def test_garbage_is_refused_in_one_line(served: Served, body: bytes, code: int) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with served.client("reader") as http:
        answer = http.post("/mcp", content=body, headers=headers)
        assert http.get("/mcp", headers=headers).status_code == 405
    found = answer.json()
    assert answer.status_code == 400 and found["id"] is None
    assert found["error"]["code"] == code and "\n" not in found["error"]["message"]
    assert not call(served, "reader", "collections").is_error


def test_over_stdio_the_local_user_asks_without_a_key(library: Path) -> None:
    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "carrel", "mcp", "--data", str(library)],
            env=dict(os.environ),
        )
        async with stdio_client(command) as streams, ClientSession(*streams) as session:
            await session.initialize()
            assert {one.name for one in (await session.list_tools()).tools} == TOOLS
            listed = (await session.call_tool("collections", {})).structured_content
            assert listed is not None
            name = listed["collections"][0]["name"]
            given = {"question": "What is this about?", "collection": name}
            assert not (await session.call_tool("ask", given)).is_error

    anyio.run(run)


def test_garbage_over_stdio_is_answered_and_the_next_message_too(library: Path) -> None:
    command = [sys.executable, "-m", "carrel", "mcp", "--data", str(library)]
    lines = b"{\n[]\n\xff\xfe\n" + b"[" * 9000 + b"\n" + listing(b"7") + b"\n"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(lines)
        running.stdin.flush()
        answers = [json.loads(running.stdout.readline()) for _ in range(5)]
        running.stdin.close()
    refused = [one for one in answers if one["id"] is None]
    codes = [one["error"]["code"] for one in refused]
    assert codes == [-32700, -32600, -32700, -32700]  # only the second is JSON
    assert {one["id"] for one in answers} == {None, 7}
