"""Call the tools that one search of the plan names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from core.budget import Room, Usage
from core.errors import CallerError
from core.language.detect import UNDETERMINED, detect_language
from core.language.scan import estimate_tokens, words_replaced
from core.operations import FilledQuery, MapRetrieve, Retrieve, SearchHits, searched
from core.settings import Settings
from core.trace import Step
from core.types import Call, Evidence, Part, SubQuestion, ToolSpec
from graph.context import Context, beside
from graph.reading import Search, operation_of, queries_of, register
from graph.state import State, Update
from reasoning.planning.compiler import SEARCHES, top_k
from reasoning.planning.slots import filled, one_line, slots_in
from reasoning.rules.plan import calls_for, choose_tools
from tools.types import ToolResult


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
    language = choose_language(question, query)
    planned = [call for call in question.calls if call.tool in operation.tools]
    own = query.query == filled(question.query, {}) and not query.values
    if own and planned and all(call.arguments for call in planned):
        calls = planned
    else:
        calls = calls_for(query.query, language, _tools(operation, query, language, specs))
        calls = [*_of_record(planned, query), *calls]
    if operation.top_k == top_k(settings):
        return calls
    limited = {spec.name for spec in specs if "limit" in spec.arguments.get("properties", {})}
    return [
        call.model_copy(update={"arguments": {**call.arguments, "limit": operation.top_k}})
        if call.tool in limited
        else call
        for call in calls
    ]


def _of_record(planned: Sequence[Call], query: FilledQuery) -> list[Call]:
    """Return the planned calls for a record that a slot names, now that its value is known."""
    values = {slot: one_line(value.value) for slot, value in query.values.items()}
    asked = [(one, str(one.arguments["named"])) for one in planned if "named" in one.arguments]
    return [
        call.model_copy(update={"arguments": call.arguments | {"named": filled(name, values)}})
        for call, name in asked
        if set(slots_in(name)) & set(values)
    ]


def choose_language(question: SubQuestion, query: FilledQuery) -> str:
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


NO_QUERY = "no query: what it would ask with was not found"
NO_REWRITE = "no call: the rewrite drifts from the question"
REMEMBERED = "the result of an earlier search"
REMEDY = "carrel reindex"
STALE = "some passages were withheld, since the index changed while it was searched; ask again"
NO_BUDGET = "no call: the budget of tool calls is used up"
NO_TIME = "no call: the time for searching is used up"


def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Run the calls of a search within the budget; each leaves a step with its filter."""
    context = runtime.context
    operation = operation_of(state)
    if not isinstance(operation, SEARCHES):
        raise TypeError(f"{operation.op} is no search")
    known = {item.chunk_id for item in state.get("evidence") or []}
    found: list[SearchHits] = []
    evidence: list[Evidence] = []
    steps: list[Step] = []
    warnings: list[str] = []
    tokens = dropped = made = 0
    deadline = context.deadline(state["started"])
    most = context.budget.tokens_for(state["usage"], answering=False) // beside(state)
    # A search may let the chat model write a passage; what that costs is charged here.
    with context.thinking(state) as ledger:
        asked, why = _asked(state, operation, context)
        for branch, call in asked:
            began, before = context.clock(), len(ledger.calls)
            if began > deadline:
                why = NO_TIME
                break
            made += 1
            ledger.room = Room(most - tokens - ledger.spent, known)
            result, notes = _run(call, context, deadline)
            warnings += notes
            new = [item for item in result.evidence if item.chunk_id not in known]
            tokens += sum(estimate_tokens(item.text) for item in new)
            dropped += result.dropped
            known |= {item.chunk_id for item in new}
            evidence += result.evidence
            found.append(
                SearchHits(branch=branch, chunk_ids=[one.chunk_id for one in result.evidence])
            )
            values = _step_values(operation.question, call, result)
            steps.append(context.step("retrieve", began, calls=ledger.calls[before:], **values))
    if not steps:
        steps.append(
            Step(node="retrieve", decision="no call", reason=why, question_id=operation.question)
        )
    warnings += ledger.notes
    usage = context.spent(state["started"], ledger)
    searched_now = Usage(tool_calls=made, tokens=tokens, dropped=dropped, ms=usage.ms)
    return {
        "evidence": evidence,
        "registers": {operation.out: searched(register(state, operation.out), found)},
        "usage": usage.plus(searched_now),
        "trail": steps,
        "warnings": list(dict.fromkeys(warnings)),
    }


def _run(call: Call, context: Context, deadline: float) -> tuple[ToolResult, list[str]]:
    """Return what a call found, nothing where it was refused, and what the reader must know."""
    try:
        result = context.tools.run(call.tool, call.arguments, context.auth, deadline)
    except CallerError as error:
        # One refused call must not end the run: the others may still find the answer.
        return ToolResult(auth_filter=context.auth.describe()), [f"{call.tool}: {error}"]
    stale = [f"{call.tool}: {STALE}"] if result.hidden else []
    # Whoever asks can mend an index of another model, and no other reason for keywords.
    return result, [*stale, *(one for one in result.notes if REMEDY in one)]


def _asked(state: State, operation: Search, context: Context) -> tuple[list[tuple[int, Call]], str]:
    """Return the calls with the query each belongs to, and why there is none."""
    queries = queries_of(state, operation)
    question = state["plan"].question(operation.question)
    specs = context.tools.specs(context.auth)
    rewritten = (state.get("rewritten") or {}).get(operation.out)
    if rewritten is not None:
        chosen = (state.get("chosen") or {}).get(question.id, queries)[:1]
        branch = queries.index(chosen[0]) if chosen and chosen[0] in queries else 0
        asked, why = [(branch, call) for call in rewritten], NO_REWRITE
    else:
        asked = context.seen(
            "calls",
            (operation, question, queries),
            lambda: [
                (branch, call)
                for branch, query in enumerate(queries)
                for call in calls_of(operation, question, query, specs, context.settings)
            ],
        )
        why = NO_QUERY
    typed = {meant: word for word, meant in state["query"].corrected.items()}
    takes = {spec.name for spec in specs if "also" in spec.arguments.get("properties", {})}
    asked = [(branch, _filtered(call, question)) for branch, call in asked]
    asked = [(n, _also(call, typed) if call.tool in takes else call) for n, call in asked]
    share = _share(state, operation, context)
    return asked[:share], why if not asked else NO_BUDGET


def _filtered(call: Call, question: SubQuestion) -> Call:
    """Keep a planned search's filters in a call that was made again, for a rewrite or a value."""
    for planned in question.calls:
        where = planned.arguments.get("where")
        texts = isinstance(where, list) and where and all(isinstance(one, str) for one in where)
        if texts and planned.tool == call.tool and "where" not in call.arguments:
            return call.model_copy(update={"arguments": {**call.arguments, "where": where}})
    return call


def _also(call: Call, typed: Mapping[str, str]) -> Call:
    """Let a search of corrected words look for what was typed as well."""
    query = str(call.arguments.get("query", ""))
    own = words_replaced(query, typed)
    also = {"also": [own]} if own != query else {}
    return call.model_copy(update={"arguments": {**call.arguments, **also}})


def _share(state: State, operation: Search, context: Context) -> int:
    """Return how many calls this search may make: those left, dealt out among the wave."""
    left = context.budget.calls_left(state["usage"])
    wave = state["wave"]
    return left // len(wave) + (wave.index(operation.out) < left % len(wave))


def _step_values(question_id: str, call: Call, result: ToolResult) -> dict[str, Any]:
    return {
        "decision": f"{len(result.evidence)} found",
        "reason": "; ".join([*([REMEMBERED] if result.remembered else []), *result.notes]),
        "question_id": question_id,
        "tool": call.tool,
        "arguments": call.arguments,
        "auth_filter": result.auth_filter,
        "evidence": [(item.evidence_id, round(item.score, 4)) for item in result.evidence],
        "stages": result.stages,
        "partial": result.partial,
    }
