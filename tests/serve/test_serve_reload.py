"""Settings read again by a running server: at once, as a whole, by the operator alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import error_of, held_services, running

from app.session import Session
from core.settings import Settings, load_settings
from serve.services import Reload, make_app_state
from stores.accounts.keys import Keys
from stores.store import parts

SEARCH = {"query": "flame of a candle", "collection": "guide"}
URL = "/api/v1/settings/reload"


class Operator:
    """A server with a settings file, and an admin of the operator's tenant."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.file = folder / "settings.yaml"
        self.flags = {"data": session.settings.data, "reasoner": "rules", "serve_wrong_keys": 0}
        self.write("serve_operator_tenant: acme\n")
        self.services = make_app_state(session, load=self.load)
        self.before = session.settings
        self.services.use(self.load())
        keys = Keys(parts(session.store).database)
        self.headers = {
            tenant: {
                "Authorization": f"Bearer {keys.create(tenant, roles=frozenset({'admin'}))[0]}"
            }
            for tenant in ("acme", "zoo")
        }

    def load(self) -> Settings:
        return load_settings(self.flags, file=str(self.file))[0]

    def write(self, text: str) -> None:
        self.file.write_text("serve_operator_tenant: acme\n" + text, encoding="utf-8")


@pytest.fixture
def operator(session: Session, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(session, tmp_path)
    yield made
    made.services.use(made.before)


@pytest.fixture
def client(operator: Operator) -> Iterator[httpx.Client]:
    with (
        running(operator.services) as url,
        httpx.Client(base_url=url, headers=operator.headers["acme"], verify=False) as client,
    ):
        yield client


def test_what_can_change_changes_and_the_rest_is_named(
    operator: Operator, client: httpx.Client
) -> None:
    limit = operator.services.settings.answering.max_question_chars
    assert client.post("/api/v1/search", json=SEARCH).status_code == 200
    operator.write(
        "max_question_chars: 10\nserve_body_bytes: 1000\nserve_port: 1\nllm_key: walrus\n"
        "serve_caller_waiting: 3\naudit_questions: text\n"
    )
    done = client.post(URL)
    assert done.status_code == 200
    changed = {one["name"]: (one["before"], one["after"]) for one in done.json()["changed"]}
    assert changed == {
        "answering.max_question_chars": (limit, 10),
        "serve.body_bytes": (1_000_000, 1000),
        "serve.caller_waiting": (16, 3),
        "audit.questions": ("none", "text"),
    }
    assert done.json()["needs_restart"] == ["llm.key", "serve.port"]
    assert "walrus" not in done.text
    assert "10 characters" in error_of(client.post("/api/v1/search", json=SEARCH))["rule"]
    assert client.post("/api/v1/search", json={"query": "x" * 2000}).status_code == 413
    again = client.post(URL).json()
    assert (again["changed"], again["needs_restart"]) == ([], ["llm.key", "serve.port"])
    operator.write("")
    back = {one["name"]: one["after"] for one in client.post(URL).json()["changed"]}
    assert back["answering.max_question_chars"] == limit
    assert client.post("/api/v1/search", json=SEARCH).status_code == 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_question_chars: 10\ntop_k: many", "top_k"),
        ("max_question_chars: 10\nwalrus: 1", "unknown setting"),
        ("max_question_chars: [", "not valid YAML"),
        ("max_question_chars: 10\ngrade_related: 0.99", "must hold"),
    ],
)
def test_a_bad_file_changes_nothing_and_says_why(
    operator: Operator, client: httpx.Client, text: str, words: str
) -> None:
    before = operator.services.settings
    operator.write(text)
    error = error_of(refused := client.post(URL))
    assert (refused.status_code, error["code"]) == (409, "invalid_settings")
    assert words in error["message"]
    assert operator.services.settings is before
    operator.file.unlink()
    assert "readable" in error_of(client.post(URL))["rule"]


def test_only_the_operators_admins_may(operator: Operator, client: httpx.Client) -> None:
    foreign = client.post(URL, headers=operator.headers["zoo"])
    assert (foreign.status_code, error_of(foreign)["code"]) == (403, "forbidden")
    operator.services.use(operator.before)  # no tenant is named
    assert client.post(URL).status_code == 403


def test_it_is_recorded(operator: Operator, client: httpx.Client) -> None:
    operator.write("top_k: 7")
    client.post(URL)
    operator.write("top_k: 0")
    client.post(URL)
    bad, good = operator.services.audit.log.newest("acme", kind="settings", limit=2)
    assert good["facts"] == {"changed": {"retrieval.top_k": [10, 7]}, "needs_restart": []}
    assert "top_k" in bad["facts"]["refused"]


def test_a_profile_counts_again_when_the_file_says_nothing_more(operator: Operator) -> None:
    operator.write("top_k: 7")
    operator.services.reload.now(operator.services, None)
    assert "retrieval.top_k" in operator.services.session.settings.given()
    operator.write("")
    operator.services.reload.now(operator.services, None)
    assert "retrieval.top_k" not in operator.services.session.settings.given()


def test_limits_and_pools_follow(operator: Operator) -> None:
    services = operator.services
    operator.write("serve_ask_rate: 1\nserve_waiting: 0\nserve_caller_waiting: 0\nserve_jobs: 1")
    services.reload.now(services, None)
    assert services.limits.settings.serve.ask_rate == services.audit.settings.serve.ask_rate == 1
    assert services.settings is services.session.settings is services.limits.settings
    assert services.runner.asks._limits.waiting == 0
    assert services.jobs.settings is services.settings


def test_what_runs_ends_as_it_began(session: Session) -> None:
    services, held = held_services(session)
    services = replace(services, reload=Reload(lambda: wanted))
    before = session.settings
    wanted = before.model_copy(update={"budget_steps": 7, "serve_caller_waiting": 0})
    with running(services) as url:
        answers: list[Any] = []
        thread = threading.Thread(
            target=lambda: answers.append(
                httpx.post(f"{url}/api/v1/chat", json={"question": "long one"}, timeout=60)
            )
        )
        thread.start()
        assert held.started.acquire(timeout=60)
        services.reload.now(services, None)
        held.released.set()
        thread.join()
    services.use(before)
    assert answers[0].status_code == 200


def test_without_a_file_there_is_nothing_to_read(session: Session) -> None:
    services = make_app_state(session)
    with pytest.raises(Exception, match="without settings"):
        services.reload.now(services, None)
    services.reload.on_signal(services)  # says so in the log
    services.audit.close()
