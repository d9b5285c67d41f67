"""What `carrel forget` is asked to forget: found, asked about, recorded and erased."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.options import DEFAULT_COLLECTION, DEFAULT_TENANT, storable
from cli.output import asks, confirm
from cli.recording import record
from cli.running import host
from core.errors import AbsentError, CallerError

if TYPE_CHECKING:
    from graph.session import Session
    from stores.audit import AuditLog
    from stores.catalogue import Collection
    from stores.erasure.documents import Gone

NAMED = 100  # documents that the audit log names, each by a pseudonym


@dataclass(frozen=True)
class Asked:
    """Hold what is to be forgotten as the options say it."""

    document: str | None
    sources: Sequence[str]
    collection: str | None
    tenant: str | None
    keep_out: bool
    yes: bool

    def forgotten(self, session: Session) -> dict[str, Any]:
        """Forget it and return the report; raises CallerError when nothing is asked for."""
        if self.document is not None or self.sources:
            return self._documents(session)
        if self.tenant is not None and self.collection is None:
            tenant = storable(self.tenant)
            counts = _whole_tenant(session, tenant, self.yes)
            return _report(session, counts, tenant, whole=True)
        if session.store.erasure.pending() is None:
            raise CallerError(
                "name what is to be forgotten",
                hint="give a DOCUMENT, --source or --tenant; `carrel forget --help` tells more",
            )
        return _report(session, Counter(), None)

    def let_in(self, session: Session) -> dict[str, Any]:
        """Take a --keep-out of the document back; raises CallerError where there is none."""
        from stores.rows import document_key

        if self.document is None:
            raise CallerError("--let-in takes one DOCUMENT, by its id")
        collection = self._collection(session)
        name = storable(self.document)
        if not session.store.erasure.let_in(document_key(collection, name)):
            raise AbsentError("no such document is kept out", value=name)
        return {"let_in": name}

    def _collection(self, session: Session) -> Collection:
        """Return the collection; one without documents may still keep some out."""
        tenant = storable(self.tenant or DEFAULT_TENANT)
        return session.store.catalogue.collection(
            tenant, storable(self.collection or DEFAULT_COLLECTION)
        )

    def _documents(self, session: Session) -> dict[str, Any]:
        collection = self._collection(session)
        found = _chosen(session, collection, self.document, self.sources)
        if len(found) > 1:
            question = f"erase {len(found)} documents of collection '{collection.name}' for good?"
            _ask(question, self.yes)
        _record(session, collection, found)
        counts = session.store.erasure.forget(collection, found, keep_out=self.keep_out)
        still = [] if self.keep_out else _still_there(found)
        report = _report(session, counts, collection.tenant, files=still)
        return {**report, "still_there": still}


def _report(
    session: Session,
    counts: Counter[str],
    tenant: str | None,
    *,
    files: Sequence[str] = (),
    whole: bool = False,
) -> dict[str, Any]:
    """Return what was erased, and what stays and where; of a `whole` tenant all its audit rows."""
    from stores.audit_names import staying_rows

    rows, questions = staying_rows(session.store.database.read(), tenant)
    stays: dict[str, Any] = {"audit_rows": rows} if whole else {}
    stays |= {"question_rows": questions, "files": list(files)}
    stays["backups"] = "those made earlier still hold it"
    return {"erased": dict(sorted(counts.items())), "stays": stays}


def _chosen(
    session: Session, collection: Collection, document: str | None, sources: Sequence[str]
) -> list[Gone]:
    from stores.erasure.targets import documents_of, named_document

    connection = session.store.database.read()
    if document is not None:
        return [named_document(connection, collection, storable(document))]
    return documents_of(connection, collection, [storable(one) for one in sources])


def _record(session: Session, collection: Collection, found: Sequence[Gone]) -> None:
    """Have the audit log name documents by pseudonyms, before they are gone."""
    settings, database = session.settings, session.store.database
    _strike(session)
    if settings.audit:
        log = _log(session)
        names = [log.pseudonym(one.document_id) for one in found[:NAMED]]
        facts = {"collection": collection.name, "documents": len(found), "hashes": names}
        record(database, settings, "deletion", collection.tenant, **facts)


def _whole_tenant(session: Session, tenant: str, yes: bool) -> Counter[str]:
    from core.auth import checked_name

    checked_name("tenant", tenant)
    known = session.store.erasure.tenants()
    if tenant not in known:
        hint = f"there are {', '.join(known)}" if known else "there is none"
        raise AbsentError("the tenant must have something", value=tenant, hint=hint)
    _ask(f"erase everything of tenant '{tenant}' for good?", yes)
    _strike(session)
    record(session.store.database, session.settings, "deletion", tenant, everything=True)
    return session.store.erasure.forget_tenant(tenant)


def _strike(session: Session) -> None:
    """Strike names out of audit rows that an earlier version wrote."""
    from stores.audit_names import named_rows

    if named_rows(session.store.database.read()):
        _log(session).strike()


def _log(session: Session) -> AuditLog:
    from stores.audit import AuditLog

    here = host()  # a server's log has the server's key
    settings = session.settings if here is None else here.session.settings
    return AuditLog(session.store.database, settings)


def _ask(question: str, yes: bool) -> None:
    """Ask on a terminal; a script has decided already."""
    if not yes and asks():
        confirm(question)


def _still_there(found: Sequence[Gone]) -> list[str]:
    """Return the files of forgotten documents that the next ingest would read again."""
    return sorted({one.path for one in found if one.path and Path(one.path).exists()})
