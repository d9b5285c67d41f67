"""Conversations kept by LangGraph's checkpointer: what goes on, what is forgotten, what never was.

Each turn is answered as a run of its own would be that is given the turns before it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from fakes import document
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.sqlite import SqliteSaver
from talks import AUTH, begin, filled, reopening, say
from tiers import examples

from app.session import Session
from core.auth import AuthContext
from core.errors import AbsentError, CallerError, OperatorError, StorageUnavailableError
from core.trace import RunRecord, Step
from graph.threads import MESSAGES, THREADS, StateDamagedError, ThreadSaver, explained_threads
from models.chat.types import ModelCancelled
from reasoning.types import Turn

AUDITOR = AuthContext(tenant="default", user="ann", roles=frozenset({"auditor"}))
MAINTAINED = "The refund API is maintained by the Payments Gateway team."
TIMEOUT = "The maximum timeout of the refund API is 300 seconds."
VAULT = "The code of the vault is Marigold."
NOTHING = "Which zebras paint submarines?"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Session]]:
    data = filled(
        tmp_path_factory.mktemp("talk") / "data",
        lambda main: [
            document(main, "team.md", MAINTAINED, title="Refund API"),
            document(main, "limits.md", TIMEOUT, title="Refund API limits"),
            document(main, "secret.md", VAULT, title="Vault", acl=["auditor"]),
        ],
    )
    # A remembered search has no stages.
    with reopening(data, **{"caching.result_minutes": 0}) as again:
        yield again


@pytest.fixture
def session(opened: Callable[[], Session]) -> Session:
    return opened()


def rows(session: Session, name: str) -> list[tuple[Any, ...]]:
    """Return the stored states of a thread, and the writes that belong to them."""
    with closing(sqlite3.connect(session.store.folder / THREADS)) as connection:
        return [
            *connection.execute(
                "SELECT checkpoint_id, checkpoint FROM checkpoints WHERE thread_id = ?", (name,)
            ),
            *connection.execute("SELECT channel, value FROM writes WHERE thread_id = ?", (name,)),
        ]


def state_of(session: Session, name: str) -> dict[str, Any]:
    found = session.asking.threads.saver.get_tuple({"configurable": {"thread_id": name}})
    return {} if found is None else dict(found.checkpoint["channel_values"])


def plain(run: RunRecord) -> dict[str, Any]:
    """Return what a run decided, without its id, its times and its conversation."""

    def timeless(step: Step) -> dict[str, Any]:
        stages = [stage.model_copy(update={"ms": 0.0}) for stage in step.stages]
        return step.model_copy(update={"ms": 0.0, "stages": stages}).model_dump()

    result = {k: v for k, v in run.result.items() if k not in ("run_id", "conversation_id")}
    result["usage"] = {k: v for k, v in result["usage"].items() if k != "ms"}
    return {"result": result, "trail": [timeless(step) for step in run.trail]}


SAID = [
    "Who maintains the refund API?",
    "What is the maximum timeout of the refund API?",
    "and who maintains it?",
    "Who maintains the refund API? And what is its maximum timeout?",
    "and the timeout?",
    NOTHING,
    "Who maintains it?",
]


@settings(
    max_examples=examples(12, quick=4), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.lists(st.tuples(st.sampled_from(SAID), st.booleans()), min_size=1, max_size=5))
def test_a_turn_is_as_good_as_a_run_with_the_same_history(
    session: Session, said: list[tuple[str, bool]]
) -> None:
    """Whatever was found, refused or broken off before leaves nothing but the messages."""
    name, history = begin(session), list[Turn]()
    for text, breaks_off in said:
        if breaks_off:
            with pytest.raises(ModelCancelled):
                say(session, name, SAID[1], on_step=breaking("grade_documents"))
        turn = say(session, name, text)
        alone = session.ask(text, AUTH, "main", history=history)
        assert plain(turn) == plain(alone)
        history.append(Turn(text, turn.result["answer"]))
        assert set(state_of(session, name)) == {"messages"}
        assert len(rows(session, name)) == 1
    kept = session.store.runs.load_conversation(AUTH, name)
    turns = session.store.runs.turns(AUTH, kept)
    assert [Turn(one["question"], one["answer"]) for one in turns] == history


def breaking(node: str) -> Callable[[Step], None]:
    def on_step(step: Step) -> None:
        if step.node == node:
            raise ModelCancelled("given up")

    return on_step


@pytest.mark.parametrize("node", ["understand", "retrieve", "stop_condition", "generate", "verify"])
@pytest.mark.parametrize("error", [ModelCancelled("given up"), KeyboardInterrupt()])
def test_a_run_that_is_broken_off_leaves_the_conversation_as_it_was(
    session: Session, node: str, error: BaseException
) -> None:
    name = begin(session)
    say(session, name, SAID[0])
    before = rows(session, name)

    def on_step(step: Step) -> None:
        if step.node == node:
            raise error

    with pytest.raises(type(error)):
        say(session, name, SAID[1], on_step=on_step)
    assert rows(session, name) == before
    assert session.store.runs.load(AUTH, "last").result["stop_reason"] == "cancelled"
    after = say(session, name, "and who maintains it?")
    assert after.trail[0].arguments["history"] == 1
    kept = session.store.runs.load_conversation(AUTH, name)
    assert kept.turns == 2


@pytest.mark.parametrize("of", ["catalogue", "threads"])
def test_a_full_disk_swallows_no_answer(session: Session, of: str) -> None:
    """The answer is given, and the conversation is as if it had not been asked."""
    name = begin(session)
    say(session, name, SAID[0])
    before = session.store.runs.load_conversation(AUTH, name), rows(session, name)
    with pytest.MonkeyPatch.context() as patched:
        if of == "catalogue":
            patched.setattr(session.store.runs, "save_turn", full)
        else:
            patched.setattr(SqliteSaver, "put", full_threads)
        run = say(session, name, SAID[1])
    assert "300 seconds" in run.result["answer"]
    assert "does not know this turn" in run.result["warnings"][-1]
    assert session.store.runs.load(AUTH, run.run_id).result == run.result
    kept = session.store.runs.load_conversation(AUTH, name), rows(session, name)
    assert kept == before
    assert say(session, name, "and its timeout?").trail[0].arguments["history"] == 1


def test_an_error_of_the_catalogue_during_a_run_is_told(session: Session) -> None:
    name = begin(session)
    with (
        pytest.MonkeyPatch.context() as patched,
        pytest.raises(StorageUnavailableError, match="disk is full"),
    ):
        patched.setattr("tools.toolbox.Toolbox.run", full)
        say(session, name, SAID[0])
    assert rows(session, name) == []


def full(*_: object, **__: object) -> None:
    raise StorageUnavailableError("database or disk is full")


def full_threads(self: ThreadSaver, *_: object, **__: object) -> None:
    with explained_threads(self._path):
        raise sqlite3.OperationalError("database or disk is full")


def test_it_goes_on_after_a_restart(opened: Callable[[], Session]) -> None:
    first = opened()
    name = begin(first)
    say(first, name, SAID[0])
    second = opened()
    run = say(second, name, "and what is its maximum timeout?")
    assert "300 seconds" in run.result["answer"]


def test_what_was_taken_away_is_not_served_again(session: Session) -> None:
    name = begin(session)
    told = say(session, name, "What is the code of the vault?", auth=AUDITOR)
    assert "Marigold" in told.result["answer"]
    again = say(session, name, "What is the code of the vault?")
    more = say(session, name, "and what is its code?")
    for run in (again, more):
        assert run.result["refused"]
        assert "Marigold" not in run.model_dump_json()
    (_, blob), *_ = rows(session, name)
    assert b"Marigold" not in blob  # nor the answer that was given to somebody with the role


def test_states_stay_small_and_messages_bounded(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.threads.MESSAGES", 5)
    name = begin(session)
    for _ in range(6):
        say(session, name, SAID[0])
    messages = state_of(session, name)["messages"]
    assert [message.type for message in messages] == ["human", "ai"] * 2
    assert len(rows(session, name)) == 1
    assert MESSAGES >= 4 * 50  # messages of a turn × the most turns that a history may have


@pytest.mark.parametrize(
    ("auth", "name"),
    [
        (AuthContext(tenant="default", user="bob"), None),
        (AuthContext(tenant="other", user="ann"), None),
        (AUTH, "0" * 32),
        (AUTH, "%"),
    ],
)
def test_only_its_owner_finds_it(session: Session, auth: AuthContext, name: str | None) -> None:
    with pytest.raises(AbsentError):
        say(session, name or begin(session), SAID[0], auth=auth)


def test_it_keeps_to_its_collection(session: Session) -> None:
    name = begin(session)
    with pytest.raises(CallerError, match="keeps to its collection"):
        session.ask(SAID[0], AUTH, "other", conversation=name)
    assert not session.ask(SAID[0], AUTH, "main", conversation=name).result["refused"]


def test_a_forged_state_runs_nothing(session: Session, tmp_path: Path) -> None:
    """A10: whoever can write the file must not run code of their choice."""
    name, marker = begin(session), tmp_path / "ran"
    say(session, name, SAID[0])
    touch = f"touch {marker}"
    for code, call in enumerate((("os", "system", touch), ("os", "system", [touch]))):
        forged = ormsgpack.packb(
            {
                **{"v": 4, "id": "x", "ts": "", "versions_seen": {}, "channel_versions": {}},
                "channel_values": {"messages": [ormsgpack.Ext(code, ormsgpack.packb(call))]},
            }
        )
        with closing(sqlite3.connect(session.store.folder / THREADS)) as connection, connection:
            connection.execute(
                "UPDATE checkpoints SET type = 'msgpack', checkpoint = ? WHERE thread_id = ?",
                (forged, name),
            )
        saver = session.asking.threads.saver
        with pytest.raises(StateDamagedError):
            saver.get_tuple({"configurable": {"thread_id": name}})
        assert not marker.exists()
    session.forget(AUTH, name)


def test_a_damaged_file_is_explained(opened: Callable[[], Session]) -> None:
    session = opened()
    name = begin(session)
    say(session, name, SAID[0])
    path = session.store.folder / THREADS
    session.asking.close()
    for left in path.parent.glob(f"{THREADS}-*"):
        left.unlink()
    whole = path.read_bytes()
    path.write_bytes(b"no database at all " * 200)
    with pytest.raises(OperatorError, match=f"file of conversations is damaged: .*{THREADS}"):
        say(session, name, SAID[0])
    assert not session.ask(SAID[0], AUTH, "main").result["refused"]  # the rest goes on
    path.unlink()
    moved = say(session, name, "and who maintains it?")
    assert moved.trail[0].arguments["history"] == 1  # of its kept turns
    assert any("damaged or gone" in warning for warning in moved.result["warnings"])
    session.asking.close()
    path.write_bytes(whole)


def test_what_stops_it_after_the_turn_was_kept_leaves_the_turn(session: Session) -> None:
    """Ctrl-C may come at any moment, also between two writes."""
    name = begin(session)
    save = session.store.runs.save_turn

    def then_stop(*given: Any, **more: Any) -> None:
        save(*given, **more)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(session.store.runs, "save_turn", then_stop)
        say(session, name, SAID[0])
    assert len(rows(session, name)) == 1
    assert say(session, name, "and its timeout?").trail[0].arguments["history"] == 1
