"""`carrel why`: in one sentence, why the answer of a run is what it is."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, DEFAULT_USER, Data, Json, Roles, Tenant, User
from cli.options import caller, opened_catalogue, settings_from, storable
from cli.terminal.output import print_json, stdout
from display.why import explain


def why(
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, or 'last', the newest.")
    ] = "last",
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say in one sentence why the answer of a run is what it is.

    What the user may not see now, with these roles, is left out.
    """
    auth = caller(tenant, user, role)
    with opened_catalogue(settings_from(data)) as kept:
        found = kept.runs.load(auth, storable(run))
    reason = explain(found)
    if as_json:
        print_json({"run_id": found.run_id, **reason._asdict()})
    else:
        stdout().print(escape(reason.sentence), soft_wrap=True, highlight=False)
