"""Commands in forked processes whose disk fails, and what is found there afterwards."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.forked import run_carrel
from benchmarks.ingest_corpus import InstantEmbedder
from core.auth import AuthContext
from stores.store import parts

SHIM = "CARREL_FAULT_SHIM"
LIMIT_S = 120
PIPE = 1 << 20
ONCE, FROM_THEN_ON, HALF = 0, 1, 2
DIED = re.compile(r"Traceback|unexpected happened|Fatal Python|panicked at")
SETTINGS = {"reasoner": "rules", "segment_min_rows": 4, "min_free_mb": 0, "vector_batch": 40}
READER = AuthContext(tenant="default", user="reader")


@dataclass
class Tally:
    """Count what was tried of one kind, and name what broke."""

    name: str
    tried: int = 0
    broken: list[str] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def case(self, what: str, problems: Sequence[str], note: str = "") -> None:
        """Count one case; each problem of it makes it a broken one."""
        self.tried += 1
        if note:
            self.notes[note] = self.notes.get(note, 0) + 1
        if problems:
            self.broken.append(f"{what}: {'; '.join(problems)}")
            print("BROKEN", self.name, "|", self.broken[-1], flush=True)

    def row(self) -> str:
        """Return the row of a table."""
        notes = ", ".join(f"{count} {note}" for note, count in sorted(self.notes.items()))
        return f"| {self.name} | {self.tried} | {len(self.broken)} | {notes} |"


@dataclass
class Fault:
    """Say which change below a folder fails, and how; 0 counts alone."""

    folder: Path
    number: int = 0
    kind: int = ONCE
    code: int = errno.EIO


@dataclass
class Ended:
    """Hold how a command ended; `seen` changes of files were counted."""

    code: int
    out: str
    err: str
    seen: int = 0
    at: str = ""
    megabytes: float = 0.0

    @property
    def wrong(self) -> list[str]:
        """Say what no user may see; a refusal is one line."""
        found = []
        if self.code not in (0, 1, 2, 3, 4):
            found.append(f"exit code {self.code}")
        if DIED.search(self.out + self.err):
            found.append(f"said {self.err.strip()[-300:]!r}")
        if self.code and not self.err.strip() and not self.out.strip():
            found.append(f"exit code {self.code} without a word")
        if "catalogue is damaged" in self.err:
            found.append(f"said to be damaged: {self.err.strip()[-200:]}")
        return found


def with_shim() -> None:
    """Build the library that makes writes fail and begin this program again under it."""
    if SHIM in os.environ:
        return
    library = Path(tempfile.mkdtemp()) / "fault_nth.so"
    source = Path(__file__).with_name("fault_nth.c")
    command = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    os.environ |= {SHIM: str(library), "LD_PRELOAD": str(library)}
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def shim() -> ctypes.CDLL:
    """Return the library that this program runs under."""
    library = ctypes.CDLL(os.environ[SHIM])
    library.fault_last.restype = ctypes.c_char_p
    library.fault_seen.restype = ctypes.c_long
    library.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    return library


def carrel(
    *given: object,
    data: Path,
    fault: Fault | None = None,
    largest: int | None = None,
    modules: Path | None = None,
) -> Ended:
    """Run a command with made-up vectors in a fork; `largest` is the largest file it may write.

    The names of the modules that it imported are written to `modules`.
    """
    arguments = [*map(str, given), "--data", str(data)]
    for name, value in SETTINGS.items():
        os.environ[f"CARREL_{name.upper()}"] = str(value)

    def run() -> int:
        code = run_carrel(arguments, real=False)
        if modules is not None:
            modules.write_text(json.dumps(sorted(sys.modules)))
        return code

    return in_fork(run, fault, largest)


def in_fork(
    work: Callable[[], int],
    fault: Fault | None = None,
    largest: int | None = None,
) -> Ended:
    """Run `work` in a child and return its exit code and what it printed."""
    pipes = [os.pipe() for _ in range(3)]  # files would be under the limit as well
    for _, writer in pipes:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
    child = os.fork()
    if not child:
        _work(work, fault, largest, [writer for _, writer in pipes])
    for _, writer in pipes:
        os.close(writer)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    texts = []
    for reader, _ in pipes:
        with os.fdopen(reader, "rb") as pipe:
            texts.append(pipe.read().decode("utf-8", "replace"))
    seen, _, at = texts[2].partition(" ")
    return Ended(code, texts[0], texts[1], int(seen or 0), at, used.ru_maxrss / 1024)


def _work(
    work: Callable[[], int], fault: Fault | None, largest: int | None, ends: Sequence[int]
) -> None:
    code = 99
    try:
        signal.alarm(LIMIT_S)
        os.dup2(ends[0], 1)
        os.dup2(ends[1], 2)
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        library = shim() if fault else None
        if fault and library:
            library.fault_arm(bytes(fault.folder), fault.number, fault.code, fault.kind)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
        if fault and library:
            library.fault_disarm()
            os.write(ends[2], b"%d %s" % (library.fault_seen(), library.fault_last()))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 98
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def preloaded(work: Path) -> None:
    """Import here what commands import, so that no fork has to."""
    from benchmarks.damage_child import preload

    work.mkdir(parents=True)
    (work / "note.txt").write_text("A note about lamps.\n")
    names: set[str] = set()
    for command in (["ingest", work / "note.txt"], ["ask", "What about lamps?"], ["doctor"]):
        report = work / "names"
        ended = carrel(*command, data=work / "data", modules=report)
        if ended.code:
            raise SystemExit(f"{command[0]}: {ended.err}")
        names |= set(json.loads(report.read_text()))
    preload(sorted(names))


def looked(data: Path, words: dict[str, str], collection: str = "default") -> dict[str, Any]:
    """Open a directory as after a fault: bring it up to date, let the doctor look, repair, search.

    `words` are document ids by a word that stands in each alone. What the doctor finds is
    `problems`, what is left after a repair is `left`; `lost` and `doubled` are documents.
    """

    def look() -> int:
        import app.session
        from cli.options import opened
        from core.settings import load_settings
        from ingest.vectors import repair
        from serve.searching import describe_passages, find_passages

        app.session.open_embedder = lambda settings: InstantEmbedder()  # type: ignore[attr-defined]
        found: dict[str, Any] = {}
        with opened(load_settings({"data": data, **SETTINGS})[0]) as session:
            found["problems"] = session.store.maintenance.examine()["problems"]
            if found["problems"]:
                repair(session.store, session.embedder, session.settings, lambda *_: None, None)
            left = session.store.maintenance.examine()["problems"] if found["problems"] else []
            found["left"] = left
            found["warnings"] = session.warnings
            found["lost"], found["doubled"] = [], []
            for word, document in words.items():
                reply = describe_passages(
                    session, find_passages(session, READER, word, collection, "keyword", 8)
                )
                hits = [one["document_id"] for one in reply["results"]]
                if document not in hits:
                    found["lost"].append(document)
                elif hits.count(document) > 1:
                    found["doubled"].append(document)
            reader = parts(session.store).database.read()
            rows = reader.execute(
                "SELECT document_id, count(*) FROM documents GROUP BY collection_id, document_id"
            )
            found["documents"] = {row[0]: row[1] for row in rows}
        print(json.dumps(found))
        return 0

    ended = in_fork(look)
    if ended.code:
        return {"error": f"exit code {ended.code}: {ended.err.strip()[-300:]}"}
    return dict(json.loads(ended.out))


def unwell(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with a directory that was looked at."""
    if "error" in found:
        return [f"it cannot be opened ({found['error']})"]
    wrong = [f"lost {name}" for name in found["lost"]]
    wrong += [f"doubled {name}" for name in found["doubled"]]
    wrong += [f"doubled {name}" for name, count in found["documents"].items() if count > 1]
    return wrong + [f"not repaired: {line}" for line in found["left"]]
