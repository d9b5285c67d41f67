"""`carrel migrate`: the catalogue from SQLite into PostgreSQL, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import Data, Json
from cli.options import owned, settings_from
from cli.terminal.output import counted, print_json, stdout, warn
from cli.terminal.progress import StageBars
from core.settings import Settings
from graph.threads import copy_states
from stores.folder import SQLITE, data_folder
from stores.sqlite.implementation import of_server

StageProgress = Callable[[str, int, int], None]


def move_all(settings: Settings, to: str, progress: StageProgress) -> tuple[dict[str, int], int]:
    """Move catalogue and states of conversations; return its rows, and how many states were lost.

    The directory is owned.
    """
    folder = data_folder(settings)
    lost: list[str] = []

    def copy(named: Mapping[str, str]) -> None:
        if named:
            lost[:] = copy_states((folder, settings.catalogue), (folder, to), named)

    counts: dict[str, int] = of_server("moving").migrate(settings, to, progress, copy)
    return counts, len(lost)


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
    with owned(settings, alone=True, whole=True), StageBars(as_json) as progress:
        counts, lost = move_all(settings, to, progress)
    if as_json:
        place = SQLITE if to == SQLITE else "postgres"
        print_json({"to": place, "rows": counts, "conversations_without_state": lost})
        return
    if lost:
        warn(f"{counted(lost, 'conversation')} had no sound state; it goes on from its kept turns")
    rows = sum(counts.values())
    after = "unset CARREL_CATALOGUE" if to == SQLITE else "set CARREL_CATALOGUE to that address"
    stdout().print(escape(f"{rows} rows of {len(counts)} tables copied and verified; now {after}"))
