"""`carrel llm`: a server is started, watched, started again and stopped; nothing stays behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import fake_llama_server
import pytest
from commands import COMMAND, ROOT, Carrel, in_process
from filelock import FileLock
from llama_servers import MISSING, find_server_command, free_port

from core.settings import load_settings
from models.llama import command, plan
from models.llama.control import stop
from models.llama.server_state import LOCK, ServerState, birth, read_state, write_state
from reasoning.llm.exam_result import result_path

PATIENCE = 60.0  # until something is called missing, on a busy machine


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def carrel(
    port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Carrel]:
    """Run commands with short times; whatever they have started is ended with the test."""
    monkeypatch.setenv("CARREL_LLM_URL", f"http://localhost:{port}/v1")
    for name, value in {
        "HEALTH_SECONDS": "0.2",
        "STOP_SECONDS": "0.5",
        "THREADS": "1",
        "EXAM": "false",
    }.items():
        monkeypatch.setenv(f"CARREL_LLM_{name}", value)
    settings = load_settings()[0]
    yield in_process(capsys, monkeypatch)
    stop(settings)


@pytest.fixture
def real(tiny_model: Path) -> Path:
    """Return a model for tests that need a real server."""
    if find_server_command(tiny_model, 1, "key") is None:
        pytest.skip(MISSING)
    return tiny_model


@pytest.fixture
def mood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put the misbehaving server in place, and return what sets its mood."""
    script = tmp_path / "bin" / "llama-server"
    script.parent.mkdir()
    code = Path(fake_llama_server.__file__).read_text(encoding="utf-8")
    script.write_text(f"#!{sys.executable} -IS\n{code}", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CARREL_LLAMA__SERVER", str(script))

    def change(to: str) -> None:
        script.with_name("MOOD").write_text(to, encoding="utf-8")

    return change


def known() -> ServerState:
    state = read_state(load_settings()[0].llm_home)
    assert state is not None
    return state


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)


def wait_restarted(pid: int | None, times: int = 1) -> ServerState:
    wait_for(lambda: known().restarts == times and known().state == "healthy", "a restart")
    assert known().pid != pid
    return known()


def gone(*pids: int | None) -> bool:
    return all(pid is None or birth(pid) is None for pid in pids)


def asked(port: int, key: str = "") -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connection.request("GET", "/v1/models", headers=headers)
    code = connection.getresponse().status
    connection.close()
    return code


def test_a_model_is_examined_in_the_background(carrel: Carrel, real: Path, port: int) -> None:
    changes = ("--set", "llm.exam=true", "--set", "llm.answer_by_seconds=0.5")
    done = carrel("llm", "serve", real, *changes)
    assert "its exam goes on in the background" in done.out
    try:
        wait_for(lambda: _items(carrel) > 0, "the first item")
        joined = carrel("llm", "exam", "--json", "--set", "llm.exam_seconds=1").json
        assert 0 < joined["items"] < joined["of"]
        assert not joined["finished"]
    finally:
        carrel("llm", "stop")
    wait_for(lambda: not _examining(port), "the end of an exam without its server")
    result_path(load_settings()[0], joined["digest"]).unlink()  # all tests share a cache


def _examining(port: int) -> list[Path]:
    """Return the processes of an exam at a port."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            own = f":{port}/v1" in path.with_name("environ").read_text()
            found += [path] if own and "exam" in path.read_text().split("\0") else []
    return found


def _items(carrel: Carrel) -> int:
    exam = carrel("llm", "status", "--json").json["exam"]
    return exam["items"] if exam else 0


def test_serve_status_death_and_stop(carrel: Carrel, real: Path, port: int, tmp_path: Path) -> None:
    done = carrel("llm", "serve", real, "--json", "--context", 512)
    assert (done.code, done.err) == (0, "")
    served = done.json
    assert served["url"] == f"http://127.0.0.1:{port}/v1"
    assert (served["state"], served["model"], served["context"]) == ("healthy", real.stem, 512)
    assert list(served)[:6] == ["state", "url", "model", "pid", "supervisor_pid", "restarts"]
    key = (tmp_path / "llm" / "key").read_text().strip()
    assert (asked(port), asked(port, "wrong"), asked(port, key)) == (401, 401, 200)
    told = carrel("llm", "status", "--json").json
    assert told == served | {"exam": None, "others": []}
    assert "not examined" in carrel("llm", "status").out

    for pid in (served["pid"], served["supervisor_pid"]):
        assert key not in Path(f"/proc/{pid}/cmdline").read_text()
    os.kill(served["pid"], signal.SIGKILL)
    now = wait_restarted(served["pid"])
    assert asked(port, key) == 200
    shown = carrel("llm", "status")
    assert shown.code == 0
    for words in ("healthy", real.stem, f"pid {now.pid}", "restarted 1 times", "SIGKILL"):
        assert words in shown.out

    carrel("llm", "serve", real).failed(2, "running already", real.stem, "carrel llm stop")
    stopped = carrel("llm", "stop", "--json").json
    assert (stopped["state"], stopped["pid"]) == ("stopped", now.pid)
    assert gone(now.pid, now.supervisor_pid)
    logs = (tmp_path / "llm").glob("*.log*")
    assert not [log for log in logs if key in log.read_text(errors="replace")]
    assert carrel("llm", "stop").out == "no server was running\n"
    assert carrel("llm", "status", "--json").json["state"] == "stopped"
    assert carrel("llm", "status").code == 1


def test_a_stopped_server_is_started_again(carrel: Carrel, real: Path) -> None:
    first = carrel("llm", "serve", real, "--json", "--slots", 1).json
    os.kill(first["pid"], signal.SIGSTOP)
    state = wait_restarted(first["pid"])
    assert "has not answered" in state.error
    assert gone(first["pid"])


def test_nothing_outlives_the_supervisor(carrel: Carrel, real: Path, port: int) -> None:
    first = carrel("llm", "serve", real, "--json").json
    os.kill(first["supervisor_pid"], signal.SIGKILL)
    wait_for(lambda: gone(first["pid"]), "the end of the server")
    assert carrel("llm", "status").code == 1
    again = carrel("llm", "serve", real, "--json")
    assert (again.code, again.json["restarts"]) == (0, 0)


def test_in_the_foreground(carrel: Carrel, real: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "llm", "serve", str(real), "--foreground", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            served = json.loads(process.stdout.readline())
            assert served["supervisor_pid"] == process.pid
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert gone(served["pid"])


def test_a_server_that_ignores_sigterm(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path
) -> None:
    mood("deaf")
    first = carrel("llm", "serve", tiny_model, "--json").json
    mood("hung")
    wait_for(lambda: known().state == "restarting" and gone(first["pid"]), "SIGKILL")
    mood("deaf")
    second = wait_restarted(first["pid"])
    assert carrel("llm", "stop").code == 0
    assert gone(second.pid, second.supervisor_pid)


def test_a_busy_server_is_left_alone(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path
) -> None:
    mood("ok")
    first = carrel("llm", "serve", tiny_model, "--json").json
    mood("busy")
    script = Path(load_settings()[0].llama_server)
    wait_for(lambda: script.with_name("MOOD").read_text() == "ok", "the work")
    time.sleep(fake_llama_server.BUSY_SECONDS)
    wait_for(lambda: carrel("llm", "status").code == 0, "an answer")
    assert (known().pid, known().restarts) == (first["pid"], 0)


def test_it_gives_up_after_too_many_restarts(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path
) -> None:
    mood("ok")
    first = carrel("llm", "serve", tiny_model, "--json", "--set", "llama.restarts=1").json
    os.kill(first["pid"], signal.SIGKILL)
    os.kill(wait_restarted(first["pid"]).pid or 0, signal.SIGKILL)
    wait_for(lambda: known().state == "failed", "giving up")
    wait_for(lambda: gone(first["supervisor_pid"]), "the end of the supervisor")
    status = carrel("llm", "status", "--json")
    assert (status.code, status.json["state"], status.json["pid"]) == (1, "failed", None)
    assert "SIGKILL" in status.json["error"]


def test_a_server_that_does_not_come_up(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path
) -> None:
    mood("broken")
    carrel("llm", "serve", tiny_model).failed(4, "exit code 1", "of an unknown kind", "server.log")
    assert gone(known().supervisor_pid)
    mood("loading")
    slow = carrel("llm", "serve", tiny_model, "--set", "llama.load_seconds=0.5")
    slow.failed(4, "has not loaded the model within 0.5 s")
    wait_for(lambda: gone(known().supervisor_pid), "the end of the supervisor")


def test_a_log_stays_small(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path, tmp_path: Path
) -> None:
    mood("ok")
    log = tmp_path / "llm" / "server.log"
    log.parent.mkdir()
    log.write_text("x" * 20_000)
    carrel("llm", "serve", tiny_model, "--set", "llama.log_bytes=10000")
    wait_for(lambda: log.stat().st_size == 0, "rotation")
    assert log.with_name("server.log.1").stat().st_size == 20_000


def test_of_two_that_serve_at_once_one_is_told(carrel: Carrel, real: Path) -> None:
    home = load_settings()[0].llm_home
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / LOCK):
        carrel("llm", "serve", real).failed(4, "another server is just being started")


def test_a_port_that_is_taken(carrel: Carrel, real: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        carrel("llm", "serve", real).failed(4, str(port), "--port N")


def test_another_port_is_told(
    carrel: Carrel, mood: Callable[[str], None], tiny_model: Path
) -> None:
    mood("ok")
    other = free_port()
    done = carrel("llm", "serve", tiny_model, "--port", other)
    assert done.code == 0
    assert f"CARREL_LLM_URL=http://127.0.0.1:{other}/v1" in done.err


def test_a_url_of_another_machine(carrel: Carrel, real: Path) -> None:
    carrel("llm", "serve", real, "--set", "llm.url=http://0.0.0.0:8020/v1").failed(
        2, "on this machine alone", "0.0.0.0"
    )


def test_models_that_cannot_be_served(carrel: Carrel, real: Path, tmp_path: Path) -> None:
    carrel("llm", "serve").failed(1, "carrel models pull Qwen3-4B-Instruct-2507")
    carrel("llm", "serve", "Qwen3-8B").failed(1, "carrel models pull Qwen3-8B")
    carrel("llm", "serve", "Qwen9").failed(2, "Qwen9", "Qwen3-0.6B")
    carrel("llm", "serve", tmp_path / "none.gguf").failed(1, "none.gguf", "No such file")
    carrel("llm", "serve", tmp_path).failed(1, "a folder")
    (tmp_path / "page.gguf").write_text("<html>")
    carrel("llm", "serve", tmp_path / "page.gguf").failed(1, "starts with 'GGUF'")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(real.read_bytes()[:-1000])
    carrel("llm", "serve", cut).failed(1, "cut off", "cut.gguf")
    carrel("llm", "serve", real, "--context", 99_999).failed(2, "8192", "99999", "--context")
    assert not (tmp_path / "llm" / "server.json").exists()


def test_too_little_memory(
    carrel: Carrel, real: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plan, "memory_available", lambda: 200 << 20)
    carrel("llm", "serve", real).failed(4, "GiB of memory", "0.20 GiB are free", "--context")
    assert not (tmp_path / "llm" / "server.json").exists()


def test_no_server_is_installed(
    carrel: Carrel, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrel("llm", "serve", tiny_model, "--set", "llama.server=/nowhere/llama-server").failed(
        4, "/nowhere/llama-server", "CARREL_LLAMA__SERVER"
    )
    monkeypatch.delenv("CARREL_LLAMA__SERVER", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    carrel("llm", "serve", tiny_model).failed(4, "no llama.cpp server", "carrel-rag[llama]")


def test_a_state_left_behind_ends_nobody_else(carrel: Carrel, tmp_path: Path) -> None:
    home = tmp_path / "llm"
    home.mkdir()
    (home / "server.json").write_text("{")
    assert carrel("llm", "status").code == 1
    mine = os.getpid()
    state = ServerState(
        state="healthy", url="http://127.0.0.1:9/v1", model="m", file="m.gguf", pid=mine, birth="1",
        backend="llama-server", context=1, slots=1, gpu_layers=0, log="", started_at="2026-01-01",
        supervisor_pid=mine, supervisor_birth="1",
    )  # fmt: skip
    write_state(home, state)
    assert carrel("llm", "status", "--json").json["state"] == "stopped"
    assert carrel("llm", "stop", "--json").json["pid"] is None
    assert not (home / "server.json").exists()


def test_a_home_that_cannot_be_written(carrel: Carrel, real: Path, tmp_path: Path) -> None:
    (tmp_path / "llm").write_text("a file")
    carrel("llm", "serve", real).failed(4, "CARREL_LLAMA__HOME", "cannot be written")
