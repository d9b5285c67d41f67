"""What only a process of its own shows: streams, signals, pipes, encodings, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from commands import COMMAND, DOCUMENTS, HEIGHT, ROOT, copied, process, query

INTERRUPT_AT_A_STEP = """
import os, signal, sys
import app.session
from cli.app import main
really = app.session.Session.ask
def ask(self, *arguments, **options):
    options["on_step"] = lambda step: os.kill(os.getpid(), signal.SIGINT)
    return really(self, *arguments, **options)
app.session.Session.ask = ask
main()
"""


def test_json_is_alone_on_stdout_and_nothing_is_on_stderr(library: Path) -> None:
    done = process("ask", HEIGHT, "--json", data=library)
    assert (done.code, done.err) == (0, "")
    assert not done.json["refused"]
    doctor = process("doctor", "--json", data=library)
    assert (doctor.code, doctor.err) == (0, "")
    report = doctor.json
    assert (report["ok"], report["problems"], report["documents"]) == (True, [], DOCUMENTS)
    assert report["chunks"] == report["fts_rows"] == report["vectors"] > 0


def test_help_and_version() -> None:
    done = process("--help")
    assert done.code == 0
    for command in ("demo", "ingest", "ask", "chat", "search", "trace", "doctor", "config"):
        assert f"  {command} " in done.out
    assert process("--version").out.startswith("carrel ")
    bare = process()
    assert (bare.code, bare.out) == (2, done.out)


def test_a_terminal_that_is_not_utf8(library: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process("search", "绿茶 80", "--json", data=library, env=ascii_only)
    assert done.code == 0
    assert "绿茶" in done.json["results"][0]["text"]
    assert process("search", "绿茶", data=library, env=ascii_only).code == 0


def test_bytes_that_are_not_utf8(library: Path) -> None:
    command = [os.fsencode(part) for part in COMMAND]
    question = HEIGHT.encode() + b" \xff\xfe"
    done = subprocess.run(
        [*command, b"ask", question, b"--json", b"--data", os.fsencode(library)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "42 mm" in json.loads(done.stdout)["answer"]


def test_a_reader_that_leaves_early(library: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "search", "wax", "--data", str(library)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.wait(60) == 0
        assert child.stderr.read() == b""


def test_an_interrupted_question_is_kept_as_cancelled(library: Path, tmp_path: Path) -> None:
    data = copied(library, tmp_path / "copy")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_AT_A_STEP, "ask", HEIGHT, "--data", str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "carrel: interrupted; what was finished is kept. Run it again to go on.\n"
    ((result,),) = query(data, "SELECT result FROM runs ORDER BY rowid DESC LIMIT 1")
    assert json.loads(result)["stop_reason"] == "cancelled"


def test_an_interrupt_before_anything_is_open(library: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "chat", "--data", str(library)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stderr is not None
        assert b"ask a question" in child.stderr.readline()  # it waits for input now
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert b"Traceback" not in err
    assert child.returncode in (0, 130)
