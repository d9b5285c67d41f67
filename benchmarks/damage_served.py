"""A data directory as a server leaves it, and everything that can be read back from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.damage_child import TRACEBACK, put
from core.auth import AuthContext
from core.errors import CarrelError
from stores.store import parts as store_parts

READER = AuthContext(tenant="default", user="reader")
OTHER = AuthContext(tenant="default", user="other", roles=frozenset({"staff"}))
FOLLOW_UP = "And what else is said about it?"
TURNS = 3
AUDIT_ROWS = 40
NEWEST = 100


def ingest(folder: Path, corpus: Sequence[Path], given: dict[str, Any]) -> None:
    """Make the documents of the directory: open ones, and one in three for a role."""
    from cli.options import opened
    from core.settings import load_settings
    from ingest.pipeline import Pipeline

    settings = load_settings({"data": folder, **given})[0]
    with opened(settings, create=True, needs_embedder=True) as session:
        target = session.store.intake.open_collection("default", "main", None)
        for number, path in enumerate(corpus):
            acl = frozenset({"staff"}) if number % 3 == 2 else frozenset()
            assert session.embedder is not None  # needs_embedder says so
            Pipeline(session.store, session.embedder, settings, target, acl=acl).run([path])


def serve(folder: Path, questions: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """Add what callers leave; return the texts of their keys and the ids of their conversations."""
    from cli.options import opened
    from core.settings import load_settings
    from stores.accounts.audit import AuditEntry, AuditLog
    from stores.accounts.keys import Keys
    from stores.runlog.jobs import JobRow, JobRows

    settings = load_settings({"data": folder, **given})[0]
    with opened(settings) as session:
        database = store_parts(session.store).database
        keys = Keys(database)
        made = [
            keys.create("default", user="reader"),
            keys.create("default", user="other", roles=frozenset({"staff"}), days=3000),
            keys.create("default", user="gone", roles=frozenset({"staff"})),
        ]
        keys.revoke(made[2][1].id)
        named = []
        for auth in (READER, OTHER):
            kept = session.store.runs.create_conversation(auth.tenant, auth.user, "main")
            for question in questions[:TURNS]:
                run = session.ask(question, auth, "", conversation=kept.id)
                session.store.runs.save_feedback(auth.tenant, auth.user, run.run_id, "up", "good")
            named.append(kept.id)
        jobs = JobRows(database, kept=100)
        for number in range(6):
            name = f"upload{number}.txt"
            staff = frozenset({"staff"})
            row = JobRow(f"job{number}", "upload", "default", "reader", "main", name, staff)
            row.sent_by(READER, "")
            row.state = "done" if number % 2 else "failed"
            jobs.save(row)
        log = AuditLog(database, settings)
        log.append([AuditEntry("retrieval", READER, {"number": n}) for n in range(AUDIT_ROWS)])
    return {"keys": [text for text, _ in made], "conversations": named}


def read_back(
    folder: Path,
    questions: Sequence[str],
    served: dict[str, Any],
    given: dict[str, Any],
    *,
    doctor: bool = True,
) -> dict[str, Any]:
    """Read everything in one opening, then let the doctor look; each part may refuse by itself."""
    from cli.options import opened
    from core.settings import load_settings

    parts: dict[str, Any] = {}
    refused: dict[str, str] = {}
    settings = load_settings({"data": folder, **given})[0]
    with opened(settings) as session:

        def take(name: str, work: Callable[[], Any]) -> None:
            _take(store_parts(session.store).database.path, parts, refused, name, work)

        said: list[str] = []
        take("answers", lambda: _answers(session, questions, said))
        for auth, name in zip((READER, OTHER), served["conversations"], strict=True):
            take(f"turns of {auth.user}", lambda a=auth, n=name: _turns(session, a, n))
            take(f"runs of {auth.user}", lambda a=auth: _runs(session, a))
            take(f"history of {auth.user}", lambda n=name: _history(session, n))
            take(f"next of {auth.user}", lambda a=auth, n=name: _next(session, a, n, said))
        for number, text in enumerate(served["keys"]):
            take(f"key {number}", lambda t=text: _key(session, t))
        take("keys", lambda: _keys(session))
        take("jobs", lambda: _jobs(session))
        take("feedback", lambda: _feedback(session))
        take("audit", lambda: _audit(session, refused))
        said += session.warnings
        problems: list[str] = []
        if doctor:
            take("doctor", lambda: problems.extend(session.store.maintenance.examine()["problems"]))
    return {"parts": parts, "refused": refused, "said": sorted(set(said)), "problems": problems}


def _take(
    path: Path, parts: dict[str, Any], refused: dict[str, str], name: str, work: Callable[[], Any]
) -> None:
    from stores.sqlite.database import explained

    try:
        with explained(path):
            parts[name] = work()
    except CarrelError as error:
        refused[name] = str(error)
    except Exception as error:
        refused[name] = f"{TRACEBACK} {type(error).__name__}: {error}"


def _answers(session: Any, questions: Sequence[str], said: list[str]) -> Any:  # noqa: ANN401
    results, warnings = put(session, questions)
    said += warnings
    return results


def _turns(session: Any, auth: AuthContext, name: str) -> Any:  # noqa: ANN401
    kept = session.store.runs
    newest = [one.describe() for one in kept.newest_conversations(auth, NEWEST)]
    return [newest, kept.turns(auth, kept.load_conversation(auth, name))]


def _runs(session: Any, auth: AuthContext) -> Any:  # noqa: ANN401
    """Return the runs of the conversation; the questions of this process have made others."""
    kept = session.store.runs
    runs = [kept.load(auth, run.run_id) for run in kept.newest(auth, NEWEST)]
    return [run.model_dump(mode="json") for run in runs if "conversation_id" in run.result]


def _history(session: Any, name: str) -> Any:  # noqa: ANN401
    config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    found = session.asking.threads.saver.get_tuple(config)
    values = found.checkpoint["channel_values"] if found else {}
    return [(one.type, one.content) for one in values.get("messages", [])]


def _next(session: Any, auth: AuthContext, name: str, said: list[str]) -> Any:  # noqa: ANN401
    run = session.ask(FOLLOW_UP, auth, "", conversation=name)
    said += run.result["warnings"]
    evidence = [item["chunk_id"] for item in run.result.get("evidence", [])]
    return [run.result["answer"], run.result["refused"], evidence]


def _key(session: Any, text: str) -> Any:  # noqa: ANN401
    from stores.accounts.keys import Keys

    key = Keys(store_parts(session.store).database).verified(text)
    return key and key.describe()


def _keys(session: Any) -> Any:  # noqa: ANN401
    from stores.accounts.keys import Keys

    return [key.describe() for key in Keys(store_parts(session.store).database).listed()]


def _jobs(session: Any) -> Any:  # noqa: ANN401
    from stores.runlog.jobs import JobRows

    rows = JobRows(store_parts(session.store).database, kept=100)
    listed = [*rows.newest("default", None, NEWEST), *rows.open()]
    return [[row.id, row.name, row.state, sorted(row.roles), row.user] for row in listed]


def _feedback(session: Any) -> Any:  # noqa: ANN401

    return list(session.store.runs.export_feedback(AuthContext(tenant="default"), everyone=True))


def _audit(session: Any, refused: dict[str, str]) -> Any:  # noqa: ANN401
    """Return the rows; a chain that is broken is told by `carrel audit verify`."""
    from stores.accounts.audit import AuditLog

    log = AuditLog(store_parts(session.store).database, session.settings)
    verdict = log.verify()
    if verdict.problem:
        refused["audit chain"] = verdict.problem
    return log.newest(None, limit=NEWEST)
