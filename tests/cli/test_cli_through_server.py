"""Commands while a real `carrel serve` owns the data directory: the server runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from commands import (
    COMMAND,
    DOCUMENTS,
    HEIGHT,
    ROOT,
    Carrel,
    copied,
)
from real_servers import SECONDS, VARIABLES, Server, ended

from stores.lock import OwnerLock

MANY = 1500


@pytest.fixture
def run(carrel: Carrel, server: Server) -> Carrel:
    """Run a command over the server's directory; this process is its client."""
    return partial(carrel, data=server.data)


@pytest.fixture(scope="module")
def alone(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that no server owns."""
    return copied(library, tmp_path_factory.mktemp("a") / "d")


@pytest.fixture(scope="module")
def server(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = copied(library, tmp_path_factory.mktemp("owned") / "data")
    running = Server(data, "--allow-anonymous")
    try:
        yield running
    finally:
        errors = running.stop()
    assert "Traceback" not in errors
    assert running.child.returncode == 0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More files than are read while a test looks."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(MANY):
        text = f"# Ship {number}\n\nShip number {number} left harbour {number % 7} with grain. " * 3
        (folder / f"{number}.md").write_text(text)
    return folder


def through(server: Server) -> str:
    return f"(through the server, process {server.child.pid})\n"


def plain(text: str) -> str:
    """Return an output without what differs between any two runs."""
    text = re.sub(r"\b[0-9a-f]{12}\b", "ID", text)
    text = re.sub(r'_mb"?:? [0-9.]+', "_mb SIZE", text)
    text = re.sub(r"[0-9.]+(e-[0-9]+)? +(ms|s)\b", "TIME", text)
    text = re.sub(r'"(ms|seconds|created_at|updated_at|at)": ("[^"]*"|[0-9.e-]+)', "TIME", text)
    return re.sub(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+]+", "WHEN", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", HEIGHT),
        ("ask", HEIGHT, "--json"),
        ("ask", HEIGHT, "--steps"),
        ("ask", "Who invented the submarine?"),
        ("search", "绿茶 80", "--json"),
        ("search", "Чайник закипает"),
        ("search", "wax", "--set", "retrieval.top_k=1", "--json"),
        ("plan", HEIGHT),
        ("doctor",),
        ("doctor", "--json"),
        ("conversations", "list", "--json"),
        ("collections",),
        ("collections", "--json"),
        ("documents",),
        ("documents", "--json"),
        ("ask", HEIGHT, "-c", "nowhere"),
        ("search", "wax", "-c", "nowhere", "--user", "ann"),
        ("ask", HEIGHT, "--set", "budget.steps=many"),
        ("trace", "0000"),
        ("ask", "???"),
        ("ingest", "no such file"),
        ("search", "--pipeline", "none", "x"),
    ],
)
def test_a_server_says_what_a_process_of_its_own_says(
    carrel: Carrel, server: Server, alone: Path, arguments: tuple[str, ...]
) -> None:
    here, there = carrel(*arguments, data=alone), carrel(*arguments, data=server.data)
    assert there.code == here.code
    assert plain(there.out) == plain(here.out)
    errors = there.err.removeprefix(through(server))
    assert plain(errors) == plain(here.err)
    local = {"no such file", "none", "budget.steps=many"}  # refused before it is opened
    noted = not {"--json", *local} & set(arguments)
    assert (errors != there.err) == noted


def test_status_names_the_server(server: Server, run: Carrel) -> None:
    report = run("status", "--json").json
    assert report["server"]["pid"] == server.child.pid
    assert report["server"]["url"] == server.url
    assert report["collections"][0]["documents"] >= DOCUMENTS
    assert f"server: {server.url} (process {server.child.pid}" in run("status").out


def test_runs_and_conversations_are_shared(server: Server, run: Carrel, tmp_path: Path) -> None:
    said = server.process("chat", stdin=f"{HEIGHT}\n/new\nWhen does the kettle boil?\n")
    assert said.code == 0 and "42 mm" in said.out
    found = run("conversations", "list", "--json").json["conversations"]
    assert len(found) == 2
    name = found[-1]["conversation_id"]
    resumed = server.process("chat", "--continue", name, stdin="And how does it burn?\n/quit\n")
    assert resumed.code == 0 and HEIGHT in resumed.err
    assert len(run("conversations", "show", name, "--json").json["turns"]) == 2
    newest = run("trace", "last", "--json").json
    assert newest["question"] == "And how does it burn?"
    page = tmp_path / "run.html"
    assert str(page) in run("trace", "last", "--out", page).out and page.stat().st_size
    run("conversations", "delete", name, "-y", "--json")
    rows = run("audit", "list", "--kind", "deletion", "--json").json["events"]
    assert rows[0]["facts"] == {"conversation": name, "user": "local"}
    assert run("audit", "verify").code == 0


def test_paths_are_those_of_the_folder_it_was_typed_in(
    server: Server, run: Carrel, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ship.md").write_text(
        "# Ship\n\nThe maximum speed of the ship Vela is 31 knots.\n"
    )
    command = [*COMMAND, "ingest", "notes", "-c", "ships", "--data", str(server.data), "--json"]
    there = {**os.environ, **VARIABLES, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=there, capture_output=True, text=True, timeout=SECONDS
    )
    assert json.loads(done.stdout)["indexed"] == 1, done.stderr
    command = [*COMMAND, "trace", "last", "--out", "run.html", "--data", str(server.data)]
    assert (
        "31 knots" in run("ask", "What is the maximum speed of the ship Vela?", "-c", "ships").out
    )
    written = subprocess.run(
        command, cwd=tmp_path, env=there, capture_output=True, text=True, timeout=SECONDS
    )
    assert written.stdout.endswith("is in run.html\n")
    assert "Vela" in (tmp_path / "run.html").read_text()
    rows = run("audit", "list", "--kind", "upload", "--json").json["events"]
    assert rows[0]["facts"]["collection"] == "ships"


def test_what_comes_from_a_pipe_reaches_the_server(server: Server, tmp_path: Path) -> None:
    def piped(*arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [*COMMAND, *arguments, "--data", str(server.data)]
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=SECONDS, cwd=ROOT, check=False
        )

    text = "# Anchors\r\n\r\nAn anchor of the Osk weighs 77 kg.\r\n" + "Rope.\n\n" * 20_000
    done = piped("ingest", "-", "--name", "anchors.md", "-c", "piped", stdin=text.encode())
    assert done.returncode == 0 and b"1 indexed" in done.stdout, done.stderr
    asked = piped("ask", "-", "-c", "piped", stdin=b"How much does an anchor of the Osk weigh?\n")
    assert b"77 kg" in asked.stdout, asked.stderr


def test_what_the_server_decides_is_not_asked_for(
    run: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = run("ask", HEIGHT, "--set", "embedding.threads=3", "--json")
    other.failed(2, "the running server decides embedding.threads", "stop the server")
    monkeypatch.setenv("CARREL_REASONER", "llm")
    other = run("ask", HEIGHT, "--json")
    other.failed(2, "the running server decides reasoner")


def test_some_commands_need_the_directory_for_themselves(server: Server, run: Carrel) -> None:
    for command in (("serve", "--port", "0"), ("demo",)):
        refused = run(*command)
        assert refused.code == 4
        assert f"process {server.child.pid} " in refused.err and server.url in refused.err


def test_the_secret_is_in_one_place(server: Server, run: Carrel) -> None:
    secret = str(server.owner["secret"])
    note = server.data / "owner.json"
    assert note.stat().st_mode & 0o777 == 0o600
    for said in (run("doctor", "--json"), run("config"), run("audit", "list")):
        assert secret not in said.out + said.err
    held = [path for path in server.data.rglob("*") if path.is_file() and path != note]
    assert held and not [path for path in held if secret.encode() in path.read_bytes()]
    assert secret.encode() not in Path(f"/proc/{server.child.pid}/cmdline").read_bytes()


def test_a_wrong_secret_is_refused_as_by_any_owner(server: Server, run: Carrel) -> None:
    note = server.data / "owner.json"
    kept = note.read_text()
    try:
        note.write_text(json.dumps({**server.owner, "secret": "0" * 64}))
        done = run("ask", HEIGHT, "--json")
        done.failed(4, f"in use by process {server.child.pid} ", server.url)
    finally:
        note.write_text(kept)
    assert run("ask", HEIGHT, "--json").code == 0


def test_forget_and_backup_go_through_it(server: Server, run: Carrel, tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("# Gone\n\nThe marker is xyzzy-plugh in this text.\n")
    assert run("ingest", tmp_path / "gone.md", "-c", "gone", "--json").json["indexed"] == 1
    assert run("search", "xyzzy-plugh", "-c", "gone", "--json").json["results"]
    assert run("forget", "--source", "gone.md", "-c", "gone", "-y", "--json").json["erased"]
    run("search", "xyzzy-plugh", "-c", "gone", "--json").failed(2, "gone")
    packed = run("backup", tmp_path / "all.backup", "--json").json
    assert packed["bytes"] == (tmp_path / "all.backup").stat().st_size
    secret = str(server.owner["secret"]).encode()
    assert secret not in (tmp_path / "all.backup").read_bytes()


def test_two_clients_at_once(server: Server) -> None:
    children = [server.start("search", word, "--json") for word in ("wax", "walrus")]
    with children[0], children[1]:
        said = [child.communicate(timeout=SECONDS)[0] for child in children]
    found = [json.loads(text)["results"] for text in said]
    assert [results[0]["title"] for results in found] == ["Candles", "Walruses"]


def lines_until(child: subprocess.Popen[str], words: str) -> list[str]:
    assert child.stderr is not None
    lines = []
    for line in child.stderr:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(lines)


def test_long_work_waits_its_turn_and_can_be_interrupted(
    server: Server, run: Carrel, many: Path
) -> None:
    first = server.start("ingest", str(many), "-c", "one")
    lines_until(first, "through the server")
    assert server.works_on("one")
    second = server.start("ingest", str(many / "1.md"), "-c", "two")
    lines_until(second, "waiting for ingest into one")
    assert run("search", "wax", "--json").json["results"]  # which waits for nobody
    second.send_signal(signal.SIGINT)
    assert ended(second).count("interrupted") == 1 and second.returncode == 130
    first.send_signal(signal.SIGINT)
    assert ended(first).count("interrupted") == 1 and first.returncode == 130
    report = run("doctor", "--json").json  # what was read is kept whole, as by any interruption
    assert report["chunks"] == report["fts_rows"]


def test_a_client_that_is_killed_leaves_nobody_waiting(
    server: Server, run: Carrel, many: Path
) -> None:
    first = server.start("ingest", str(many), "-c", "three")
    lines_until(first, "through the server")
    assert server.works_on("three")
    first.kill()
    ended(first)
    done = run("ingest", many / "2.md", "-c", "four", "--json")
    assert done.json["indexed"] == 1


def test_a_reader_that_leaves_early(server: Server, run: Carrel) -> None:
    child = server.start("trace")
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert child.wait(SECONDS) == 0
    assert child.stderr.read() == through(server)
    child.stderr.close()
    assert run("search", "wax", "--json").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_ends_its_commands(
    carrel: Carrel, tmp_path: Path, alone: Path, many: Path, number: signal.Signals
) -> None:
    data = copied(alone, tmp_path / "data")
    server = Server(data, "--allow-anonymous", "--set", "serve.stop_seconds=50")
    command = server.start("ingest", str(many), "-c", "one")
    lines_until(command, "through the server")
    assert server.works_on("one")
    errors = server.stop(number)
    said = ended(command)
    assert command.returncode == 4
    assert ("server was stopped" if number == signal.SIGTERM else "ended before") in said
    assert "Traceback" not in errors + said
    done = carrel("ingest", many / "1.md", "-c", "two", "--json", data=server.data)
    assert (done.code, done.err) == (0, "")  # by itself again, whatever note was left
    doctor = carrel("doctor", "--json", data=server.data)  # what was in the middle is whole now
    assert (doctor.code, doctor.err) == (0, "")
    assert doctor.json["documents"] >= DOCUMENTS


def test_a_server_may_take_no_commands(carrel: Carrel, tmp_path: Path, alone: Path) -> None:
    data = copied(alone, tmp_path / "data")
    with OwnerLock(data, wait_s=0) as lock:
        lock.announce("http://127.0.0.1:8400", 0)
        done = carrel("ask", HEIGHT, "--json", data=data)
    done.failed(4, f"process {os.getpid()} ", "at http://127.0.0.1:8400", "Ask it over HTTP")
