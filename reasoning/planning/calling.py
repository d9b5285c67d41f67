"""Turn a search operation into tool calls, once its query is known."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.detect import detect_language
from core.operations import FilledQuery, MapRetrieve, Retrieve
from core.settings import Settings
from core.types import Call, Part, SubQuestion, ToolSpec
from reasoning.planning.compiler import top_k
from reasoning.planning.slots import filled
from reasoning.rules.plan import calls_for, choose_tools

UNDETERMINED = "und"


def calls_of(
    operation: Retrieve | MapRetrieve,
    question: SubQuestion,
    query: FilledQuery,
    specs: Sequence[ToolSpec],
    settings: Settings,
) -> list[Call]:
    """Return the calls that search for a filled query with the tools of an operation.

    The planner's own calls stand when they ask just that; else conditions on records are read from
    the filled query. Without tools the specs choose; with a value in the query they may add one,
    since the planner chose by the words around the slot.
    """
    language = spoken(question, query)
    planned = [call for call in question.calls if call.tool in operation.tools]
    own = query.query == filled(question.query, {}) and not query.values
    if own and planned and all(call.arguments for call in planned):
        calls = planned
    else:
        calls = calls_for(query.query, language, _tools(operation, query, language, specs))
    if operation.top_k == top_k(settings):
        return calls
    limited = {spec.name for spec in specs if "limit" in spec.arguments.get("properties", {})}
    return [
        call.model_copy(update={"arguments": {**call.arguments, "limit": operation.top_k}})
        if call.tool in limited
        else call
        for call in calls
    ]


def spoken(question: SubQuestion, query: FilledQuery) -> str:
    """Return the language of a question; of a plan file it may have to be detected."""
    if question.language != UNDETERMINED:
        return question.language
    return detect_language(query.query)


def _tools(
    operation: Retrieve | MapRetrieve, query: FilledQuery, language: str, specs: Sequence[ToolSpec]
) -> list[ToolSpec]:
    """Return the named tools; none named, or a value that the planner did not know, adds others."""
    named = [spec for spec in specs if spec.name in operation.tools]
    if named and not (query.values and any(spec.scoped for spec in named)):
        return named
    chosen = choose_tools(Part(text=query.query), language, specs, None)
    return [*named, *[spec for spec in chosen if spec not in named]]
