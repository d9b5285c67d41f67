"""What was asked is shown under the rights of now: runs, conversations, drawings, exports.

`HISTORY_WORLDS=200 pytest tests/attack/test_history_rights.py` tries more random worlds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes import FakeEmbedder, document, short_hash, write
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from serving import SECONDS, error_of, running
from tiers import examples

from app import session as composing
from app.session import Session
from cli import app
from core.auth import AuthContext
from core.settings import load_settings
from core.trace import ModelCall, RunRecord, StageStep
from core.types import Plan, SubQuestion
from display.path import path_drawing
from display.plan_drawing import outcome_of, plan_drawing, plan_of
from display.runs import run_page
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
def opened(folder: Path) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(composing, "open_embedder", lambda settings: FakeEmbedder())
        with Session(load_settings({"data": folder, **FLAGS})[0], create=True) as session:
            yield World(session, session.store.intake.open_collection("acme", "work", None))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(tmp_path / "data") as made:
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
    assert any("closed to you now" in warning for warning in run.result["warnings"])
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
    out = tmp_path / "run.html"
    for roles, visible in (((), False), (("--role", "legal"), True)):
        for words in (
            ("trace", "last"),
            ("trace", "last", "--json"),
            ("trace", "last", "--out", str(out)),
            ("conversations", "show", "last"),
            ("conversations", "show", talk, "--json"),
        ):
            capsys.readouterr()
            who = ("--tenant", "acme", "--user", "lea", *roles, "--data", str(folder))
            assert app.run([*words, *who]) == 0
            told = capsys.readouterr()
            text = told.out + (out.read_text(encoding="utf-8") if "--out" in words else "")
            assert (SECRET in text) == visible, (words, roles)
            assert visible or "withheld" in text + told.err


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


# Random documents, rights at asking time and rights at reading time.

ROLES = ("red", "blue")
NAMES = ("case", "dates", "society", "berg")
rights = st.frozensets(st.sampled_from(ROLES))
callers = st.builds(
    AuthContext,
    tenant=st.just("acme"),
    user=st.just("lea"),
    roles=rights,
    allowed_sources=st.sampled_from([None, None, None, ("case", "berg", "open"), ("*s*", "open")]),
)
QUESTIONS = (SUM, AND_WHEN, BORN, "Which case?", "What is the colour of the harbour case?")


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

    def open_to(self, auth: AuthContext) -> bool:
        allowed = auth.allowed_sources
        within = allowed is None or any(Path(self.name).match(one) for one in allowed)
        return within and (not self.acl or bool(self.acl & auth.roles))


LETTERS = str.maketrans("0123456789", "ghijklmnop")
changes = st.dictionaries(st.sampled_from(NAMES), st.tuples(st.booleans(), rights), max_size=3)
worlds = 0
WORLDS = int(os.environ.get("HISTORY_WORLDS", "10"))


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
            update={**texts, "arguments": {mark: mark}}
            | ({"decision": mark} if step.node in ("rewrite", "extract", "plan") else {})
        )
        for step in run.trail
    ]
    return run.model_copy(update={"result": result, "trail": trail})


def views(world: World, auth: AuthContext, runs: Sequence[str], talk: str) -> dict[str, str]:
    """Return every view of history, as text."""
    store = world.session.store
    kept = store.runs
    admin = auth.model_copy(update={"user": "ada"})
    found = {
        "newest": str(store.runs.newest(auth, 50)),
        "talks": str(kept.newest_conversations(auth, 50)),
        "talk": str(kept.load_conversation(auth, talk)),
        "turns": json.dumps(
            kept.turns(auth, kept.load_conversation(auth, talk)), ensure_ascii=False
        ),
        "feedback": str(list(store.runs.export_feedback(auth))),
        "of all": str(list(store.runs.export_feedback(admin, everyone=True))),
    }
    for run_id in runs:
        run = store.runs.load(auth, run_id)
        found |= {f"run {run_id}": run.model_dump_json(), f"page {run_id}": str(run_page(run))}
        found[f"path {run_id}"] = str(path_drawing(run))
        if plan_of(run).questions:
            found[f"plan {run_id}"] = str(plan_drawing(plan_of(run), outcome_of(run)))
    return found


def test_no_view_of_history_says_what_is_closed_now(tmp_path: Path) -> None:
    with opened(tmp_path / "worlds") as base:

        @settings(
            max_examples=examples(WORLDS, quick=3),
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            acls=st.tuples(rights, rights, rights, rights),
            asking=callers,
            reading=callers,
            questions=st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=3),
            changed=changes,
            poison=st.sampled_from(NAMES),
        )
        def check(acls, asking, reading, questions, changed, poison):
            global worlds
            worlds += 1
            writer = base.session.store.intake
            world = World(base.session, writer.open_collection("acme", f"w{worlds}", None))
            first = [Version(name, 0, acl, worlds) for name, acl in zip(NAMES, acls, strict=True)]
            for one in first:
                world.put(one.name, one.text, *one.acl)
            world.put("open", "Everybody may see the collection.")
            talk = world.begin(asking)
            runs = [world.ask(question, asking, talk) for question in questions]
            alone = world.ask(questions[0], asking)
            of_poison = first[NAMES.index(poison)]
            named = {item["document_id"] for item in alone.result["evidence"]}
            if poison in named:  # else nobody could have known its words
                store = world.session.store
                store.runs.save(poisoned(alone, of_poison.mark))
            runs.append(alone)
            notes = world.session.store.runs
            ids = list(dict.fromkeys(run.run_id for run in runs))
            for run_id in ids:
                notes.save_feedback("acme", "lea", run_id, "up", "")
            before = views(world, asking, ids, talk)
            later = {one.name: one for one in first}
            for name, (edited, acl) in changed.items():
                later[name] = Version(name, int(edited), acl, worlds)
                world.put(name, later[name].text, *acl)
            if not changed:
                assert views(world, asking, ids, talk) == before
            shown = views(world, reading, ids, talk)
            follow_up = world.ask(AND_WHEN, reading, talk)
            shown["follow-up"] = follow_up.model_dump_json()
            shown["state"] = world.state(talk)
            after = views(world, reading, [follow_up.run_id], talk)
            shown |= {f"{name} after": text for name, text in after.items()}
            for old in first:
                now = later[old.name]
                if not now.open_to(reading):
                    assert not {name for name, text in shown.items() if now.mark in text}, now
                if old.mark != now.mark and not (now.open_to(reading) and old.open_to(reading)):
                    assert not {name for name, text in shown.items() if old.mark in text}, old

        check()
