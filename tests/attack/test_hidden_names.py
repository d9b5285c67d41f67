"""What is hidden does not exist, in no text of any route, tool or command.

Worlds of documents with random access lists are made, each in a tenant of its own of one server.
Every name in them holds a marker that stands nowhere else, and what a caller may read of markers
follows from the access lists alone. Each route is asked for hidden names, absent ones and hostile
ones: no answer holds a marker that its caller neither sees nor sent, and the answer for what is
hidden is the answer for what is absent, with the name exchanged.

`HIDDEN_WORLDS=40 pytest tests/attack/test_hidden_names.py -s` asks more, and says how much.
"""

from __future__ import annotations

import hashlib
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from behind import rows
from commands import Done, in_process, write_files
from fakes import document, write
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from postgres_server import RECORDS
from serving import eventually, running
from test_serve_matrix import ROWS
from tiers import QUICK, examples

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.settings import load_settings
from serve.services import AppState, make_app_state
from stores.runlog.jobs import JobRow, JobRows
from stores.store import parts

WORLDS = int(os.environ.get("HIDDEN_WORLDS", "1"))
HOSTILE = 2 if WORLDS == 1 else 6  # names near each hidden one
COLLECTIONS = 5
TIMED = 200  # times that each of two answers is timed
APART_MS = 5.0
BOARD = 2  # the role that no caller has, but for the one who made the rest of a world
# One place that all see in part, and three that the board alone sees: an upload opens one of them.
ALWAYS = [
    (0, frozenset[int](), False),
    (0, frozenset({BOARD}), True),
    (2, frozenset({BOARD}), False),
    (3, frozenset({BOARD}), False),
    (4, frozenset({BOARD}), False),
]
HARBOUR = "harbour"  # in every document
# What an admin is shown of their own tenant, whatever its documents' access lists say.
OF_ADMINS = {"/api/v1/audit", "/api/v1/keys", "/api/v1/feedback", "/api/v1/jobs"}
CHANGING = re.compile(
    r"(?P<id>\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{12}\b)"
    r"|\b20\d\d-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)?"
    r"|\"(?:ms|created|seconds|done|total)\": ?[0-9.e-]+"
    r"|\"(?:state|stage)\": ?\"\w*\""  # of a job that has just begun, or waits for another
)
numbers = count(1)
asked: Counter[str] = Counter()


def marker(*of: object) -> str:
    """Return a word that nothing else holds; all are of one length."""
    return "zq" + hashlib.sha256(repr(of).encode()).hexdigest()[:14]


@dataclass(frozen=True)
class Doc:
    """Hold one document; its marker is in its id, source, title, text, field and value."""

    collection: str
    roles: frozenset[str]
    mark: str
    record: bool

    @property
    def id(self) -> str:
        """Return its id."""
        return f"{self.mark}.md"


@dataclass
class World:
    """Hold one tenant: its documents, and what one user of every role has done there."""

    tenant: str
    roles: list[str]
    docs: list[Doc]
    boss: str = ""
    done: dict[str, str] = field(default_factory=dict)

    def seen(self, caller: AuthContext) -> list[Doc]:
        """Return the documents of which the caller may know."""
        return [one for one in self.docs if not one.roles or one.roles & caller.roles]

    def markers(self) -> set[str]:
        """Return every marker."""
        named = {word for one in self.docs for word in (one.mark, one.collection)}
        return named | {*self.roles, self.boss, self.done["talk"]}

    def open_to(self, caller: AuthContext) -> set[str]:
        """Return the markers of which the caller may know."""
        named = {word for one in self.seen(caller) for word in (one.mark, one.collection)}
        return named | caller.roles


shapes = st.lists(
    st.tuples(st.integers(0, 1), st.frozensets(st.integers(0, BOARD), max_size=2), st.booleans()),
    max_size=6,
)
held = st.frozensets(st.integers(0, BOARD - 1))
powers = st.frozensets(st.sampled_from(["writer", "admin"]), max_size=2)


@pytest.fixture(scope="module", params=RECORDS)
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    flags = {"data": tmp_path_factory.mktemp("worlds") / "data", "reasoner": "rules"}
    flags |= RECORDS[request.param]()
    worlds.clear()  # those of another catalogue
    flags |= {"serve_ask_rate": 0, "serve_rate": 0, "serve_jobs": 1000}
    with Session(load_settings(flags)[0], create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(session: Session) -> Iterator[tuple[AppState, str]]:
    services = make_app_state(session)
    with running(services) as url:
        yield services, url


def client_of(served: tuple[AppState, str], auth: AuthContext) -> httpx.Client:
    services, url = served
    key, _ = services.keys.create(auth.tenant, user=auth.user, roles=auth.roles, days=1)
    given = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=given, timeout=60, verify=False)


def make_world(
    session: Session, served: tuple[AppState, str], shape: list[tuple[int, frozenset[int], bool]]
) -> World:
    number = next(numbers)
    roles = [marker("role", number, one) for one in range(BOARD + 1)]
    names = [marker("collection", number, one) for one in range(COLLECTIONS)]
    docs = [
        Doc(names[at], frozenset(roles[one] for one in acl), marker("doc", number, place), record)
        for place, (at, acl, record) in enumerate([*ALWAYS, *shape])
    ]
    world = World(f"tenant{number}", roles, docs, boss=marker("boss", number))
    for name in dict.fromkeys(one.collection for one in docs):
        target = session.store.intake.open_collection(world.tenant, name, None)
        written = [
            document(
                target,
                one.id,
                f"The {HARBOUR} of {one.mark} is deep.",
                source=f"{one.mark}/{one.id}",
                title=f"On {one.mark}",
                acl=one.roles,
                fields={f"field-{one.mark}": one.mark} if one.record else None,
            )
            for one in docs
            if one.collection == name
        ]
        write(session.store, target, written, session.embedder)  # type: ignore[arg-type]
        session.build_tree(AuthContext(tenant=world.tenant, user=world.boss), target)
    boss = AuthContext(tenant=world.tenant, user=world.boss, roles=frozenset([*roles, "writer"]))
    world.done["talk"] = marker("talk", number)
    question = f"How deep is the {HARBOUR} of {world.done['talk']}?"
    with client_of(served, boss) as client:
        place = docs[0].collection
        begun = client.post("/api/v1/conversations", json={"collection": place}).json()
        world.done["conversation"] = begun["conversation_id"]
        sent = {"question": question, "conversation_id": begun["conversation_id"]}
        world.done["run"] = client.post("/api/v1/chat", json=sent).json()["run_id"]
        stated = {**sent, "question": f"My boat is called {world.done['talk']}."}
        assert client.post("/api/v1/chat", json=stated).status_code == 200
        [note] = client.get("/api/v1/memory").json()["notes"]
        world.done["note"] = note["note_id"]
        rated = {"run_id": world.done["run"], "rating": "up", "comment": world.done["talk"]}
        assert client.post("/api/v1/feedback", json=rated).status_code == 201
        params = {"collection": place, "name": f"{world.done['talk']}.txt", "role": roles[BOARD]}
        job = client.post("/api/v1/documents", params=params, content=b"A quay.").json()
        world.done["job"] = job["id"]
        ended(client, job["id"])
    docs.append(Doc(place, frozenset(roles[BOARD:]), world.done["talk"], record=False))
    world.done["key"] = served[0].keys.create(f"{world.tenant}-other")[1].id
    return world


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    """Wait for a job and return it."""
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(client.get(f"/api/v1/jobs/{job}").json())
        return found["state"] in ("done", "failed", "cancelled")

    eventually(over)
    return found


@dataclass(frozen=True)
class Probe:
    """Hold one request; `name` is what is exchanged for `absent` in the one that it is like."""

    path: str
    sends: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    absent: str = ""

    def exchanged(self) -> Probe:
        """Return the same request with the absent name."""
        path = self.path.replace(self.name, self.absent)
        return replace(self, path=path, sends=_exchanged(self.sends, self.name, self.absent))


def _exchanged(value: Any, name: str, absent: str) -> Any:
    if isinstance(value, dict):
        return {key: _exchanged(one, name, absent) for key, one in value.items()}
    if isinstance(value, list):
        return [_exchanged(one, name, absent) for one in value]
    return value.replace(name, absent) if isinstance(value, str) else value


@dataclass(frozen=True)
class Names:
    """Hold what one caller may try: names they see (or "") and pairs of hidden and absent ones."""

    collection: str
    collections: list[tuple[str, str]]  # hidden, absent
    documents: list[tuple[str, str]]
    done: dict[str, tuple[str, str]]


def names_for(world: World, caller: AuthContext) -> Names:
    seen = world.seen(caller)
    places = {one.collection for one in world.docs}
    open_places = {one.collection for one in seen}
    absent = marker("absent", world.tenant, caller.user)
    hidden = [one for one in world.docs if one not in seen]
    in_sight = [one for one in hidden if one.collection in open_places]
    done = {
        kind: (name, hashlib.sha256(f"{kind}{name}".encode()).hexdigest()[: len(name)])
        for kind, name in world.done.items()
        if kind != "talk"
    }
    return Names(
        min(open_places, default=""),
        [(name, absent) for name in sorted(places - open_places)[:1]],
        [(one.mark, absent) for one in in_sight[:1]],
        done,
    )


def hostile(name: str) -> list[str]:
    """Return names near a hidden one that must not lead to it."""
    near = [name.upper(), f"{name[:6]}%", f"{name[:6]}*", name[:9], f"{name} ", f"'{name[:5]}' OR"]
    return near[:HOSTILE]


def collection_probes(names: Names, make: Callable[[str], Probe]) -> Iterator[Probe]:
    """Yield a request for a collection that is seen, hidden ones, and names near those."""
    if names.collection:
        yield make(names.collection)
    for hidden, absent in names.collections:
        yield replace(make(hidden), name=hidden, absent=absent)
        yield from (make(near) for near in hostile(hidden))


def document_probes(names: Names, make: Callable[[str, str], Probe]) -> Iterator[Probe]:
    for hidden, absent in names.documents:
        yield replace(make(names.collection, f"{hidden}.md"), name=hidden, absent=absent)
        for near in hostile(hidden):
            yield make(names.collection, near)
    for hidden, absent in names.collections:
        yield replace(make(hidden, "some.md"), name=hidden, absent=absent)


def question_probes(names: Names, make: Callable[[str, str], Probe]) -> Iterator[Probe]:
    """Yield questions for a collection, and questions that name what is hidden."""
    yield from collection_probes(names, lambda name: make(name, f"How deep is the {HARBOUR}?"))
    if names.collection:
        for hidden, _ in names.documents:  # another word has another vector: nothing to compare
            yield make(names.collection, f"How deep is the {HARBOUR} of {hidden}?")


def own(names: Names, kind: str, path: str, **sends: Any) -> list[Probe]:
    """Return a request for what another user did, by its id."""
    hidden, absent = names.done[kind]
    made = Probe(path.format(hidden), _exchanged(sends, "{}", hidden), hidden, absent)
    short = hidden[:6]
    return [made, Probe(path.format(short), _exchanged(sends, "{}", short))]


def agent(below: str, name: str) -> Callable[[Names], Iterator[Probe]]:
    def ask(collection: str, question: str) -> Probe:
        given = {"question": question, "collection": collection}
        body = {"inputs": [given]} if name == "batch" else {"input": given}
        return Probe(f"/agent{below}/{name}", {"json": body})

    def configured(collection: str) -> Probe:
        given = {"question": f"How deep is the {HARBOUR}?"}
        body: dict[str, Any] = {"inputs": [given]} if name == "batch" else {"input": given}
        body["config"] = {"configurable": {"collection": collection}}
        return Probe(f"/agent{below}/{name}", {"json": body})

    def probes(names: Names) -> Iterator[Probe]:
        yield from question_probes(names, ask)
        yield from collection_probes(names, configured)

    return probes


def single(*paths: str) -> Callable[[Names], Iterator[Probe]]:
    return lambda names: (Probe(path) for path in paths)


def search(names: Names) -> Iterator[Probe]:
    for pipeline in ("hybrid", "linked", "vector", "keyword", "classic"):

        def make(collection: str, query: str, pipeline: str = pipeline) -> Probe:
            body = {"query": query, "collection": collection, "pipeline": pipeline}
            return Probe("/api/v1/search", {"json": body})

        yield from question_probes(names, make)


def mcp(names: Names) -> Iterator[Probe]:
    def call(tool: str, **given: str) -> Probe:
        asked = {"name": tool, "arguments": given}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        accepted = {"Accept": "application/json, text/event-stream"}
        return Probe("/mcp", {"json": body, "headers": accepted})

    asked = {"ask": "question", "plan": "question", "search": "query", "recommend": "need"}
    for tool, text in asked.items():

        def make(collection: str, given: str, tool: str = tool, text: str = text) -> Probe:
            return call(tool, **{text: given, "collection": collection})

        yield from question_probes(names, make)
    yield from document_probes(names, lambda place, name: call("fetch", id=f"{place}/{name}"))


def recommendations(names: Names) -> Iterator[Probe]:
    def make(collection: str, need: str) -> Probe:
        body = {"need": need, "collection": collection, "draw": True}
        return Probe("/api/v1/recommend", {"json": body})

    yield from question_probes(names, make)


def rating(names: Names) -> Iterator[Probe]:
    def make(collection: str, name: str) -> Probe:
        body = {"collection": collection, "document_id": name, "rating": "up"}
        return Probe("/api/v1/recommend/ratings", {"json": body})

    yield from document_probes(names, make)


def chat(names: Names) -> Iterator[Probe]:
    for more in ({}, {"stream": True}, {"pipeline": "agentic"}, {"pipeline": "classic"}):

        def make(collection: str, question: str, more: dict[str, Any] = more) -> Probe:
            body = {"question": question, "collection": collection} | more
            return Probe("/api/v1/chat", {"json": body})

        yield from question_probes(names, make)
    body = {"question": "And now?", "conversation_id": "{}"}
    yield from own(names, "conversation", "/api/v1/chat", json=body)


def completions(names: Names) -> Iterator[Probe]:
    def ask(collection: str, question: str, **more: Any) -> Probe:
        said = [{"role": "user", "content": question}]
        body = {"model": f"carrel:{collection}", "messages": said, **more}
        return Probe("/v1/chat/completions", {"json": body})

    yield from question_probes(names, ask)
    yield from question_probes(names, lambda *given: ask(*given, stream=True))
    hidden, absent = names.done["conversation"]
    made = ask(names.collection, "And now?")
    headers = {"X-Carrel-Conversation": hidden}
    yield replace(made, sends={**made.sends, "headers": headers}, name=hidden, absent=absent)


def responses(names: Names) -> Iterator[Probe]:
    def ask(collection: str, question: str, **more: Any) -> Probe:
        body = {"model": f"carrel:{collection}", "input": question, **more}
        return Probe("/v1/responses", {"json": body})

    yield from question_probes(names, ask)
    yield from question_probes(names, lambda *given: ask(*given, stream=True))


def uploads(names: Names) -> Iterator[Probe]:
    def make(collection: str) -> Probe:
        params = {"collection": collection, "name": "quay.txt"}
        return Probe("/api/v1/documents", {"params": params, "content": b"A quay is long."})

    for hidden, absent in names.collections:  # one that is seen stays as it is
        yield replace(make(hidden), name=hidden, absent=absent)


def collection_readers(names: Names) -> Iterator[Probe]:
    given = {"json": {"acl": ["board"]}}
    for hidden, absent in names.collections:  # one that is seen stays as it is
        sends = {"params": {"collection": hidden}, **given}
        yield Probe("/api/v1/collections", sends, name=hidden, absent=absent)


def in_collection(path: str, **more: Any) -> Callable[[Names], Iterator[Probe]]:
    def make(name: str) -> Probe:
        return Probe(path, {"params": {"collection": name, **more}})

    return lambda names: collection_probes(names, make)


def of_document(names: Names) -> Iterator[Probe]:
    def make(collection: str, name: str, path: str) -> Probe:
        return Probe(path, {"params": {"collection": collection, "document_id": name}})

    for path in ("/api/v1/documents/passages", "/api/v1/documents"):
        yield from document_probes(names, lambda *given, path=path: make(*given, path))


def deletion(names: Names) -> Iterator[Probe]:
    return (one for one in of_document(names) if one.path == "/api/v1/documents")


def pages(names: Names) -> Iterator[Probe]:
    for one in deletion(names):
        params = {**one.sends["params"], "number": 1}
        yield replace(one, path="/api/v1/documents/page", sends={"params": params})


def readers(names: Names) -> Iterator[Probe]:
    given = {"json": {"acl": ["board"]}}
    return (replace(one, sends={**one.sends, **given}) for one in deletion(names))


def passages(names: Names) -> Iterator[Probe]:
    return (one for one in of_document(names) if one.path != "/api/v1/documents")


def by_id(kind: str, path: str, **sends: Any) -> Callable[[Names], Iterator[Probe]]:
    return lambda names: iter(own(names, kind, path, **sends))


def talks(names: Names) -> Iterator[Probe]:
    yield Probe("/api/v1/conversations")
    yield from own(names, "conversation", "/api/v1/conversations", params={"before": "{}"})


def notes(names: Names) -> Iterator[Probe]:
    yield Probe("/api/v1/memory")
    yield from own(names, "note", "/api/v1/memory", params={"after": "{}"})


def audit(names: Names) -> Iterator[Probe]:
    yield Probe("/api/v1/audit")
    for hidden, _ in names.documents:
        yield Probe("/api/v1/audit", {"params": {"document": f"{hidden}.md"}})


PROBES: dict[tuple[str, str], Callable[[Names], Iterator[Probe]]] = {
    ("GET", "/api/v1/health"): single("/api/v1/health"),
    ("GET", "/api/v1/ready"): single("/api/v1/ready"),
    ("GET", "/api/v1/openapi.json"): single("/api/v1/openapi.json"),
    ("GET", "/"): single("/"),
    ("GET", "/page/{name}"): single("/page/app.js"),
    ("GET", "/page/{folder}/{name}"): single("/page/views/ask.js"),
    ("GET", "/login"): single("/login"),
    ("GET", "/login/callback"): single("/login/callback?code=a&state=b"),
    ("POST", "/logout"): single("/logout"),
    ("DELETE", "/api/v1/sessions"): single("/api/v1/sessions?user=ann"),
    ("GET", "/api/v1/me"): single("/api/v1/me"),
    ("GET", "/metrics"): single("/metrics"),
    ("GET", "/api/v1/audit"): audit,
    ("GET", "/api/v1/metrics"): single("/api/v1/metrics"),
    ("POST", "/api/v1/settings/reload"): single("/api/v1/settings/reload"),
    ("POST", "/api/v1/chat"): chat,
    ("POST", "/api/v1/search"): search,
    ("POST", "/api/v1/recommend"): recommendations,
    ("GET", "/api/v1/report"): in_collection("/api/v1/report"),
    ("GET", "/api/v1/examples"): in_collection("/api/v1/examples"),
    ("GET", "/api/v1/recommend/ratings"): in_collection("/api/v1/recommend/ratings"),
    ("PUT", "/api/v1/recommend/ratings"): rating,
    ("DELETE", "/api/v1/recommend/ratings"): single("/api/v1/recommend/ratings"),
    ("GET", "/api/v1/recommend/figures"): single("/api/v1/recommend/figures"),
    ("GET", "/api/v1/runs"): single("/api/v1/runs"),
    ("GET", "/api/v1/runs/{run_id}"): by_id("run", "/api/v1/runs/{}"),
    ("GET", "/api/v1/graph.svg"): single("/api/v1/graph.svg"),
    ("GET", "/api/v1/runs/{run_id}/graph.svg"): by_id("run", "/api/v1/runs/{}/graph.svg"),
    ("GET", "/api/v1/runs/{run_id}/plan.svg"): by_id("run", "/api/v1/runs/{}/plan.svg"),
    ("POST", "/api/v1/feedback"): by_id(
        "run", "/api/v1/feedback", json={"run_id": "{}", "rating": "up"}
    ),
    ("GET", "/api/v1/feedback"): single("/api/v1/feedback", "/api/v1/feedback?format=jsonl"),
    ("POST", "/api/v1/conversations"): lambda names: collection_probes(
        names, lambda name: Probe("/api/v1/conversations", {"json": {"collection": name}})
    ),
    ("GET", "/api/v1/conversations"): talks,
    ("GET", "/api/v1/conversations/{conversation_id}"): by_id(
        "conversation", "/api/v1/conversations/{}"
    ),
    ("PATCH", "/api/v1/conversations/{conversation_id}"): by_id(
        "conversation", "/api/v1/conversations/{}", json={"title": "Mine"}
    ),
    ("DELETE", "/api/v1/conversations/{conversation_id}"): by_id(
        "conversation", "/api/v1/conversations/{}"
    ),
    ("PUT", "/api/v1/conversations/{conversation_id}/readers"): by_id(
        "conversation", "/api/v1/conversations/{}/readers", json={"everyone": True}
    ),
    ("DELETE", "/api/v1/conversations/{conversation_id}/readers"): by_id(
        "conversation", "/api/v1/conversations/{}/readers"
    ),
    ("GET", "/api/v1/memory"): notes,
    ("GET", "/api/v1/memory/export"): single("/api/v1/memory/export"),
    ("GET", "/api/v1/memory/{note_id}"): by_id("note", "/api/v1/memory/{}"),
    ("PATCH", "/api/v1/memory/{note_id}"): by_id(
        "note", "/api/v1/memory/{}", json={"content": "Mine"}
    ),
    ("DELETE", "/api/v1/memory/{note_id}"): by_id("note", "/api/v1/memory/{}"),
    ("GET", "/api/v1/collections"): single("/api/v1/collections"),
    ("PUT", "/api/v1/collections"): collection_readers,
    ("GET", "/api/v1/documents"): in_collection("/api/v1/documents"),
    ("POST", "/api/v1/documents"): uploads,
    ("GET", "/api/v1/documents/passages"): passages,
    ("GET", "/api/v1/documents/page"): pages,
    ("DELETE", "/api/v1/documents"): deletion,
    ("PUT", "/api/v1/documents"): readers,
    ("GET", "/api/v1/tree"): in_collection("/api/v1/tree", depth=9),
    ("POST", "/api/v1/tree"): in_collection("/api/v1/tree"),
    ("GET", "/api/v1/sources"): single("/api/v1/sources"),
    ("POST", "/api/v1/sources"): lambda names: collection_probes(
        names,
        lambda name: Probe(
            "/api/v1/sources",
            {"json": {"name": "s", "address": "gopher://host/", "collection": name}},
        ),
    ),
    ("POST", "/api/v1/sources/{name}/sync"): single("/api/v1/sources/absent/sync"),
    ("DELETE", "/api/v1/sources/{name}"): single("/api/v1/sources/absent"),
    ("GET", "/api/v1/jobs"): single("/api/v1/jobs", "/api/v1/jobs?all=true"),
    ("GET", "/api/v1/jobs/{job_id}"): by_id("job", "/api/v1/jobs/{}"),
    ("DELETE", "/api/v1/jobs/{job_id}"): by_id("job", "/api/v1/jobs/{}"),
    ("GET", "/api/v1/keys"): single("/api/v1/keys"),
    ("POST", "/api/v1/keys"): lambda names: iter([Probe("/api/v1/keys", {"json": {}})]),
    ("DELETE", "/api/v1/keys/{key_id}"): by_id("key", "/api/v1/keys/{}"),
    ("GET", "/v1/models"): single("/v1/models"),
    ("GET", "/v1/models/{model}"): lambda names: collection_probes(
        names, lambda name: Probe(f"/v1/models/carrel:{name}")
    ),
    ("POST", "/v1/chat/completions"): completions,
    ("POST", "/v1/responses"): responses,
    ("POST", "/v1/embeddings"): lambda names: collection_probes(
        names,
        lambda name: Probe("/v1/embeddings", {"json": {"model": f"carrel:{name}", "input": name}}),
    ),
    ("POST", "/mcp"): mcp,
    **{
        (method, f"/agent{below}/{name}"): (
            agent(given, name) if method == "POST" else single(f"/agent{given}/{name}")
        )
        for below, given in {"": "", "/c/{config_hash}": "/c/N4XyA"}.items()
        for method, path in ROWS
        if path.startswith("/agent/") and "{" not in path
        for name in [path.rpartition("/")[2]]
    },
}


def test_every_route_is_asked_for_hidden_names() -> None:
    assert PROBES.keys() == ROWS.keys()


def shown(response: httpx.Response) -> str:
    """Return all that a caller reads of a response, without what differs each time."""
    headers = {k: v for k, v in response.headers.items() if k not in ("date", "x-request-id")}
    headers.pop("content-length", None)
    text = f"{response.status_code} {sorted(headers.items())} {response.text}"
    return CHANGING.sub("·", text)


def foreign(world: World, worlds: list[World], caller: AuthContext, path: str) -> set[str]:
    """Return the markers that a response to the caller may not hold."""
    others = {mark for one in worlds if one is not world for mark in one.markers()}
    if "admin" in caller.roles and path.split("?")[0] in OF_ADMINS:
        return others
    return others | (world.markers() - world.open_to(caller))


def ask_all(
    served: tuple[AppState, str], worlds: list[World], world: World, caller: AuthContext
) -> None:
    names = names_for(world, caller)
    every = [(method, one) for (method, _), make in PROBES.items() for one in make(names)]
    hidden = world.markers() - world.open_to(caller)

    def order(asking: tuple[str, Probe]) -> tuple[bool, bool]:
        """Ask for lists before anything in them can be the caller's own, upload at the end."""
        method, probe = asking
        told = any(mark in f"{probe}" for mark in hidden)
        return (method, probe.path) == ("POST", "/api/v1/documents"), told

    with client_of(served, caller) as client:
        for method, probe in sorted(every, key=order):
            check(client, method, probe, foreign(world, worlds, caller, probe.path))
        if {"writer", "admin"} & caller.roles:  # both may write
            check_uploads(client, names.collections[0])
            world.docs += [Doc(one, frozenset(), one, False) for one in names.collections[0]]


def check(client: httpx.Client, method: str, probe: Probe, hidden: set[str]) -> None:
    response = client.request(method, probe.path, **probe.sends)
    asked[method] += 1
    assert response.status_code < 500, (probe, response.text)
    said = f"{response.headers} {response.text}".casefold()
    sent = f"{probe.path} {probe.sends}".casefold()
    leaked = [mark for mark in hidden if mark in said and mark not in sent]
    assert not leaked, (method, probe, leaked, said)
    if probe.name:
        like = probe.exchanged()
        other = client.request(method, like.path, **like.sends)
        asked["compared"] += 1
        mine, theirs = shown(response), shown(other)
        same = mine.replace(probe.name, "·") == theirs.replace(probe.absent, "·")
        assert same, (method, probe, mine, theirs)


def check_uploads(client: httpx.Client, pair: tuple[str, str]) -> None:
    """Compare the jobs, and what can be seen afterwards, of a hidden and of a new collection."""
    jobs = client.get("/api/v1/jobs").json()["jobs"]
    found = {}
    for name in pair:
        (mine,) = [one["id"] for one in jobs if one["collection"] == name]
        ended_as = ended(client, mine)
        kept = ("state", "error", "documents", "chunks", "notes", "name", "bytes", "roles", "user")
        found[name] = {one: ended_as[one] for one in kept}
        listed = client.get("/api/v1/collections").json()["collections"]
        found[name]["listed"] = [one | {"name": ""} for one in listed if one["name"] == name]
        given = {"collection": name}
        rows = client.get("/api/v1/documents", params=given).json()["documents"]
        found[name]["documents"] = [one | {"indexed_at": ""} for one in rows]
        asked["jobs compared"] += 1
    assert found[pair[0]] == found[pair[1]]


worlds: list[World] = []


@settings(
    max_examples=examples(WORLDS),
    phases=[Phase.explicit] if QUICK else [Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(shape=shapes, callers=st.lists(st.tuples(held, powers), min_size=1, max_size=2))
@example(
    shape=[(1, frozenset({0}), True)],
    callers=[(frozenset({0}), frozenset({"writer"})), (frozenset(), frozenset({"admin"}))],
)
def test_no_answer_knows_of_what_is_hidden(
    session: Session,
    served: tuple[AppState, str],
    shape: list[tuple[int, frozenset[int], bool]],
    callers: list[tuple[frozenset[int], frozenset[str]]],
) -> None:
    world = make_world(session, served, shape)
    worlds.append(world)
    for place, (roles, power) in enumerate(callers):
        named = frozenset(world.roles[one] for one in roles) | power
        caller = AuthContext(tenant=world.tenant, user=f"caller{place}", roles=named)
        ask_tools(session, world, caller)
        ask_all(served, worlds, world, caller)


def ask_tools(session: Session, world: World, caller: AuthContext) -> None:
    """Call every tool with hidden and hostile arguments; compare hidden ones with absent ones."""
    names = names_for(world, caller)
    if not names.collection:
        return
    tools = session.tools(caller, names.collection)
    hidden = world.markers() - world.open_to(caller)
    joined = "chunks c JOIN documents d ON d.id = c.document"
    found = f"SELECT chunk_id FROM {joined} WHERE d.document_id = ? AND d.tenant = ?"
    chunks = {one.mark: rows(session.store, found, one.id, world.tenant) for one in world.docs}
    told = f"{tools.specs(caller)}"
    assert not [mark for mark in hidden if mark in told]
    for name, absent in names.documents:
        chunk = chunks[name][0][0] if chunks[name] else name
        calls: list[tuple[str, dict[str, Any], str, str]] = [
            ("query_records", {"where": [{"field": f"field-{name}", "value": "x"}]}, name, absent),
            ("query_records", {"order_by": f"field-{name}"}, name, absent),
            ("read_document", {"chunk_id": chunk}, chunk, "0" * len(chunk)),
            ("read_document", {"chunk_id": chunk, "full_text": True}, chunk, "0" * len(chunk)),
            (name, {}, name, absent),
        ]
        for tool, arguments, one, other in calls:
            said = called(tools, caller, tool, arguments)
            like = called(
                tools, caller, tool.replace(one, other), _exchanged(arguments, one, other)
            )
            asked["tool calls"] += 2
            assert not [mark for mark in hidden - {name} if mark in said], (tool, said)
            assert said.replace(one, "·") == like.replace(other, "·"), (tool, arguments)
        for tool in ("search", "search_text", "search_vector", "search_classic", "query_records"):
            said = called(tools, caller, tool, {"query": f"{HARBOUR} {name}"})
            asked["tool calls"] += 1
            assert not [mark for mark in hidden - {name} if mark in said], (tool, said)


def called(tools: Any, caller: AuthContext, tool: str, arguments: dict[str, Any]) -> str:
    try:
        result = tools.run(tool, arguments, caller, time.monotonic() + 60)
    except CallerError as error:
        return f"{type(error).__name__} {error}"
    stages = [(one.name, one.before, one.after, one.note) for one in result.stages]
    return f"{result.evidence} {result.notes} {result.total} {result.hidden} {stages}"


def test_nothing_was_left_untried() -> None:
    """Say how much was asked."""
    total = f"{len(worlds)} worlds, {sum(asked.values())} requests and calls: {dict(asked)}"
    sys.stdout.write(f"\n{total}\n")
    assert asked["tool calls"] and asked["compared"] and asked["jobs compared"]


@pytest.mark.parametrize("what", ["collection", "document", "run", "conversation", "job"])
def test_hidden_takes_as_long_as_absent(
    session: Session, served: tuple[AppState, str], what: str
) -> None:
    world = worlds[0]
    caller = AuthContext(tenant=world.tenant, user="watch", roles=frozenset({world.roles[0]}))
    store, services = session.store, served[0]
    names = names_for(world, caller)
    place = store.catalogue.visible_collection(caller, names.collection)
    pairs = {**names.done, "document": names.documents[0]}
    pairs["collection"] = names.collections[0]
    hidden, absent = pairs[what]
    looks: dict[str, Callable[[str], object]] = {
        "collection": lambda name: store.catalogue.visible_collection(caller, name),
        "document": lambda name: services.catalogue.describe_document(caller, place, f"{name}.md"),
        "run": lambda name: store.runs.load(caller, name),
        "conversation": lambda name: store.runs.load_conversation(caller, name),
        "job": lambda name: services.jobs.find(caller, name),
    }
    spent: dict[str, list[float]] = {hidden: [], absent: []}
    for name in (hidden, absent) * TIMED:
        began = time.perf_counter()
        with suppress(CallerError):
            assert looks[what](name) is None
        spent[name].append(1000 * (time.perf_counter() - began))
    apart = abs(statistics.median(spent[hidden]) - statistics.median(spent[absent]))
    sys.stdout.write(f"\n{what}: medians of {TIMED} are {apart:.4f} ms apart\n")
    assert apart < APART_MS


def test_a_command_for_a_named_caller_hides_what_a_server_hides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    carrel = partial(in_process(capsys, monkeypatch), data=tmp_path / "data")
    files = write_files(tmp_path, {"one.md": "A quay is long.", "two.md": "The board meets."})
    assert carrel("ingest", files / "one.md", "-c", "work", "--tenant", "A").code == 0
    closed = ("-c", "secretcoll", "--tenant", "A", "--acl", "board")
    assert carrel("ingest", files / "two.md", *closed).code == 0
    for command in (("search", "quay"), ("ask", "How long?"), ("chat",), ("plan", "How long?")):
        check_command(partial(carrel, *command, "--tenant", "A", "--user", "ann"))
    check_command(partial(carrel, "search", "quay", "--tenant", "A", "--role", "staff"))
    carrel("search", "x", "-c", "absent", "--tenant", "A").failed(2, "'A': secretcoll, work;")
    found = carrel("search", "board", "-c", "secretcoll", "--tenant", "A")
    assert found.code == 0 and "nothing found" in found.out  # the operator is told of no document
    mine = carrel("search", "board", "-c", "secretcoll", "--tenant", "A", "--role", "board")
    assert "The board meets" in mine.out


def check_command(run: Callable[..., Done]) -> None:
    hidden, absent = run("-c", "secretcoll"), run("-c", "absent")
    hidden.failed(2, "the collection must exist: secretcoll", "'A': work; make")
    assert hidden.err.replace("secretcoll", "absent") == absent.err


def test_who_waits_for_a_first_upload_is_told_so(session: Session) -> None:
    """Nothing is there yet for anybody, and only its own uploader hears why."""
    row = JobRow("f" * 16, "upload", "waiting", "wri", "fresh", "plan.txt")
    row.sent_by(AuthContext(tenant="waiting", user="wri"), "")
    JobRows(parts(session.store).database, kept=9).save(row)
    for user, told in (("wri", True), ("ann", False)):
        auth = AuthContext(tenant="waiting", user=user)
        with pytest.raises(CallerError) as error:
            session.store.catalogue.visible_collection(auth, "fresh")
        assert ("your upload into it is being ingested" in error.value.hint) == told


def test_rights_that_change_open_and_close_a_collection_at_once(session: Session) -> None:
    catalogue, ann = session.store.catalogue, AuthContext(tenant="turning", user="ann")
    target = session.store.intake.open_collection("turning", "door", None)
    for roles in ((), ("board",), (), ("board",)):
        row = document(target, "a.md", "A quay.", acl=roles)
        write(session.store, target, [row], session.embedder)  # type: ignore[arg-type]
        assert [one.name for one in catalogue.visible_collections(ann)] == (
            [] if roles else ["door"]
        )
