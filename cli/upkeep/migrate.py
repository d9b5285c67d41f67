"""`carrel migrate`: the catalogue from SQLite into PostgreSQL, and back."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import Data, Json
from cli.options import owned, settings_from
from cli.terminal.output import print_json, stdout
from cli.terminal.progress import StageBars
from stores.folder import SQLITE
from stores.sqlite.implementation import of_server


def migrate(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="'sqlite', or the address of an empty PostgreSQL database.",
            metavar="PLACE",
        ),
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move the catalogue to another place, verified; what was ended goes on from where it was."""
    settings = settings_from(data)
    settings_from(data, [f"catalogue={to}"])  # raises for what is no place
    move = of_server("moving").migrate
    with owned(settings, alone=True, whole=True), StageBars(as_json) as progress:
        counts = move(settings, to, progress)
    if as_json:
        print_json({"to": SQLITE if to == SQLITE else "postgres", "rows": counts})
        return
    rows = sum(counts.values())
    after = "unset CARREL_CATALOGUE" if to == SQLITE else "set CARREL_CATALOGUE to that address"
    stdout().print(escape(f"{rows} rows of {len(counts)} tables copied and verified; now {after}"))
