"""One search without a run: the same tools, under the same permissions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from core.auth import AuthContext
from core.question import checked_question
from core.time_limit import TimeLimit, limited_time

if TYPE_CHECKING:
    from graph.session import Session

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


def searched(
    session: Session,
    auth: AuthContext,
    query: str,
    collection: str,
    name: SearchName,
    k: int,
    where: Sequence[str] = (),
) -> dict[str, Any]:
    """Return up to `k` passages, best first, as {"results": […], "warnings": […]}."""
    text = checked_question(query, session.settings)
    deadline = time.monotonic() + session.settings.budget_seconds
    with limited_time(TimeLimit(deadline)):
        tools = session.tools(auth, collection, where)
        arguments: dict[str, Any] = {"query": text, "limit": k}
        if TOOLS[name] == "search":
            arguments["links"] = name == "linked" or tools.settings.channel_links
        found = tools.run(TOOLS[name], arguments, auth, deadline)
    results = [item.model_dump() for item in found.evidence[:k]]
    return {
        "results": [{key: item[key] for key in RESULT_KEYS} for item in results],
        "warnings": [*session.warnings, *found.notes],
    }
