"""Any valid plan, whatever its shape and texts, runs to an end within its budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fakes import FakeEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runs import TEXTS, run_plan, town
from random_plans import valid_plans
from tiers import examples

from core.types import Plan
from stores.store import Store
from tools.toolbox import Toolbox

WORDS = sorted({word for text in TEXTS.values() for word in text.split()})


@pytest.fixture
def tools(store: Store, embedder: FakeEmbedder) -> Toolbox:
    return town(store, embedder)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    valid_plans(),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.integers(0, 12),
    st.sampled_from(["union", "intersect"]),
    st.integers(1, 90),
    st.sets(st.integers(0, 4)),
)
def test_any_plan_ends_within_its_budget(
    tools: Toolbox,
    plan: Plan,
    found: Sequence[str],
    calls: int,
    merge: str,
    steps: int,
    listed: set[int],
) -> None:
    bare = [
        question.model_copy(
            update={
                "calls": [],
                "text": f"{found[0]} {question.text}",
                "wants": "list" if place in listed else "text",
            }
        )
        for place, question in enumerate(plan.questions)
    ]
    state = run_plan(
        tools,
        Plan(questions=bare),
        finds={question.id: found for question in bare},
        merge=merge,
        budget_tool_calls=calls,
        budget_steps=steps,
    )
    assert state["answer"].text
    assert state["usage"].tool_calls <= calls
    made = {operation.out for operation in state["operations"]}
    assert set(state["done"]) <= made and set(state["registers"]) <= made
    asked = [step for step in state["trail"] if step.tool]
    assert {step.auth_filter["tenant"] for step in asked} <= {"acme"}
    assert all("Mallory" not in item.text for item in state["evidence"])
    for item in state["evidence"]:
        assert all(0 <= grade <= 3 for grade in item.grades.values())
