"""Search calls that a model words: first ones, rewritten ones, and a passage to search by."""

from __future__ import annotations

from collections.abc import Sequence

from core.budget import current_ledger
from core.settings import Settings
from core.types import Call, Evidence, Rewrite, SubQuestion, ToolSpec
from models.chat.types import ChatModel, ChatReply, ChatRequest, ModelOverflow
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.prompts import (
    as_data,
    evidence_data,
    fits,
    language_name,
    one_line,
    tools_data,
)
from reasoning.llm.replies import Reply, Schema, Unfit, items, one_of, parsed, record, text
from reasoning.question_words import similarity
from reasoning.rules.plan import RECORDS, calls_for, extended, general_tools

SEARCHES = frozenset({"search", "search_vector", "search_text", RECORDS})
MOST_TOOLS = 3  # chosen, not measured


def searches(tools: Sequence[ToolSpec], *, everywhere: bool = False) -> list[ToolSpec]:
    """Return the tools that take a search text: the scoped ones alone, else the general ones.

    `everywhere` gives all of them: a channel alone is worth asking where both together failed.
    """
    found = [spec for spec in tools if spec.base in SEARCHES]
    if everywhere:
        return found
    return [spec for spec in found if spec.scoped] or general_tools(found) or found


def search_fields(offered: Sequence[ToolSpec]) -> dict[str, Schema]:
    """Return the schemas of the fields that name tools and a search text."""
    names = one_of([spec.name for spec in offered])
    return {"tools": items(names, 1, MOST_TOOLS), "query": text()}


def folded(query: str) -> str:
    """Return a text in which only words count."""
    return " ".join(query.casefold().split())


class ProposedSearch:
    """Compile proposed searches of one language to calls of the offered tools."""

    def __init__(self, language: str, offered: Sequence[ToolSpec], decider: Decider) -> None:
        self._language = language
        self._offered = {spec.name: spec for spec in offered}
        self._decider = decider
        self._settings = decider.settings

    def compiled(
        self, query: str, tools: Sequence[str], original: str
    ) -> tuple[str, list[Call], float]:
        """Return the search text, its calls and its similarity to the original; raises Unfit."""
        query, specs, kept = self.checked(query, tools, original)
        calls = []
        for spec in specs:
            # Conditions on records are found in the question's own words, not in key words.
            named = original if spec.base == RECORDS else query
            calls += calls_for(named, self._language, [spec])
        if not calls:
            raise Unfit(f"the question names no field value for {specs[0].name}; take another tool")
        return query, calls, kept

    def similarity(self, original: str, query: str) -> float:
        """Return how much of the original a search text asks for, 0..1."""
        return similarity(original, query, self._language, self._decider.embedder)

    def checked(
        self, query: str, tools: Sequence[str], original: str
    ) -> tuple[str, list[ToolSpec], float]:
        """Return the search text, its tools and its similarity to the original; raises Unfit."""
        query = " ".join(query.split())
        if not query or len(query) > self._settings.answering.max_question_chars:
            raise Unfit("query must hold a few words to search for")
        names = list(dict.fromkeys(tools))
        unknown = [name for name in names if name not in self._offered]
        if unknown:
            raise Unfit(f"no tool is called {unknown[0]}; tools: {', '.join(self._offered)}")
        if not 1 <= len(names) <= MOST_TOOLS:
            raise Unfit(f"tools must name 1 to {MOST_TOOLS} tools")
        kept = self.similarity(original, query)
        if kept < self._settings.answering.drift_similarity:
            raise Unfit(f"the query '{query}' drifts from '{original}' (similarity {kept:.2f})")
        return query, [self._offered[name] for name in names], kept


SNIPPETS, SNIPPET_CHARS = 3, 300  # chosen, not measured


class Rewritten(Reply):
    """Hold the model's other search."""

    query: str
    tools: list[str]


def rewrite_of(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    tools: Sequence[ToolSpec],
    decider: Decider,
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
            earlier="\n".join(f"- {one_line(query)}" for query in earlier),
            question=as_data(question.text),
        )
        return decider.request(prompt, record(**search_fields(offered)))

    def read(answer: ChatReply, _: Sequence[Evidence]) -> Rewrite | None:
        reply = parsed(answer.text, Rewritten)
        if folded(reply.query) in {folded(query) for query in earlier}:
            raise Unfit("the query was searched before; write another one")
        search = ProposedSearch(question.language, offered, decider)
        query, calls, kept = search.compiled(reply.query, reply.tools, question.query)
        return Rewrite(
            query=query,
            calls=[extended(call) for call in calls],
            similarity=round(kept, 3),
            reason="the model's words",
        )

    return Ask("rewrite", make, ReplyReader(read), snippets)


class LlmPassageWriter:
    """Write passages with a chat model; what they say is only ever searched with."""

    def __init__(self, chat: ChatModel, settings: Settings) -> None:
        """Write with `chat`, by the prompts that settings name."""
        self._decider = Decider(chat, settings)

    def write_passage(self, question: str, language: str) -> str:
        """Return a short text, "" when the model was lost before; raises ModelError."""
        if current_ledger().lost:
            return ""
        chat, prompts = self._decider.chat, self._decider.prompts
        named = language_name(language)
        prompt = prompts.text("passage", question=as_data(question), language=named)
        request = self._decider.request(prompt, None)
        if not fits(chat, request):
            raise ModelOverflow("the prompt for a passage does not fit")
        return " ".join(chat.complete(request, verb="passage").text.replace("\x00", "").split())
