"""An ingest says how far it is from its first second on, and Ctrl-C ends it with nothing lost."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

from commands import COMMAND, ROOT, index_of, process

from cli.terminal.progress import clock, progress_line, progress_text
from ingest.discover import SourceFile
from ingest.summary import Size, Tally

SECONDS = 90
SOME = 300
MANY = 600  # so that the ingest is still at work when it is interrupted, however late that is
AT_WORK = re.compile(r"files · \d+ documents? · ([1-9]\d*)/(\d+) chunks · \d+:\d\d")


def corpus(folder: Path, many: int) -> Path:
    folder.mkdir()
    lines = "Ship number {0} left harbour {1} with grain, and came back with {0} barrels of tar. "
    for number in range(many):
        text = lines.format(number, number % 7) * 12
        (folder / f"{number}.md").write_text(f"# Ship {number}\n\n{text}\n")
    return folder


class Terminal:
    """Run an ingest on a terminal, and note when it says what."""

    def __init__(self, *arguments: object) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
        self.child = subprocess.Popen(
            [*COMMAND, "ingest", *map(str, arguments)],
            cwd=ROOT,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said: list[tuple[float, str]] = []

    def until(self, pattern: re.Pattern[str] | None) -> None:
        """Read until it says something, or with None until it ends."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and (text := self._read()) is not None:
            self.said.append((time.monotonic(), text))
            if pattern is not None and pattern.search(text):
                return
        assert pattern is None, self.said[-3:]

    def _read(self) -> str | None:
        if not select.select([self._ours], [], [], 1)[0]:
            return ""
        try:
            return os.read(self._ours, 65_536).decode(errors="replace") or None
        except OSError:  # the other end is closed
            return None


def test_ctrl_c_ends_it_and_nothing_is_lost(tmp_path: Path) -> None:
    data, ships = tmp_path / "data", corpus(tmp_path / "ships", MANY)
    running = Terminal(ships, "--data", data)
    running.until(AT_WORK)
    told = [when for when, text in running.said if text]
    assert max(after - before for before, after in zip(told, told[1:], strict=False)) < 3
    os.kill(running.child.pid, signal.SIGINT)
    began = time.monotonic()
    running.until(None)
    assert running.child.wait(SECONDS) == 130
    assert time.monotonic() - began < 6  # two seconds, were nothing else at work on the machine
    assert "interrupted; what was finished is kept" in "".join(text for _, text in running.said)
    again = process("ingest", ships, "--json", data=data)
    assert (again.code, again.err, again.json["documents"]) == (0, "", MANY)
    assert index_of(data).consistent
    assert process("doctor", "--json", data=data).json["ok"]


def test_without_a_terminal_there_are_lines(tmp_path: Path) -> None:
    done = process("ingest", corpus(tmp_path / "ships", SOME), data=tmp_path / "data")
    assert done.code == 0
    lines = done.err.splitlines()
    early = ("opening", "preparing")  # seen where these take most of a second
    assert len([one for one in lines if not one.startswith(early)]) > 1
    assert all(
        re.match(rf"\d+/{SOME} files · \d+ doc.* chunks · \d+:\d\d", one)
        or re.fullmatch(r"[a-z() ]+ · 0:\d\d", one)
        for one in lines
    )
    assert any(" · 0:01" in one or " · 0:00" in one for one in lines[:1])
    assert "\x1b" not in done.err


def test_what_is_left_is_told_by_the_text_that_was_read(tmp_path: Path) -> None:
    tally = Tally()
    assert progress_text(tally) == "opening · 0:00"
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    for file in files:
        file.write_text("x" * 100)
    reading = iter(tally.read([SourceFile(path=file, relative=file.name) for file in files]))
    next(reading)
    tally.cut(Size(4, 100))
    with tally.batch(Size(4, 100)):
        tally.embedding = "a.md"
        tally.known(Size(1, 10))
        assert tally.remaining is None
        tally.embedded(Size(1, 40))
        assert tally.share == 0.0 and tally.remaining is not None
        assert tally.at_least  # nobody knows what more the file holds
        next(reading)
        assert tally.share == 0.25 and not tally.at_least
        assert tally.name == "a.md"
        tell = progress_text(tally)
        assert tell.startswith("0/2 files · 0 documents · 2/4 chunks · 0:00 · about 0:00 left")
    assert (tally.chunks_done, tally.name) == (4, "b.md")
    assert progress_text(tally).startswith("0/2 files · 0 documents · 4/4 chunks · 0:00")
    assert clock(3599.7) == "60:00"


def test_the_times_fit_any_width(tmp_path: Path) -> None:
    (tmp_path / "harbours.md").write_text("x" * 100)
    tally = Tally()
    list(tally.read([SourceFile(path=tmp_path / "harbours.md", relative="harbours.md")]))
    tally.cut(Size(1425, 9000))
    tally.embedded(Size(1, 10))
    tally.embedding = "harbours.md"
    counts = "0/1 files · 0 documents · 1/1425 chunks"
    for width in range(24, 140):
        line = progress_line(tally, width).plain
        assert len(line) <= width
        assert re.search(r"\d:\d\d · about \d:\d\d left", line)
    assert f" {counts} · 0:00" in progress_line(tally, 79).plain
    assert progress_line(tally, 79).plain.startswith("━" * 8)
    assert progress_line(tally, 139).plain.endswith(" left · harbours.md")
