"""Commands whose n-th write fails, or whose files may not grow beyond a size."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attack_disk_child import (
    FROM_THEN_ON,
    HALF,
    ONCE,
    Ended,
    Fault,
    Tally,
    carrel,
    in_fork,
    looked,
    unwell,
)
from benchmarks.truth import canonical, differences

KINDS = (("EIO once", ONCE, errno.EIO), ("full from then on", FROM_THEN_ON, errno.ENOSPC),
         ("half a write", HALF, 0))  # fmt: skip
PENDING, ABSENT = "an erasure is not finished", 2  # `carrel doctor` says so, exit code 2
GONE, FORGOTTEN = "b1.txt", b"zqb1"
AGAIN_EVERY = 5  # cases of which the command is run again without a fault


@dataclass
class Ground:
    """Hold what the cases start from."""

    work: Path
    corpus: Path
    base: Path
    full: Path
    backup: Path
    truth: dict[str, str]

    def words(self, *beginnings: str) -> dict[str, str]:
        """Return the documents whose names begin so, by their own word."""
        names = sorted(path.name for path in self.corpus.iterdir())
        return {f"zq{n.split('.')[0]}": n for n in names if n.startswith(beginnings)}


def prepared(work: Path) -> Ground:
    """Make a directory of five documents, one of eight and a backup of that."""
    corpus, base, full = work / "corpus", work / "base", work / "full"
    corpus.mkdir(parents=True)
    _texts(corpus, "a", 5)
    _must(carrel("ingest", corpus, "--json", data=base))
    _texts(corpus, "b", 3)
    shutil.copytree(base, full)
    _must(carrel("ingest", corpus, "--json", data=full))
    _must(carrel("backup", work / "backup", data=full))
    return Ground(work, corpus, base, full, work / "backup", canonical_of(full))


def canonical_of(data: Path) -> dict[str, str]:
    """Return the truth of a directory; Chroma is not opened for it."""
    return canonical(data)


def _texts(corpus: Path, beginning: str, count: int) -> None:
    for number in range(count):
        text = f"Note {number} about zq{beginning}{number}.\n\nIt says {number * 7} lamps.\n"
        (corpus / f"{beginning}{number}.txt").write_text(text)


def _must(ended: Ended) -> None:
    if ended.code:
        raise SystemExit(f"without a fault: exit code {ended.code}: {ended.err}")


class Operation:
    """One command on a fresh copy of a directory, and what must hold after its failure."""

    name = ""

    def __init__(self, ground: Ground) -> None:
        """Work on copies below the ground's folder."""
        self.ground = ground
        self.place = ground.work / "place"
        self.data = self.place / "data"

    def run(self, number: int, kind: int, code: int) -> Ended:
        """Run it with a fault."""
        return carrel(*self.given(), data=self.data, fault=Fault(self.place, number, kind, code))

    def limited(self, largest: int) -> Ended:
        """Run it where no file may be larger."""
        return carrel(*self.given(), data=self.data, largest=largest)

    def fresh(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        shutil.copytree(self.ground.full, self.data)

    def given(self) -> list[object]:
        """Return the arguments."""
        raise NotImplementedError

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """Return what is wrong afterwards; `again` runs it again as well."""
        return ended.wrong + unwell(self.seen(self.ground.words("a", "b")))

    def seen(self, words: dict[str, str]) -> dict[str, Any]:
        """Look at the directory."""
        self.found = looked(self.data, words)
        return self.found


class Ingest(Operation):
    """Ingest three documents beside five."""

    name = "ingest"

    def fresh(self) -> None:
        """Start with five documents."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        shutil.copytree(self.ground.base, self.data)

    def given(self) -> list[object]:
        """Ingest all eight."""
        return ["ingest", self.ground.corpus, "--json"]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """No document may be lost that was acknowledged, and the next run must bring the rest."""
        kept = self.ground.words("a", *(() if ended.code else ("b",)))
        wrong = ended.wrong
        if (self.data / "catalogue.sqlite3").exists() or not ended.code:
            wrong += unwell(self.seen(kept))
        if again:
            wrong += self.again()
        return wrong

    def again(self) -> list[str]:
        """Run it once more without a fault and compare with an undisturbed run."""
        ended = carrel(*self.given(), data=self.data)
        wrong = [f"again: {one}" for one in ended.wrong]
        if ended.code:
            return [*wrong, f"again: exit code {ended.code} {ended.err.strip()}"]
        wrong += [f"again: {one}" for one in unwell(self.seen(self.ground.words("a", "b")))]
        names = differences(canonical_of(self.data), self.ground.truth)
        return wrong + [f"another truth: {name}" for name in names]


class FirstIngest(Ingest):
    """Ingest eight documents into nothing."""

    name = "first ingest"

    def fresh(self) -> None:
        """Start with no directory."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """Nothing is acknowledged before; what cannot be opened is made by the next run."""
        wrong = list(ended.wrong)
        if not ended.code:
            wrong += unwell(self.seen(self.ground.words("a", "b")))
        return wrong + (self.again() if again else [])


class Forget(Operation):
    """Forget one document of eight."""

    name = "forget"

    def given(self) -> list[object]:
        """Name it."""
        return ["forget", GONE, "--yes"]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """The others stay; it is gone when that was said, and at the latest after the next run."""
        others = {w: n for w, n in self.ground.words("a", "b").items() if n != GONE}
        wrong = list(ended.wrong)
        if not ended.code:
            wrong += [f"said to be erased: in {name}" for name in self.holding()]
        wrong += [one for one in unwell(self.seen(others)) if ended.code == 0 or PENDING not in one]
        if again and ended.code:
            second = carrel(*self.given(), data=self.data)
            wrong += [f"again: {one}" for one in second.wrong]
            if second.code == ABSENT and any(PENDING in one for one in self.found.get("left", [])):
                second = carrel("forget", data=self.data)  # as the doctor advises
                wrong += [f"finished: {second.err}"] if second.code else []
            wrong += [f"after a second run: in {name}" for name in self.holding()]
            wrong += [f"again: {one}" for one in unwell(self.seen(others))]
        return wrong

    def holding(self) -> list[str]:
        """Return the files in which the forgotten text stands."""
        files = (path for path in self.data.rglob("*") if path.is_file())
        return [path.name for path in files if FORGOTTEN in path.read_bytes()]


class Backup(Operation):
    """Replace a backup by a new one."""

    name = "backup"

    def fresh(self) -> None:
        """Have an older backup at the place of the new one."""
        super().fresh()
        shutil.copy(self.ground.backup, self.place / "b")

    def given(self) -> list[object]:
        """Write over it."""
        return ["backup", self.place / "b", "--force"]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """One backup, the old or the new, is whole."""
        wrong = ended.wrong + unpacked(self.place)
        left = [path.name for path in self.place.iterdir() if path.name not in ("b", "data")]
        wrong += [f"left behind: {name}" for name in left] if ended.code == 0 else []
        return wrong + (unwell(self.seen(self.ground.words("a", "b"))) if again else [])


def unpacked(place: Path) -> list[str]:
    """Check that the backup at a place is whole."""

    def unpack_it() -> int:
        from stores.backup.archive import unpack

        folder = place / "unpacked"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return 0 if unpack(place / "b", folder, key=None, max_gb=1).documents == 8 else 5

    ended = in_fork(unpack_it)
    shutil.rmtree(place / "unpacked", ignore_errors=True)
    return [f"no backup is whole: {ended.err.strip()[-200:]}"] if ended.code else []


class Restore(Operation):
    """Restore a backup."""

    name = "restore"

    def fresh(self) -> None:
        """Start with no directory."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()

    def given(self) -> list[object]:
        """Name the backup, which is elsewhere."""
        return ["restore", self.ground.backup]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """Nothing stands at the place of the directory, or all of it."""
        wrong = list(ended.wrong)
        if self.data.exists() and (any(self.data.iterdir()) or not ended.code):
            wrong += unwell(self.seen(self.ground.words("a", "b")))
            wrong += [f"differs: {one}" for one in self.differing()]
        elif not ended.code:
            wrong.append("there is no directory")
        if again and not (self.data / "catalogue.sqlite3").exists():
            second = carrel(*self.given(), data=self.data)
            if second.code:
                wrong.append(f"again: exit code {second.code} {second.err.strip()}")
            else:
                wrong += [f"again: {o}" for o in unwell(self.seen(self.ground.words("a", "b")))]
        return wrong

    def differing(self) -> list[str]:
        """Compare with what was backed up."""
        return differences(canonical_of(self.data), self.ground.truth)


class CreateKey(Operation):
    """Make a key."""

    name = "keys create"

    def given(self) -> list[object]:
        """Make a key of a user."""
        return ["keys", "create", "--user", "ann", "--json"]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """A key that was shown is kept; without success none is shown."""
        wrong = ended.wrong + (unwell(self.seen({"zqa0": "a0.txt"})) if again else [])
        listed = carrel("keys", "list", "--json", data=self.data)
        shown = ended.out.count("carrel_")
        if listed.code or (shown and ended.code) or shown > listed.out.count('"id"'):
            wrong.append(f"{shown} shown (exit code {ended.code}), listed: {listed.out[-200:]}")
        return wrong


class Ask(Operation):
    """Ask a question."""

    name = "ask"

    def given(self) -> list[object]:
        """Ask for one document."""
        return ["ask", "What does the note about zqb2 say?", "--json"]

    def wrong(self, ended: Ended, again: bool) -> list[str]:
        """Nothing is lost by asking."""
        return ended.wrong + (unwell(self.seen(self.ground.words("a", "b"))) if again else [])


class Search(Ask):
    """Search."""

    name = "search"

    def given(self) -> list[object]:
        """Search for one document."""
        return ["search", "zqb2", "--json"]


OPERATIONS = (Ingest, FirstIngest, Forget, Backup, Restore, CreateKey, Ask, Search)


def nth_writes(ground: Ground, stride: int, others: int, names: set[str]) -> Iterator[Tally]:
    """Fail each `stride`-th change of files of each operation; of other kinds each `others`-th."""
    for made in OPERATIONS:
        operation = made(ground)
        if names and operation.name not in names:
            continue
        for kind, how, code in KINDS:
            tally = Tally(f"{operation.name}: {kind}")
            number, step = 1, stride if how == ONCE else stride * others
            while True:
                operation.fresh()
                ended = operation.run(number, how, code)
                if 0 < ended.seen < number:
                    break  # it ends before the fault; one that died has seen none
                again = tally.tried % AGAIN_EVERY == 0
                problems = operation.wrong(ended, again)
                note = f"exit {ended.code}"
                tally.case(f"n={number} ({ended.at})", problems, note)
                number += step
            yield tally


def largest_files(ground: Ground, sizes: list[int], names: set[str]) -> Iterator[Tally]:
    """Run each operation under RLIMIT_FSIZE."""
    for made in OPERATIONS:
        operation = made(ground)
        if names and operation.name not in names:
            continue
        tally = Tally(f"{operation.name}: ulimit -f")
        for size in sizes:
            operation.fresh()
            ended = operation.limited(size)
            problems = operation.wrong(ended, True)
            note = f"exit {ended.code}"
            tally.case(f"{size} bytes", problems, note)
        yield tally
