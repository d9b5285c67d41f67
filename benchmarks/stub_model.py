"""A stub of a chat model at a realistic speed: what it writes keeps to the schema, no more.

It stands for llama-server with several slots. A reply takes `FIRST_SECONDS`, the time to read the
prompt, and then `PER_SECOND` tokens each second; requests beyond `SLOTS` wait. Whole numbers and
choices are drawn by a hash of the prompt, claims are sentences of the evidence it was shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

SLOTS = 16
FIRST_SECONDS = 0.2
READ_PER_SECOND = 4000
PER_SECOND = 60
CONTEXT = 16_384
TOKEN = 4  # characters
EVIDENCE = re.compile(r"<evidence[^>]*>\n(.*?)\n</evidence>", re.DOTALL)
QUESTION = re.compile(r"<question>\n(.*?)\n</question>", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")

slots = asyncio.Semaphore(SLOTS)


def instance(schema: dict[str, Any], prompt: str, path: str = "") -> Any:  # noqa: ANN401
    """Return a value that keeps to one of Carrel's schemas."""
    if "enum" in schema:
        chosen = hashlib.sha256(f"{path}{prompt}".encode()).digest()[0]
        return schema["enum"][chosen % len(schema["enum"])]
    kind = schema.get("type")
    if kind == "object":
        return {
            name: instance(inner, prompt, f"{path}/{name}")
            for name, inner in schema["properties"].items()
        }
    if kind == "array":
        least = max(1, schema.get("minItems", 1)) if not path.endswith("/deps") else 0
        return [instance(schema["items"], prompt, f"{path}/{n}") for n in range(least)]
    if "pattern" in schema:
        return ""
    return words(prompt, path)


def words(prompt: str, path: str) -> str:
    """Return a sentence of the evidence for a claim or a value, else the question."""
    shown = EVIDENCE.findall(prompt)
    if shown and ("claims" in path or "values" in path):
        return str(SENTENCE_END.split(shown[0].strip())[0])[:200]
    asked = QUESTION.findall(prompt)
    return str(asked[-1]) if asked else "yes"


async def completions(request: Request) -> Response:
    """Write a reply at the speed of a model, streamed where that is asked for."""
    body = await request.json()
    prompt = "\n".join(str(message.get("content")) for message in body["messages"])
    form = body.get("response_format") or {}
    schema = form.get("schema") or form.get("json_schema", {}).get("schema")
    said = json.dumps(instance(schema, prompt), ensure_ascii=False) if schema else "yes"
    if "Task: ANSWER" in (last := str(body["messages"][-1].get("content"))):
        said = f"{words(last, 'claims')} [1]"
    said = said[: TOKEN * int(body.get("max_tokens") or CONTEXT)]
    pieces = [said[at : at + TOKEN] for at in range(0, len(said), TOKEN)]
    read = len(prompt) // TOKEN
    usage = {"prompt_tokens": read, "completion_tokens": len(pieces)}
    usage["total_tokens"] = sum(usage.values())
    if body.get("stream"):
        return StreamingResponse(_events(pieces, read, usage), media_type="text/event-stream")
    async with slots:
        await asyncio.sleep(_reading(read) + len(pieces) / PER_SECOND)
    message = {"role": "assistant", "content": said}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return JSONResponse({"id": "1", "model": "stub", "choices": [choice], "usage": usage})


async def _events(pieces: list[str], read: int, usage: dict[str, int]) -> AsyncIterator[str]:
    async with slots:
        await asyncio.sleep(_reading(read))
        for piece in pieces:
            yield _line([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
            await asyncio.sleep(1 / PER_SECOND)
    yield _line([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    yield _line([], usage=usage)
    yield "data: [DONE]\n\n"


def _line(choices: list[dict[str, Any]], **more: Any) -> str:  # noqa: ANN401  # fields of JSON
    chunk = {"id": "1", "object": "chat.completion.chunk", "choices": choices, **more}
    return f"data: {json.dumps(chunk)}\n\n"


def _reading(tokens: int) -> float:
    return FIRST_SECONDS + tokens / READ_PER_SECOND


async def models(request: Request) -> Response:
    """List the one model."""
    return JSONResponse({"object": "list", "data": [{"id": "stub", "object": "model"}]})


async def props(request: Request) -> Response:
    """Say what llama-server says of itself."""
    size = {"n_ctx": CONTEXT}
    return JSONResponse({"total_slots": SLOTS, "default_generation_settings": size})


async def tokenize(request: Request) -> Response:
    """Count tokens by characters."""
    text = str((await request.json()).get("content", ""))
    return JSONResponse({"tokens": list(range(len(text) // TOKEN))})


async def health(request: Request) -> Response:
    """Say that it is there."""
    return JSONResponse({"status": "ok"})


def make_app() -> Starlette:
    """Return the stub as an application."""
    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/props", props),
            Route("/tokenize", tokenize, methods=["POST"]),
            Route("/health", health),
        ]
    )


@contextlib.contextmanager
def stub_model() -> Iterator[list[str]]:
    """Serve the stub on a free port from a thread; give the settings that use it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(make_app(), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        yield [f"llm_url=http://127.0.0.1:{bound.getsockname()[1]}/v1", "reasoner=auto"]
        server.should_exit = True
        thread.join()
