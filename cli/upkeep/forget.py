"""`carrel forget`: erase documents, or a whole tenant, from everything that was made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, DEFAULT_USER, CollectionName, Data, Json, Yes
from cli.options import caller, collection_of, opened, settings_from, storable, working
from cli.server.access import record as record
from cli.server.running import host
from cli.terminal.output import ask_to_erase, counted, print_json, stdout, warn
from cli.terminal.progress import StageBars
from core.auth import checked_name
from core.errors import AbsentError, CallerError
from stores.accounts.audit import AuditLog
from stores.erasure.documents import Gone
from stores.index.port import IndexUnavailableError
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import document_key

if TYPE_CHECKING:
    from app.session import Session


NAMED = 100  # documents that the audit log names, each by a pseudonym
LATER = (
    "what was forgotten is out of all answers already; `carrel forget` takes it out of the vector"
    " index as well when that answers again"
)
FIRST = ("documents", "chunks", "files", "vectors", "notes")
CHANGED = ("runs", "conversations", "jobs")  # which stay, without what they had of a document


@dataclass(frozen=True)
class ForgetRequest:
    """What the options of `carrel forget` ask to delete."""

    document: str | None
    sources: Sequence[str]
    collection: str | None
    tenant: str | None
    keep_out: bool
    yes: bool

    def agreed(self, session: Session) -> list[Gone]:
        """Return the documents that are asked for, once a person has agreed to what goes.

        Of a whole tenant they are none. Raises CallerError when nothing is asked for.
        """
        if self._names_documents:
            collection = self._collection(session)
            if self.document is not None:
                name = storable(self.document)
                found = [session.maintenance.named_document(collection, name)]
            else:
                sources = [storable(one) for one in self.sources]
                found = session.maintenance.documents_of(collection, sources)
            if not self.yes:
                counts = session.maintenance.would_forget(collection, found)
                ask_to_erase(_of_documents(collection, found, counts))
            return found
        if self._names_tenant:
            tenant = _known_tenant(session, storable(self.tenant or ""))
            if not self.yes:
                counts = session.maintenance.would_forget_tenant(tenant)
                names = [one.name for one in session.catalogue.collections(tenant)]
                of = f", its collections {', '.join(names)}" if names else ""
                ask_to_erase(f"everything of tenant '{tenant}'{of} ({_listed(counts)})")
        elif session.maintenance.pending_erasure() is None:
            raise CallerError(
                "name what is to be forgotten",
                hint="give a DOCUMENT, --source or --tenant; `carrel forget --help` tells more",
            )
        return []

    def forgotten(self, session: Session, found: Sequence[Gone]) -> dict[str, Any]:
        """Forget the tenant, or the documents that were found, and return the report."""
        if self._names_documents:
            return self._documents(session, found)
        if self._names_tenant:
            tenant = storable(self.tenant or "")
            record(session.accounts, session.settings, "deletion", tenant, everything=True)
            return _report(session, session.maintenance.forget_tenant(tenant), tenant, whole=True)
        return _report(session, Counter(), None)

    @property
    def _names_documents(self) -> bool:
        return self.document is not None or bool(self.sources)

    @property
    def _names_tenant(self) -> bool:
        return self.tenant is not None and self.collection is None

    def let_in(self, session: Session) -> dict[str, Any]:
        """Take a --keep-out of the document back; raises CallerError where there is none."""
        if self.document is None:
            raise CallerError("--let-in takes one DOCUMENT, by its id")
        collection = self._collection(session)
        name = storable(self.document)
        if not session.maintenance.let_in(document_key(collection, name)):
            raise AbsentError("no such document is kept out", value=name)
        return {"let_in": name}

    def _collection(self, session: Session) -> Collection:
        """Return the collection; one without documents may still keep some out."""
        auth = caller(storable(self.tenant or DEFAULT_TENANT), DEFAULT_USER, None)
        return collection_of(session, auth, self.collection)

    def _documents(self, session: Session, found: Sequence[Gone]) -> dict[str, Any]:
        collection = self._collection(session)
        _record(session, collection, found)
        counts = session.maintenance.forget(collection, found, keep_out=self.keep_out)
        there = {one.path for one in found if one.path and Path(one.path).exists()}
        still = [] if self.keep_out else sorted(there)  # the next ingest would read them again
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
    rows, questions = session.accounts.staying_rows(tenant)
    stays: dict[str, Any] = {"audit_rows": rows} if whole else {}
    stays |= {"question_rows": questions, "files": list(files)}
    stays["backups"] = "those made earlier still hold it"
    if server := session.store.index_server:
        stays["index_server"] = server
    return {"erased": dict(sorted(counts.items())), "stays": stays}


def _record(session: Session, collection: Collection, found: Sequence[Gone]) -> None:
    """Have the audit log name documents by pseudonyms, before they are gone."""
    settings = session.settings
    if settings.audit.enabled:
        log = _log(session)
        names = [log.pseudonym(one.document_id) for one in found[:NAMED]]
        facts = {"collection": collection.name, "documents": len(found), "hashes": names}
        record(session.accounts, settings, "deletion", collection.tenant, **facts)


def _known_tenant(session: Session, tenant: str) -> str:
    """Return a tenant that has something; raises AbsentError with those that have."""
    checked_name("tenant", tenant)
    known = session.maintenance.tenants()
    if tenant not in known:
        hint = f"there are {', '.join(known)}" if known else "there is none"
        raise AbsentError("the tenant must have something", value=tenant, hint=hint)
    return tenant


def _of_documents(collection: Collection, found: Sequence[Gone], counts: Counter[str]) -> str:
    """Say what goes with documents, and what only loses what it had of them."""
    names = [one.alias or one.document_id for one in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    kept = "; what people typed stays" if any(counts[name] for name in CHANGED) else ""
    gone = of_counts(counts)
    return f"{', '.join(names)}{more} from collection '{collection.name}' ({gone}){kept}"


def of_counts(counts: Mapping[str, int]) -> str:
    """Say what goes, and of what traces go, before and after."""
    gone = _listed({name: count for name, count in counts.items() if name not in CHANGED})
    changed = _listed({name: counts.get(name, 0) for name in CHANGED})
    return f"{gone}, traces of it in {changed}" if changed else gone


def _listed(counts: Mapping[str, int]) -> str:
    kinds = [*FIRST, *(kind for kind in counts if kind not in FIRST)]
    return ", ".join(_count(kind, counts[kind]) for kind in kinds if counts.get(kind))


def _count(kind: str, count: int) -> str:
    noun = kind.replace("_", " ")
    return counted(count, noun[:-1]) if noun.endswith("s") else f"{count} {noun}"


def _log(session: Session) -> AuditLog:
    here = host()  # a server's log has the server's key
    settings = session.settings if here is None else here.session.settings
    return session.accounts.audit(settings)


SHOWN = 5  # names of documents or files, chosen

Name = Annotated[
    str | None, typer.Argument(help="A document: its id, source, file or path.", show_default=False)
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="A file or source, or a pattern such as 'mail/*'; repeatable."),
]


def forget(
    document: Name = None,
    source: Sources = None,
    collection: CollectionName = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant",
            help="Tenant; without a document: everything of it.",
            show_default=DEFAULT_TENANT,
        ),
    ] = None,
    keep_out: Annotated[
        bool, typer.Option("--keep-out", help="No later ingest takes them in again.")
    ] = False,
    let_in: Annotated[
        bool, typer.Option("--let-in", help="Erase nothing; allow DOCUMENT to be ingested again.")
    ] = False,
    yes: Yes = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Erase documents, or all of a tenant, from all stores; this cannot be undone.

    It shows what goes, and asks; without a terminal it needs --yes. What people typed
    stays as it is.

    Without arguments it completes an interrupted erasure.
    """
    if document is not None and source:
        raise CallerError("give a document or --source, not both", value=document)
    asked = ForgetRequest(document, source or [], collection, tenant, keep_out, yes)
    with opened(settings_from(data)) as session:
        found = [] if let_in else asked.agreed(session)
        with StageBars(as_json) as progress, working(session, "forget", quiet=as_json):
            report = asked.let_in(session) if let_in else asked.forgotten(session, found)
            steps: Counter[str] = Counter()

            def step(stage: str) -> None:
                steps[stage] += 1
                progress(stage, steps[stage], 0)

            try:
                session.maintenance.tidy(step)
            except IndexUnavailableError as error:
                raise IndexUnavailableError(error.rule, value=error.value, hint=LATER) from None
    if as_json:
        print_json(report)
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    if "let_in" in report:
        stdout().print(escape(f"{report['let_in']} may be ingested again"))
        return
    told = _listed if "audit_rows" in report["stays"] else of_counts
    gone = told(report["erased"])
    done = f"erased: {gone}" if gone else "the interrupted erasure is finished"
    rows, questions = report["stays"].get("audit_rows", 0), report["stays"]["question_rows"]
    left = "nothing of it is left in the data directory"
    if rows or questions:
        left = "nothing of it is left in the data directory but in the audit log"
    stdout().print(escape(f"{done}; {left}. Backups made earlier still hold it."))
    if server := report["stays"].get("index_server"):
        warn(
            f"the server at {server} no longer finds it, but its files may keep deleted vectors"
            " until Milvus compacts them, or `chroma vacuum` is run on the folder of Chroma"
        )
    if rows:
        warn(f"the audit log keeps {counted(rows, 'row')}, naming the tenant and its users")
    if questions:
        warn(
            f"the audit log keeps {counted(questions, 'row')} with words of questions, which may be"
            " words of it (audit.questions=text); `audit.days` removes old rows"
        )
    still = report.get("still_there", [])
    for path in still[:SHOWN]:
        warn(f"the file is still at {path}: the next ingest of it brings the document back")
    if len(still) > SHOWN:
        warn(f"and {counted(len(still) - SHOWN, 'more file')}")
