"""Small things that an attack found: each said, ended or returned as it should be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import ROOT, Carrel, built_library, copied, process
from serving import SECONDS, HeldSession, eventually, held_services, running

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings
from core.trace import RunRecord, Step, StreamEvent
from ingest.discover import discover
from models.chat.types import ModelCancelled
from serve.access.auth import Authenticator
from serve.runs.runner import SessionRunner
from serve.services import AppState
from serve.telemetry.metrics import Metrics
from stores.accounts.audit import AuditEntry, AuditLog
from stores.accounts.keys import Keys
from stores.sqlite.database import Database
from stores.sqlite.sums import sign
from stores.store import parts

OWN = AuthContext(tenant="default", user="ann")
QUESTION = "What is the secret of the lawyers?"


# What stays when something is forgotten


def ask(data: Path, rows: int) -> None:
    """Record questions as `audit_questions=text` does."""
    with closing(Database(data / "catalogue.sqlite3")) as database:
        log = AuditLog(database, load_settings()[0])
        facts = {"collection": "default", "question": f'{QUESTION} "question":"'}
        log.append([AuditEntry("answer", OWN, facts)] * rows)
        log.append([AuditEntry("answer", OWN, {"collection": 'a "question":"b"'})])
        log.append([AuditEntry("answer", AuthContext(tenant="other"), facts)])


def test_forget_names_the_audit_rows_that_stay(carrel: Carrel, data: Path) -> None:
    before = carrel("forget", "n1", "-y", data=data)
    assert "nothing of it is left in the data directory." in before.out
    assert "Backups made earlier still hold it" in before.out
    ask(data, 11)
    done = carrel("forget", "n2", "-y", data=data)
    assert "nothing of it is left in the data directory but in the audit log" in done.out
    assert "the audit log keeps 11 rows with words of questions" in done.err
    said = carrel("forget", "guide/candle.md", "-y", "--json", data=data).json
    assert set(said) == {"erased", "still_there", "stays"}
    assert said["stays"]["question_rows"] == 11
    assert said["stays"]["files"] == said["still_there"] != []
    assert "backups" in said["stays"]


def test_forgetting_a_tenant_counts_its_rows(carrel: Carrel, data: Path) -> None:
    ask(data, 3)
    done = carrel("forget", "--tenant", "default", "--yes", "--json", data=data)
    rows = carrel("audit", "list", "--tenant", "default", "--json", data=data).json["events"]
    assert done.json["stays"]["audit_rows"] == len(rows) > 4
    assert done.json["stays"]["question_rows"] == 3


# An audit log that was removed as a whole


def remove_all(data: Path) -> None:
    with closing(Database(data / "catalogue.sqlite3")) as database, database.write() as writing:
        writing.execute("DROP TRIGGER audit_kept")
        writing.execute("DELETE FROM audit")
    for name in ("audit.head", "audit.key"):
        (data / name).unlink()


def test_an_audit_log_that_is_gone_is_no_success(carrel: Carrel, data: Path) -> None:
    ask(data, 5)
    remove_all(data)
    done = carrel("audit", "verify", data=data)
    assert (done.code, "were written and are gone" in done.err) == (1, True)
    found = carrel("audit", "verify", "--json", data=data)
    assert (found.code, found.json["whole"], found.json["rows"]) == (1, False, 0)
    ask(data, 300)  # more than there were: the loss stays known
    done = carrel("audit", "verify", data=data)
    assert (done.code, "rows before it were gone" in done.err) == (1, True)


def test_an_audit_log_that_was_never_used_is_whole(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_AUDIT__ENABLED", "false")
    data = tmp_path / "new"
    assert carrel("keys", "create", data=data).code == 0
    done = carrel("audit", "verify", data=data)
    assert (done.code, done.out[:6]) == (0, "0 rows")


# Streams of callers whose rights end


class Endless(HeldSession):
    """Answer without end, a step and a sentence at a time."""

    def ask(self, question: str, auth: Any, collection: str, **given: Any) -> RunRecord:
        self.started.release()
        while True:
            given["on_step"](Step(node="search"))
            given["on_stream"](StreamEvent(kind="sentence", text="A secret of the board. [1] "))
            if given["cancelled"]():
                self.cancelled.release()
                raise ModelCancelled("given up")
            time.sleep(0.005)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    data = copied(
        built_library(tmp_path_factory.getbasetemp()), tmp_path_factory.mktemp("n") / "data"
    )
    flags = {"data": data, "reasoner": "rules", "embedder": "nowhere/none"}
    flags |= {"serve_ask_rate": 0, "serve_rate": 0, "serve_wrong_keys": 0}
    with Session(load_settings(flags)[0]) as opened:
        yield opened


@pytest.fixture(scope="module")
def endless(session: Session) -> Iterator[tuple[AppState, str]]:
    services, held = held_services(session, serve_threads=2)
    runner = SessionRunner(Endless(held.settings, held.store), held.settings)  # type: ignore[arg-type]
    keys = Authenticator(services.keys, services.settings)
    services = replace(services, authenticator=keys, runner=runner, metrics=Metrics(runner))
    with running(services) as url:
        yield services, url


STREAMS: dict[str, dict[str, Any]] = {
    "/api/v1/chat": {"question": QUESTION, "stream": True},
    "/agent/stream": {"input": {"question": QUESTION}},
    "/agent/stream_log": {"input": {"question": QUESTION}},
    "/agent/stream_events": {"input": {"question": QUESTION}},
    "/v1/chat/completions": {
        "model": "carrel",
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": True,
    },
}


def asking(client: httpx.Client, key: str, path: str = "/api/v1/chat") -> Any:
    """Ask for a stream in the name of a key."""
    headers = {"Authorization": f"Bearer {key}"}
    return client.stream("POST", path, json=STREAMS[path], headers=headers)


def after(
    endless: tuple[AppState, str], path: str, end: Callable[[str], Any], lines: int = 20
) -> list[str]:
    """Return the lines with data that come after `end` was called with the key's id."""
    services, url = endless
    text, key = services.keys.create("default", user="ann")
    later: list[str] = []
    with (
        httpx.Client(base_url=url, timeout=SECONDS) as client,
        asking(client, text, path) as response,
    ):
        assert response.status_code == 200
        read = (line for line in response.iter_lines() if line.startswith("data"))
        for _ in range(lines):
            next(read)
        end(key.id)
        later.extend(read)
    eventually(lambda: services.runner.asks.load == (0, 0))
    return later


@pytest.mark.parametrize("path", STREAMS)
def test_a_revoked_key_ends_its_stream(
    endless: tuple[AppState, str], session: Session, path: str
) -> None:
    services, _ = endless
    later = after(endless, path, services.keys.revoke)
    said = later[-2] if later[-1] == "data: [DONE]" else later[-1]
    assert "revoked" in said and "secret of the board" not in said
    # What was on its way when the key was revoked: bytes in the sockets, but nothing endless.
    assert len(later) < 200


def test_a_key_revoked_by_another_process_ends_its_stream(endless: tuple[AppState, str]) -> None:
    data = endless[0].session.store.folder

    def revoke(key_id: str) -> None:
        with closing(Database(data / "catalogue.sqlite3")) as beside:
            Keys(beside).revoke(key_id)

    assert "revoked" in after(endless, "/api/v1/chat", revoke)[-1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("expires_at = '2020-01-01T00:00:00.000+00:00'", "expired"),
        ("roles = '[\"other\"]'", "rights have changed"),
    ],
)
def test_rights_that_end_or_change_end_the_stream(
    endless: tuple[AppState, str], change: str, why: str
) -> None:
    def changed(key_id: str) -> None:
        with parts(endless[0].session.store).database.write() as connection:
            connection.execute(f"UPDATE api_keys SET {change} WHERE id = ?", [key_id])
            sign(connection, "api_keys", "k.id = ?", key_id)

    assert why in after(endless, "/api/v1/chat", changed)[-1]


def test_a_key_revoked_in_line_gets_nothing(
    endless: tuple[AppState, str], session: Session
) -> None:
    services, url = endless
    text, key = services.keys.create("default", user="late")
    client = httpx.Client(base_url=url, timeout=SECONDS)
    got: list[str] = []

    def wait() -> None:
        with asking(client, text) as response:
            got.extend(line for line in response.iter_lines() if line.startswith("data"))

    with client:
        others = [services.keys.create("default", user=f"other{n}")[0] for n in range(2)]
        streams = [asking(client, one) for one in others]
        opened = [stream.__enter__() for stream in streams]
        waiting = threading.Thread(target=wait)
        waiting.start()
        eventually(lambda: services.runner.asks.load == (2, 1))
        services.keys.revoke(key.id)
        for response in opened:
            response.close()
        waiting.join(SECONDS)
        eventually(lambda: services.runner.asks.load == (0, 0))
    assert len(got) == 1 and "revoked" in got[0]


# Threads of a crowd that has gone


def test_a_crowd_leaves_no_threads(endless: tuple[AppState, str]) -> None:
    services, url = endless
    text, _ = services.keys.create("default", user="crowd")

    def leave() -> None:
        with (
            httpx.Client(base_url=url, timeout=SECONDS) as client,
            asking(client, text) as response,
        ):
            next(response.iter_lines())

    def crowd() -> int:
        threads = [threading.Thread(target=leave) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        eventually(lambda: services.runner.asks.load == (0, 0))
        return threading.active_count()

    before = threading.active_count()
    rounds = [crowd() for _ in range(3)]
    assert max(rounds) <= before + services.runner.asks.threads + 4, (before, rounds)


# Links and servers that lead to nothing


def test_a_link_to_nothing_is_named(tmp_path: Path, carrel: Carrel) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nA note of nothing much.")
    for name in ("loop", "gone.md", "no-ending"):
        target = folder / name if name == "loop" else tmp_path / "gone"
        (folder / name).symlink_to(target)
    found, failures = discover([folder])
    assert [one.relative for one in found] == ["a.md"]
    assert [(one.path, one.reason) for one in failures] == [
        (name, "a link to nothing") for name in ("gone.md", "loop", "no-ending")
    ]
    summary = carrel("ingest", folder, "--json", data=tmp_path / "new").json
    assert {one["path"] for one in summary["failed"]} == {"gone.md", "loop", "no-ending"}


@pytest.fixture
def suspended(data: Path) -> Iterator[int]:
    command = [sys.executable, "-c", "from cli.app import main; main()"]
    command += ["serve", "--port", "0", "--allow-anonymous", "--data", str(data)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "CARREL_REASONER": "rules"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdout is not None and server.stdout.readline()
        server.send_signal(signal.SIGSTOP)
        yield server.pid
        server.kill()


def test_a_suspended_server_is_said_to_be_silent(data: Path, suspended: int) -> None:
    for command in (("search", "candle"), ("serve", "--port", "0"), ("ingest", ".")):
        done = process(*command, data=data)
        done.failed(4, f"process {suspended} ", "does not respond", f"kill -CONT {suspended}")
        assert "over HTTP" not in done.err
    assert json.loads(process("keys", "list", "--json", data=data).out) == {"keys": []}
