"""Users of a load test: each searches and asks, thinks a while, and goes on."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

COLLECTION = "corpus"
TIMEOUT = 120.0
SHED = (429, 503)

Action = Literal["search", "chat", "stream"]


@dataclass(frozen=True)
class Done:
    """Hold one request: when it began (seconds), how long it took, its status, its user."""

    action: Action
    at: float
    ms: float
    status: int
    user: int
    first_ms: float = 0.0
    outcome: str = ""


@dataclass
class Load:
    """Describe a load: who asks what, and how often."""

    url: str
    questions: Sequence[str]
    think_seconds: float
    searches: float = 0.5
    done: list[Done] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        """Return the seconds since the load began."""
        return time.monotonic() - self.began


async def user(load: Load, number: int, key: str, until: float) -> None:
    """Search and ask like one person until the time is over."""
    draw = random.Random(number)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(
        base_url=load.url, headers=headers, timeout=TIMEOUT, verify=False
    ) as client:
        await asyncio.sleep(draw.uniform(0, load.think_seconds))
        while load.now < until:
            kind: Action = "search"
            if draw.random() >= load.searches:
                kind = draw.choice(("chat", "stream"))
            question = draw.choice(load.questions)
            load.done.append(await request(load, client, number, kind, question))
            await asyncio.sleep(draw.uniform(0.5, 1.5) * load.think_seconds)


async def flooder(load: Load, number: int, key: str, at_once: int, until: float) -> None:
    """Ask without a pause, `at_once` requests side by side, until the time is over."""
    draw = random.Random(number)
    headers = {"Authorization": f"Bearer {key}"}

    async def one(client: httpx.AsyncClient) -> None:
        while load.now < until:
            done = await request(load, client, number, "chat", draw.choice(load.questions))
            load.done.append(done)
            if done.status in SHED:
                await asyncio.sleep(1)  # it obeys Retry-After, if only just

    async with httpx.AsyncClient(
        base_url=load.url, headers=headers, timeout=TIMEOUT, verify=False
    ) as client:
        await asyncio.gather(*(one(client) for _ in range(at_once)))


async def request(
    load: Load, client: httpx.AsyncClient, number: int, action: Action, question: str
) -> Done:
    """Send one request and read all of its answer; a broken connection has the status 0."""
    began, at, first = time.perf_counter(), load.now, 0.0
    status, outcome = 0, ""
    try:
        if action == "search":
            body: dict[str, Any] = {"query": question, "collection": COLLECTION}
            response = await client.post("/api/v1/search", json=body)
            status = response.status_code
        elif action == "chat":
            body = {"question": question, "collection": COLLECTION}
            response = await client.post("/api/v1/chat", json=body)
            status = response.status_code
            outcome = str(response.json().get("stop_reason", ""))
        else:
            body = {"question": question, "collection": COLLECTION, "stream": True}
            async with client.stream("POST", "/api/v1/chat", json=body) as streamed:
                status = streamed.status_code
                kind = ""
                async for line in streamed.aiter_lines():
                    first = first or (time.perf_counter() - began) * 1000
                    if line.startswith("event: "):
                        kind = line.removeprefix("event: ")
                    elif line.startswith("data: ") and kind == "result":
                        outcome = json.loads(line.removeprefix("data: "))["stop_reason"]
                    elif kind == "error":
                        status = 500
                if status == 200 and not outcome:
                    status = 0
    except httpx.HTTPError as error:
        outcome = type(error).__name__
    ms = (time.perf_counter() - began) * 1000
    return Done(action, at, ms, status, number, first, outcome)
