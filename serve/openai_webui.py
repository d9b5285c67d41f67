"""Open WebUI's own events: what the agent does, and each source with its passage."""

from __future__ import annotations

from typing import Any

from serve.openai_sources import Source


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
