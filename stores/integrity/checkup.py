"""Decide when a data directory is checked, and how thoroughly: at its opening, later, by command.

After a clean close only a sample is asked for. Otherwise the structure of the catalogue, the sums
of its rows, the full-text index and the search index are checked before the first answer, or
`later`, while questions are answered already. No answer may be wrong in silence meanwhile. What
becomes evidence is compared with its sums when it is read, in any case; a first look covers what is
not: documents where they are listed or rights decide, collections, keys, the search index, and a
sample of searches. Whatever it finds, the full check comes first. Otherwise answers say that the
check is under way, nothing is written before the structure of the catalogue is known, and what was
remembered is forgotten at the end.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.errors import CarrelError
from stores.folder import ALL_FOLDERS, VECTOR_FOLDERS, WORDS
from stores.integrity.checks import (
    Check,
    FulltextCheck,
    IndexCheck,
    OrphanCheck,
    StructureCheck,
    ThreadsCheck,
    dead_but_alive,
)
from stores.integrity.file_manifest import FileReport
from stores.integrity.rows import RowCheck, missing
from stores.integrity.selfcheck import SampleCheck
from stores.runlog.conversations import THREADS
from stores.sqlite.sums import Damage, damaged_rows
from stores.sqlite.writer import bump

if TYPE_CHECKING:
    from stores.store import StoreParts

CATALOGUE = "catalogue.sqlite3"
EVERYTHING = FileReport("none")
OPENING_S = 2.0  # for the sample that is asked for before the first answer; chosen, not measured
CHANGED = "{} was changed by something else since the data directory was closed"
UNDER_WAY = "the data directory is still being checked: what is damaged may be missing from answers"
MENDED = (
    "the check found an index damaged, which was rebuilt since: what was asked before may have"
    " lacked passages; ask again"
)
FIRST_LOOK = (*map(damaged_rows, ("documents", "collections", "api_keys")), "quarantine")


class Checkup:
    """Check one open store; the condition of its database keeps what is wrong."""

    def __init__(self, parts: StoreParts, *, later: bool = False) -> None:
        """Check these parts; with `later`, `finish_check` is called soon after the opening."""
        self.repaired: list[str] = []
        self.structure, self.rows = StructureCheck(parts), RowCheck(parts)
        self.fulltext, self.index = FulltextCheck(parts), IndexCheck(parts)
        self.threads, self.orphans = ThreadsCheck(parts), OrphanCheck(parts)
        self._sample = SampleCheck(parts)
        self._parts = parts
        self._condition = parts.database.condition
        self._lock = threading.Lock()
        self._later = later
        self._put_off: FileReport | None = None

    def opened(self, report: FileReport) -> None:
        """Check what the seal does not vouch for, then ask for a sample."""
        if report.state == "new":
            return
        if not self._condition.lost:
            self._condition.lost = next(iter(missing(self._parts)), "")
        if report.touched(THREADS) or report.touched(f"{THREADS}-wal"):
            self._settle(self.threads)
        name = self._parts.search.folders[-1]
        if name in VECTOR_FOLDERS and (report.touched(name) or name in report.left_out):
            changed = report.state == "changed" and report.touched(name)
            torn = report.left_out.get(name, "")
            self._parts.search.doubt(CHANGED.format("the vector index") if changed else torn)
        if report.state != "equal" and self._later and self._looks_sound():
            self._put_off = report
            self._condition.report("under way", UNDER_WAY)
            self._parts.database.write_barrier.close(lambda: self._frame(report))
        elif report.state != "equal":
            self._frame(report)
            self._content(report)
        elif report.left_out:
            self._settle(self.index)
        if not self.checking:
            # What this leaves out because its documents take long, the next self-check asks for.
            self._sample.until = time.monotonic() + OPENING_S
            self.check_sample()
            self._sample.until = math.inf

    @property
    def checking(self) -> bool:
        return self._put_off is not None

    def finish_check(self) -> None:
        if self._put_off is None:
            return
        self._parts.database.write_barrier.wait()
        with self._parts.ingesting:
            if self._put_off is None:  # another thread has done it meanwhile
                return
            self._content(self._put_off)
            self._forget_answers(told=bool(self.repaired))
            self._put_off = None
            self._condition.clear("under way")

    def check_again(self) -> list[str]:
        store, condition = self._parts, self._condition
        condition.clear("mended")
        checked = self.checking
        self.finish_check()
        with store.ingesting:
            if store.database.check_files():
                store.database.check_commits()
            store.database.forget_sums()
            if not checked and not condition.malformed:
                before = len(self.repaired)
                self._settle(self.structure)
                self._content(EVERYTHING)
                self._settle(self.threads)
                if len(self.repaired) > before:
                    self._forget_answers(told=True)
            problems = self.check_sample()
        if condition.malformed:
            problems.append(f"the catalogue is damaged: {condition.malformed}")
        if condition.lost:
            problems.append(f"rows of the catalogue are missing: {condition.lost}")
        return problems

    def check_sample(self) -> list[str]:
        with self._lock:
            self._settle(self._sample)
            return list(self._sample.left)

    def check_rows(self) -> Damage:
        self._settle(self.rows)
        return self.rows.damage

    def repair(
        self, embed: Callable[[], list[str]], progress: Callable[[str, int, int], None]
    ) -> list[str]:
        done = self.rows.make_again()
        done += [self.fulltext.repair(one) for one in self.fulltext.check()]
        done += embed()
        for check in (IndexCheck(self._parts, progress), self.orphans):
            done += [check.repair(one) for one in check.check()]
        self.check_rows()
        self.check_sample()
        self.clear_repairs()
        return done

    def clear_repairs(self) -> None:
        for beginning in ("changed ", "full text ", "segment ", "repair ", "mended"):
            self._condition.clear(beginning)
        self.repaired.clear()

    def left_out(self) -> dict[str, str] | None:
        """Return what a seal does not vouch for, None where the truth is damaged or unchecked."""
        store, threads = self._parts, self.threads.is_damaged
        if self.checking or self.rows.damage.any or threads or self._condition.read_only:
            return None
        found = {store.search.folders[-1]: store.search.torn} if store.search.torn else {}
        if any(map(store.seal.moved, WORDS)):
            try:
                if store.search.problems(store.catalogue.collections()):
                    found["segments"] = "damaged"
            except (sqlite3.DatabaseError, CarrelError):
                return None
        return found

    def _settle(self, check: Check) -> None:
        self.repaired += check.settle()

    def _forget_answers(self, *, told: bool) -> None:
        """Let nothing remembered answer any more; where something was rebuilt, say so."""
        if told:
            self._condition.report("mended", MENDED)
        if not self._condition.read_only:
            with self._parts.database.write() as connection:
                bump(connection)

    def _looks_sound(self) -> bool:
        """Take the first look, which writes nothing."""
        store = self._parts
        try:
            reader = store.database.read()
            return not (
                any(reader.execute(f"SELECT 1 FROM {one} LIMIT 1").fetchone() for one in FIRST_LOOK)
                or dead_but_alive(reader)
                or store.search.problems(store.catalogue.collections())
                or self._sample.check()
            )
        except (sqlite3.DatabaseError, CarrelError):
            return False

    def _frame(self, report: FileReport) -> None:
        """Check the structure of the catalogue, before anything is written to it."""
        self._condition.clear("changed ")
        if _truth(report):
            self._settle(self.structure)
        if report.state == "changed":
            for name in report.files:
                if name.split("/")[0] not in ALL_FOLDERS:
                    self._condition.report(f"changed {name}", CHANGED.format(name))

    def _content(self, report: FileReport) -> None:
        """Check all else that may have changed, the truth before what is derived from it."""
        if _truth(report) and not self._condition.malformed:
            self._settle(self.rows)
            self._settle(self.fulltext)
        if not self._condition.malformed:
            self._settle(self.index)


def _truth(report: FileReport) -> bool:
    return report.state == "none" or any(one.startswith(CATALOGUE) for one in report.files)
