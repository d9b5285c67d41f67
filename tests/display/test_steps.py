"""Steps and operations in plain words of a language."""

from __future__ import annotations

import re

import pytest

from core.operations import OPERATIONS, Retrieve
from core.trace import Step
from display.steps import operation_text, shown_step, step_text
from graph.build import NODES
from languages.language import known_languages

LANGUAGES = ("en", "ru", "uk", "zh")


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_names_all_nodes_and_operations_and_fills_its_phrases(code: str) -> None:
    words = known_languages()[code].read("steps")
    assert words["nodes"].keys() == {one.__name__ for one in NODES}
    assert words["operations"].keys() == set(OPERATIONS)
    for known, phrase in words["phrases"].items():
        assert phrase.count("{}") == known.count("{}"), known
        assert not re.search("[A-Z]{3}", phrase)


STEPS = (
    (
        Step(node="plan", decision="2 questions; RETRIEVE h1", reason="q1: Who?; q2: Why?"),
        "q2: Why?",
    ),
    (
        Step(
            node="plan", decision="RETRIEVE h1, RETRIEVE h2", reason='h1 = RETRIEVE(query="a; b")'
        ),
        "",
    ),
    (Step(node="plan", decision="UNION_HITS h", reason="h = UNION_HITS(hits=[h1, h2])"), ""),
    (Step(node="merge_hits", decision="22 hits", reason="UNION_HITS h"), "22"),
    (
        Step(
            node="stop_condition",
            decision="next",
            reason="2 of 3 sub-questions have evidence; next UNION_HITS h, FILTER_CE f",
        ),
        "2",
    ),
    (
        Step(
            node="stop_condition",
            decision="enough",
            reason="enough_evidence: 2 of 2 sub-questions have evidence",
        ),
        "2",
    ),
    (
        Step(node="refuse", decision="no_relevant_evidence", reason="Nothing answers."),
        "Nothing answers.",
    ),
    (
        Step(
            node="retrieve",
            tool="query_records",
            decision="3 found",
            arguments={"where": [{"field": "year", "op": ">", "value": 1900}]},
        ),
        "year > 1900",
    ),
    (Step(node="choose_action", decision="keyword_search"), ""),
)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_step_is_told_without_names_of_the_code(code: str) -> None:
    for step, kept in STEPS:
        shown = shown_step(step, code)
        assert shown["node"] == step.node and shown["decision"] == step.decision
        assert kept in shown["text"] and shown["text"]
        assert not re.search(r"[A-Z]{3}|_", shown["name"] + shown["text"]), shown["text"]


def test_what_a_person_typed_stays_as_it_is() -> None:
    typed = "note: RETRIEVE the 3 parcels; why"
    assert step_text(Step(node="rewrite", decision=typed), "ru") == typed
    search = Retrieve(out="h1", question="q1", query=typed, tools=["search"], top_k=5)
    assert operation_text(search, "en") == f"search · q1 · “{typed}” · all passages"


def test_a_node_or_language_that_is_unknown_is_named_as_it_is() -> None:
    shown = shown_step(Step(node="new_node", decision="4 found"), "xx")
    assert (shown["name"], shown["text"]) == ("new node", "4 found")
