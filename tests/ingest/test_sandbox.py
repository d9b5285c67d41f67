"""The parser process: what it gives as it goes, what it may take, what it costs when it dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loading import LIMITS

from ingest.discover import SourceFile
from ingest.sandbox.pool import ParserProcess, Sandbox
from ingest.types import Loaded, LoadFailure, ParsedDocument
from ingest.usable import load

MANY = 6_000


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


@pytest.fixture
def long(tmp_path: Path) -> SourceFile:
    """A file whose documents are more than a pipe holds."""
    path = tmp_path / "long.jsonl"
    rows = (json.dumps({"_id": str(n), "text": f"{n} " + "word " * 100}) for n in range(MANY))
    path.write_text("\n".join(rows))
    return SourceFile(path, path.name)


def small(folder: Path, text: str = "# A title\n\ntext") -> SourceFile:
    path = folder / "small.md"
    path.write_text(text)
    return SourceFile(path, path.name)


def failures(items: Iterator[Loaded]) -> list[str]:
    return [item.reason for item in items if isinstance(item, LoadFailure)]


def test_documents_come_while_the_file_is_parsed(sandbox: Sandbox, long: SourceFile) -> None:
    sandbox._idle.append(child := sandbox._take())
    items = load(long, LIMITS, sandbox)
    first = next(items)
    assert isinstance(first, ParsedDocument) and first.document_id == "0"
    os.kill(child.pid, signal.SIGKILL)
    rest = list(items)
    assert 0 < len(rest) < MANY
    assert isinstance(rest[-1], LoadFailure) and "crashed" in rest[-1].reason


def test_only_the_time_of_the_parser_counts(
    sandbox: Sandbox, long: SourceFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = load(long, LIMITS, sandbox)
    next(items)
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 3600)  # the caller took an hour
    assert failures(items) == []


def test_a_caller_that_stops_early_leaves_the_sandbox_usable(
    sandbox: Sandbox, long: SourceFile, tmp_path: Path
) -> None:
    items = load(long, LIMITS, sandbox)
    next(items)
    other = load(small(tmp_path), LIMITS, sandbox)  # at the same time, in a process of its own
    assert failures(other) == []
    del items
    assert failures(load(long, LIMITS, sandbox)) == []


def test_a_used_process_is_not_believed_when_it_fails(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures(load(small(tmp_path), LIMITS, sandbox)) == []
    worn = sandbox._idle[0]
    os.kill(worn.pid, signal.SIGSTOP)
    send = ParserProcess.send

    def send_and_die(child: ParserProcess, job: dict[str, object]) -> None:
        send(child, job)
        if child is worn:
            os.kill(child.pid, signal.SIGKILL)

    monkeypatch.setattr(ParserProcess, "send", send_and_die)
    assert failures(load(small(tmp_path), LIMITS, sandbox)) == []
    assert sandbox._idle[0].pid != worn.pid


def test_a_file_that_changes_while_it_is_read_ends(sandbox: Sandbox, long: SourceFile) -> None:
    items = load(long, LIMITS, sandbox)
    next(items)
    long.path.write_bytes(b"\x00{" * 1000)
    rest = list(items)
    assert len(rest) < MANY
    assert sum(isinstance(item, LoadFailure) for item in rest) <= 1
    assert len(list(load(long, LIMITS, sandbox))) == 1


def test_one_process_serves_many_files(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"memory_mb": 600})
    # What the parent has used before it starts the process is not the memory of that.
    assert len(b"x" * (limits.memory_mb << 19)) > 0
    seen = set()
    with Sandbox() as sandbox:
        for _ in range(5):
            assert failures(load(small(tmp_path), limits, sandbox)) == []
            seen.add(sandbox._idle[0].pid)
    assert len(seen) == 1


def test_the_process_knows_no_secrets_and_goes_with_its_parent(tmp_path: Path) -> None:
    code = """
import os, sys
os.environ["CARREL_SECRET"] = "hidden"
from ingest.sandbox.pool import Sandbox
box = Sandbox().__enter__()
child = box._idle[0]
child.line(30, 100)
told = open(f"/proc/{child.pid}/environ").read() if os.path.isdir("/proc/self") else ""
print(child.pid, "hidden" in told, child._scratch, flush=True)
os._exit(9)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert ended.returncode == 9, ended.stderr
    process, knows, scratch = ended.stdout.split()
    assert knows == "False"
    deadline = time.monotonic() + 60
    while Path(scratch).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(scratch).exists()
    assert process.isdigit()


def test_half_characters_and_no_numbers_are_mended(sandbox: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"_id": "a\\ud800", "name": "b\\udfff", "n": NaN, "m": [1, Infinity]}')
    (item,) = load(SourceFile(path, "x.jsonl"), LIMITS, sandbox)
    assert isinstance(item, ParsedDocument), item
    assert item.document_id == "a?" and item.title == "b?"
    assert item.fields["m"] == [1] and "n" not in item.fields
