"""Chat completions, complete or in chunks, as OpenAI clients read them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from serve.protocols.openai.sources import (
    Source,
    footer,
    marks_of,
    search_results,
    sources_of,
    unloaded,
    url_citations,
)

KEPT = ("conversation_id", "clarification")  # of a run within a conversation


def used(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tokens that chat models took; without a model there are none."""
    calls = [call for step in steps for call in step.get("calls", [])]
    prompt = sum(call["prompt_tokens"] for call in calls)
    written = sum(call["completion_tokens"] for call in calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": sum(call["cached_tokens"] for call in calls)},
    }


@dataclass(frozen=True)
class Cited:
    """Hold what an answer shows beside its text, and the text that ends it."""

    footer: str
    annotations: list[dict[str, Any]]
    beside: dict[str, Any]


def cited(text: str, result: dict[str, Any], *, with_footer: bool) -> Cited:
    """Return the citations of a text that holds the result's answer."""
    sources = sources_of(result)
    beside = {
        "citations": [source.url for source in sources],
        "search_results": search_results(sources),
        "carrel": {
            name: result[name]
            for name in ("run_id", "refused", "stop_reason", "missing", "warnings")
        }
        | {name: result[name] for name in KEPT if "conversation_id" in result},
    }
    marks = marks_of(text, result, sources)
    return Cited(footer(sources) if with_footer else "", url_citations(marks, sources), beside)


@dataclass(frozen=True)
class Completion:
    """Name one completion and make its pieces."""

    model: str
    with_usage: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(
        self, result: dict[str, Any], steps: Sequence[dict[str, Any]], *, with_footer: bool
    ) -> dict[str, Any]:
        """Return the completion of a finished run."""
        said = unloaded(result["answer"])
        shown = cited(said, result, with_footer=with_footer)
        message = {
            "role": "assistant",
            "content": said + shown.footer,
            "refusal": None,
            "annotations": shown.annotations,
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": used(steps),
            **shown.beside,
        }

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return one chunk of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._chunk([choice])

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk that holds only an event of Open WebUI."""
        return {**self._chunk([]), "event": event}

    def usage(self, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the chunk that says what the run took."""
        return {**self._chunk([]), "usage": used(steps)}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        chunk = {**self._head("chat.completion.chunk"), "choices": choices}
        # With usage asked for, OpenAI says in every chunk but the last that it has none.
        return {**chunk, "usage": None} if self.with_usage else chunk

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def status(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step as a line of status."""
    said = ": ".join(part for part in (step["node"], step.get("reason", "")) if part)
    return {"type": "status", "data": {"description": said, "done": False}}


def finished(stop_reason: str) -> dict[str, Any]:
    """Return the status that ends the steps."""
    return {"type": "status", "data": {"description": stop_reason, "done": True}}


def source(found: Source) -> dict[str, Any]:
    """Return a source with its passage; the page numbers sources in the order they come."""
    name = " · ".join(part for part in (found.title, found.place) if part)
    metadata: dict[str, Any] = {"source": found.chunk_id, "name": name}
    if found.page is not None:
        metadata["page"] = found.page - 1  # that page counts from 0
    return {
        "type": "source",
        "data": {
            "source": {"id": found.chunk_id, "name": name, "url": found.url},
            "document": [found.text],
            "metadata": [metadata],
            "distances": [found.score],
        },
    }
