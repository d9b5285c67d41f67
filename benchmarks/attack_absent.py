"""What belongs to another against what does not exist: the same words, in the same time."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.attack_world import COLLECTION, Tally, World, attacked

PAIRS = 200  # of each kind
FAR_MS = 5.0  # a difference of medians above this tells them apart
QUESTION = "What is the travel budget of the Lyon office?"
# What is told of the request itself: its id, and the id that was asked for.
_OWN = re.compile(r'"(?:id|value|message)":\s*(?:"[^"]*"|null)')


@dataclass(frozen=True)
class Probe:
    """Say how to ask for one kind of thing by id, as whom, and ids that others own."""

    what: str
    kind: str
    ask: Callable[[httpx.Client, str], httpx.Response]
    foreign: list[str]
    absent: Callable[[int], str]


def attack_absent(folder: Path, cases: int, seed: int) -> Iterable[Tally]:
    """Compare 404s; nothing of them may say that the thing exists."""
    with attacked(folder) as world:
        for probe in probes(world):
            yield compared(world, probe, PAIRS)


def compared(world: World, probe: Probe, pairs: int) -> Tally:
    """Ask for foreign and absent ids in turn; the times in ms."""
    tally = Tally(f"absent or foreign: {probe.what}")
    times: dict[bool, list[float]] = {True: [], False: []}
    with world.client(probe.kind) as client:
        for number in range(pairs + 5):
            said = {}
            for is_foreign in (True, False) if number % 2 else (False, True):
                owned = probe.foreign[number % len(probe.foreign)]
                wanted = owned if is_foreign else probe.absent(number)
                began = time.perf_counter()
                got = probe.ask(client, wanted)
                took = (time.perf_counter() - began) * 1000
                said[is_foreign] = (got.status_code, _OWN.sub("", got.text).replace(wanted, ""))
                if number >= 5:  # after the first ones all is loaded
                    times[is_foreign].append(took)
            if number >= 5:
                same = said[True] == said[False]
                tally.check(same, f"{said[True]} against {said[False]}")
    foreign, absent = (statistics.median(times[one]) for one in (True, False))
    tally.note = f"p50 foreign {foreign:.2f} ms, absent {absent:.2f} ms"
    if abs(foreign - absent) >= FAR_MS:
        tally.broken.append(f"the time tells them apart: {tally.note}")
    return tally


def probes(world: World) -> list[Probe]:
    """Make things of others and say how a user without their rights asks for them."""
    owned = made(world)

    def flat(number: int) -> str:
        return f"{number:012x}"

    def get(path: str) -> Callable[[httpx.Client, str], httpx.Response]:
        return lambda client, one: client.get(path.format(one))

    def feedback(client: httpx.Client, one: str) -> httpx.Response:
        return client.post("/api/v1/feedback", json={"run_id": one, "rating": "up"})

    def chat(client: httpx.Client, one: str) -> httpx.Response:
        sent = {"question": QUESTION, "conversation_id": one}
        return client.post("/api/v1/chat", json=sent)

    def passages(client: httpx.Client, one: str) -> httpx.Response:
        given = {"collection": COLLECTION, "document_id": one}
        return client.get("/api/v1/documents/passages", params=given)

    def deletion(client: httpx.Client, one: str) -> httpx.Response:
        given = {"collection": COLLECTION, "document_id": one}
        return client.delete("/api/v1/documents", params=given)

    def collection(client: httpx.Client, one: str) -> httpx.Response:
        return client.get("/api/v1/documents", params={"collection": one})

    def remove(path: str) -> Callable[[httpx.Client, str], httpx.Response]:
        return lambda client, one: client.delete(path.format(one))

    found = []
    for whose in ("board", "other"):
        runs, talks = owned[whose]["runs"], owned[whose]["talks"]
        of = f"of {'another user' if whose == 'board' else 'another tenant'}"
        long = lambda number: f"{number:032x}"  # noqa: E731
        found += [
            Probe(f"run {of}", "user", get("/api/v1/runs/{}"), runs, flat),
            Probe(f"drawing of a run {of}", "user", get("/api/v1/runs/{}/plan.svg"), runs, flat),
            Probe(f"feedback on a run {of}", "user", feedback, runs, flat),
            Probe(f"conversation {of}", "user", get("/api/v1/conversations/{}"), talks, long),
            Probe(
                f"deleting a conversation {of}",
                "user",
                remove("/api/v1/conversations/{}"),
                talks,
                long,
            ),
            Probe(f"question in a conversation {of}", "user", chat, talks, long),
        ]
    jobs, keys = owned["other"]["jobs"], owned["other"]["keys"]
    hidden, own = owned["board"]["documents"], owned["writer"]["jobs"]
    absent_file = lambda number: f"hidden{number + 5000:04d}.txt"  # noqa: E731
    found += [
        Probe("job of another tenant", "user", get("/api/v1/jobs/{}"), jobs, flat),
        Probe("job of another user", "user", get("/api/v1/jobs/{}"), own, flat),
        Probe("cancelling a job of another user", "user", remove("/api/v1/jobs/{}"), own, flat),
        Probe("key of another tenant", "admin", remove("/api/v1/keys/{}"), keys, flat),
        Probe("passages of a hidden document", "user", passages, hidden, absent_file),
        Probe("deleting a hidden document", "writer", deletion, hidden, absent_file),
        Probe(
            "collection of another tenant",
            "user",
            collection,
            ["zoosecret"],
            lambda n: f"none{n:05d}",
        ),
        Probe("hidden collection", "user", collection, ["closed"], lambda n: f"none{n:02d}"),
    ]
    return found


def made(world: World) -> dict[str, dict[str, list[str]]]:
    """Make things of several owners and return their ids."""
    owned: dict[str, dict[str, list[str]]] = {}
    for whose in ("board", "other", "writer"):
        ids: dict[str, list[str]] = {
            "runs": [],
            "talks": [],
            "jobs": [],
            "keys": [],
            "documents": [],
        }
        with world.client(whose) as client:
            for number in range(5):
                asked = {"question": f"{QUESTION} {number}", "collection": COLLECTION}
                ids["runs"].append(done(client.post("/api/v1/chat", json=asked))["run_id"])
                begun = client.post("/api/v1/conversations", json={"collection": COLLECTION})
                ids["talks"].append(done(begun)["conversation_id"])
            if whose == "other":
                for _ in range(5):
                    ids["keys"].append(done(client.post("/api/v1/keys", json={"user": "q"}))["id"])
            if whose != "board":
                ids["jobs"] += [uploaded(client, f"{whose}{n}.txt", "Owls hunt.") for n in range(3)]
            if whose == "other":
                uploaded(client, "secret.txt", "A secret of the zoo.", "zoosecret")
        owned[whose] = ids
    with world.client("writer") as client:
        files = [f"hidden{number:04d}.txt" for number in range(5)]
        for name in files:
            uploaded(client, name, f"Only the board reads {name}.", role="board")
    owned["board"]["documents"] = files
    return owned


def done(got: httpx.Response) -> dict[str, Any]:
    """Return the JSON of an answer that must be good."""
    if got.status_code >= 400:
        raise SystemExit(f"the attack could not begin: {got.text[:500]}")
    said: dict[str, Any] = got.json()
    return said


def uploaded(
    client: httpx.Client, name: str, text: str, collection: str = COLLECTION, role: str = ""
) -> str:
    """Upload a text, wait until it is ingested, and return the job's id."""
    job = done(offered(client, collection, name, text, **({"role": role} if role else {})))
    while job["state"] in ("waiting", "running"):
        time.sleep(0.05)
        job = done(client.get(f"/api/v1/jobs/{job['id']}"))
    if job["state"] != "done":
        raise SystemExit(f"an upload failed: {job}")
    return str(job["id"])


def offered(
    client: httpx.Client, collection: str, name: str, text: str, **more: str
) -> httpx.Response:
    """Upload a text as soon as there is room in the line."""
    while True:
        given = {"collection": collection, "name": name, **more}
        got = client.post("/api/v1/documents", params=given, content=text.encode())
        if got.status_code != 429:
            return got
        time.sleep(0.5)
