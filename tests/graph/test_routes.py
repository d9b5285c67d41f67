"""The edges, as tables."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from core.types import Answer, Understanding
from graph import routes
from graph.routes import MAX_DRAFTS, after_stop_condition, after_understand, after_verify
from graph.state import Outcome


def understanding(kind: str) -> Understanding:
    return Understanding.model_construct(kind=kind)


@pytest.mark.parametrize(("kind", "target"), [("plain", "retrieve"), ("multi", "plan")])
def test_after_understand(kind: str, target: str) -> None:
    assert after_understand({"query": understanding(kind)}) == target


OUTCOMES = {"enough": "generate", "weak": "rewrite", "next": "plan", "never": "refuse"}


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_after_stop_condition(outcome: Outcome) -> None:
    assert after_stop_condition({"outcome": outcome}) == OUTCOMES[outcome]


@pytest.mark.parametrize(
    ("state", "target"),
    [
        ({"answer": Answer(text="yes"), "drafts": 1}, "__end__"),
        ({"answer": Answer(text="yes"), "drafts": 9}, "__end__"),
        ({"drafts": 1}, "generate"),
        ({"answer": None, "drafts": 1}, "generate"),
        ({"drafts": MAX_DRAFTS}, "refuse"),
        ({"drafts": 9}, "refuse"),
        ({}, "generate"),
    ],
)
def test_after_verify(state, target: str) -> None:
    assert after_verify(state) == target


@pytest.mark.parametrize("route", [after_understand, after_stop_condition, after_verify])
def test_every_route_names_its_targets_and_changes_nothing(route) -> None:
    from graph.build import NODES

    targets = get_args(get_type_hints(route, vars(routes))["return"])
    assert set(targets) <= {node.__name__ for node in NODES} | {"__end__"}
    state = {"query": understanding("plain"), "outcome": "weak", "drafts": 1}
    before = dict(state)
    assert route(state) in targets
    assert state == before
