"""A running server whose disk fills up, or whose files may not grow, and is given room again."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.attack_disk_child import DIED, SETTINGS, Tally, carrel, looked, unwell
from benchmarks.disk_full import disk

RECOVERED_S = 60.0
READY_S = 120.0
DISK_KB = 24_000
NO_LIMIT = resource.RLIM_INFINITY
START = """import sys
from benchmarks.forked import run_carrel
sys.exit(run_carrel(sys.argv[1:], real=False))"""
UNRECORDED = "nothing is answered that the audit log cannot record"  # with `audit`, by design
CHANGES = ("serve_writer_roles=writer", "serve_ask_rate=0", "serve_rate=0", "serve_jobs=1000")
BIG = "The lamps of the long hall are lit at noon, and nobody says why. "


class Server:
    """Run `carrel serve` on a directory and call it as a writer."""

    def __init__(self, data: Path, log: Path, *, audit: bool) -> None:
        """Make a key and start; ready when this returns."""
        self.audit = audit
        made = carrel("keys", "create", "--user", "wri", "--role", "writer", "--json", data=data)
        key = json.loads(made.out)["key"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-c", START, "serve", "--port", str(port), "--data", str(data)]
        for change in (*CHANGES, f"audit={audit}"):
            command += ["--set", change]
        self.log = log
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=env)
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}/api/v1",
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
        )
        deadline = time.monotonic() + READY_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.http.get("/me").status_code == 200:
                    return
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"the server did not start: {log.read_text()[-500:]}")
            time.sleep(0.2)

    def close(self) -> int:
        """Stop it and return its exit code."""
        self.http.close()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def upload(self, name: str, text: str) -> httpx.Response:
        """Send a document."""
        return self.http.post("/documents", params={"name": name}, content=text.encode())

    def ended(self, response: httpx.Response) -> dict[str, Any]:
        """Wait for the job of an upload that was taken."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            job = self.http.get(f"/jobs/{response.json()['id']}").json()
            if job.get("state") in ("done", "failed", "cancelled"):
                return dict(job)
            time.sleep(0.05)
        return {"state": "hangs"}


class Attack:
    """Fill, call everything, give room, and see that all goes on."""

    def __init__(self, server: Server, tally: Tally) -> None:
        """Begin with documents, a conversation and a run that are acknowledged."""
        self.server, self.tally = server, tally
        self.kept: dict[str, str] = {}
        self.number = 0
        for _ in range(4):
            response, job = self.sent(400)
            if job.get("state") != "done":
                raise SystemExit(f"an upload with room enough: {response.text} {job}")
        self.talk = server.http.post("/conversations", json={}).json()["conversation_id"]
        self.run = self.asked(self.talk).json().get("run_id", "")

    def sent(self, size: int) -> tuple[httpx.Response, dict[str, Any]]:
        """Upload a document of a new name and wait for its job, where there is one."""
        self.number += 1
        word = f"zqu{self.number}x"
        text = f"Note about {word}.\n\n" + BIG * (size // len(BIG))
        response = self.server.upload(f"u{self.number}.txt", text)
        job = self.server.ended(response) if response.status_code == 202 else {}
        if job.get("state") == "done":
            self.kept[word] = f"u{self.number}.txt"
        return response, job

    def asked(self, conversation: str = "") -> httpx.Response:
        """Ask for the first document."""
        body: dict[str, Any] = {
            "question": f"What does the note about {next(iter(self.kept), 'it')} say?"
        }
        if conversation:
            body["conversation_id"] = conversation
        return self.server.http.post("/chat", json=body)

    def found(self, word: str) -> bool:
        """Tell whether a search finds its document."""
        body = {"query": word, "pipeline": "keyword", "k": 5}
        reply = self.server.http.post("/search", json=body)
        if reply.status_code != 200:
            return False
        return self.kept[word] in {one["document_id"] for one in reply.json()["results"]}

    def while_full(self, what: str) -> None:
        """Call all that reads and all that writes: nothing may be a 5xx without a sentence."""
        http, case = self.server.http, self.tally.case
        for word in list(self.kept)[-4:] if not self.server.audit else ():
            case(f"{what}: search {word}", [] if self.found(word) else ["not found"], "searched")
        for pipeline in ("hybrid", "vector", "keyword"):
            reply = http.post("/search", json={"query": "lamps of the hall", "pipeline": pipeline})
            case(f"{what}: {pipeline}", self.bad(reply, 200), str(reply.status_code))
        for size in (100, 20_000, 300_000):
            response, job = self.sent(size)
            wrong = self.bad(response, 202, 503, 507)  # SQLite calls `ulimit -f` a failing disk
            if job.get("state") == "failed":
                wrong += self.sentence(str(job.get("error")))
            elif job and job.get("state") != "done":
                wrong.append(f"the job {job}")
            case(f"{what}: upload of {size}", wrong, str(job.get("state") or response.status_code))
        for name in ("", self.talk):
            reply = self.asked(name)
            wrong = self.bad(reply, 200)
            case(f"{what}: ask in {name or 'none'}", wrong, str(reply.status_code))
        calls: list[tuple[str, Callable[[], httpx.Response]]] = [
            ("health", lambda: http.get("/health")),
            ("jobs", lambda: http.get("/jobs")),
            ("runs", lambda: http.get("/runs")),
            ("documents", lambda: http.get("/documents")),
            ("conversation", lambda: http.get(f"/conversations/{self.talk}")),
            ("new conversation", lambda: http.post("/conversations", json={})),
            ("feedback", lambda: http.post("/feedback", json={"run_id": self.run, "rating": "up"})),
            ("rename", lambda: http.patch(f"/conversations/{self.talk}", json={"title": "t"})),
            ("delete none", lambda: http.delete("/documents", params={"document_id": "no"})),
        ]
        for name, call in calls:
            reply = call()
            case(f"{what}: {name}", self.bad(reply), f"{name} {reply.status_code}")

    def bad(self, reply: httpx.Response, *wanted: int) -> list[str]:
        """Return what is wrong with a response: a bare 500, no sentence, another status."""
        wrong = []
        if reply.status_code == 500 or DIED.search(reply.text):
            wrong.append(f"{reply.status_code}: {reply.text[:300]}")
        elif self.server.audit and reply.status_code == 503 and UNRECORDED in reply.text:
            return []
        elif wanted and reply.status_code not in wanted:
            wrong.append(f"status {reply.status_code}: {reply.text[:300]}")
        if reply.status_code >= 500 and not wrong:
            wrong += self.sentence(reply.json().get("error", {}).get("message", ""))
        return wrong

    @staticmethod
    def sentence(text: str) -> list[str]:
        """A reason is one sentence that tells no place and no mistake of this program."""
        if re.search(r"Traceback|unexpected happened|Errno", text) or len(text) < 10:
            return [f"said {text!r}"]
        return []

    def recovered(self, what: str) -> None:
        """With room again an upload, a question and a turn succeed within a minute."""
        began = time.monotonic()
        wrong: list[str] = ["never"]
        while wrong and time.monotonic() - began < RECOVERED_S:
            response, job = self.sent(400)
            wrong = [] if job.get("state") == "done" else [f"upload {response.status_code} {job}"]
            reply = self.asked(self.talk)
            if reply.status_code != 200 or any("disk" in one for one in reply.json()["warnings"]):
                wrong.append(f"turn {reply.status_code} {reply.text[-300:]}")
            if wrong:
                time.sleep(0.5)
        wrong += [f"lost {word}" for word in self.kept if not self.found(word)]
        health = self.server.http.get("/health").json()
        self.tally.case(f"{what}: room again", wrong, "recovered")
        self.slowest = max(getattr(self, "slowest", 0.0), time.monotonic() - began)
        if health["status"] != "ok":
            self.tally.notes[f"health {health}"[:200]] = 1


@contextmanager
def attacked(data: Path, log: Path, name: str, *, audit: bool) -> Iterator[Attack]:
    """Serve a directory, attack it, stop, and check the directory."""
    (log.parent / "seed.txt").write_text("A note about zqseed.\n")
    if (made := carrel("ingest", log.parent / "seed.txt", data=data)).code:
        raise SystemExit(made.err)
    server = Server(data, log, audit=audit)
    try:
        attack = Attack(server, Tally(f"{name}, audit={str(audit).lower()}"))
        yield attack
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
        code = server.close()
    wrong = [f"the server ended with {code}"] if code not in (0, 130) else []
    wrong += unwell(looked(data, attack.kept))
    attack.tally.case("stopped and opened again", wrong, f"slowest recovery {attack.slowest:.1f} s")


def filled(work: Path, rounds: int) -> Iterator[Tally]:
    """Fill a disk under a running server, which needs root, and limit its files."""
    work.mkdir(parents=True, exist_ok=True)
    os.environ |= {f"CARREL_{name.upper()}": str(value) for name, value in SETTINGS.items()}
    for audit in (False, True):
        if not os.geteuid():
            yield _full(work, rounds, audit)
        yield _limited(work, rounds, audit)


def _full(work: Path, rounds: int, audit: bool) -> Tally:
    with disk(work / "disk", DISK_KB) as place:
        name = "full disk under a running server"
        with attacked(place / "data", work / "disk.log", name, audit=audit) as attack:
            for round_ in range(rounds):
                room = (0, 4096, 40_000, 200_000, 800_000, 12_000)[round_ % 6]
                _fill(place / "filling", room)
                attack.while_full(f"{room} bytes of room")
                (place / "filling").unlink()
                attack.recovered(f"{room} bytes of room")
    return attack.tally


def _limited(work: Path, rounds: int, audit: bool) -> Tally:
    name = "`ulimit -f` of a running server"
    with attacked(work / f"data{audit}", work / "limit.log", name, audit=audit) as attack:
        for round_ in range(rounds):
            most = (0, 4096, 100_000, 600_000, 1_500_000, 20_000)[round_ % 6]
            pid = attack.server.process.pid
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, NO_LIMIT))
            attack.while_full(f"files up to {most}")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
            attack.recovered(f"files up to {most}")
    return attack.tally


def _fill(path: Path, room: int) -> None:
    """Take all of the disk but so many bytes."""
    with path.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(65_536))
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        if room:
            file.truncate(max(0, file.tell() - room))
