"""`carrel forget`: erase documents, or a whole tenant, from everything that was made of them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.forgetting import Asked
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    Data,
    Json,
    opened,
    settings_from,
    working,
)
from cli.output import print_json, stdout, warn
from cli.progress import StageBars
from core.errors import CallerError

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
    let_in: Annotated[
        bool, typer.Option("--let-in", help="Forget nothing: let DOCUMENT be ingested again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Erase documents, or all of a tenant, from all stores; it cannot be had back.

    Without anything to forget, an erasure that was interrupted is finished.
    """
    if document is not None and source:
        raise CallerError("give a document or --source, not both", value=document)
    asked = Asked(document, source or [], collection, tenant, keep_out, yes)
    with (
        opened(settings_from(data)) as session,
        StageBars(as_json) as progress,
        working(session, "forget", quiet=as_json),
    ):
        if let_in:
            report = asked.let_in(session)
        else:
            report = asked.forgotten(session)
        steps: Counter[str] = Counter()

        def step(stage: str) -> None:
            steps[stage] += 1
            progress(stage, steps[stage], 0)

        session.store.erasure.tidy(step)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    if "let_in" in report:
        stdout().print(escape(f"{report['let_in']} may be ingested again"))
        return
    erased = report["erased"].items()
    parts = [f"{count} {name.replace('_', ' ')}" for name, count in erased if count]
    done = f"erased: {', '.join(parts)}" if parts else "the interrupted erasure is finished"
    rows, questions = report["stays"].get("audit_rows", 0), report["stays"]["question_rows"]
    left = "nothing of it is left in the data directory"
    if rows or questions:
        left = "nothing of it is left in the data directory but in the audit log"
    stdout().print(escape(f"{done}; {left}. Backups made earlier still hold it."))
    if rows:
        warn(f"{rows} rows of the audit log stay, which name the tenant and its users")
    if questions:
        warn(
            f"{questions} rows of the audit log stay that hold words of questions, which may be"
            " words of it (audit_questions=text); `audit_days` removes old rows"
        )
    still = report.get("still_there", [])
    for path in still[:SHOWN]:
        warn(f"the file is still at {path}: the next ingest of it brings the document back")
    if len(still) > SHOWN:
        warn(f"and {len(still) - SHOWN} more files")
