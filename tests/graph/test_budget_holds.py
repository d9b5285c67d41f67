"""No run goes beyond a limit by more than one token, or one call of a tool, that had begun."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chat_doubles import scripted_chat
from fakes import FakeEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runs import AUTH, town
from tiers import examples

from core.budget import Budget, current_ledger, price_of
from core.fields.chat import DECISIONS, NULL
from core.settings import Settings
from core.types import Evidence
from graph.build import build_graph
from graph.context import Context
from graph.intercept import intercepted
from reasoning.llm.reasoner import LlmReasoner
from reasoning.rules.reasoner import RulesReasoner
from stores.store import Store
from tools.toolbox import Toolbox
from tools.types import ToolResult

QUESTIONS = (
    "Who publishes the journal Tides?",
    "Who publishes the journal Tides, and when does the Rope Guild meet?",
    "What is the salary of the moon?",
)
PRICES = {"llm_price_prompt": 3000.0, "llm_price_completion": 15_000.0}
REPLIES = ("yes " * 900, '{"claims": [', "A", "ab " * 40 + '{"a": 1}')  # loops, and nonsense


@pytest.fixture
def tools(store: Store, embedder: FakeEmbedder) -> Toolbox:
    return town(store, embedder)


def hard_tools(
    slow: float, rows: int, words: int
) -> tuple[Callable[..., Any], Callable[[], float]]:
    """Return an intercept whose tools take `slow` seconds and find long passages, and its clock."""
    late = [0.0]

    def intercept(name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
        if name != "run":
            return make()
        late[0] += slow
        found: ToolResult = make()
        more = [longer(item, n, words) for item in found.evidence for n in range(rows)]
        return replace(found, evidence=more).within(current_ledger().room)

    return intercept, lambda: time.monotonic() + late[0]


def longer(item: Evidence, number: int, words: int) -> Evidence:
    name = f"{item.chunk_id}{number}"
    text = f"{item.text} {'word ' * words}"
    return item.model_copy(update={"chunk_id": name, "evidence_id": name, "text": text})


budgets = st.builds(
    Budget,
    steps=st.integers(1, 24),
    tool_calls=st.integers(0, 6),
    tokens=st.integers(0, 6000),
    seconds=st.sampled_from([0.5, 2.0, 20.0]),
    cost=st.floats(0, 30),
    answer_share=st.just(0.15),
)


@settings(
    max_examples=examples(500, quick=12),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    budget=budgets,
    question=st.sampled_from(QUESTIONS),
    slow=st.sampled_from([0.0, 0.3, 5.0]),
    rows=st.integers(1, 4),
    words=st.sampled_from([0, 50, 3000]),
    replies=st.none() | st.lists(st.sampled_from(REPLIES), min_size=1, max_size=3),
)
def test_every_limit_holds(
    tools: Toolbox,
    budget: Budget,
    question: str,
    slow: float,
    rows: int,
    words: int,
    replies: list[str] | None,
) -> None:
    chosen = Settings(**PRICES)
    reasoner: Any = RulesReasoner(chosen, tools.term_weights(), None)
    if replies is not None:
        chat = scripted_chat([], **PRICES)
        chat.llm.messages = itertools.cycle(replies)
        reasoner = LlmReasoner(chat, reasoner, chosen, None, frozenset([*DECISIONS, NULL]))
    intercept, clock = hard_tools(slow, rows, words)
    made = Context(AUTH, tools, reasoner, chosen, limits=budget, clock=clock)
    started = time.monotonic()
    state: dict[str, Any] = build_graph().invoke(
        {"question": question},
        context=intercepted(made, intercept),
        config={"recursion_limit": 200},
    )
    own = time.monotonic() - started
    usage, token = state["usage"], price_of(1, 1, made.prices)
    assert state["answer"].text
    assert usage.steps <= budget.steps
    assert usage.tool_calls <= budget.tool_calls
    assert usage.tokens <= budget.tokens + 1
    assert usage.cost <= budget.cost + token
    searched = sum(1 for step in state["trail"] if step.tool)
    beyond = usage.ms / 1000 - budget.seconds
    assert beyond <= max(slow, own) + own  # one call that had begun, and what this machine needs
    if slow > budget.seconds:
        assert searched <= max(1, len(state.get("wave") or []))
