"""Options that several commands share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import CallerError
from core.settings import Settings, load_settings

DEFAULT_COLLECTION = "default"
DEFAULT_TENANT = "default"

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory (or CARREL_DATA).", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
CollectionName = Annotated[str, typer.Option("--collection", "-c", help="Collection of documents.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Tenant the caller belongs to.")]
User = Annotated[str, typer.Option("--user", help="Who is asking.")]
Roles = Annotated[
    list[str] | None, typer.Option("--role", help="A role of the caller; repeat for more.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one setting: name=value; repeat for more."),
]
Steps = Annotated[bool, typer.Option("--steps", "-s", help="Print the steps as they happen.")]


def settings_from(data: Path | None, changes: list[str] | None = None) -> Settings:
    """Return the settings that flags and environment give."""
    return load_settings(flags_from(data, changes))[0]


def flags_from(data: Path | None, changes: list[str] | None) -> dict[str, Any]:
    """Return the settings given as flags."""
    flags: dict[str, Any] = {"data": data}
    for change in changes or []:
        name, separator, value = change.partition("=")
        if not separator or name not in Settings.model_fields:
            raise CallerError(
                "--set takes name=value with a known setting",
                value=change,
                hint="`carrel config` lists the settings",
            )
        flags[name] = value
    return flags
