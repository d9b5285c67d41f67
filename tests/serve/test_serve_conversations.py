"""Conversations over HTTP: kept, continued, listed, renamed, deleted, and nobody else's."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from scanning import holding
from serving import (
    SECONDS,
    Served,
    error_of,
    events_of,
    eventually,
    held_services,
    leave,
    running,
)

from app.session import Session
from core.settings import load_settings
from serve.services import make_app_state
from stores.store import parts
from tools.toolbox import Toolbox

JSON = {"Content-Type": "application/json"}
FLAME = "What is the maximum height of the candle flame?"


def begin(client, **body) -> str:
    made = client.post("/api/v1/conversations", json={"collection": "guide", **body})
    assert made.status_code == 201, made.text
    return str(made.json()["conversation_id"])


def say(client, name: str, question: str, **body):
    return client.post("/api/v1/chat", json={"question": question, "conversation_id": name, **body})


def test_a_conversation_is_kept_with_its_turns(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        first = say(client, name, FLAME).json()
        second = say(client, name, "And why does it burn?").json()
        shown = client.get(f"/api/v1/conversations/{name}").json()
        listed = client.get("/api/v1/conversations", params={"limit": 1}).json()
    assert "42 mm" in first["answer"] and first["conversation_id"] == name
    assert [turn["run_id"] for turn in shown["turns"]] == [first["run_id"], second["run_id"]]
    assert [turn["answer"] for turn in shown["turns"]] == [first["answer"], second["answer"]]
    assert (shown["title"], shown["collection"], shown["waiting"]) == (FLAME, "guide", None)
    assert listed["conversations"][0] | {"turns": 2} == listed["conversations"][0]
    assert listed["conversations"][0]["conversation_id"] == name


def test_a_conversation_is_shared_with_some_and_no_longer(served: Served) -> None:
    with (
        served.client("editor") as owner,
        served.client("reader") as ann,
        served.client("writer") as wim,
        served.client("other tenant") as stranger,
    ):
        name = begin(owner)
        place = f"/api/v1/conversations/{name}"
        say(owner, name, FLAME)
        assert ann.get(place).status_code == 404
        made = owner.put(f"{place}/readers", json={"acl": ["user:ann"]})
        assert (made.status_code, made.json()["readers"]) == (200, ["user:ann"])
        (listed,) = ann.get("/api/v1/conversations").json()["shared"]
        assert (listed["conversation_id"], listed["user"]) == (name, "eve")
        own = owner.get("/api/v1/conversations").json()
        assert own["conversations"][0]["conversation_id"] == name and own["shared"] == []
        for client in (wim, stranger):
            assert client.get("/api/v1/conversations").json()["shared"] == []
        shown = ann.get(place).json()
        assert "42 mm" in shown["turns"][0]["answer"]
        assert (shown["user"], shown["collection"], shown["readers"]) == ("eve", "guide", None)
        for client in (wim, stranger):
            assert client.get(place).status_code == 404
        for sent in (ann.patch(place, json={"title": "x"}), ann.delete(place)):
            assert sent.status_code == 404
        assert say(ann, name, FLAME).status_code == 404
        for bad in ({}, {"acl": ["a b"]}, {"acl": ["x"], "everyone": True}):
            assert owner.put(f"{place}/readers", json=bad).status_code == 400
        owner.put(f"{place}/readers", json={"everyone": True})
        assert wim.get(place).status_code == 200 and stranger.get(place).status_code == 404
        assert owner.get(place).json()["readers"] == []
        assert owner.delete(f"{place}/readers").status_code == 204
        assert wim.get(place).status_code == 404


def test_who_reads_a_shared_conversation_sees_what_their_rights_give(served: Served) -> None:
    database = parts(served.services.session.store).database
    with served.client("editor") as owner, served.client("reader") as ann:
        name = begin(owner, collection="closed")
        place = f"/api/v1/conversations/{name}"
        told = say(owner, name, "What is the secret budget of the museum?").json()
        assert "900 euros" in told["answer"]
        owner.put(f"{place}/readers", json={"everyone": True})
        shown = ann.get(place)
        assert shown.status_code == 200 and "900 euros" not in shown.text
        assert shown.json()["collection"] == ""  # the name of a hidden one is hidden too
        assert shown.json()["turns"][0]["question"].startswith("What is the secret budget")
        with database.write() as connection:  # damage must open nothing
            wider = "UPDATE meta SET value = replace(value, '[[]', '[[\"x\"]') WHERE key = ?"
            connection.execute(wider, (f"shared:{name}",))
        assert ann.get(place).status_code == 404
        assert owner.get(place).json()["readers"] is None
        owner.put(f"{place}/readers", json={"everyone": True})
        assert owner.delete(place).status_code == 204
        left = "SELECT 1 FROM meta WHERE key = ?"
        rows = database.read().execute(left, (f"shared:{name}",)).fetchall()
        assert ann.get(place).status_code == 404 and rows == []


@pytest.mark.parametrize("of_note", [True, False])
def test_what_another_conversation_read_of_a_note_goes(served: Served, of_note: bool) -> None:
    maintenance = served.services.session.maintenance
    with served.client() as client:
        first, second = begin(client), begin(client)
        say(client, first, "My team is called Quimbleford.")
        read = say(client, second, "What is my team called?").json()
        assert "Quimbleford" in read["answer"]
        [note] = client.get("/api/v1/memory").json()["notes"]
        path = f"memory/{note['note_id']}" if of_note else f"conversations/{first}"
        assert client.delete(f"/api/v1/{path}").status_code == 204
        shown = client.get(f"/api/v1/conversations/{second}").json()
        if of_note:
            typed = client.get(f"/api/v1/conversations/{first}").json()["turns"]
            assert [one["question"] for one in typed] == ["My team is called Quimbleford."]
            client.delete(f"/api/v1/conversations/{first}")
        eventually(lambda: not maintenance.pending_erasure())
    assert "a note of yours that has been deleted" in shown["turns"][0]["answer"]
    assert holding(served.services.session.store.folder, [b"Quimbleford"]) == []


def test_another_title_is_kept(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        renamed = client.patch(f"/api/v1/conversations/{name}", json={"title": " My\n<b>candles "})
        say(client, name, FLAME)
        shown = client.get(f"/api/v1/conversations/{name}").json()
        empty = client.patch(f"/api/v1/conversations/{name}", json={"title": " \x00 "})
    assert renamed.json()["title"] == shown["title"] == "My <b>candles"
    assert empty.status_code == 400


def test_pages_of_the_list_follow_each_other(served: Served) -> None:
    with served.client("admin") as client:
        names = [begin(client) for _ in range(5)]
        seen: list[str] = []
        for _ in range(3):
            given = {"limit": 2} | ({"before": seen[-1]} if seen else {})
            page = client.get("/api/v1/conversations", params=given).json()["conversations"]
            seen += [one["conversation_id"] for one in page]
        absent = client.get("/api/v1/conversations", params={"before": "0" * 32})
    assert seen[:5] == names[::-1]
    assert absent.status_code == 404


@pytest.mark.parametrize("kind", ["editor", "admin", "other tenant"])
def test_a_conversation_of_another_is_as_absent_as_none(served: Served, kind: str) -> None:
    with served.client() as client:
        name = begin(client)
        say(client, name, FLAME)
    absent = "0" * 32
    with served.client(kind) as client:
        for method, given in (("GET", None), ("DELETE", None), ("PATCH", {"title": "mine"})):
            foreign, none = (
                client.request(method, f"/api/v1/conversations/{one}", json=given)
                for one in (name, absent)
            )
            same_error(foreign, none)
        same_error(say(client, name, "And why?"), say(client, absent, "And why?"))
        streamed = say(client, name, "And why?", stream=True)
        assert streamed.status_code == 404
        listed = client.get("/api/v1/conversations", params={"limit": 200}).json()
        assert name not in [one["conversation_id"] for one in listed["conversations"]]
        paged = [client.get("/api/v1/conversations", params={"before": n}) for n in (name, absent)]
        same_error(*paged)
    with served.client() as client:
        assert len(client.get(f"/api/v1/conversations/{name}").json()["turns"]) == 1


def same_error(foreign: httpx.Response, absent: httpx.Response) -> None:
    assert foreign.status_code == absent.status_code == 404
    for key in ("code", "rule", "hint"):
        assert error_of(foreign)[key] == error_of(absent)[key]


def test_a_stream_ends_with_the_conversation(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        kind, result = events_of(say(client, name, FLAME, stream=True))[-1]
        turns = client.get(f"/api/v1/conversations/{name}").json()["turns"]
    assert kind == "result"
    assert result["conversation_id"] == name
    assert [turn["run_id"] for turn in turns] == [result["run_id"]]


def test_history_is_the_conversations_own(served: Served) -> None:
    question = "And how high is it?"
    with served.client() as client:
        first, second = begin(client), begin(client)
        say(client, first, "Why does the wick of a candle burn?")
        for name in (first, second):
            assert say(client, name, question).status_code == 200
        trails = []
        for name in (first, second):
            run_id = client.get(f"/api/v1/conversations/{name}").json()["turns"][-1]["run_id"]
            trails.append(client.get(f"/api/v1/runs/{run_id}").json()["trail"])
    assert [trail[0]["arguments"]["history"] for trail in trails] == [1, 0]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, 422),
        ({"conversation_id": "", "question": "x"}, 422),
        ({"conversation_id": "x" * 65}, 422),
        ({"conversation_id": 7}, 422),
        ({"conversation_id": None, "clarify": True}, 422),
        ({"collection": "closed"}, 400),
        ({"question": " ?"}, 400),
        ({"conversation_id": "../runs"}, 404),
        ({"conversation_id": "\ud800"}, 422),
    ],
)
def test_bad_requests_name_what_is_wrong(served: Served, body: dict, status: int) -> None:
    with served.client() as client:
        name = begin(client)
        given = {"question": FLAME, "conversation_id": name} | body
        sent = json.dumps(given).encode()  # half a character stays as an escape
        refused = client.post("/api/v1/chat", content=sent, headers=JSON)
        assert refused.status_code == status, refused.text
        error_of(refused)
        assert client.get(f"/api/v1/conversations/{name}").json()["turns"] == []
        assert say(client, name, FLAME).status_code == 200  # nothing holds it


def test_a_conversation_is_about_a_collection_that_exists(served: Served) -> None:
    with served.client() as client:
        absent = client.post("/api/v1/conversations", json={"collection": "nowhere"})
        same = {"question": FLAME, "collection": "guide", "conversation_id": begin(client)}
        assert client.post("/api/v1/chat", json=same).status_code == 200
    assert absent.status_code == 400


def test_one_request_at_a_time(session: Session) -> None:
    services, held = held_services(session, serve_threads=2, serve_caller_threads=2)
    with running(services) as url, httpx.Client(base_url=url, timeout=SECONDS) as client:
        name = session.store.runs.create_conversation("default", "local", "guide").id
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(say, client, name, "one")
            assert held.started.acquire(timeout=SECONDS)
            for stream in (False, True):
                second = say(client, name, "two", stream=stream)
                assert second.status_code == 409
                assert error_of(second)["code"] == "in_use"
            assert client.delete(f"/api/v1/conversations/{name}").status_code == 409
            held.released.set()
            assert first.result().json()["answer"] == "one"
        assert say(client, name, "three").status_code == 200
        assert held.asked == ["one", "three"]


def test_whoever_leaves_gives_the_conversation_back(session: Session) -> None:
    services, held = held_services(session, serve_threads=1)
    with running(services) as url, httpx.Client(base_url=url) as client:
        name = session.store.runs.create_conversation("default", "local", "guide").id
        body = {"question": "one", "conversation_id": name}
        for _ in range(3):
            leave(f"{url}/api/v1/chat", body, lambda: held.started.acquire(blocking=False))
            assert held.cancelled.acquire(timeout=SECONDS)
            eventually(lambda: services.runner.asks.load == (0, 0))
        other = session.store.runs.create_conversation("default", "local", "guide").id
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(say, client, other, "holds the only thread")
            assert held.started.acquire(timeout=SECONDS)
            leave(f"{url}/api/v1/chat", body, lambda: services.runner.asks.load == (1, 1))
            eventually(lambda: services.runner.asks.load == (1, 0))
            held.released.set()
            assert first.result().status_code == 200
        assert say(client, name, "two").status_code == 200


def test_what_is_deleted_is_gone_from_every_file(served: Served) -> None:
    marker = "zanzibarquux"
    needles = [marker.encode()]
    with served.client() as client:
        name = begin(client)
        run_id = say(client, name, f"{FLAME} {marker}").json()["run_id"]
        folder = served.services.session.store.folder
        assert holding(folder, needles) != []
        assert client.delete(f"/api/v1/conversations/{name}").status_code == 204
        assert client.get(f"/api/v1/conversations/{name}").status_code == 404
        assert client.delete(f"/api/v1/conversations/{name}").status_code == 404
        assert client.get(f"/api/v1/runs/{run_id}").status_code == 404
    with served.client("admin") as client:
        log = client.get("/api/v1/audit", params={"kind": "deletion"}).json()
    assert name in json.dumps(log["events"])
    assert holding(folder, needles) == []


def test_what_is_asked_back_waits_for_the_reply(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        asked = say(client, name, "How high is it?", clarify=True).json()
        assert (asked["stop_reason"], asked["answer"]) == ("clarification_needed", "")
        assert asked["clarification"] == {"question": "What do you mean by “it”?", "options": []}
        shown = client.get(f"/api/v1/conversations/{name}").json()
        assert shown["waiting"] == asked["clarification"]
        (turn,) = shown["turns"]
        assert (turn["stop_reason"], turn["answer"], turn["reply"]) == (
            asked["stop_reason"],
            "",
            "",
        )
        kept = client.get(f"/api/v1/runs/{asked['run_id']}").json()
        assert [step["node"] for step in kept["trail"]] == ["understand", "clarify"]
        answered = say(client, name, "the flame of a candle", clarify=True).json()
        assert "42 mm" in answered["answer"] and answered["clarification"] is None
        assert answered["run_id"] == asked["run_id"]
        shown = client.get(f"/api/v1/conversations/{name}").json()
        assert shown["waiting"] is None and len(shown["turns"]) == 1
        assert shown["turns"][0]["reply"] == "the flame of a candle"
        assert shown["turns"][0]["clarification"] == asked["clarification"]


def test_a_stream_tells_what_is_asked_back(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        *_, (_, step), (_, result) = events_of(
            say(client, name, "How high is it?", clarify=True, stream=True)
        )
    assert result["clarification"]["question"] == "What do you mean by “it”?"
    assert step["node"] == "clarify"


def test_nothing_is_asked_back_unless_it_may_be(served: Served) -> None:
    with served.client() as client:
        name = begin(client)
        result = say(client, name, "How high is it?").json()
        assert result["clarification"] is None
        alone = client.post(
            "/api/v1/chat", json={"question": "How high is it?", "collection": "guide"}
        ).json()
    assert alone["clarification"] is None and "conversation_id" not in alone
    assert alone["answer"] == result["answer"]


def test_stopping_the_server_leaves_what_can_go_on(
    library: Path,
) -> None:
    """A run at work when the server stops is cancelled, and its turn is as if it never was."""
    flags = {"data": library, "reasoner": "rules", "serve.stop_seconds": 0}
    at_work = threading.Event()
    with Session(load_settings(flags)[0]) as session:
        services = make_app_state(session, allow_anonymous=True)
        with ThreadPoolExecutor(1) as pool, httpx.Client(timeout=SECONDS) as client:
            with running(services) as url, pytest.MonkeyPatch.context() as patched:
                client.base_url = url
                name = begin(client, collection="default")
                say(client, name, FLAME)
                held = holding_run(at_work, services.runner._stopping)
                patched.setattr(Toolbox, "run", held)
                second = pool.submit(say, client, name, "And why does it burn?")
                assert at_work.wait(SECONDS)
            with suppress(httpx.HTTPError):
                assert second.result().status_code >= 500
    with (
        Session(load_settings(flags)[0]) as session,
        running(make_app_state(session, allow_anonymous=True)) as url,
        httpx.Client(base_url=url, timeout=SECONDS) as client,
    ):
        assert len(client.get(f"/api/v1/conversations/{name}").json()["turns"]) == 1
        assert "wick" in say(client, name, "And why does it burn?").json()["answer"]
        assert len(client.get(f"/api/v1/conversations/{name}").json()["turns"]) == 2


def holding_run(at_work: threading.Event, stopping: threading.Event):
    """Return a search that goes on until the server stops."""
    original = Toolbox.run

    def run(*given: Any) -> Any:
        at_work.set()
        assert stopping.wait(SECONDS)
        return original(*given)

    return run
