"""`carrel ingest --enqueue`, `carrel worker` and the queue in `carrel status`."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from commands import COMMAND, ROOT, Carrel, process, write_files

from cli.server import serve
from stores.lock import OwnerLock

FILES = {"a.txt": "A heron is 90 cm tall.", "b.txt": "A crane is 120 cm tall."}


def queue(carrel: Carrel, data: Path) -> dict[str, object]:
    found = carrel("status", "--json", data=data).json["queue"]
    assert isinstance(found, dict)
    return found


def test_an_enqueued_ingest_waits_for_a_worker(carrel: Carrel, tmp_path: Path) -> None:
    files, data = write_files(tmp_path / "files", FILES), tmp_path / "data"
    (files / "poison.pdf").write_bytes(b"nothing")
    job = carrel("ingest", files, "--enqueue", "--json", data=data).json["job"]
    gone = carrel("ingest", files / "a.txt", "--enqueue", data=data).out.strip()
    assert carrel("worker", "--cancel", gone, data=data).code == 0
    counts = queue(carrel, data)
    assert (counts["waiting"], counts["running"], counts["cancelled"]) == (1, 0, 1)
    assert "jobs: 1 waiting\n" in carrel("status", data=data).out
    done = carrel("worker", "--until-empty", data=data)
    assert (done.code, done.out) == (0, f"{job} done: 2 documents\n")
    counts = queue(carrel, data)
    assert (counts["waiting"], counts["running"], counts["done"]) == (0, 0, 1)
    assert isinstance(counts["jobs"], list)
    assert counts["jobs"][1]["notes"][0].startswith("poison.pdf: ")
    asked = ("worker", "--cancel", job)
    carrel(*asked, data=data).failed(2, "no job of this id waits", job)
    assert carrel("worker", "--until-empty", data=data).out == ""


def test_an_ingest_is_enqueued_beside_an_owner(carrel: Carrel, tmp_path: Path) -> None:
    files, data = write_files(tmp_path / "files", FILES), tmp_path / "data"
    carrel("ingest", files, "--enqueue", data=data)
    with OwnerLock(data, wait_s=0):
        assert carrel("ingest", files, "--enqueue", data=data).code == 0
    assert queue(carrel, data)["waiting"] == 2


def test_what_a_job_cannot_have_is_one_line(carrel: Carrel, tmp_path: Path) -> None:
    data = tmp_path / "data"
    given = ("ingest", tmp_path, "--enqueue", "--set", "retrieval.top_k=3")
    carrel(*given, data=data).failed(2, "the settings of its worker", "retrieval.top_k")
    carrel("ingest", tmp_path / "none", "--enqueue", data=data).failed(2, "must exist")
    assert not data.exists()


def test_a_worker_takes_over_from_a_dead_one(carrel: Carrel, tmp_path: Path) -> None:
    """Processes: the first is killed, the second waits beside it and goes on."""
    files, data = write_files(tmp_path / "files", FILES), tmp_path / "data"
    carrel("ingest", files, "--enqueue", data=data)
    first = subprocess.Popen([*COMMAND, "worker", "--data", str(data)], cwd=ROOT, stdout=-1)
    try:
        assert first.stdout is not None and b"done" in first.stdout.readline()
        second = subprocess.Popen(
            [*COMMAND, "worker", "--until-empty", "--data", str(data)], cwd=ROOT
        )
        assert second.wait(60) == 0  # the first has done everything
        asked = process("status", "--json", data=data)  # through the worker
        assert asked.json["queue"]["done"] == 1
        third = subprocess.Popen([*COMMAND, "worker", "--data", str(data)], cwd=ROOT, stdout=-1)
        time.sleep(serve.AGAIN_S)
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert carrel("ingest", files / "a.txt", "-c", "more", "--enqueue", data=data).code == 0
    assert third.stdout is not None and b"done: 1 document" in third.stdout.readline()
    third.terminate()
    assert third.wait(30) == 0
    third.stdout.close()
