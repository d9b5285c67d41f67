"""A stored run is carried out again to the byte, or the reason why it cannot be is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from fakes import document, write
from talks import AUTH, begin, filled, reopening, say
from test_llm_paths import Script

from app.session import Session
from core.auth import AuthContext
from core.errors import CarrelError
from core.trace import RunRecord
from graph.build import build_graph
from graph.context import Context
from graph.recording import Recording, decoded
from graph.replay import Replayed, replay_run
from reasoning.types import Turn
from stores.erasure.documents import named_document
from stores.runlog.runs import changed_since
from stores.store import parts

PUMP = "The pump of the zyxovent has a maximum pressure of 8451 bar. Ann Wick maintains it."
GATE = "The harbour gate closes after ten minutes. Carl Dahl maintains it."
QUESTION = "What is the maximum pressure of the zyxovent pump?"
ASKED = (
    QUESTION,
    "What is the maximum pressure of the zyxovent pump, and who maintains the harbour gate?",
    "Who maintains the salary of the moon?",
    "Какое давление у насоса?",
    "泵的最大压力是多少？",
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    data = filled(
        tmp_path / "data",
        lambda main: [
            document(main, "pump.md", PUMP, title="Zyxovent pump"),
            document(main, "gate.md", GATE, title="Gate"),
        ],
    )
    with reopening(data) as opened:
        yield opened()


def again(session: Session, run: RunRecord, auth: AuthContext = AUTH, **live: bool) -> Replayed:
    """Replay a run as its catalogue has it."""
    kept = session.runs.load(auth, run.run_id)

    def context(recording: Recording) -> Context:
        given, where = recording.given, recording.where
        return session.context(auth, kept.collection, given=given, where=where)

    return replay_run(build_graph(), kept, context if live else None, **live)


def test_a_run_is_replayed_to_the_byte(session: Session) -> None:
    limits: list[dict[str, Any]] = [{"budget.tool_calls": 1}, {"budget.tokens": 20}]
    given = session.settings
    for question, limit in [*product(ASKED, [{}]), *product(ASKED[1:2], limits)]:
        session.settings = given.model_copy(update=limit)
        run = session.ask(question, AUTH, "main")
        found = again(session, run)
        assert (found.differences, found.notes, found.steps) == ([], [], len(run.trail))
        assert again(session, run, tools=True, model=True).identical


def test_a_run_of_the_chat_model_is_replayed_without_it(session: Session) -> None:
    script = Script()
    made = session.context
    session.context = lambda *a, **k: (  # type: ignore[method-assign]
        replace(context := made(*a, **k), reasoner=script.reasoner(context.reasoner))
    )
    run = session.ask(QUESTION, AUTH, "main")
    asked = len(script.tasks)
    assert asked and sum(len(step.calls) for step in run.trail) == asked
    assert again(session, run).identical
    assert len(script.tasks) == asked
    session.context = made  # type: ignore[method-assign]
    differing = again(session, run, model=True)
    assert {one.what for one in differing.differences} & {"calls", "node", "reason"}


def test_turns_and_replies_of_a_conversation_are_replayed(session: Session) -> None:
    name = begin(session)
    first = say(session, name, QUESTION)
    second = say(session, name, "Who maintains it?")
    for run in (first, second):
        assert again(session, run).identical
    talk = begin(session)
    asks = say(session, talk, "What about it?", clarify=True)
    assert asks.result["clarification"] and again(session, asks).identical
    answered = say(session, talk, "the maximum pressure of the zyxovent pump", clarify=True)
    assert answered.run_id == asks.run_id and not answered.result["refused"]
    assert again(session, answered).identical
    talk = begin(session)
    asks = say(session, talk, "What about it?", clarify=True)
    own = say(session, talk, QUESTION, clarify=True)  # no reply: a turn of its own
    assert own.run_id != asks.run_id and not own.result["refused"]
    assert again(session, own).identical
    with_history = session.ask("Who maintains it?", AUTH, "main", history=[Turn(QUESTION, PUMP)])
    assert again(session, with_history).identical


def test_live_tools_show_what_a_changed_document_changes(session: Session) -> None:
    run = session.ask(QUESTION, AUTH, "main")
    main = session.catalogue.collection("default", "main")
    changed = document(main, "pump.md", PUMP.replace("8451", "77"), title="Zyxovent pump")
    write(session.store, main, [changed], session.embedder)
    kept = session.runs.load(AUTH, run.run_id)
    assert again(session, run).identical
    assert changed_since(kept, session.catalogue, AUTH)
    live = again(session, run, tools=True)
    answer = next(one for one in live.differences if one.what == "answer")
    assert "8451" in answer.recorded and "77" in answer.now
    assert answer.node == run.trail[-1].node and answer.step == len(run.trail)
    assert any(line.startswith("+") and "77" in line for line in answer.lines())


def refused(session: Session, run: RunRecord, auth: AuthContext = AUTH) -> str:
    with pytest.raises(CarrelError) as caught:
        again(session, run, auth)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_erased_document_takes_the_recordings_that_may_repeat_it(session: Session) -> None:
    name = begin(session)
    first = say(session, name, QUESTION)
    say(session, name, "Who maintains it?")
    later = say(session, name, "Who maintains the harbour gate?")
    other = session.ask("Who maintains the harbour gate?", AUTH, "main")
    main = session.catalogue.collection("default", "main")
    found = named_document(parts(session.store).database.read(), main, "pump.md")
    session.maintenance.forget(main, [found])
    assert "erased" in refused(session, first)
    assert "erased" in refused(session, later)
    rows = parts(session.store).database.read().execute("SELECT result FROM runs").fetchall()
    kept = [json.loads(row["result"])["recording"] for row in rows]
    assert sum("data" in one for one in kept) <= 1
    run = session.runs.load(AUTH, other.run_id)
    if "data" in run.recording:
        assert "8451" not in repr(decoded(run))
        assert again(session, other).identical


CHANGES = [
    ("json_remove(result, '$.recording')", "earlier Carrel"),
    ("json_set(result, '$.answer', 'Pay Mallory.')", "changed after it ended"),
    ("json_set(result, '$.evidence[0].text', 'x')", "changed after it ended"),
    ("json_set(result, '$.stop_reason', 'cancelled')", "broken off"),
]


def test_what_is_not_whole_is_not_replayed(session: Session) -> None:
    for change, says in CHANGES:
        run = session.ask(QUESTION, AUTH, "main")
        with parts(session.store).database.write() as connection:
            connection.execute(f"UPDATE runs SET result = {change}")
        assert "damaged" in refused(session, run)
        sign_all(session)
        assert says in refused(session, run)


def sign_all(session: Session) -> None:
    from stores.sqlite.sums import sign

    with parts(session.store).database.write() as connection:
        sign(connection, "runs", "1")


def test_a_run_of_another_is_as_unknown_as_none(session: Session) -> None:
    run = session.ask(QUESTION, AUTH, "main")
    foreign = refused(session, run, AuthContext(tenant="default", user="bob"))
    unknown = refused(session, run.model_copy(update={"run_id": "0" * 12}))
    assert foreign.replace(run.run_id, "") == unknown.replace("0" * 12, "")


def test_what_differs_from_the_record_is_said(session: Session) -> None:
    """A replay that could not fail would prove nothing: the record says other things here."""
    run = session.ask(QUESTION, AUTH, "main")
    kept = session.runs.load(AUTH, run.run_id)
    trail = [one.model_copy(update={"decision": "x"}) for one in kept.trail[:1]] + kept.trail[1:]
    found = replay_run(build_graph(), kept.model_copy(update={"trail": trail}))
    assert [(one.step, one.what, one.recorded) for one in found.differences] == [
        (1, "decision", "x")
    ]
    steps: Callable[..., Any] = kept.trail.__class__
    shorter = kept.model_copy(update={"trail": steps(kept.trail[:-1])})
    assert [one.what for one in replay_run(build_graph(), shorter).differences] == ["node"]


def test_two_records_of_the_same_question_are_small_and_complete(session: Session) -> None:
    run = session.ask(QUESTION, AUTH, "main")
    kept = session.runs.load(AUTH, run.run_id)
    assert not {"recording", "data"} & kept.model_dump().keys()
    recording = decoded(kept)
    read = [one for visit in recording.visits.values() for one in visit.read]
    texts = {item.text for one in read if one.name == "run" for item in one.value.evidence}
    assert texts == {item["text"] for item in kept.result["evidence"]}
    assert all(
        item.document_key for one in read if one.name == "run" for item in one.value.evidence
    )
    assert len(kept.recording["data"]) < 1.2 * len(json.dumps(kept.result))
