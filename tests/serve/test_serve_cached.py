"""Who asks the same again gets the answer they have; nobody else does, and nothing stale."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import write_files
from hypothesis import given
from hypothesis import strategies as st
from ingesting import ingest_corpora
from redis_servers import MISSING, REDIS, RunningRedis
from serving import Served, events_of

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings
from core.trace import RunRecord, Step
from reasoning.types import Turn
from serve.questions import Question
from serve.runs.answer_cache import AnswerCache, is_complete
from serve.runs.observers import RunObservers
from serve.runs.runner import RunCallbacks
from serve.services import make_app_state
from stores.store import parts

ANN = AuthContext(tenant="acme", user="ann")
QUESTION = "How high is the flame of a candle?"
ASKED = Question(QUESTION, "guide")
FLAMES = {"flame.md": "# Candles\n\nThe maximum height of the candle flame is 42 mm.\n"}


def chat(served: Served, kind: str, **more: Any) -> dict[str, Any]:
    body = {"question": QUESTION, "collection": "guide", **more}
    with served.client(kind) as client:
        response = client.post("/api/v1/chat", json=body)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def test_the_same_caller_gets_the_same_run_again(served: Served) -> None:
    # Words of its own, since the server is shared by all tests.
    question = "How high does the flame of one candle get?"
    first, second = (chat(served, "reader", question=question) for _ in range(2))
    assert "cached" not in first
    assert second == {**first, "cached": True}
    with served.client("reader") as client:
        assert client.get(f"/api/v1/runs/{first['run_id']}").json()["result"] == first
        listed = client.get("/api/v1/runs", params={"limit": 200}).json()["runs"]
    assert sum(run["question"] == question for run in listed) == 1
    for kind in ("editor", "admin"):
        other = chat(served, kind, question=question)
        assert "cached" not in other
        assert other["run_id"] != first["run_id"]
    theirs = chat(served, "other tenant", question=question)
    assert "cached" not in theirs
    assert "42" not in theirs["answer"]


def test_a_stream_of_a_remembered_answer_has_its_steps(served: Served) -> None:
    body = {"question": "How high may a candle's flame be?", "collection": "guide", "stream": True}
    seen = []
    with served.client("reader") as client:
        for _ in range(2):
            with client.stream("POST", "/api/v1/chat", json=body) as response:
                seen.append(events_of(response))
    first, second = ([kind for kind, _ in events] for events in seen)
    assert second == [kind for kind in first if kind in ("step", "result")]
    assert seen[1][-1][1] == {**seen[0][-1][1], "cached": True}
    steps = [[data for kind, data in events if kind == "step"] for events in seen]
    assert steps[0] == steps[1]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Open a data directory of one document, and change it by `put`."""
    sessions: list[Session] = []

    def put(files: dict[str, str], acl: str = "", tenant: str = "acme") -> None:
        for session in sessions:
            session.close()
        sessions.clear()
        corpus = ([write_files(tmp_path / tenant, files)], "guide", None, tenant, acl)
        ingest_corpora(tmp_path / "data", [corpus])

    def open_it(**values: object) -> Session:
        settings, _ = load_settings({"data": tmp_path / "data", "reasoner": "rules", **values})
        sessions.append(Session(settings))
        return sessions[-1]

    put(FLAMES)
    open_it.put = put  # type: ignore[attr-defined]
    yield open_it
    for session in sessions:
        session.close()


def answered(session: Session, question: Question = ASKED, auth: AuthContext = ANN) -> bool:
    """Ask as the server does; tell whether the answer was remembered."""
    runner = make_app_state(session).runner
    run = runner.answerer.ask(question, auth, RunCallbacks(threading.Event(), RunObservers([])))
    return bool(run.result.get("cached", False))


OTHERS: list[dict[str, Any]] = [
    {"question": replace(ASKED, text=QUESTION + " ")},
    {"question": replace(ASKED, pipeline="classic")},
    {"question": replace(ASKED, history=(Turn("What is a candle?", "A light."),))},
    {"auth": AuthContext(tenant="acme", user="bob")},
    {"auth": AuthContext(tenant="acme", user="ann", roles=frozenset({"boss"}))},
    {"auth": AuthContext(tenant="acme", user="ann", allowed_sources=("flame*",))},
    {"auth": AuthContext(tenant="acme", user="ann", version_policy="2.0")},
]


def test_only_the_same_question_of_the_same_caller_is_remembered(
    opened: Callable[..., Session],
) -> None:
    session = opened()
    assert [answered(session) for _ in range(2)] == [False, True]
    assert [answered(session, **other) for other in OTHERS] == [False] * len(OTHERS)
    assert answered(session)


def test_any_change_of_the_index_leaves_answers_behind(opened: Callable[..., Session]) -> None:
    session = opened()
    finished = AnswerCache(session)
    keys = [finished.key_of(ASKED, ANN)]
    for text, acl in (("42 mm", "editor"), ("43 mm", "")):
        opened.put({"flame.md": FLAMES["flame.md"].replace("42 mm", text)}, acl)  # type: ignore[attr-defined]
        keys.append(AnswerCache(opened()).key_of(ASKED, ANN))
    first, closed, last = keys
    assert closed is None  # there is nothing that she may see
    assert first is not None and last is not None and first.version < last.version


def test_rights_that_change_while_the_server_runs_are_seen_at_once(
    opened: Callable[..., Session],
) -> None:
    session = opened()
    assert [answered(session) for _ in range(2)] == [False, True]
    with parts(session.store).database.write() as connection:
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'index_version'")
    assert [answered(session) for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("values", "question"),
    [
        ({"cache_answer_minutes": 0}, ASKED),
        ({"budget_seconds": 0.000001}, ASKED),
        ({}, Question("How many moons has Jupiter?", "guide")),
    ],
    ids=["switched off", "out of time", "refused"],
)
def test_what_is_no_whole_answer_is_never_given_again(
    opened: Callable[..., Session], values: dict[str, object], question: Question
) -> None:
    session = opened(**values)
    assert [answered(session, question) for _ in range(2)] == [False, False]
    assert session.caches.answers.entries == 0


def test_a_deleted_run_is_not_given_again(opened: Callable[..., Session]) -> None:
    session = opened()
    assert [answered(session) for _ in range(2)] == [False, True]
    with parts(session.store).database.write() as connection:
        connection.execute("DELETE FROM runs")
    assert [answered(session) for _ in range(2)] == [False, True]


@pytest.mark.skipif(REDIS is None, reason=MISSING)
def test_a_server_that_starts_again_finds_its_answers_in_redis(
    opened: Callable[..., Session],
) -> None:
    pytest.importorskip("redis", reason="the extra 'redis' is not installed")
    redis = RunningRedis()
    try:
        redis.start()
        given = {"cache_redis_url": redis.url, "cache_redis_seconds": 2}
        first = opened(**given)
        assert [answered(first) for _ in range(2)] == [False, True]
        first.close()
        again = opened(**given)
        assert answered(again)
        assert not answered(again, auth=AuthContext(tenant="acme", user="bob"))
        redis.stop()  # what is asked meanwhile is answered, and remembered, all the same
        eve = AuthContext(tenant="acme", user="eve")
        assert [answered(again, auth=eve) for _ in range(2)] == [False, True]
        assert again.caches.redis is not None
        assert not again.caches.redis.up
    finally:
        redis.end()


def run_of(**result: Any) -> RunRecord:
    whole = {"refused": False, "stop_reason": "enough_evidence", "usage": {"degraded": 0}}
    return RunRecord(
        run_id="0" * 12, tenant="acme", user="ann", collection="guide", question="?",
        pipeline="auto", created_at="", index_version=1,
        result={**whole, **result}, trail=result.get("trail", []),
    )  # fmt: skip


@given(
    st.sampled_from(["timeout", "max_steps", "max_tool_calls", "max_tokens", "cancelled", "policy",
                     "unsupported_answer", "no_relevant_evidence", "clarification_needed"])
)  # fmt: skip
def test_a_run_that_was_cut_short_is_not_whole(reason: str) -> None:
    assert is_complete(run_of())
    assert not is_complete(run_of(stop_reason=reason))
    assert not is_complete(run_of(refused=True))
    assert not is_complete(run_of(usage={"degraded": 1}))
    assert not is_complete(run_of(clarification={"question": "Which?", "options": []}))
    assert not is_complete(run_of(trail=[Step(node="retrieve", partial=True)]))
    assert not is_complete(run_of(trail=[Step(node="plan", degraded="no model")]))
