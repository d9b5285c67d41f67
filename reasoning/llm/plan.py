"""Ask the model for a plan: questions that may wait for each other, each with its search."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Plan, ToolSpec, Understanding
from models.chat.types import ChatRequest
from models.embeddings import Embedder
from reasoning.llm.data import one_line, tools_data
from reasoning.llm.deciding import Ask, Decider, WholeReply
from reasoning.llm.proposal import Planned, Proposal, most_questions
from reasoning.llm.replies import parsed
from reasoning.llm.schemas import Schema, items, one_of, record, text
from reasoning.llm.searching import search_fields, searches
from reasoning.llm.understand import WANTS

PLAN_REPAIRS = 1  # times that an invalid plan is asked for again, within llm.repairs

SLOT = "^[a-z_]{0,24}$"  # "" for none: servers enforce a pattern more widely than a choice of types


def plan_of(
    understanding: Understanding,
    tools: Sequence[ToolSpec],
    decider: Decider,
    embedder: Embedder | None,
) -> Ask[str, Plan]:
    """Return what to ask for questions that together find everything that is asked."""
    offered = searches(tools)
    settings = decider.settings
    least, most = len(understanding.parts), most_questions(understanding, settings)
    parts = "\n".join(
        f"{n}. {one_line(part.search_text)}" for n, part in enumerate(understanding.parts, start=1)
    )

    def make(_: Sequence[str]) -> ChatRequest:
        prompt = decider.prompts.text(
            "decompose", tools=tools_data(offered), parts=parts, limit=str(most), slot="{team}"
        )
        schema = _several_schema(least, most, settings.plan.in_degree, offered)
        # Each question is written twice: as it is asked, and as it is searched for.
        return decider.request(prompt, schema, 2 * settings.llm.decision_tokens)

    def read(said: str, _: Sequence[str]) -> Plan:
        reply = parsed(said, Planned)
        return Proposal(understanding, offered, decider, embedder).plan(reply)

    return Ask("plan", make, WholeReply(read), repairs=PLAN_REPAIRS)


def _several_schema(least: int, most: int, deps: int, offered: Sequence[ToolSpec]) -> Schema:
    ids = one_of([f"q{place}" for place in range(1, most + 1)])
    question = record(
        id=ids,
        text=text(),
        deps=items(ids, most=deps),
        slot=text(SLOT),
        wants=one_of([*WANTS, "list"]),
        **search_fields(offered),
    )
    return record(questions=items(question, least, most))
