"""Thousands of tiny documents, hundreds of collections: does all go on, and stay linear?"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import benchmarks.attack_disk_child as child
from benchmarks.attack_disk_child import SETTINGS, Ended, Tally, carrel, in_fork, preloaded
from benchmarks.attack_disk_served import Server

LIMIT_S = 1500
STEEPEST = 3.0  # times that twice as much may take; four times would be quadratic
FLOOR_S = 2.0  # below this a time is mostly that of starting


class Series:
    """Time the same steps at growing sizes."""

    def __init__(self, tally: Tally) -> None:
        """Begin with none."""
        self.tally = tally
        self.times: dict[str, list[float]] = {}
        self.memory: dict[str, list[float]] = {}

    def step(self, name: str, size: int, work: Callable[[], Ended]) -> Ended:
        """Time a command of a fork; it must end well."""
        began = time.monotonic()
        ended = work()
        self.note(name, size, time.monotonic() - began, ended.megabytes)
        wrong = list(ended.wrong)
        if ended.code not in ((0, 1, 3) if name == "ask" else (0,)):
            wrong.append(f"exit code {ended.code}: {ended.err.strip()[-300:]}")
        self.tally.case(f"{size} {name}", wrong)
        return ended

    def note(self, name: str, size: int, seconds: float, megabytes: float) -> None:
        """Keep a time, and compare it with that of half the size."""
        times = self.times.setdefault(name, [])
        times.append(seconds)
        self.memory.setdefault(name, []).append(megabytes)
        if len(times) > 1 and seconds > FLOOR_S and seconds > STEEPEST * max(times[-2], 0.5):
            self.tally.case(f"{size} {name}", [f"steep: {times[-2]:.1f} s, then {seconds:.1f} s"])
        print(f"{self.tally.name}: {size} {name} {seconds:.1f} s {megabytes:.0f} MB", flush=True)

    def table(self, sizes: list[int]) -> None:
        """Print the times and the memory."""
        print(f"\n| {self.tally.name} |" + "".join(f" {one} |" for one in sizes))
        print("|---|" + "--:|" * len(sizes))
        for name, times in self.times.items():
            pairs = zip(times, self.memory[name], strict=True)
            cells = " | ".join(f"{seconds:.1f} s, {mb:.0f} MB" for seconds, mb in pairs)
            print(f"| {name} | {cells} |", flush=True)


def grown(work: Path, *, quick: bool) -> Iterator[Tally]:
    """Grow a folder, a JSONL file and the number of collections."""
    child.LIMIT_S = LIMIT_S
    work.mkdir(parents=True, exist_ok=True)
    os.environ |= {f"CARREL_{name.upper()}": str(value) for name, value in SETTINGS.items()}
    os.environ["CARREL_SEGMENTS__MIN_ROWS"] = "500"
    SETTINGS["segment_min_rows"] = 500
    SETTINGS["vector_batch"] = 500
    preloaded(work / "modules")
    sizes = [250, 500, 1000] if quick else [2500, 5000, 10_000]
    for name, write in (("files of a folder", _folder), ("lines of one JSONL", _lines)):
        series = Series(Tally(f"tiny documents, {name}"))
        for size in sizes:
            source, data = work / "source", work / "data"
            for path in (source, data):
                shutil.rmtree(path, ignore_errors=True)
            source.mkdir()
            write(source, size)
            done = series.step(
                "ingest", size, partial(carrel, "ingest", source, "--json", data=data)
            )
            counted = json.loads(done.out)["documents"] if not done.code else 0
            series.tally.case(f"{size} documents", [] if counted == size else [f"{counted}"])
            series.step(
                "ingest again", size, partial(carrel, "ingest", source, "--json", data=data)
            )
            _used(series, size, data, f"zqn{size - 1}x", work)
        series.table(sizes)
        yield series.tally
    counts = [10, 20, 40] if quick else [75, 150, 300]
    series = Series(Tally("collections of three documents"))
    for count in counts:
        data = work / "data"
        shutil.rmtree(data, ignore_errors=True)
        series.step("ingest", count, partial(in_fork, partial(_collections, work, data, count)))
        name = f"c{count - 1}"
        _used(series, count, data, f"zqc{count - 1}x0x", work, name)
    series.table(counts)
    yield series.tally


def _used(
    series: Series, size: int, data: Path, word: str, work: Path, name: str = "default"
) -> None:
    """Search, ask, list, serve, check and forget one."""
    found = series.step(
        "search", size, partial(carrel, "search", word, "-c", name, "--json", data=data)
    )
    series.tally.case(f"{size} found", [] if word in found.out else ["not found"])
    question = f"What does the note about {word} say?"
    series.step("ask", size, partial(carrel, "ask", question, "-c", name, "--json", data=data))
    series.step("doctor", size, partial(carrel, "doctor", data=data))
    began = time.monotonic()
    server = Server(data, work / "log", audit=True)
    started = time.monotonic() - began
    listed = [0.0, 0.0]
    for at, path in enumerate(("/collections", f"/documents?collection={name}&limit=500")):
        began = time.monotonic()
        reply = server.http.get(path)
        listed[at] = time.monotonic() - began
        series.tally.case(f"{size} {path}", [] if reply.status_code == 200 else [reply.text[:200]])
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    megabytes = int(status.split("VmHWM:")[1].split()[0]) / 1024
    code = server.close()
    series.tally.case(f"{size} server", [f"ended with {code}"] if code not in (0, 130) else [])
    for step, seconds in (("serve: ready", started), ("serve: collections", listed[0]),
                          ("serve: 500 documents", listed[1])):  # fmt: skip
        series.note(step, size, seconds, megabytes)
    source = json.loads(found.out)["results"][0]["document_id"] if not found.code else "none"
    series.step("forget one", size, partial(carrel, "forget", source, "-c", name, "-y", data=data))
    series.step("doctor after", size, partial(carrel, "doctor", data=data))


def _folder(source: Path, size: int) -> None:
    for number in range(size):
        folder = source / f"{number // 500}"
        folder.mkdir(exist_ok=True)
        (folder / f"n{number}.txt").write_text(f"Note zqn{number}x about lamp {number % 97}.\n")


def _lines(source: Path, size: int) -> None:
    lines = (
        json.dumps({"_id": f"n{number}", "title": "", "text": f"Note zqn{number}x about lamp."})
        for number in range(size)
    )
    (source / "notes.jsonl").write_text("\n".join(lines) + "\n")


def _collections(work: Path, data: Path, count: int) -> int:
    import app.session
    from benchmarks.ingest_corpus import InstantEmbedder
    from cli.options import opened
    from core.settings import load_settings
    from ingest.pipeline import Pipeline

    app.session.open_embedder = lambda settings: InstantEmbedder()  # type: ignore[attr-defined]
    settings = load_settings({"data": data, **SETTINGS})[0]
    with opened(settings, create=True, needs_embedder=True) as session:
        for number in range(count):
            folder = work / "source" / f"c{number}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for one in range(3):
                (folder / f"{one}.txt").write_text(f"Note zqc{number}x{one}x of lamp {one}.\n")
            target = session.store.intake.open_collection("default", f"c{number}", None)
            assert session.embedder is not None
            Pipeline(session.store, session.embedder, settings, target).run([folder])
    return 0
