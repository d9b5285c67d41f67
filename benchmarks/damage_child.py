"""One damaged data directory, opened and asked in a process that may die of it."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.auth import AuthContext
from core.errors import CarrelError

DIED, HUNG = "died", "hung"
TRACEBACK = "TRACEBACK"


@dataclass
class Seen:
    """Hold what a child found: results by question, what it said of them, and how it ended."""

    results: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    error: str = ""
    end: str = ""
    seconds: float = 0.0


def forked(work: Callable[[], dict[str, Any]], limit_s: float) -> Seen:
    """Run `work` in a forked process; a signal, a traceback and a time-out are told apart."""
    reader, writer = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(limit_s * 0.9)  # says where it hangs
        _run(work, reader, writer)
    os.close(writer)
    data, end = b"", ""
    os.set_blocking(reader, False)
    while True:
        try:
            block = os.read(reader, 1 << 20)
            if not block:
                break
            data += block
        except BlockingIOError:
            if time.monotonic() - started > limit_s:
                os.kill(child, signal.SIGKILL)
                end = HUNG
                break
            time.sleep(0.01)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    seen = Seen(**json.loads(data)) if data and not end else Seen()
    if not end and (os.WIFSIGNALED(status) or not data):
        end = f"{DIED} ({os.WTERMSIG(status)})" if os.WIFSIGNALED(status) else f"{DIED} (no reply)"
    seen.end = end
    seen.seconds = time.monotonic() - started
    return seen


def _run(work: Callable[[], dict[str, Any]], reader: int, writer: int) -> None:
    code = 0
    try:
        os.close(reader)
        try:
            found = work()
        except CarrelError as error:
            found = {"error": str(error)}
        except BaseException as error:
            found = {"end": "", "error": f"{TRACEBACK} {type(error).__name__}: {error}"}
        with os.fdopen(writer, "w") as file:
            json.dump(found, file)
    except BaseException:
        code = 3
    finally:
        os._exit(code)


def with_modules(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work of a child and give the names of its modules as its problems."""
    return {**work(), "problems": sorted(sys.modules)}


def preload(names: Sequence[str]) -> None:
    """Import modules here, so that each fork has them; what has threads is opened in forks."""
    for name in names:
        with contextlib.suppress(Exception):  # some can be imported by their package alone
            importlib.import_module(name)


def asked(folder: Path, questions: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """Open the directory and put every question as a search and, every fourth, as a question."""
    from cli.options import opened
    from core.settings import load_settings

    settings = load_settings({"data": folder, **given})[0]
    with opened(settings) as session:
        results, said = put(session, questions)
    return {"results": results, "said": said}


def put(session: Any, questions: Sequence[str]) -> tuple[list[Any], list[str]]:  # noqa: ANN401
    """Return the results of questions to an open session, and the warnings with them."""
    from serve.searching import describe_passages, find_passages

    results: list[Any] = []
    said: list[str] = []
    callers = (
        AuthContext(tenant="default", user="reader"),
        AuthContext(tenant="default", user="reader", roles=frozenset({"staff"})),
    )
    for number, question in enumerate(questions):
        auth = callers[number % 2]
        reply = describe_passages(
            session, find_passages(session, auth, question, "main", "hybrid", 8)
        )
        results.append(
            [(item["chunk_id"], item["document_id"], _sum(item)) for item in reply["results"]]
        )
        said += reply["warnings"]
        if number % 4 == 0:
            run = session.ask(question, auth, "main")
            results.append([run.result["answer"], run.result["refused"]])
            said += run.result["warnings"]
    return results, sorted(set(said))


def _sum(item: dict[str, Any]) -> int:
    kept = {name: item[name] for name in item if name not in ("score", "scores")}
    return zlib.crc32(json.dumps(kept, sort_keys=True, default=str).encode())


def examined(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return what `carrel doctor` says of the directory."""
    from cli.options import opened
    from core.settings import load_settings

    settings = load_settings({"data": folder, **given})[0]
    with opened(settings) as session:
        report = session.store.maintenance.examine()
    return {"problems": report["problems"]}
