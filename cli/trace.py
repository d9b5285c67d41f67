"""`carrel trace`: what a run did, as a table and as a picture of its path."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cli.ask import print_answer
from cli.draw import path_picture, shortened, step_table
from cli.options import DEFAULT_TENANT, Data, Json, Tenant, User, settings_from
from cli.output import print_json, stdout

NEWEST = 15


def trace(
    run: Annotated[
        str | None,
        typer.Argument(help="Run id, its beginning, or 'last'; none lists the newest runs."),
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = "local",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the steps of a run, with the filter of every tool call, and the path it took."""
    from stores.database import Database
    from stores.lock import OwnerLock
    from stores.runs import Runs
    from stores.store import CATALOGUE, check_folder

    settings = settings_from(data)
    folder = settings.data.expanduser()
    check_folder(folder, create=False)
    with OwnerLock(folder, wait_s=settings.lock_wait_s):
        runs = Runs(Database(folder / CATALOGUE))
        newest = runs.newest(tenant, user, NEWEST) if run is None else []
        record = runs.load(tenant, user, run) if run is not None else None
    out = stdout()
    if record is None:
        if as_json:
            print_json({"runs": [item.model_dump(exclude={"trail", "result"}) for item in newest]})
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("run", "when", "collection", "ended", "question"):
            table.add_column(title)
        for item in newest:
            ended = str(item.result.get("stop_reason"))
            question = escape(shortened(item.question, 70))
            table.add_row(item.run_id, item.created_at[:19], item.collection, ended, question)
        out.print(table)
        return
    if as_json:
        print_json(record.model_dump())
        return
    out.print(f"[bold]{escape(record.question)}[/bold]")
    out.print(
        f"[dim]{record.collection} · {record.pipeline} · {record.created_at}"
        f" · index version {record.index_version}[/dim]\n"
    )
    out.print(step_table(record.trail))
    out.print()
    out.print(path_picture(record.trail, max(60, out.width)), markup=False)
    out.print()
    print_answer(record.result)
