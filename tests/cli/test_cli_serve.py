"""`carrel serve` and `carrel keys` as real processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from commands import HEIGHT, Carrel, process
from real_servers import serving

BODY = {"question": HEIGHT}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_until_it_is_told_to_stop(data: Path, number: signal.Signals) -> None:
    with serving(data, "--allow-anonymous") as (url, child):
        assert httpx.get(f"{url}/api/v1/health").json() == {"status": "ok"}
        run = httpx.post(f"{url}/api/v1/chat", json=BODY, timeout=60).json()
        assert "42 mm" in run["answer"]
        child.send_signal(number)
        assert child.wait(60) == 0
        assert child.stderr is not None
        errors = child.stderr.read()
    assert "need no key" in errors and "Traceback" not in errors
    assert not (data / "owner.json").exists()
    trace = process("trace", run["run_id"], "--json", data=data)
    assert trace.json["result"] == run


def test_keys_are_made_and_revoked_while_it_runs(data: Path) -> None:
    with serving(data) as (url, _):
        assert httpx.post(f"{url}/api/v1/chat", json=BODY).status_code == 401
        made = process("keys", "create", "--tenant", "default", "--json", data=data).json
        header = {"Authorization": f"Bearer {made['key']}"}
        answer = httpx.post(f"{url}/api/v1/chat", json=BODY, headers=header, timeout=60)
        assert "42 mm" in answer.json()["answer"]
        assert process("keys", "revoke", made["id"], "--json", data=data).json["revoked_at"]
        assert httpx.get(f"{url}/api/v1/runs", headers=header).status_code == 401
        process("serve", "--port", "0", data=data).failed(4, "in use by process", "serve")
        port = url.rpartition(":")[2]
        process("serve", "--port", port, data=data).failed(4, "port must be free", port)
        assert httpx.get(f"{url}/api/v1/health").status_code == 200


def test_an_address_that_cannot_be_had(carrel: Carrel, data: Path) -> None:
    carrel("serve", "--host", "192.0.2.1", data=data).failed(4, "listen", "192.0.2.1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        carrel("serve", "--port", port, data=data).failed(4, "port must be free")
    carrel("serve", "--port", 70_000, data=data).failed(2, "--port", "65535")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5"])
def test_anonymous_callers_are_of_this_machine(carrel: Carrel, data: Path, host: str) -> None:
    done = carrel("serve", "--host", host, "--allow-anonymous", data=data)
    done.failed(2, host, "carrel keys create")


def test_keys_are_shown_once_and_listed_without_secrets(carrel: Carrel, tmp_path: Path) -> None:
    data = tmp_path / "fresh"
    given = ("--tenant", "acme", "--user", "ann", "--role", "admin", "--expires", 30)
    given += ("--rate", 5, "--tokens-per-day", 0)
    made = carrel("keys", "create", *given, "--json", data=data).json
    assert made["key"].startswith(f"carrel_{made['id']}_")
    assert (made["tenant"], made["user"], made["roles"]) == ("acme", "ann", ["admin"])
    assert (made["rate"], made["tokens_per_day"]) == (5, 0)
    shown = carrel("keys", "create", data=data)
    assert shown.out.startswith("carrel_") and "once" in shown.err
    listed = carrel("keys", "list", "--json", data=data)
    assert [one["tenant"] for one in listed.json["keys"]] == ["acme", "default"]
    assert [one["rate"] for one in listed.json["keys"]] == [5, None]
    assert made["key"] not in listed.out and shown.out.strip() not in listed.out
    assert carrel("keys", "revoke", made["id"], data=data).out == f"{made['id']} is revoked\n"
    assert "revoked" in carrel("keys", "list", "--tenant", "acme", data=data).out
    assert "valid" in carrel("keys", "list", data=data).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "--tenant", "a b"), "tenant is 1 to 64"),
        (("create", "--user", "a/b"), "user is 1 to 64"),
        (("create", "--role", ""), "role is 1 to 64"),
        (("create", "--expires", "-1"), "--expires"),
        (("create", "--rate", "-1"), "--rate"),
        (("create", "--tokens-per-day", "many"), "--tokens-per-day"),
        (("create", "--expires", "99999999"), "year 10000"),
        (("revoke", "nothing"), "named by its id"),
    ],
)
def test_wrong_use_of_keys(
    carrel: Carrel, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    data = tmp_path / "fresh"
    assert carrel("keys", "create", data=data).code == 0
    carrel("keys", *arguments, data=data).failed(2, words)
    assert os.listdir(data)


def stopped(child: subprocess.Popen[str]) -> str:
    """Stop a server and return the rest of its log."""
    child.send_signal(signal.SIGTERM)
    return child.communicate(timeout=60)[1]


def test_settings_are_read_again_on_a_signal(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("max_question_chars: 500\n")
    with serving(data, "--allow-anonymous", "--settings", str(file)) as (url, child):
        assert child.stderr is not None
        assert httpx.post(f"{url}/api/v1/search", json={"query": HEIGHT}).status_code == 200
        file.write_text("max_question_chars: 12\nserve_threads: 9\n")
        child.send_signal(signal.SIGHUP)
        line = next(line for line in child.stderr if '"level"' in line)
        assert "max_question_chars=12" in line
        assert "serve.threads" in child.stderr.readline()
        refused = httpx.post(f"{url}/api/v1/search", json={"query": HEIGHT})
        assert "12 characters" in refused.json()["error"]["rule"]
        file.write_text("max_question_chars: many\n")
        child.send_signal(signal.SIGHUP)
        assert "max_question_chars" in child.stderr.readline()
        assert httpx.get(f"{url}/api/v1/health").status_code == 200
    rows = process("audit", "list", "--kind", "settings", "--json", data=data).json["events"]
    assert len(rows) == 2


def test_modes(carrel: Carrel, data: Path) -> None:
    carrel("serve", "--mode", "walrus", data=data).failed(2, "serve.mode", "'prod'")
    port = ("--port", 0, "--mode", "prod")
    carrel("serve", *port, data=data).failed(4, "there is no good key")
    done = carrel("serve", *port, "--allow-anonymous", "--set", "audit.enabled=false", data=data)
    done.failed(4, "(2)", "--allow-anonymous", "audit is off")
    made = process("keys", "create", "--json", data=data).json["key"]
    with serving(data, "--mode", "prod") as (url, child):
        header = {"Authorization": f"Bearer {made}"}
        assert httpx.get(f"{url}/api/v1/runs", headers=header).status_code == 200
        assert '"route": "/api/v1/runs"' in stopped(child)
    with serving(data, "--mode", "dev") as (url, child):
        assert httpx.get(f"{url}/api/v1/runs", headers=header).status_code == 200
        assert " info request " in stopped(child)
    shown = carrel("config", "--mode", "prod", "--json", data=data).json["settings"]
    changed = {name for name, row in shown.items() if row["origin"] == "mode"}
    assert {"serve.log_format", "serve.ask_rate"} <= changed
    assert shown["serve.ask_rate"]["live"] and not shown["serve.port"]["live"]
