"""States of conversations in PostgreSQL: one is kept, and of it no more than is to be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from postgres_server import new_catalogue

from graph.threads import Threads, copy_states, open_threads


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[Threads]:
    opened = open_threads(tmp_path, new_catalogue())
    yield opened
    opened.close()


def put(threads: Threads, name: str, number: int, **values: Any) -> str:
    versions: dict[str, str | int | float] = {key: number for key in values}
    checkpoint = empty_checkpoint() | {"id": f"{number:04}", "channel_values": values}
    config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    saved = threads.saver.put(
        config, checkpoint | {"channel_versions": versions}, {"step": number}, versions
    )
    return str(saved["configurable"]["checkpoint_id"])


def state(threads: Threads, name: str) -> dict[str, Any]:
    found = threads.saver.get_tuple({"configurable": {"thread_id": name}})
    return {} if found is None else found.checkpoint["channel_values"]


def rows(threads: Threads, table: str) -> int:
    with threads.saver._cursor() as cursor:
        return int(cursor.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])


def test_a_run_that_answered_leaves_its_messages_alone(threads: Threads) -> None:
    messages = [HumanMessage("Who?"), AIMessage("Ann.")]
    put(threads, "t", 1, question="Who?", evidence=[{"text": "found"}])
    last = put(
        threads, "t", 2, messages=messages, evidence=[{"text": "found"}], answer={"text": "Ann."}
    )
    assert state(threads, "t") == {"messages": messages}
    assert threads.latest("t") == last
    threads.keep("t", last)
    assert (rows(threads, "checkpoints"), rows(threads, "checkpoint_blobs")) == (1, 1)


def test_one_thread_goes_and_the_others_stay(threads: Threads) -> None:
    for name in "ab":
        put(threads, name, 1, messages=[HumanMessage(name)], answer={})
    threads.delete("a")
    assert threads.latest("a") == "" and state(threads, "b")["messages"] == [HumanMessage("b")]
    assert not threads.can_resume("a", waits=False) and threads.can_resume("b", waits=False)
    assert not threads.can_resume("b", waits=True)
    assert threads.latest("b") == ""


def test_a_graph_that_asks_back_goes_on_from_another_process(tmp_path: Path) -> None:
    class Seen(TypedDict, total=False):
        reply: str

    def ask(seen: Seen) -> Seen:
        return {"reply": interrupt("which one?")}

    graph = StateGraph(Seen)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    url, config = new_catalogue(), {"configurable": {"thread_id": "t"}}
    first = open_threads(tmp_path, url)
    graph.compile(checkpointer=first.saver).invoke({}, config)
    first.keep("t", first.latest("t"))
    first.close()
    second = open_threads(tmp_path, url)
    assert second.can_resume("t", waits=True)
    done = graph.compile(checkpointer=second.saver).invoke(Command(resume="the lamp"), config)
    assert done["reply"] == "the lamp"
    second.close()


def test_states_move_there_and_back_with_what_waits(tmp_path: Path) -> None:
    here, there = (tmp_path / "here", "sqlite"), (tmp_path, new_catalogue())
    here[0].mkdir()
    first = open_threads(*here)
    last = put(first, "t", 1, messages=[HumanMessage("Who?")], answer={"text": "Ann."})
    asks = put(first, "w", 2, question="Which?", clarification={"text": "which one?"})
    waits = {"configurable": {"thread_id": "w", "checkpoint_ns": "", "checkpoint_id": asks}}
    first.saver.put_writes(waits, [("__interrupt__", "which one?")], "task")
    bad = put(first, "bad", 3, messages=[HumanMessage("x")], answer={})
    with first.saver.cursor() as cursor:
        cursor.execute("UPDATE checkpoints SET checkpoint = 'x' WHERE thread_id = 'bad'")
    first.close()
    named = {"t": last, "w": asks, "bad": bad, "gone": "0009"}
    assert copy_states(here, there, named) == ["bad", "gone"]
    back = (tmp_path / "back", "sqlite")
    back[0].mkdir()
    for _ in range(2):  # the second time it is all there
        assert copy_states(there, back, named) == ["bad", "gone"]
    for place in (there, back):
        found = open_threads(*place)
        assert state(found, "t") == {"messages": [HumanMessage("Who?")]}
        assert (found.latest("t"), found.latest("w")) == (last, asks)
        assert state(found, "w")["question"] == "Which?"
        assert found.can_resume("w", waits=True)
        found.close()
