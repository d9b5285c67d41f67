"""The graph for LangGraph Studio: its context, its errors, its threads."""

from __future__ import annotations

import asyncio
import enum
import json
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder, document, write
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

import app.session
import app.studio
from app.studio import StudioError, checkpointer, resumed, studio
from core.budget import Usage
from core.errors import CallerError
from core.operations import Register
from core.profile import Profile
from core.settings import Settings, load_settings
from core.types import Answer, Clarification, Evidence, Plan, Understanding
from graph.build import build_graph
from graph.state import STATE_TYPES, State
from nodes.understand import clear_earlier_run
from stores.lock import OwnerLock
from stores.store import Store

ROOT = Path(__file__).parents[2]
MAINTAINED = "The refund API is maintained by the Payments Gateway team."
TIMEOUT = "The maximum timeout of the refund API is 300 seconds."


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, embedder: FakeEmbedder) -> Iterator[None]:
    """Use the fake embedder, wait for no lock, and give the data back."""
    monkeypatch.setattr(app.session, "open_embedder", lambda settings: embedder)
    monkeypatch.setenv("CARREL_STORAGE__LOCK_WAIT_S", "0")
    # The made-up embedder knows no meaning, so that sentences are less likely to answer.
    monkeypatch.setenv("CARREL_ANSWERING__GRADE_PARTLY", "0.1")
    yield
    studio.close()


@pytest.fixture
def data(tmp_path: Path, embedder: FakeEmbedder) -> Path:
    """Fill the data directory that the environment names, and close it."""
    folder = tmp_path / "data"
    with Store(Settings(data=folder), embedder.model_id, create=True) as store:
        collection = store.intake.open_collection("default", "default", Profile(name="default"))
        rows = [
            document(collection, "team.md", MAINTAINED, title="Refund API"),
            document(collection, "limits.md", TIMEOUT, title="Refund API limits"),
            document(collection, "secret.md", "The vault code is 4711.", acl=["auditor"]),
        ]
        write(store, collection, rows, embedder)
    return folder


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Run turns on one thread, each with a new saver on the same file, as after restarts."""
    monkeypatch.setattr(app.studio, "THREADS", tmp_path / "threads" / "threads.sqlite3")
    thread = {"configurable": {"thread_id": "t"}}

    async def turn(given: Any) -> dict[str, Any]:
        async with checkpointer() as saver:
            compiled = app.studio.graph.copy(update={"checkpointer": saver})
            await compiled.ainvoke(given, thread)
            return dict((await compiled.aget_state(thread)).values)

    return lambda *turns: [asyncio.run(turn(given)) for given in turns]


def ask(question: str, **values: Any) -> dict[str, Any]:
    return app.studio.graph.invoke({"messages": [("user", question)]}, **values)


def test_langgraph_json_names_what_studio_py_holds() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    for target in (config["graphs"]["carrel"], config["checkpointer"], config["store"]):
        path, name = target["path"].split(":")
        assert (ROOT / path).samefile(app.studio.__file__)
        assert hasattr(app.studio, name)
    assert app.studio.graph.checkpointer is None


def test_import_opens_nothing_and_loads_no_model(tmp_path: Path) -> None:
    check = "import sys, app.studio; print([m for m in sys.modules if m in sys.argv])"
    heavy = ["app.session", "chromadb", "onnxruntime", "torch"]
    done = subprocess.run(
        [sys.executable, "-c", check, *heavy], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "data").exists()


def test_drawing_is_that_of_the_application() -> None:
    drawn = app.studio.graph.get_graph().draw_mermaid()
    assert drawn == build_graph().get_graph().draw_mermaid()


def test_answers_from_the_collection_of_the_settings(data: Path) -> None:
    result = ask("Who maintains the refund API?")
    assert "Payments Gateway" in result["messages"][-1].text
    assert result["answer"].claims[0].citations[0].source == "team.md"


def test_a_memory_that_is_off_is_closed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app.studio.store.search(()) == []
    studio.close()
    monkeypatch.setenv("CARREL_MEMORY", "false")
    with pytest.raises(CallerError, match="memory is switched off"):
        app.studio.store.search(())


def test_question_alone_is_answered_and_joins_the_messages(data: Path) -> None:
    result = app.studio.graph.invoke({"question": "Who maintains the refund API?"})
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert result["messages"][0].text == "Who maintains the refund API?"


def test_question_among_the_messages_is_not_repeated(data: Path) -> None:
    question = "Who maintains the refund API?"
    result = app.studio.graph.invoke({"messages": [("user", question)], "question": question})
    assert [message.type for message in result["messages"]] == ["human", "ai"]


def test_a_question_that_is_cleaned_is_not_repeated(data: Path) -> None:
    result = ask("  Who maintains the refund API?\n")
    assert "Payments Gateway" in result["messages"][-1].text
    assert [message.type for message in result["messages"]] == ["human", "ai"]


def test_roles_come_from_the_settings(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("What is the vault code?")["answer"].refused
    studio.close()
    monkeypatch.setenv("CARREL_STUDIO__ROLES", "reader, auditor")
    assert "4711" in ask("What is the vault code?")["answer"].text


def test_client_cannot_give_itself_rights(data: Path) -> None:
    client = {"auth": {"tenant": "default", "roles": ["auditor"]}, "studio_roles": ["auditor"]}
    result = ask("What is the vault code?", context=client, config={"configurable": client})
    assert result["answer"].refused
    assert all(step.auth_filter.get("roles", []) == [] for step in result["trail"])


def test_missing_data_directory_is_explained(tmp_path: Path) -> None:
    with pytest.raises(StudioError, match="there is no data here yet: .*carrel ingest"):
        ask("Who maintains the refund API?")
    assert not (tmp_path / "data").exists()


def test_unknown_collection_is_explained_and_leaves_the_lock_free(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_STUDIO__COLLECTION", "nowhere")
    with pytest.raises(StudioError, match="nowhere"):
        ask("Who maintains the refund API?")
    with OwnerLock(data, wait_s=0):
        pass
    monkeypatch.delenv("CARREL_STUDIO__COLLECTION")
    assert "Payments Gateway" in ask("Who maintains the refund API?")["answer"].text


def test_directory_of_another_process_is_explained(data: Path) -> None:
    with OwnerLock(data, wait_s=0), pytest.raises(StudioError, match="is in use by process"):
        ask("Who maintains the refund API?")


def test_bad_question_is_explained(data: Path) -> None:
    with pytest.raises(StudioError, match="needs at least one word"):
        ask("???")


def test_other_errors_are_not_renamed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app.session.Session, "context", broken)
    with pytest.raises(ZeroDivisionError):
        ask("Who maintains the refund API?")


def test_threads_share_one_session(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[app.session.Session] = []
    make = app.session.Session

    def counted(settings: Settings) -> app.session.Session:
        opened.append(make(settings))
        return opened[-1]

    monkeypatch.setattr(app.session, "Session", counted)
    together = threading.Barrier(4)

    def first(_: int) -> int:
        together.wait()
        return id(studio.context())

    with ThreadPoolExecutor(4) as pool:
        contexts = set(pool.map(first, range(4)))
    assert len(contexts) == 1
    assert len(opened) == 1


def test_every_type_of_the_state_may_be_restored() -> None:
    found: set[type] = set()

    def visit(hint: Any) -> None:
        if isinstance(hint, type) and issubclass(hint, (BaseModel, enum.Enum)):
            found.add(hint)
        for part in typing.get_args(hint):
            visit(part)

    hints = typing.get_type_hints(State, include_extras=False)
    for key, hint in hints.items():
        if key != "messages":  # LangChain's own, always allowed
            visit(hint)
    assert found == set(STATE_TYPES)


def test_second_turn_restores_types_and_starts_clean(
    data: Path, talk: Callable[..., list[dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    followed_up = [{"type": "text", "text": "and who maintains it?"}]
    first, second = talk(
        {"messages": [("user", "What is the maximum timeout of the refund API?")]},
        {"messages": [{"role": "user", "content": followed_up}]},
    )
    assert "300 seconds" in first["messages"][-1].text
    assert "Payments Gateway" in second["messages"][-1].text
    assert len(second["messages"]) == 4
    assert second["query"].question != "and who maintains it?"
    assert [step.node for step in second["trail"]][:2] == ["understand", "retrieve"]
    assert [step.node for step in second["trail"]].count("understand") == 1
    assert second["usage"].steps <= len(second["trail"])
    assert second["drafts"] == 1
    kinds = {"query": Understanding, "plan": Plan, "usage": Usage, "answer": Answer}
    assert all(isinstance(second[key], kind) for key, kind in kinds.items())
    assert all(isinstance(item, Evidence) for item in second["evidence"])
    assert "msgpack" not in caplog.text


def test_question_left_by_the_last_turn_is_not_asked_again(
    data: Path, talk: Callable[..., list[dict[str, Any]]]
) -> None:
    first, second, third = talk(
        {"question": "Who maintains the refund API?"},
        {"messages": [("user", "What is the maximum timeout of the refund API?")]},
        {"question": "Who maintains the refund API?"},
    )
    assert "Payments Gateway" in first["messages"][-1].text
    assert "300 seconds" in second["messages"][-1].text
    assert "Payments Gateway" in third["messages"][-1].text
    assert [message.type for message in third["messages"]] == ["human", "ai"] * 3


def test_refusal_does_not_stick_to_the_thread(
    data: Path, talk: Callable[..., list[dict[str, Any]]]
) -> None:
    first, second = talk(
        {"messages": [("user", "Which zebras paint submarines?")]},
        {"messages": [("user", "Who maintains the refund API?")]},
    )
    assert first["answer"].refused
    assert not second["answer"].refused
    assert "submarines" not in " ".join(step.reason for step in second["trail"])


def test_a_run_that_asks_back_goes_on_with_the_reply(
    data: Path,
    talk: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("CARREL_STUDIO__CLARIFY", "true")
    asked, replied, after = talk(
        {"messages": [("user", "Who maintains it?")]},
        Command(resume="the refund API"),
        {"messages": [("user", "And what is its maximum timeout?")]},
    )
    assert asked["clarification"] == Clarification(question="What do you mean by “it”?")
    assert "answer" not in asked
    assert "Payments Gateway" in replied["messages"][-1].text
    assert replied["clarification"] is None and replied["clarified"] == 1
    nodes = [step.node for step in replied["trail"]]
    assert nodes[:3] == ["understand", "clarify", "understand"]
    assert "300 seconds" in after["messages"][-1].text
    assert after["clarified"] == 0
    assert [step.node for step in after["trail"]].count("understand") == 1
    assert "msgpack" not in caplog.text


def test_cleared_leaves_a_first_run_alone_and_keeps_messages() -> None:
    assert clear_earlier_run({"messages": [HumanMessage("q")], "question": "q"}) == {}
    held: State = {
        "messages": [HumanMessage("q"), AIMessage("a")],
        "registers": {"h1": Register(kind="hits")},
        "done": ["h1"],
        "drafts": 2,
        "rewritten": {"q1": []},
    }
    assert clear_earlier_run(held) == {
        "registers": Overwrite({}),
        "done": [],
        "drafts": 0,
        "rewritten": {},
    }


def test_time_between_nodes_is_not_charged() -> None:
    assert resumed({"question": "q"}, 50.0) == {"question": "q"}
    state: State = {"started": 1.0, "usage": Usage(steps=2, ms=1500)}
    assert resumed(state, 50.0)["started"] == 48.5
    assert state["started"] == 1.0


def test_lists_in_the_environment_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_STUDIO__ROLES", "")
    monkeypatch.setenv("CARREL_EMBEDDING__LANGUAGES", "en, ru")
    loaded, origins = load_settings()
    assert loaded.studio_roles == []
    assert loaded.embedder_languages == ["en", "ru"]
    assert origins["studio.roles"] == "environment"
