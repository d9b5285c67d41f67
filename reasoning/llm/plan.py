"""Plan and rewrite searches: the model names tools and a search text, code makes the calls."""

from __future__ import annotations

from collections.abc import Sequence

from core.tool_spec import ToolSpec
from core.types import Call, Evidence, Plan, Rewrite, SubQuestion, Understanding
from models.chat.types import ChatRequest
from models.embeddings import Embedder
from reasoning.drift import similarity
from reasoning.llm.data import as_data, evidence_data, tools_data
from reasoning.llm.deciding import Ask, Decider, WholeReply
from reasoning.llm.replies import Reply, Unfit, parsed
from reasoning.llm.schemas import Schema, items, number, one_of, record, text
from reasoning.rules.plan import RECORDS, calls_for, general_tools
from reasoning.rules.rewrite import extended

SEARCHES = frozenset({"search", "search_vector", "search_text", RECORDS})
MOST_TOOLS = 3
SNIPPETS, SNIPPET_CHARS = 3, 300


class PlannedStep(Reply):
    """Hold the search for one part as the model gives it."""

    part: int
    tools: list[str]
    query: str


class Planned(Reply):
    """Hold the model's plan."""

    steps: list[PlannedStep]


class Rewritten(Reply):
    """Hold the model's other search."""

    query: str
    tools: list[str]


def searches(tools: Sequence[ToolSpec], *, everywhere: bool = False) -> list[ToolSpec]:
    """Return the tools that take a search text: the scoped ones alone, else the general ones.

    `everywhere` gives all of them: a channel alone is worth asking where both together failed.
    """
    found = [spec for spec in tools if spec.base in SEARCHES]
    if everywhere:
        return found
    return [spec for spec in found if spec.scoped] or general_tools(found) or found


def plan_of(
    understanding: Understanding,
    tools: Sequence[ToolSpec],
    decider: Decider,
    embedder: Embedder | None,
) -> Ask[str, Plan]:
    """Return what to ask for a search of every part."""
    offered = searches(tools)
    parts = understanding.parts
    listed = [f"{n}. {as_data(part.search_text)}" for n, part in enumerate(parts, start=1)]

    def make(_: Sequence[str]) -> ChatRequest:
        prompt = decider.prompts.text("plan", tools=tools_data(offered), parts="\n".join(listed))
        return decider.request(prompt, _plan_schema(len(parts), offered))

    def read(said: str, _: Sequence[str]) -> Plan:
        steps = {step.part: step for step in parsed(said, Planned).steps}
        if sorted(steps) != list(range(1, len(parts) + 1)):
            raise Unfit(f"steps must hold one step for each part, 1 to {len(parts)}")
        search = _Search(understanding.language, offered, decider, embedder)
        return Plan(
            questions=[
                _question(n, understanding, steps[n], search) for n in range(1, len(parts) + 1)
            ]
        )

    return Ask("plan", make, WholeReply(read))


def _question(
    place: int, understanding: Understanding, step: PlannedStep, search: _Search
) -> SubQuestion:
    part = understanding.parts[place - 1]
    wants = understanding.required_fields[place - 1]
    query, calls, _ = search.compiled(step.query, step.tools, part.search_text)
    return SubQuestion(
        id=f"q{place}",
        text=part.text,
        about=part.about,
        query=query,
        language=understanding.language,
        wants="list" if understanding.intent == "recommend" else wants,
        calls=calls,
    )


def rewrite_of(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    tools: Sequence[ToolSpec],
    decider: Decider,
    embedder: Embedder | None,
) -> Ask[Evidence, Rewrite | None]:
    """Return what to ask for another search."""
    offered = searches(tools, everywhere=True)
    asked = [str(call.arguments.get("query", "")) for call in question.calls]
    earlier = list(dict.fromkeys([question.query, *asked, *(item.query for item in evidence)]))
    earlier = [query for query in earlier if query]
    snippets = [
        item.model_copy(update={"text": item.text[:SNIPPET_CHARS]}) for item in evidence[:SNIPPETS]
    ]

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        prompt = decider.prompts.text(
            "rewrite",
            tools=tools_data(offered),
            evidence=evidence_data(shown) or "(nothing was found)",
            earlier="\n".join(f"- {as_data(query)}" for query in earlier),
            question=as_data(question.text),
        )
        return decider.request(prompt, record(**_search_fields(offered)))

    def read(said: str, _: Sequence[Evidence]) -> Rewrite | None:
        reply = parsed(said, Rewritten)
        if _folded(reply.query) in {_folded(query) for query in earlier}:
            raise Unfit("the query was searched before; write another one")
        search = _Search(question.language, offered, decider, embedder)
        query, calls, kept = search.compiled(reply.query, reply.tools, question.query)
        return Rewrite(
            query=query,
            calls=[extended(call) for call in calls],
            similarity=round(kept, 3),
            reason="the model's words",
        )

    return Ask("rewrite", make, WholeReply(read), snippets)


class _Search:
    """Check a proposed search and compile it to calls."""

    def __init__(
        self,
        language: str,
        offered: Sequence[ToolSpec],
        decider: Decider,
        embedder: Embedder | None,
    ) -> None:
        self._language = language
        self._offered = {spec.name: spec for spec in offered}
        self._settings = decider.settings
        self._embedder = embedder

    def compiled(
        self, query: str, tools: Sequence[str], original: str
    ) -> tuple[str, list[Call], float]:
        """Return the search text, its calls and its similarity to the original; raises Unfit."""
        query = " ".join(query.split())
        if not query or len(query) > self._settings.max_question_chars:
            raise Unfit("query must hold a few words to search for")
        names = list(dict.fromkeys(tools))
        unknown = [name for name in names if name not in self._offered]
        if unknown:
            raise Unfit(f"no tool is called {unknown[0]}; tools: {', '.join(self._offered)}")
        if not 1 <= len(names) <= MOST_TOOLS:
            raise Unfit(f"tools must name 1 to {MOST_TOOLS} tools")
        kept = similarity(original, query, self._language, self._embedder)
        if kept < self._settings.drift_similarity:
            raise Unfit(f"the query '{query}' drifts from '{original}' (similarity {kept:.2f})")
        calls = []
        for name in names:
            # Conditions on records are found in the question's own words, not in key words.
            spec = self._offered[name]
            named = original if spec.base == RECORDS else query
            calls += calls_for(named, self._language, [spec])
        if not calls:
            raise Unfit(f"the question names no field value for {names[0]}; take another tool")
        return query, calls, kept


def _plan_schema(parts: int, offered: Sequence[ToolSpec]) -> Schema:
    step = record(part=number(1, parts), **_search_fields(offered))
    return record(steps=items(step, parts, parts))


def _search_fields(offered: Sequence[ToolSpec]) -> dict[str, Schema]:
    names = one_of([spec.name for spec in offered])
    return {"tools": items(names, 1, MOST_TOOLS), "query": text()}


def _folded(query: str) -> str:
    return " ".join(query.casefold().split())
