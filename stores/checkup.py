"""Check a data directory when it is opened and while it is, and repair what is derived.

After a clean close only a sample is asked for. Otherwise the structure of the catalogue, the sums
of its rows, the full-text index and the segments are checked before the first answer, or `later`:
then a first look decides, answers say that the check is under way, and nothing is written before
the structure is known. Chroma is proved by a child process before this one opens it: a damaged
index can end the process that does.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from core.errors import CarrelError
from core.time_limit import TimeLimit, limited_time
from stores import canary
from stores.catalogue import Collection
from stores.chroma import TORN
from stores.conversations import THREADS
from stores.fulltext_rebuild import rebuild_fulltext
from stores.loss import missing
from stores.part_checks import PartChecks
from stores.put_off import MENDED, PutOff
from stores.samples import vector_sample
from stores.seal import SealReport
from stores.selfcheck import self_check
from stores.writer import bump

if TYPE_CHECKING:
    from core.settings import Settings
    from stores.store import Store

CATALOGUE = "catalogue.sqlite3"
EVERYTHING = SealReport("none")
OPENING_S = 2.0  # for the sample that is asked for before the first answer
CHANGED = "{} was changed by something else since the data directory was closed"


class Checkup:
    """Check one open store."""

    def __init__(self, store: Store, settings: Settings, *, later: bool = False) -> None:
        """Report to the condition of the store's database.

        With `later`, `finish` or `again` is called soon after the opening.
        """
        self._store = store
        self._settings = settings
        self._condition = store.database.condition
        self._lock = threading.Lock()
        self.parts = PartChecks(store)
        self.probe_s = settings.check_probe_s
        self._later = later
        self._put_off = PutOff(store, self._missed)
        self._until = math.inf

    def opened(self, report: SealReport) -> None:
        """Check what the seal does not vouch for, then ask for a sample."""
        if report.state == "new":
            return
        if not self._condition.lost:
            self._condition.lost = next(iter(missing(self._store)), "")
        if report.touched(THREADS) or report.touched(f"{THREADS}-wal"):
            self.parts.threads()
        if report.state != "equal" and self._later and self._put_off.may_begin():
            self._put_off.begin(lambda: self._frame(report), lambda: self._content(report))
        elif report.state != "equal":
            self._frame(report)
            self._content(report)
        elif "segments" in report.left_out:
            self.parts.segments()
        if report.touched("chroma") or "chroma" in report.left_out:
            changed = report.state == "changed" and report.touched("chroma")
            reason = CHANGED.format("the vector index") if changed else ""
            if report.left_out.get("chroma") == TORN:
                reason = "a write to it failed"
            if reason:
                self._store.chroma.condemn(reason)
            else:
                self._store.chroma.distrust(self.probe)
        if not self.pending:
            # What this leaves out because its documents take long, the next self-check asks for.
            self._until = time.monotonic() + OPENING_S
            self.sample()
            self._until = math.inf

    @property
    def pending(self) -> bool:
        """Tell whether the full check has still to end."""
        return self._put_off.pending

    def finish(self) -> None:
        """Do the full check that was put off at the opening; answers go on beside it."""
        self._put_off.finish()

    def again(self) -> list[str]:
        """Check all of it while it is in use; repair what is derived; return the problems.

        What the seal cannot know is found here: rot under a file whose times did not change, and
        damage since the opening. A vector index that has still to be proved is proved now, and made
        anew if it must.
        """
        store, condition = self._store, self._condition
        condition.clear("mended")
        checked = self.pending
        self.finish()
        with store.ingesting:
            if store.database.check_files():
                store.database.check_commits()
            store.database.forget_sums()
            if not checked and not condition.malformed:
                self._everything()
            problems = self.sample()
            if not condition.read_only and (reason := store.chroma.unsound()):
                store.rebuild_vectors()
                self.parts.repaired.append(f"the vector index was made anew ({reason})")
        if condition.malformed:
            problems.append(f"the catalogue is damaged: {condition.malformed}")
        if condition.lost:
            problems.append(f"rows of the catalogue are missing: {condition.lost}")
        return problems

    def _everything(self) -> None:
        """Check every part as it is on the disk now, and say so when one had to be made anew."""
        before = len(self.parts.repaired)
        self.parts.structure()
        self._content(EVERYTHING)
        self.parts.threads()
        if len(self.parts.repaired) == before:
            return
        self._condition.report("mended", MENDED)
        if not self._condition.read_only:
            with self._store.database.write() as connection:
                bump(connection)

    def left_out(self) -> dict[str, str] | None:
        """Return what a seal does not vouch for, None where the truth is damaged or unchecked."""
        if self.pending:
            return None
        damage, store = self.parts.damage, self._store
        if damage.any or self.parts.threads_damaged or self._condition.read_only:
            return None
        found = {"chroma": store.chroma.doubted} if store.chroma.doubted else {}
        if store.seal.moved("segments"):
            try:
                whole = not store.hot.problems(store.catalogue.collections())
            except (sqlite3.DatabaseError, CarrelError):
                return None
            if not whole:
                found["segments"] = "damaged"
        return found

    def sample(self) -> list[str]:
        """Ask every collection for a sample; rebuild what does not find it; return the problems."""
        with self._lock:
            found = [(one, self._sampled(one)) for one in self.parts.collections()]
            problems = [f"'{one.name}' of '{one.tenant}': {why}" for one, why in found if why]
            self._condition.distrusted = next((why for _, why in found if why), "")
            return problems

    def _sampled(self, collection: Collection) -> str:
        name = f"sample {collection.id}"
        problem = self._missed(collection)
        if problem:
            self._condition.distrusted = f"the indexes are being made anew ({problem})"
            self._rebuild(collection, problem)
            problem = self._missed(collection)
        self._condition.clear(name)
        if problem:
            self._condition.report(name, f"a self-check failed: {problem}; run `carrel doctor`")
        return problem

    def _missed(self, collection: Collection) -> str:
        store = self._store
        with limited_time(TimeLimit(self._until)):
            model, settings = store.model_id, self._settings
            found = self_check(store.database, store.hot, collection, model, settings)
        rows = (
            store.database.read()
            .execute("SELECT count(*) FROM chunks WHERE collection_id = ?", (collection.id,))
            .fetchone()[0]
        )
        exact = rows <= self._settings.vector_exact_limit
        return found.problem(0.0 if exact else self._settings.check_missed_share)

    def _rebuild(self, collection: Collection, why: str) -> None:
        """Make everything derived of a collection anew from the truth."""
        store = self._store
        if self._condition.read_only:
            return
        try:
            rebuild_fulltext(store.database, collection.id)
            store.hot.rebuild(collection)
            if store.chroma.exists():
                store.rebuild_vectors()
        except (sqlite3.DatabaseError, CarrelError) as error:
            self._condition.report(f"repair {collection.id}", f"a repair failed: {error}")
            return
        self._condition.clear(f"repair {collection.id}")
        self.parts.repaired.append(f"the indexes of '{collection.name}' were made anew ({why})")

    def _frame(self, report: SealReport) -> None:
        """Check the structure of the catalogue, before anything is written to it."""
        self._condition.clear("changed ")
        if _truth(report):
            self.parts.structure()
        if report.state == "changed":
            for name in report.files:
                if not name.startswith(("chroma/", "segments/")):
                    self._condition.report(f"changed {name}", CHANGED.format(name))

    def _content(self, report: SealReport) -> bool:
        """Check all else that may have changed, the truth before what is derived from it.

        Returns whether anything was made anew, here or when the structure was checked.
        """
        if _truth(report) and not self._condition.malformed:
            self.parts.rows()
            for collection in self.parts.collections():
                self.parts.fulltext(collection)
        if not self._condition.malformed:
            self.parts.segments()
        return bool(self.parts.repaired)

    def settled(self) -> None:
        """Forget what was said of repairs and changes that are done and checked by now."""
        for beginning in ("changed ", "full text ", "segment ", "repair ", "mended"):
            self._condition.clear(beginning)
        self.parts.repaired.clear()

    def probe(self) -> str:
        """Ask the vector index in a child process for what it must know; return what is wrong."""
        store = self._store
        sample = vector_sample(store.database.read(), self.parts.collections(), store.model_id)
        report = canary.probe(
            store.folder / "chroma", store.model_id, sample, timeout_s=self.probe_s
        )
        if "error" in report:
            return str(report["error"])
        if report["missed"] > self._settings.check_missed_share * report["asked"]:
            return f"it does not find {report['missed']} of {report['asked']} of its own vectors"
        return ""


def _truth(report: SealReport) -> bool:
    return report.state == "none" or any(one.startswith(CATALOGUE) for one in report.files)
