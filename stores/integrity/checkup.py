"""Check a data directory when it is opened and while it is, and repair what is derived.

After a clean close only a sample is asked for. Otherwise the structure of the catalogue, the sums
of its rows, the full-text index and the segments are checked before the first answer, or `later`:
then a first look decides, answers say that the check is under way, and nothing is written before
the structure is known. Files that can end the process that opens them are proved by another first.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from core.errors import CarrelError
from core.time_limit import TimeLimit, limited_time
from stores.index.folders import ALL_FOLDERS, WORDS
from stores.integrity.deferred_check import MENDED, DeferredCheck
from stores.integrity.file_manifest import FileReport
from stores.integrity.loss import missing
from stores.integrity.part_checks import PartChecks
from stores.integrity.selfcheck import self_check
from stores.runlog.conversations import THREADS
from stores.sqlite.catalogue import Collection
from stores.sqlite.fulltext import rebuild_fulltext
from stores.sqlite.writer import bump

if TYPE_CHECKING:
    from core.settings import Settings
    from stores.store import StoreParts


CATALOGUE = "catalogue.sqlite3"
EVERYTHING = FileReport("none")
OPENING_S = 2.0  # for the sample that is asked for before the first answer
CHANGED = "{} was changed by something else since the data directory was closed"


class Checkup(PartChecks):
    """Check one open store."""

    def __init__(self, parts: StoreParts, settings: Settings, *, later: bool = False) -> None:
        """Report to the condition of the store's database.

        With `later`, `finish` or `again` is called soon after the opening.
        """
        super().__init__(parts)
        self._settings = settings
        self._lock = threading.Lock()
        self._later = later
        self._put_off = DeferredCheck(parts, self._missed)
        self._until = math.inf

    def opened(self, report: FileReport) -> None:
        """Check what the seal does not vouch for, then ask for a sample."""
        if report.state == "new":
            return
        if not self._condition.lost:
            self._condition.lost = next(iter(missing(self._parts)), "")
        if report.touched(THREADS) or report.touched(f"{THREADS}-wal"):
            self.check_threads()
        if report.touched("chroma") or "chroma" in report.left_out:
            changed = report.state == "changed" and report.touched("chroma")
            torn = report.left_out.get("chroma", "")
            self._parts.search.doubt(CHANGED.format("the vector index") if changed else torn)
        if report.state != "equal" and self._later and self._put_off.may_begin():
            self._put_off.begin(lambda: self._frame(report), lambda: self._content(report))
        elif report.state != "equal":
            self._frame(report)
            self._content(report)
        elif report.left_out:
            self.check_segments()
        if not self.checking:
            # What this leaves out because its documents take long, the next self-check asks for.
            self._until = time.monotonic() + OPENING_S
            self.check_sample()
            self._until = math.inf

    @property
    def checking(self) -> bool:
        """Tell whether the full check has still to end."""
        return self._put_off.pending

    def finish_check(self) -> None:
        """Do the full check that was put off at the opening; answers go on beside it."""
        self._put_off.finish()

    def check_again(self) -> list[str]:
        """Check all of it while it is in use; repair what is derived; return the problems.

        What the seal cannot know is found here: rot under a file whose times did not change, and
        damage since the opening.
        """
        store, condition = self._parts, self._condition
        condition.clear("mended")
        checked = self.checking
        self.finish_check()
        with store.ingesting:
            if store.database.check_files():
                store.database.check_commits()
            store.database.forget_sums()
            if not checked and not condition.malformed:
                self._everything()
            problems = self.check_sample()
        if condition.malformed:
            problems.append(f"the catalogue is damaged: {condition.malformed}")
        if condition.lost:
            problems.append(f"rows of the catalogue are missing: {condition.lost}")
        return problems

    def _everything(self) -> None:
        """Check every part as it is on the disk now, and say so when one had to be rebuilt."""
        before = len(self.repaired)
        self.check_structure()
        self._content(EVERYTHING)
        self.check_threads()
        if len(self.repaired) == before:
            return
        self._condition.report("mended", MENDED)
        if not self._condition.read_only:
            with self._parts.database.write() as connection:
                bump(connection)

    def left_out(self) -> dict[str, str] | None:
        """Return what a seal does not vouch for, None where the truth is damaged or unchecked."""
        if self.checking:
            return None
        damage, store = self.damage, self._parts
        if damage.any or self.threads_damaged or self._condition.read_only:
            return None
        found = {"chroma": store.search.torn} if store.search.torn else {}
        if any(map(store.seal.moved, WORDS)):
            try:
                whole = not store.search.problems(store.catalogue.collections())
            except (sqlite3.DatabaseError, CarrelError):
                return None
            if not whole:
                found["segments"] = "damaged"
        return found

    def check_sample(self) -> list[str]:
        """Ask every collection for a sample; rebuild what does not find it; return the problems."""
        with self._lock:
            found = [(one, self._sampled(one)) for one in self.readable_collections()]
            problems = [f"'{one.name}' of '{one.tenant}': {why}" for one, why in found if why]
            self._condition.distrusted = next((why for _, why in found if why), "")
            return problems

    def _sampled(self, collection: Collection) -> str:
        name = f"sample {collection.id}"
        problem = self._missed(collection)
        if problem:
            self._condition.distrusted = f"the indexes are being rebuilt ({problem})"
            self._rebuild(collection, problem)
            problem = self._missed(collection)
        self._condition.clear(name)
        if problem:
            self._condition.report(name, f"a self-check failed: {problem}; run `carrel doctor`")
        return problem

    def _missed(self, collection: Collection) -> str:
        store = self._parts
        with limited_time(TimeLimit(self._until)):
            found = self_check(store.database, store.search, collection, store.model_id)
        return found.problem()

    def _rebuild(self, collection: Collection, why: str) -> None:
        """Rebuild everything derived of a collection from the catalogue."""
        store = self._parts
        if self._condition.read_only:
            return
        try:
            rebuild_fulltext(store.database, collection.id)
            store.search.rebuild(collection)
        except (sqlite3.DatabaseError, CarrelError) as error:
            self._condition.report(f"repair {collection.id}", f"a repair failed: {error}")
            return
        self._condition.clear(f"repair {collection.id}")
        self.repaired.append(f"the indexes of '{collection.name}' were rebuilt ({why})")

    def _frame(self, report: FileReport) -> None:
        """Check the structure of the catalogue, before anything is written to it."""
        self._condition.clear("changed ")
        if _truth(report):
            self.check_structure()
        if report.state == "changed":
            for name in report.files:
                if name.split("/")[0] not in ALL_FOLDERS:
                    self._condition.report(f"changed {name}", CHANGED.format(name))

    def _content(self, report: FileReport) -> bool:
        """Check all else that may have changed, the truth before what is derived from it.

        Returns whether anything was rebuilt, here or when the structure was checked.
        """
        if _truth(report) and not self._condition.malformed:
            self.check_rows()
            for collection in self.readable_collections():
                self.check_fulltext(collection)
        if not self._condition.malformed:
            self.check_segments()
        return bool(self.repaired)

    def clear_repairs(self) -> None:
        """Forget what was said of repairs and changes that are done and checked by now."""
        for beginning in ("changed ", "full text ", "segment ", "repair ", "mended"):
            self._condition.clear(beginning)
        self.repaired.clear()


def _truth(report: FileReport) -> bool:
    return report.state == "none" or any(one.startswith(CATALOGUE) for one in report.files)
