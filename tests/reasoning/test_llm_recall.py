"""The memory agent's next action, chosen by a model or by the rules in its place."""

from __future__ import annotations

from llm_doubles import thinking

from core.recall import NOTE, RecallState
from core.types import Call, Evidence


def note(name: str, text: str) -> Evidence:
    ids = dict.fromkeys(("evidence_id", "chunk_id", "document_id", "document_key"), name)
    return Evidence(**ids, source="talk", title="", text=text, kind=NOTE)


NOTES = [note("n1", "My name is Olena."), note("n2", "My sister is Anna.")]
EMPTY = RecallState(question="What is my name?", language="en")
FOUND = EMPTY.model_copy(
    update={
        "found": [["n2", "n1"]],
        "trajectory": [Call(tool="keyword_search", arguments={"query": "my name"})],
    }
)


def chosen(state: RecallState, notes: list[Evidence], *replies: dict[str, object]) -> Call:
    reasoner, _ = thinking(*replies)
    return reasoner.recall(state, notes)


def test_a_model_searches_reads_and_ends() -> None:
    search = {"action": "semantic_search", "query": " my  name ", "notes": []}
    assert chosen(EMPTY, [], search) == Call(tool="semantic_search", arguments={"query": "my name"})
    read = {"action": "read_memory", "query": "", "notes": [2, 2]}
    assert chosen(FOUND, NOTES, read) == Call(tool="read_memory", arguments={"note_ids": ["n1"]})
    end = {"action": "final_answer", "query": "", "notes": []}
    assert chosen(FOUND, NOTES, end) == Call(tool="final_answer")


def test_what_was_done_before_or_names_nothing_is_asked_again() -> None:
    again = {"action": "keyword_search", "query": "my name", "notes": []}
    nothing = {"action": "read_memory", "query": "", "notes": []}
    end = {"action": "final_answer", "query": "", "notes": []}
    assert chosen(FOUND, NOTES, again, end) == Call(tool="final_answer")
    assert chosen(FOUND, NOTES, nothing, end) == Call(tool="final_answer")


def test_the_rules_choose_where_a_model_fails() -> None:
    bad = {"action": "delete", "query": "x", "notes": []}
    assert chosen(EMPTY, [], *[bad] * 4).tool == "keyword_search"
