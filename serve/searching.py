"""One search without a run: the same tools, under the same permissions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from core.auth import AuthContext
from core.budget import TimeLimit, limited_time
from core.metadata import MOST_FILTERS as MOST
from core.metadata import as_texts, parse_filters
from core.question import checked_question, joined_names

if TYPE_CHECKING:
    from app.session import Session
    from serve.services import AppState
    from stores.sqlite.catalogue import Collection
    from tools.types import ToolResult

Span = tuple[int, int]


SearchName = Literal["hybrid", "linked", "vector", "keyword", "classic"]
SEARCHES: tuple[SearchName, ...] = get_args(SearchName)
TOOLS: dict[SearchName, str] = {
    "hybrid": "search",
    "linked": "search",
    "vector": "search_vector",
    "keyword": "search_text",
    "classic": "search_classic",
}
RESULT_KEYS = (
    *("document_id", "source", "chunk_id", "score", "text", "title", "section", "page"),
    *("language", "version", "updated_at", "scores", "metadata", "collection"),
)


def describe_passages(session: Session, found: ToolResult) -> dict[str, Any]:
    """Return the passages of a search as {"results": […], "warnings": […]}."""
    results = [item.model_dump() for item in found.evidence]
    return {
        "results": [{key: item[key] for key in RESULT_KEYS} for item in results],
        "warnings": [*session.warnings, *found.notes],
    }


def find_passages(
    session: Session,
    auth: AuthContext,
    query: str,
    collection: str,
    name: SearchName,
    k: int | None,
    where: Sequence[str] = (),
) -> ToolResult:
    """Return up to `k` passages, best first, with the notes and steps of the search.

    `retrieval.top_k` says how many where `k` does not.
    """
    text = checked_question(query, session.settings)
    deadline = time.monotonic() + session.settings.budget.seconds
    with limited_time(TimeLimit(deadline)):
        tools = session.tools(auth, collection, where)
        k = tools.settings.retrieval.top_k if k is None else k
        arguments: dict[str, Any] = {"query": text, "limit": k}
        if TOOLS[name] == "search":
            arguments["links"] = name == "linked" or tools.settings.links.channel
        found = tools.run(TOOLS[name], arguments, auth, deadline)
    return replace(found, evidence=found.evidence[:k])


def search_on_record(
    services: AppState,
    auth: AuthContext,
    query: str,
    collection: str,
    name: SearchName,
    k: int,
    where: Sequence[str] = (),
) -> ToolResult:
    """Return what `find_passages` finds, and write it into the audit log."""
    found = find_passages(services.session, auth, query, collection, name, k, where)
    services.audit.record(
        "retrieval",
        auth,
        tool=TOOLS[name],
        collection=collection,
        filter=auth.narrowed(parse_filters(list(where))).describe(),
        evidence=[one.chunk_id for one in found.evidence],
        **services.audit.question(query),
    )
    return found


def passages_on_record(
    services: AppState, auth: AuthContext, collection: Collection, document_id: str, span: Span
) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """Return a document that the caller may see and its passages, and write that into the log.

    `span` holds the numbers of the first passage and of the last. None where the caller sees none.
    """
    document = services.catalogue.describe_document(auth, collection, document_id)
    if document is None:
        return None
    listed = services.catalogue.list_passages(auth, collection, document_id, *span)
    services.audit.record(
        "retrieval",
        auth,
        tool="passages",
        collection=collection.name,
        evidence=[one["chunk_id"] for one in listed],
        filter=auth.describe(),
        **services.audit.log.document(document_id),
    )
    return document, listed


def _join_names(given: object) -> object:
    named = [given] if isinstance(given, str) else given
    if isinstance(named, list) and named and all(isinstance(one, str) for one in named):
        return joined_names(named)
    return given


def _filters(given: object) -> object:
    return as_texts(given) if isinstance(given, dict) else given


TEXT = {"type": "string"}

# One name, several joined by commas, or a list of names.
Collections = Annotated[
    str,
    BeforeValidator(_join_names),
    WithJsonSchema(
        {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}], "default": "default"}
    ),
]
# Texts such as "date>=2020", or an object of fields with the values they must have.
Filters = Annotated[
    list[str],
    Field(max_length=MOST),
    BeforeValidator(_filters),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": TEXT, "maxItems": MOST},
                {"type": "object", "additionalProperties": True, "maxProperties": MOST},
            ],
            "description": "Filters that documents must meet: FIELD=VALUE, != < <= > >= ~.",
        }
    ),
]
