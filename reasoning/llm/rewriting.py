"""Rewrite a search that found too little: the model names tools and another search text."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Evidence, Rewrite, SubQuestion, ToolSpec
from models.chat.types import ChatRequest
from models.embeddings import Embedder
from reasoning.llm.data import as_data, evidence_data, one_line, tools_data
from reasoning.llm.deciding import Ask, Decider, WholeReply
from reasoning.llm.replies import Reply, Unfit, parsed
from reasoning.llm.schemas import record
from reasoning.llm.searching import ProposedSearch, folded, search_fields, searches
from reasoning.rules.rewrite import extended

SNIPPETS, SNIPPET_CHARS = 3, 300


class Rewritten(Reply):
    """Hold the model's other search."""

    query: str
    tools: list[str]


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
            earlier="\n".join(f"- {one_line(query)}" for query in earlier),
            question=as_data(question.text),
        )
        return decider.request(prompt, record(**search_fields(offered)))

    def read(said: str, _: Sequence[Evidence]) -> Rewrite | None:
        reply = parsed(said, Rewritten)
        if folded(reply.query) in {folded(query) for query in earlier}:
            raise Unfit("the query was searched before; write another one")
        search = ProposedSearch(question.language, offered, decider, embedder)
        query, calls, kept = search.compiled(reply.query, reply.tools, question.query)
        return Rewrite(
            query=query,
            calls=[extended(call) for call in calls],
            similarity=round(kept, 3),
            reason="the model's words",
        )

    return Ask("rewrite", make, WholeReply(read), snippets)
