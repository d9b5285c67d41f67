"""`carrel why`: in one sentence, why the answer of a run is what it is."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import Json
from cli.options import CallerOptions, opened_catalogue, storable, with_options
from cli.terminal.output import print_json, stdout
from display.why import explain


@with_options
def why(
    options: CallerOptions,
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, or 'last', the newest.")
    ] = "last",
    as_json: Json = False,
) -> None:
    """Say in one sentence why the answer of a run is what it is.

    What the user may not see now, with these roles, is left out.
    """
    with opened_catalogue(options.settings()) as kept:
        found = kept.runs.load(options.auth, storable(run))
    reason = explain(found)
    if as_json:
        print_json({"run_id": found.run_id, **reason._asdict()})
    else:
        stdout().print(escape(reason.sentence), soft_wrap=True, highlight=False)
