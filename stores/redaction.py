"""Take the text of deleted documents out of finished runs; question, answer and ids stay."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

TEXTS = ("text", "title", "section")


def redacted(
    result: dict[str, Any], trail: list[dict[str, Any]], documents: Collection[str]
) -> bool:
    """Redact, in place, what these documents said; return whether the run rested on any.

    Evidence keeps its ids and scores, a citation its place in the list. Replies of the chat model
    go as a whole, since they may say what it was shown; so do the values of a plan's slots that
    were found in such a document, wherever the plan and the trail name them.
    """
    gone: set[str] = set()
    for item in result.get("evidence", []):
        if item.get("document_id") in documents:
            gone.add(item["evidence_id"])
            item.update(dict.fromkeys(TEXTS, ""), metadata={})
    for claim in result.get("claims", []):
        for citation in claim.get("citations", []):
            if citation.get("document_id") in documents:
                gone.add(citation["evidence_id"])
                citation.update(quote="", start=0, end=0)
    if not gone:
        return False
    values = _slots(result, gone)
    if values:
        result["plan"] = _without(result["plan"], values)
    for place, step in enumerate(trail):
        for call in step.get("calls", []):
            call["reply"] = ""
        trail[place] = {
            name: _without(value, values) if name in ("arguments", "decision", "reason") else value
            for name, value in step.items()
        }
    return True


def _slots(result: dict[str, Any], gone: set[str]) -> list[str]:
    slots = (result.get("plan") or {}).get("slots") or []
    found = {slot["value"] for slot in slots if slot.get("evidence_id") in gone}
    return sorted((value for value in found if value), key=len, reverse=True)


def _without(value: Any, words: list[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a JSON value whose strings do not say the words."""
    if isinstance(value, dict):
        return {name: _without(inner, words) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, words) for inner in value]
    if isinstance(value, str):
        for word in words:
            value = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "…", value)
    return value
