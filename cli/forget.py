"""`carrel forget`: erase documents, or a whole tenant, from everything that was made of them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    Data,
    Json,
    opened,
    settings_from,
    storable,
)
from cli.output import print_json, stdout, warn
from cli.progress import StageBars
from cli.recording import record
from core.errors import AbsentError, CallerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.settings import Settings
    from graph.session import Session
    from stores.catalogue import Collection
    from stores.erasure.documents import Gone

NAMED = 100  # documents that the audit log names, each by a pseudonym
SHOWN = 5

Name = Annotated[
    str | None, typer.Argument(help="A document: its id, source or file.", show_default=False)
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="A file or source, or a pattern such as 'mail/*'; repeatable."),
]


def forget(
    document: Name = None,
    source: Sources = None,
    collection: Annotated[
        str | None,
        typer.Option("--collection", "-c", help="Collection.", show_default=DEFAULT_COLLECTION),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", help="Tenant; alone: all that it has.", show_default=DEFAULT_TENANT
        ),
    ] = None,
    keep_out: Annotated[
        bool, typer.Option("--keep-out", help="No later ingest takes them in again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Erase documents, or all of a tenant, from all stores; it cannot be had back.

    Without anything to forget, an erasure that was interrupted is finished.
    """
    everything = document is None and not source and tenant is not None and collection is None
    if document is not None and source:
        raise CallerError("give a document or --source, not both", value=document)
    settings = settings_from(data)
    report: dict[str, object] = {}
    with opened(settings) as session, StageBars(as_json) as progress:
        erasure = session.store.erasure
        with session.store.ingesting:
            if everything:
                assert tenant is not None  # `everything` says so
                counts = _whole_tenant(session, settings, storable(tenant), yes)
            elif document is not None or source:
                target = session.store.catalogue.collection(
                    storable(tenant or DEFAULT_TENANT), storable(collection or DEFAULT_COLLECTION)
                )
                found = _chosen(session, target, document, source or [])
                counts = _documents(session, settings, target, found, keep_out, yes)
                report["still_there"] = [] if keep_out else _still_there(found)
            elif erasure.pending() is not None:
                counts = Counter()
            else:
                raise CallerError(
                    "name what is to be forgotten",
                    hint="give a DOCUMENT, --source or --tenant; `carrel forget --help` tells more",
                )
            steps: Counter[str] = Counter()

            def step(stage: str) -> None:
                steps[stage] += 1
                progress(stage, steps[stage], 0)

            erasure.tidy(step)
    report = {"erased": dict(sorted(counts.items())), **report}
    if as_json:
        print_json(report)
    else:
        _show(report)


def _chosen(
    session: Session, collection: Collection, document: str | None, sources: Sequence[str]
) -> list[Gone]:
    from stores.erasure.targets import documents_of, named_document

    connection = session.store.database.read()
    if document is not None:
        return [named_document(connection, collection, storable(document))]
    return documents_of(connection, collection, [storable(one) for one in sources])


def _documents(
    session: Session,
    settings: Settings,
    collection: Collection,
    found: list[Gone],
    keep_out: bool,
    yes: bool,
) -> Counter[str]:
    """Forget documents; the audit log learns of them by pseudonyms, before they are gone."""
    from stores.audit import AuditLog

    if len(found) > 1:
        _ask(f"erase {len(found)} documents of collection '{collection.name}' for good?", yes)
    facts = {"collection": collection.name, "documents": len(found)}
    if settings.audit:
        log = AuditLog(session.store.database, settings)
        names = [log.pseudonym(one.document_id) for one in found[:NAMED]]
        record(
            session.store.database, settings, "deletion", collection.tenant, **facts, hashes=names
        )
    return session.store.erasure.forget(collection, found, keep_out=keep_out)


def _whole_tenant(session: Session, settings: Settings, tenant: str, yes: bool) -> Counter[str]:
    from core.auth import checked_name

    checked_name("tenant", tenant)
    known = session.store.erasure.tenants()
    if tenant not in known:
        hint = f"there are {', '.join(known)}" if known else "there is none"
        raise AbsentError("the tenant must have something", value=tenant, hint=hint)
    _ask(f"erase everything of tenant '{tenant}' for good?", yes)
    record(session.store.database, settings, "deletion", tenant, everything=True)
    return session.store.erasure.forget_tenant(tenant)


def _ask(question: str, yes: bool) -> None:
    """Ask on a terminal; a script has decided already."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)


def _still_there(found: Sequence[Gone]) -> list[str]:
    """Return the files of forgotten documents that the next ingest would read again."""
    return sorted({one.path for one in found if one.path and Path(one.path).exists()})


def _show(report: dict[str, object]) -> None:
    erased = report["erased"]
    assert isinstance(erased, dict)
    parts = [f"{count} {name.replace('_', ' ')}" for name, count in erased.items() if count]
    done = f"erased: {', '.join(parts)}" if parts else "the interrupted erasure is finished"
    stdout().print(escape(f"{done}; nothing of it is left in the data directory"))
    still = report.get("still_there") or []
    assert isinstance(still, list)
    for path in still[:SHOWN]:
        warn(f"the file is still at {path}: the next ingest of it brings the document back")
    if len(still) > SHOWN:
        warn(f"and {len(still) - SHOWN} more files")
