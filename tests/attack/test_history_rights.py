"""What was asked is shown under the rights of now: runs, conversations, drawings, exports.

`HISTORY_WORLDS=300 pytest -s tests/attack/test_history_rights.py -k by_any_path` tries more random
worlds and counts.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes import FakeEmbedder, document, short_hash, write
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from postgres_server import RECORDS
from pydantic import SecretStr
from serving import SECONDS, error_of, running
from test_serve_matrix import ROWS
from tiers import examples

from app import session as composing
from app.session import Session
from cli import app
from cli.commands import Commands
from core.auth import AuthContext
from core.errors import CarrelError
from core.settings import load_settings
from core.trace import ModelCall, RunRecord, StageStep
from core.types import Plan, SubQuestion
from display.plan_drawing import outcome_of, plan_drawing, plan_of
from display.runs import path_drawing, run_page
from display.why import explain
from graph.build import build_graph
from graph.replay import replay_run
from reasoning.planning.compiler import compiled
from reasoning.planning.files import PlanFile
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn
from serve.questions import Question
from serve.runs.answer_cache import AnswerCache
from serve.services import make_app_state
from stores.accounts.keys import Keys
from stores.erasure.documents import named_document
from stores.erasure.redaction import WITHHELD
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow
from stores.sqlite.sums import sign
from stores.store import parts

SUM = "What is the settlement sum of the harbour case?"
AND_WHEN = "and when was it agreed?"
BORN = "Where was the president born?"
PRESIDENT = SubQuestion(
    id="q1",
    text="Who is the first president of the Harbour Society?",
    query="first president of the Harbour Society",
    language="en",
    slot="who",
    wants="person",
)
VILLAGE = SubQuestion(
    id="q2",
    text="Where was {who} born?",
    query="{who} born in village",
    language="en",
    wants="place",
    deps=["q1"],
)
CHAIN = Plan(questions=[PRESIDENT, VILLAGE])
SECRET = "zqsettlement"
TEXTS = {
    "case": f"The settlement sum of the harbour case is 4711 {SECRET} euros.",
    "dates": "The harbour case was agreed on 3 May 2021.",
    "society": "The first president of the Harbour Society is Anna Zqberg.",
    "berg": "Anna Zqberg was born in the village of Odde.",
}
CLOSED = {"case", "society"}
LEA = AuthContext(tenant="acme", user="lea", roles=frozenset({"legal"}))
PLAIN = LEA.model_copy(update={"roles": frozenset()})
FLAGS = {"reasoner": "rules", "serve.ask_rate": 0, "serve.rate": 0}


def row(collection: Collection, name: str, text: str, acl: Sequence[str] = ()) -> DocumentRow:
    """Build a document whose passages have ids as ingest gives them: by text and access list."""
    made = document(collection, name, text, title=f"{name} {text.split()[-2]}", acl=acl)
    chunks = [
        replace(one, chunk_id=short_hash(collection.name, name, text, sorted(acl)))
        for one in made.chunks
    ]
    return replace(made, chunks=chunks)


@dataclass
class World:
    """Hold an open data directory and change its documents."""

    session: Session
    collection: Collection

    def put(self, name: str, text: str, *acl: str) -> None:
        rows = [row(self.collection, name, text, acl)]
        write(self.session.store, self.collection, rows, FakeEmbedder())

    def ask(self, question: str, auth: AuthContext = LEA, talk: str = "") -> RunRecord:
        name = "" if talk else self.collection.name
        plan = None
        if question == BORN:
            plan = PlanFile(plan=CHAIN, operations=compiled(CHAIN, self.session.settings))
        clarify = bool(talk)
        return self.session.ask(
            question, auth, name, conversation=talk, clarify=clarify, given=plan
        )

    def begin(self, auth: AuthContext = LEA) -> str:
        kept = self.session.store.runs
        return kept.create_conversation(auth.tenant, auth.user, self.collection.name).id

    def load(self, run: RunRecord, auth: AuthContext = LEA) -> RunRecord:
        return self.session.store.runs.load(auth, run.run_id)

    def turns(self, talk: str, auth: AuthContext = LEA) -> list[dict[str, Any]]:
        kept = self.session.store.runs
        return kept.turns(auth, kept.load_conversation(auth, talk))

    def state(self, talk: str) -> str:
        found = self.session.asking.threads.saver.get_tuple({"configurable": {"thread_id": talk}})
        return "" if found is None else str(found.checkpoint)


@contextmanager
def opened(folder: Path, kept: str = "sqlite") -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(composing, "open_embedder", lambda settings: FakeEmbedder())
        with Session(
            load_settings({"data": folder, **FLAGS, **RECORDS[kept]()})[0], create=True
        ) as session:
            yield World(session, session.store.intake.open_collection("acme", "work", None))


@pytest.fixture(params=RECORDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with opened(tmp_path / "data", request.param) as made:
        for name, text in TEXTS.items():
            made.put(name, text, *(["legal"] if name in CLOSED else []))
        yield made


@contextmanager
def served(world: World) -> Iterator[Callable[..., httpx.Client]]:
    """Serve a world; give what makes a client with a key of its own."""
    keys = Keys(parts(world.session.store).database)
    with running(make_app_state(world.session)) as url:

        def client(user: str, *roles: str) -> httpx.Client:
            text, _ = keys.create("acme", user=user, roles=frozenset(roles))
            bearer = {"Authorization": f"Bearer {text}"}
            return httpx.Client(base_url=url, headers=bearer, timeout=SECONDS, verify=False)

        yield client


def history(client: httpx.Client) -> dict[str, str]:
    """Return all that a caller is shown of the past, by its path."""
    found: dict[str, str] = {}

    def read(path: str) -> Any:
        response = client.get(f"/api/v1/{path}")
        assert response.status_code == 200, response.text
        found[path] = response.text
        return response.json() if response.headers["content-type"] == "application/json" else None

    for run in read("runs")["runs"]:
        for below in ("", "/graph.svg", "/plan.svg"):
            read(f"runs/{run['run_id']}{below}")
    for talk in read("conversations")["conversations"]:
        read(f"conversations/{talk['conversation_id']}")
    read("feedback")
    read("feedback?format=jsonl")
    return found


def test_an_access_list_that_changed_and_a_lesser_key_close_all_views(world: World) -> None:
    with served(world) as client, client("lea", "legal") as lea, client("lea") as lesser:
        admin = client("ada", "admin")
        asked = {"question": SUM, "collection": "work"}
        talk = lea.post("/api/v1/conversations", json={"collection": "work"}).json()
        within = {"question": SUM, "conversation_id": talk["conversation_id"]}
        born = world.ask(BORN).result
        assert "Odde" in born["answer"]
        for told in (
            born,
            *(lea.post("/api/v1/chat", json=body).json() for body in (asked, within)),
        ):
            lea.post("/api/v1/feedback", json={"run_id": told["run_id"], "rating": "up"})
        before = history(lea)
        assert sum(SECRET in text for text in before.values()) >= 5
        assert any("Zqberg" in text for path, text in before.items() if "plan.svg" in path)

        def check(views: dict[str, str]) -> None:
            assert not {path for path, text in views.items() if SECRET in text or "Zqberg" in text
                        and "village of Odde" not in text}  # fmt: skip
            assert not {path for path, text in views.items() if "svg" in path and "Zqberg" in text}

        seen = history(lesser)
        assert seen.keys() == before.keys()
        check(seen)
        check({"feedback": admin.get("/api/v1/feedback").text})
        assert WITHHELD in str(seen)
        for name in CLOSED:
            world.put(name, TEXTS[name], "other")
        check(history(lea))
        assert SECRET not in lea.post("/api/v1/chat", json=asked).text
        for name in CLOSED:
            world.put(name, TEXTS[name], "legal")
        again = history(lea)
        assert all(again[path] == text for path, text in before.items() if "runs/" in path)
        admin.close()


def test_claims_stay_whose_documents_are_open(world: World) -> None:
    run = world.ask(f"{SUM} And when was the harbour case agreed?")
    assert len(run.result["claims"]) == 2
    shown = world.load(run, PLAIN)
    assert [claim["text"] for claim in shown.result["claims"]] == [TEXTS["dates"].rstrip()]
    assert shown.result["answer"] == f"{TEXTS['dates']} [1]\n[{WITHHELD}]"
    assert (shown.result["warnings"], shown.result["withheld"]) == ([WITHHELD], True)
    assert SECRET not in shown.model_dump_json() and SECRET not in run_page(shown)
    assert world.load(run) == run


def test_a_follow_up_in_an_old_conversation_knows_nothing_that_is_closed(world: World) -> None:
    talk, seen = world.begin(), list[Turn]()
    world.ask(SUM, talk=talk)
    assert SECRET in world.state(talk)
    understand = RulesReasoner.understand

    def watched(self: RulesReasoner, question: str, history: Sequence[Turn]) -> Any:
        seen.extend(history)
        return understand(self, question, history)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RulesReasoner, "understand", watched)
        run = world.ask(AND_WHEN, PLAIN, talk)
    assert [turn.question for turn in seen] == [SUM]
    assert SECRET not in str(seen) + world.state(talk) + run.model_dump_json()
    assert "May" in run.result["answer"]
    assert any("gone or closed to you" in warning for warning in run.result["warnings"])
    assert SECRET not in str(world.turns(talk, PLAIN))
    assert SECRET in str(world.turns(talk))  # who has the role still reads the first answer


def test_what_follows_a_closed_answer_keeps_its_words_to_itself(world: World) -> None:
    """A model may put words of an earlier answer into the question that stands alone."""
    talk = world.begin()
    world.ask(SUM, talk=talk)
    later = world.ask("When was the harbour case agreed?", talk=talk)
    assert {item["document_id"] for item in later.result["evidence"]} >= {"dates"}
    later = later.model_copy(update={"result": deepened(later.result)})
    store = world.session.store
    only = [one for one in later.result["evidence"] if one["document_id"] == "dates"]
    trail = [
        step.model_copy(update={"reason": SECRET, "evidence": [], "arguments": {"q": SECRET}})
        for step in later.trail
    ]
    result = {**later.result, "evidence": only, "missing": [SECRET]}
    store.runs.save(later.model_copy(update={"result": result, "trail": trail}))
    assert SECRET in world.load(later).model_dump_json()
    world.put("case", TEXTS["case"], "other")
    shown = world.load(later)
    assert SECRET not in shown.model_dump_json()
    assert "May" in shown.result["answer"]


def deepened(result: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(result))
    return copied


def test_a_closed_book_closes_the_passages_that_name_it(world: World) -> None:
    record = document(
        world.collection, "book", "A book.", fields={}, title=f"The {SECRET}", acl=["legal"]
    )
    write(world.session.store, world.collection, [record], FakeEmbedder())
    with parts(world.session.store).database.write() as connection:
        connection.execute(
            """INSERT INTO book_texts SELECT t.id, b.id, b.collection_id, '1', NULL
               FROM documents t, documents b
               WHERE t.document_id = 'dates' AND b.document_id = 'book'"""
        )
        sign(connection, "book_texts", "1")
    run = world.ask("When was the harbour case agreed?")
    books = [item["metadata"]["book"]["title"] for item in run.result["evidence"]
             if item["document_id"] == "dates"]  # fmt: skip
    assert books == [f"The {SECRET}"] and world.load(run) == run
    assert SECRET not in world.load(run, PLAIN).model_dump_json()


def test_another_document_under_the_same_name_opens_nothing(world: World) -> None:
    run = world.ask(SUM)
    world.put("case", "The case is closed and of public record.")
    assert SECRET not in world.load(run, PLAIN).model_dump_json()
    assert world.load(run) == run  # its reader could and can read the document


def test_an_edited_document_does_not_close_its_history(world: World) -> None:
    talk = world.begin()
    run, plain = world.ask(SUM, talk=talk), world.ask("When was the harbour case agreed?")
    turns = world.turns(talk)
    world.put("case", "The settlement sum of the harbour case is unknown.", "legal", "board")
    world.put("dates", "The harbour case was agreed on 4 June 2021.")
    assert (world.load(run), world.load(plain)) == (run, plain)
    assert world.turns(talk) == turns


def test_a_damaged_and_an_erased_document_are_gone_from_history(world: World) -> None:
    talk = world.begin()
    run = world.ask(SUM, talk=talk)
    database = parts(world.session.store).database
    finished = AnswerCache(world.session)
    question = Question(text=SUM, collection="work")
    finished.remember(finished.key_of(question, LEA), run)
    assert finished.find(finished.key_of(question, LEA), LEA) is not None
    with database.write() as connection:
        connection.execute(
            "INSERT INTO quarantine SELECT id, 'damage' FROM documents WHERE document_id = 'case'"
        )
    assert SECRET not in world.load(run).model_dump_json() + str(world.turns(talk))
    assert finished.find(finished.key_of(question, LEA), LEA) is None
    with database.write() as connection:
        connection.execute("DELETE FROM quarantine")
    assert world.load(run) == run
    named = named_document(database.read(), world.collection, "case")
    world.session.store.maintenance.forget(world.collection, [named])
    kept = world.load(run)
    assert "withheld" not in kept.result and kept.result["answer"].startswith("[erased")
    later = world.ask("When was the harbour case agreed?", talk=talk)
    assert not later.result["warnings"] and world.load(later) == later


COUNT = "How many tickets have the status open?"


def put_tickets(world: World, *acls: str) -> None:
    """Put tickets with the status open: one for each access list, "" for everybody."""
    for number, acl in enumerate(acls):
        fields = {"status": "open", "owner": f"zqowner{number}"}
        given: dict[str, Any] = {"fields": fields, "acl": [acl] if acl else []}
        made = document(world.collection, f"t{number}", "A ticket of the harbour.", **given)
        write(world.session.store, world.collection, [made], FakeEmbedder())


def test_counts_follow_rights_and_erasure_and_say_which(world: World) -> None:
    put_tickets(world, "", "", "legal")
    talk = world.begin()
    run = world.ask(COUNT, talk=talk)
    later = world.ask("When was the harbour case agreed?", talk=talk)
    assert "3" in run.result["answer"] and world.load(run) == run
    assert world.load(run, PLAIN).result["answer"] == f"[{WITHHELD}]"
    named = named_document(parts(world.session.store).database.read(), world.collection, "t2")
    world.session.store.maintenance.forget(world.collection, [named])
    kept = world.load(run)
    assert "withheld" not in kept.result and kept.result["answer"].startswith("[erased")
    assert world.load(later).result == later.result
    lesser = world.load(run, PLAIN)
    assert "erased" not in str(lesser.result) and WITHHELD in str(lesser.result["warnings"])
    world.session.store.intake.set_access([world.collection], "t1", acl=["other"], by=LEA)
    assert "withheld" in world.load(run).result and "withheld" in world.load(later).result


def test_confined_callers_and_other_versions_see_no_more(world: World) -> None:
    run = world.ask(SUM)
    confined = LEA.model_copy(update={"allowed_sources": ("dates*",)})
    assert SECRET not in world.load(run, confined).model_dump_json()
    shown = world.load(run, LEA.model_copy(update={"version_policy": "2"}))
    assert SECRET in str(shown.result["claims"])  # it declares no version
    assert {step.reason for step in shown.trail} <= {"", "…"}  # other versions were looked at


def test_the_command_line_and_exports_obey(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cli"
    with opened(folder) as world:
        world.put("case", TEXTS["case"], "legal")
        talk = world.begin()
        world.ask(SUM, talk=talk)
    out, asked = tmp_path / "run.html", set[str]()
    for roles, visible in (((), False), (("--role", "legal"), True)):
        for words in (
            ("trace", "last"),
            ("trace", "last", "--json"),
            ("trace", "last", "--out", str(out)),
            ("why", "last"),
            ("replay", "last"),
            ("replay", "last", "--json"),
            ("conversations", "show", "last"),
            ("conversations", "show", talk, "--json"),
        ):
            capsys.readouterr()
            who = ("--tenant", "acme", "--user", "lea", *roles, "--data", str(folder))
            code, told = app.run([*words, *who]), capsys.readouterr()
            asked.add(words[0])
            text = told.out + (out.read_text(encoding="utf-8") if "--out" in words else "")
            if words[0] == "replay":  # it quotes no document
                assert SECRET not in text + told.err and (code == 0) == visible
                assert visible or "gone or closed to you" in told.err
                continue
            assert code == 0 and (SECRET in text) == visible, (words, roles)
            assert visible or "withheld" in text + told.err or "closed to you" in text
    assert asked == READ_COMMANDS


def test_an_admin_cannot_take_a_name_over(world: World) -> None:
    world.put("own", "For one reader alone.", "user:olga")
    with served(world) as client, client("ada", "admin") as admin, client("lea", "legal") as lea:
        lea.post("/api/v1/chat", json={"question": SUM, "collection": "work"})
        world.ask(SUM, AuthContext(tenant="acme", user="tom"))  # by a token: there is no key
        for name in ("lea", "tom", "olga", "local"):
            refused = admin.post("/api/v1/keys", json={"user": name, "roles": ["legal"]})
            assert refused.status_code == 403
            assert "carrel keys create" in error_of(refused)["hint"]
        for body in ({}, {"user": "ada"}, {"user": "newcomer"}):
            assert admin.post("/api/v1/keys", json=body).status_code == 201
        assert admin.post("/api/v1/keys", json={"user": "newcomer"}).status_code == 403
        with client("lea") as rotated:  # made at the machine
            assert len(rotated.get("/api/v1/runs").json()["runs"]) == 1


def test_where_tokens_say_the_names_an_admin_gives_none(world: World) -> None:
    world.session.settings = world.session.settings.model_copy(
        update={"jwt_audience": "carrel", "jwt_key": SecretStr("k" * 40)}
    )
    with served(world) as client, client("ada", "admin") as admin:
        assert admin.post("/api/v1/keys", json={"user": "newcomer"}).status_code == 403
        assert admin.post("/api/v1/keys", json={"user": "ada"}).status_code == 201
        assert admin.post("/api/v1/keys", json={}).status_code == 201


# Every route and every command is read here, or tells nothing of what was asked before.
READ_ROUTES = {
    *("/api/v1/runs", "/api/v1/runs/{run_id}", "/api/v1/conversations", "/api/v1/jobs"),
    *("/api/v1/runs/{run_id}/graph.svg", "/api/v1/runs/{run_id}/plan.svg", "/api/v1/feedback"),
    *("/api/v1/conversations/{conversation_id}", "/api/v1/collections", "/api/v1/documents"),
    *("/api/v1/documents/passages", "/api/v1/search", "/api/v1/chat", "/v1/chat/completions"),
    *("/v1/responses", "/agent/invoke"),
}
OTHER_ROUTES = {
    *(
        "/",
        "/page/{name}",
        "/page/{folder}/{name}",
        "/metrics",
        "/api/v1/health",
        "/api/v1/ready",
        "/api/v1/me",
    ),
    *("/api/v1/openapi.json", "/api/v1/metrics", "/api/v1/settings/reload", "/api/v1/graph.svg"),
    *("/v1/models", "/v1/models/{model}", "/api/v1/jobs/{job_id}", "/api/v1/keys"),
    "/v1/embeddings",  # of texts that the caller sends
    *("/api/v1/tree", "/api/v1/memory", "/api/v1/memory/export", "/api/v1/memory/{note_id}"),
    *("/api/v1/recommend", "/api/v1/recommend/ratings", "/mcp"),  # by the rights of now
    "/api/v1/recommend/figures",  # numbers alone
    "/api/v1/documents/page",  # the same
    "/api/v1/conversations/{conversation_id}/readers",  # what is shared is read by the route above
    *("/api/v1/sources", "/api/v1/sources/{name}", "/api/v1/sources/{name}/sync"),
    *("/login", "/login/callback", "/logout", "/api/v1/sessions"),
    *("/api/v1/report", "/api/v1/examples"),
    *("/api/v1/keys/{key_id}", "/api/v1/audit"),  # the audit log keeps no text of documents
}
AGENT_ROUTES = "/agent/"  # the other forms of one runner
READ_COMMANDS = {"trace", "why", "replay", "conversations"}
# They answer anew, by the rights of now, or are for whoever has the data directory's files.
OTHER_COMMANDS = {
    *("demo", "ingest", "ask", "plan", "chat", "search", "collections", "documents", "status"),
    *(
        "quality",
        "report",
        "doctor",
        "config",
        "reindex",
        "acl",
        "forget",
        "backup",
        "restore",
        "migrate",
        "serve",
        "worker",
    ),
    *("keys", "audit", "eval", "models", "llm"),
    # By the rights of now as well: tests/retrievers/test_tree.py, tests/graph/test_remembering.py.
    *("tree", "memory", "recommend", "feedback", "mcp", "completion", "source"),
}


def test_every_reading_place_has_a_probe() -> None:
    known = {path for _, path in ROWS if not path.startswith(AGENT_ROUTES)} | {"/agent/invoke"}
    assert known == READ_ROUTES | OTHER_ROUTES
    assert set(Commands.places) == READ_COMMANDS | OTHER_COMMANDS
    recorded: list[str] = []

    class Recorder:
        def request(self, method: str, path: str, **given: Any) -> Any:
            recorded.append(path.partition("?")[0])
            return httpx.Response(200)

    served_views(Recorder(), "w", ["RUN"], "TALK")  # type: ignore[arg-type]
    asked = {path.replace("RUN", "{run_id}").replace("TALK", "{conversation_id}")
             for path in recorded}  # fmt: skip
    assert asked == READ_ROUTES


# Random documents, lists and callers; rights change; then everybody reads by every path.

ROLES, NAMES = ("red", "blue"), ("case", "dates", "society", "berg")
BILLS = ("bill0", "bill1")
ALL = "opinions of all"  # as a path
TOTAL = "What is the sum of the price of all bills?"
PRINCIPALS = (*ROLES, "user:lea", "user:tom")
acls = st.frozensets(st.sampled_from(PRINCIPALS), max_size=2)
ANYWHERE = [None, None, None, ("case", "berg", "open"), ("*s*", "open")]
limits = st.tuples(st.frozensets(st.sampled_from(ROLES)), st.sampled_from(ANYWHERE))
changes = st.dictionaries(
    st.sampled_from([*NAMES, *BILLS]),
    st.one_of(
        st.tuples(st.sampled_from(["set", "new text", "ingested again"]), acls),
        st.just(("forgotten", frozenset[str]())),
    ),
    max_size=4,
)
QUESTIONS = (SUM, AND_WHEN, BORN, "Which case?", "What is the colour of the harbour case?")
LETTERS = str.maketrans("0123456789", "ghijklmnop")
GRAPH = build_graph()
WORLDS = int(os.environ.get("HISTORY_WORLDS", "6"))
RED = frozenset({"red"})
GONE = frozenset({"nobody"})  # the list of a document that was forgotten


@dataclass(frozen=True)
class Version:
    """Say what a document says and who may read it."""

    name: str
    number: int
    acl: frozenset[str]
    world: int

    @property
    def mark(self) -> str:
        """Return a word that nothing else holds."""
        return "zq" + short_hash(self.world, self.name, self.number)[:10].translate(LETTERS)

    @property
    def text(self) -> str:
        return f"{TEXTS[self.name][:-1]} {self.mark} indeed."

    @property
    def price(self) -> int:
        """Return the price of a bill; every sum of some is a number of its own."""
        return 10_007 * self.world + (1, 20_000_003)[BILLS.index(self.name)]

    def open_to(self, auth: AuthContext) -> bool:
        """Tell whether somebody may read it; users are called NAME and the number of the world."""
        if auth.tenant != "acme" or self.acl == GONE:
            return False
        allowed = auth.allowed_sources
        within = allowed is None or any(Path(self.name).match(one) for one in allowed)
        known = {*auth.roles, f"user:{auth.user.rstrip('0123456789')}"}
        return within and (not self.acl or bool(self.acl & known))

    @property
    def stored_acl(self) -> list[str]:
        return [f"{one}{self.world}" if "user:" in one else one for one in sorted(self.acl)]


def poisoned(run: RunRecord, mark: str) -> RunRecord:
    """Let a mark stand in every text that a model or a rule may write into a run."""
    result = deepened(run.result)
    result["missing"], result["warnings"] = [mark], [f"not found: {mark}"]
    result["evidence"] = [{**item, "query": mark} for item in result["evidence"]]
    plan = result["plan"]
    for question in plan["questions"]:
        question |= {"text": mark, "query": mark, "about": mark}
        question["calls"] = [{"tool": "search", "arguments": {"author": mark}}]
    plan["asked"] = [{"id": "q1", "text": mark}]
    call = ModelCall(verb="plan", prompt_hash="h", reply=mark, error=mark)
    stage = StageStep(name="query", before=0, after=0, ms=0, note=mark)
    texts = {"reason": mark, "degraded": mark, "calls": [call], "stages": [stage]}
    trail = [
        step.model_copy(
            update={**texts, "arguments": {"query": mark}}
            | ({"decision": mark} if step.node in ("rewrite", "extract", "plan") else {})
        )
        for step in run.trail
    ]
    return run.model_copy(update={"result": result, "trail": trail})


def attempted(read: Callable[[], Any]) -> str:
    """Return what a read tells, be it an error."""
    try:
        return str(read())
    except CarrelError as error:
        return str(error)


def stored_views(world: World, auth: AuthContext, runs: Sequence[str], talk: str) -> dict[str, str]:
    """Return all that the stores and drawings tell of the past, and of the documents."""
    store, name = world.session.store, world.collection.name
    kept, admin = store.runs, auth.model_copy(update={"user": "ada"})

    def turns() -> str:
        found = kept.turns(auth, kept.load_conversation(auth, talk))
        return json.dumps(found, ensure_ascii=False)

    def listed() -> list[Any]:
        return store.catalogue.list_documents(auth, store.catalogue.visible_collection(auth, name))

    reads: dict[str, Callable[[], Any]] = {
        "newest": lambda: kept.newest(auth, 50),
        "talks": lambda: kept.newest_conversations(auth, 50),
        "talk": lambda: kept.load_conversation(auth, talk),
        "turns": turns,
        "opinions": lambda: list(kept.export_feedback(auth)),
        ALL: lambda: list(kept.export_feedback(admin, everyone=True)),
        "documents": listed,
        "names": lambda: store.catalogue.document_names(auth, world.collection.id),
        "records": lambda: store.catalogue.describe_records(auth, world.collection.id),
    }
    for run_id in runs:
        reads |= {
            f"run {run_id}": lambda r=run_id: kept.load(auth, r).model_dump_json(),
            f"page {run_id}": lambda r=run_id: run_page(kept.load(auth, r)),
            f"path {run_id}": lambda r=run_id: path_drawing(kept.load(auth, r)),
            f"plan {run_id}": lambda r=run_id: drawn_plan(kept.load(auth, r)),
            f"why {run_id}": lambda r=run_id: explain(kept.load(auth, r)),
            f"replay {run_id}": lambda r=run_id: replay_run(GRAPH, kept.load(auth, r)),
        }
    return {path: attempted(read) for path, read in reads.items()}


def drawn_plan(run: RunRecord) -> str:
    return str(plan_drawing(plan_of(run), outcome_of(run))) if plan_of(run).questions else ""


def served_views(
    client: httpx.Client, collection: str, runs: Sequence[str], talk: str
) -> dict[str, str]:
    """Return all that a server tells a caller, who asks again as well."""
    api, within = "/api/v1", {"collection": collection}
    asked = {"question": SUM, **within}
    said = [{"role": "user", "content": SUM}]
    calls: list[tuple[str, str, dict[str, Any]]] = [
        *(("GET", f"{api}/runs/{run}{end}", {}) for run in runs
          for end in ("", "/graph.svg", "/plan.svg")),
        *(("GET", f"{api}/{end}", {}) for end in (
            "runs", "conversations", f"conversations/{talk}", "feedback", "feedback?format=jsonl",
            "collections", "jobs")),
        ("GET", f"{api}/documents", {"params": within}),
        *(("GET", f"{api}/documents/passages", {"params": within | {"document_id": name}})
          for name in NAMES),
        *(("POST", f"{api}/search", {"json": {"query": TEXTS[name], **within}}) for name in NAMES),
        ("POST", f"{api}/chat", {"json": asked}),
        ("POST", f"{api}/chat", {"json": {"question": AND_WHEN, "conversation_id": talk}}),
        ("POST", "/v1/chat/completions",
         {"json": {"model": f"carrel:{collection}", "messages": said}}),
        ("POST", "/v1/responses",
         {"json": {"model": f"carrel:{collection}", "input": said[-1]["content"]}}),
        ("POST", "/agent/invoke", {"json": {"input": asked}}),
    ]  # fmt: skip
    return {
        f"{number} {method} {path}": client.request(method, path, **given).text
        for number, (method, path, given) in enumerate(calls)
    }


Told = list[tuple[AuthContext, dict[str, str]]]


@dataclass
class Worlds:
    """Make worlds in one served directory, change rights, let all read, and count the cases."""

    session: Session
    url: str
    made: int = 0
    cases: int = 0
    shown: int = 0
    sums: int = 0

    def caller(self, user: str, limit: Any, tenant: str = "acme") -> AuthContext:
        roles, sources = limit
        name = f"{user}{self.made}"
        return AuthContext(tenant=tenant, user=name, roles=roles, allowed_sources=sources)

    def client(self, auth: AuthContext) -> tuple[httpx.Client, str]:
        """Return a client with a key of the caller's rights, and the key's id."""
        given = {"user": auth.user, "roles": auth.roles, "sources": auth.allowed_sources}
        text, key = self.session.store.accounts.keys.create(auth.tenant, **given)
        head = {"Authorization": f"Bearer {text}"}
        return httpx.Client(base_url=self.url, headers=head, timeout=SECONDS, verify=False), key.id

    def world(self, first: Sequence[Version]) -> World:
        intake = self.session.store.intake
        world = World(self.session, intake.open_collection("acme", f"w{self.made}", None))
        intake.open_collection("zoo", f"w{self.made}", None)
        for one in first:
            self.put(world, one)
        world.put("open", "Everybody may see the collection.")
        return world

    def put(self, world: World, one: Version) -> None:
        """Write a document, or a record where it is a bill."""
        if one.name not in BILLS:
            world.put(one.name, one.text, *one.stored_acl)
            return
        given: dict[str, Any] = {"fields": {"price": one.price}, "acl": one.stored_acl}
        made = document(world.collection, one.name, "A bill of the harbour.", **given)
        write(self.session.store, world.collection, [made], FakeEmbedder())

    def check_sum(
        self, told: Told, asker: AuthContext, then: list[Version], later: dict[str, Version]
    ) -> None:
        """Find the sum of what the asker could see only with who may see just that now."""
        of_then = {one.name for one in then if one.open_to(asker)}
        mark = str(sum(one.price for one in then))
        for reader, paths in told if len(of_then) > 1 else ():  # the price of one is in lists
            self.cases += len(paths)
            for path in (path for path, text in paths.items() if mark in text):
                # The opinions of all are read by an admin of another name.
                who = reader.model_copy(update={"user": "ada"}) if path == ALL else reader
                may = {one.name for one in then if later[one.name].open_to(who)}
                assert may == of_then, (mark, who, later, path, _around(paths[path], mark))
                self.sums += 1

    def change(self, world: World, now: Version, how: str) -> Version:
        """Change a document; return it as it is then."""
        if how == "set":
            given = {"acl": now.stored_acl, "by": LEA}
            self.session.store.intake.set_access([world.collection], now.name, **given)
        elif how == "forgotten":
            maintenance = self.session.store.maintenance
            found = maintenance.named_document(world.collection, now.name)
            maintenance.forget(world.collection, [found])
            return replace(now, acl=GONE)
        else:
            self.put(world, now)
        return now

    def read(
        self, world: World, reader: AuthContext, asked: Question, ids: Sequence[str], talk: str
    ) -> dict[str, str]:
        """Return all that a reader is told, who asks again as well."""
        told = stored_views(world, reader, ids, talk)
        finished = AnswerCache(self.session)
        found = finished.find(finished.key_of(asked, reader), reader)
        told["cached answer"] = "" if found is None else found.model_dump_json()
        client, _ = self.client(reader)
        with client:
            told |= served_views(client, world.collection.name, ids, talk)
        return told

    def check(self, told: Told, first: Sequence[Version], later: dict[str, Version]) -> None:
        """Find no mark in what a reader is told who may not see its document now."""
        for (reader, paths), old in product(told, first):
            now = later[old.name]
            for one in {old, now}:
                self.cases += len(paths)
                as_then = one.mark == now.mark or old.open_to(reader)
                seen = {path for path, text in paths.items() if one.mark in text}
                excerpts = {path: _around(paths[path], one.mark) for path in seen}
                assert not seen or (now.open_to(reader) and as_then), (one, now, reader, excerpts)
                self.shown += len(seen)


def _around(text: str, mark: str) -> list[str]:
    """Return where a mark stands."""
    return [text[max(0, at.start() - 60) : at.end() + 20] for at in re.finditer(mark, text)][:3]


@pytest.mark.parametrize("kept", RECORDS)
def test_nobody_is_told_by_any_path_what_is_closed_to_them_now(tmp_path: Path, kept: str) -> None:
    with opened(tmp_path / "worlds", kept) as base, running(make_app_state(base.session)) as url:
        worlds, store = Worlds(base.session, url), base.session.store

        @settings(
            max_examples=examples(WORLDS, quick=1),
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @example(
            lists=(RED, RED, frozenset(), frozenset(), RED, frozenset()),
            asking=(RED, None),
            reading=(frozenset[str](), None),
            questions=[SUM, AND_WHEN],
            changed={
                "dates": ("set", frozenset({"blue"})),
                "bill0": ("set", frozenset({"blue"})),
                "berg": ("forgotten", frozenset[str]()),
            },
            poison="case",
        )
        @given(
            lists=st.tuples(acls, acls, acls, acls, acls, acls),
            asking=limits,
            reading=limits,
            questions=st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=3),
            changed=changes,
            poison=st.sampled_from(NAMES),
        )
        def check(lists, asking, reading, questions, changed, poison):
            worlds.made += 1
            named = zip([*NAMES, *BILLS], lists, strict=True)
            both = [Version(name, 0, acl, worlds.made) for name, acl in named]
            first, bills = both[: len(NAMES)], both[len(NAMES) :]
            world, asker = worlds.world(both), worlds.caller("lea", asking)
            revoked, key = worlds.client(asker)
            name = world.collection.name
            revoked.post("/api/v1/chat", json={"question": questions[0], "collection": name})
            talk = world.begin(asker)
            runs = [world.ask(question, asker, talk) for question in questions]
            alone = world.ask(questions[0], asker)
            mark = first[NAMES.index(poison)].mark
            if poison in {item["document_id"] for item in alone.result["evidence"]}:
                store.runs.save(poisoned(alone, mark))  # else nobody could have known its words
            summed = world.ask(TOTAL, asker)
            ids = list(dict.fromkeys(run.run_id for run in (*runs, alone, summed)))
            for run_id in ids:
                store.runs.save_feedback("acme", asker.user, run_id, "up", "")
            asked = Question(text=questions[0], collection=name)
            finished = AnswerCache(base.session)
            finished.remember(finished.key_of(asked, asker), alone)
            before = stored_views(world, asker, ids, talk)
            later = {one.name: one for one in both}
            for title, (how, acl) in changed.items():
                now = Version(title, int(how == "new text"), acl, worlds.made)
                later[title] = worlds.change(world, now, how)
            assert changed or stored_views(world, asker, ids, talk) == before
            store.accounts.keys.revoke(key)
            nobody = asker.model_copy(update={"tenant": "revoked"})
            told: Told = [(nobody, served_views(revoked, name, ids, talk))]
            revoked.close()
            readers = [worlds.caller("lea", reading), asker, worlds.caller("tom", reading)]
            for reader in (*readers, worlds.caller("lea", reading, "zoo")):
                told.append((reader, worlds.read(world, reader, asked, ids, talk)))
                if reader is readers[0]:  # it was the last to go on with the conversation
                    told[-1][1]["state"] = world.state(talk)
            worlds.check(told, first, later)
            worlds.check_sum(told, asker, bills, later)

        check()
    sys.stdout.write(
        f"\n{worlds.made} worlds, {worlds.cases} cases, {worlds.shown} and {worlds.sums} sums"
        " shown, 0 leaks\n"
    )
    assert worlds.shown > 0 and worlds.sums > 0
