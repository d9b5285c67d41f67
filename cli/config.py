"""`carrel config`: every setting, its value and where the value came from."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.arguments import Data, Json, Set
from cli.options import flags_from
from cli.terminal.output import print_json, stdout, warn
from core.profile import load_profile
from core.settings import FIELDS, GROUPS, LIVE, load_settings, setting_of, variable_of
from core.settings_sources import PREFIX, VARIABLE
from stores.index.place import recorded_settings


def config(
    profile: Annotated[
        str | None, typer.Option("--profile", help="Show what this profile changes.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Show what dev or prod changes.", show_default=False),
    ] = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Show every setting with its value, origin and meaning."""
    loaded = load_profile(profile).settings if profile else None
    settings, origins = load_settings({**flags_from(data, changes), "serve.mode": mode}, loaded)
    values = settings.shown()
    for name, recorded in recorded_settings(settings).items():
        if values[name] != recorded:
            values[name], origins[name] = recorded, "directory"
    rows: dict[str, dict[str, Any]] = {
        name: {
            "value": values[name],
            "origin": origins[name],
            "description": field.description,
            "variable": variable_of(name),
            "live": name in LIVE,
        }
        for name, field in FIELDS.items()
    }
    known = {"CARREL_DEBUG", VARIABLE, *map(variable_of, GROUPS)}
    given = (key for key in os.environ if key.startswith(PREFIX) and key not in known)
    unknown = sorted(key for key in given if not setting_of(key))
    if as_json:
        print_json({"settings": rows, "unknown_variables": unknown})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", "value", "from", "live", "meaning"):
        table.add_column(title, overflow="fold")
    for name, row in rows.items():
        style = None if row["origin"] == "default" else "bold"
        live = "yes" if row["live"] else ""
        shown = (name, str(row["value"]), row["origin"], live, row["description"])
        table.add_row(*shown, style=style)
    stdout().print(table)
    for variable in unknown:
        warn(f"{variable} names no setting")
