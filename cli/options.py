"""Options that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.errors import CallerError
from core.settings import Settings, load_settings

if TYPE_CHECKING:
    from graph.session import Session


def named_path(text: str) -> Path:
    """Return a path; an empty one, mostly a variable that is not set, would mean this folder."""
    if not text.strip():
        raise CallerError(
            "a path must be named", value=repr(text), hint="give '.' for the current folder"
        )
    return Path(text)


DEFAULT_COLLECTION = "default"
DEFAULT_TENANT = "default"

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Data directory (or CARREL_DATA).",
        show_default=False,
        parser=named_path,
        metavar="<path>",
    ),
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
Stream = Annotated[
    str | None,
    typer.Option(
        "--stream",
        help="While the answer is written show verified sentences, tokens (the draft too, on"
        " stderr) or off.",
        show_default="verified",
    ),
]
Steps = Annotated[bool, typer.Option("--steps", "-s", help="Print the steps as they happen.")]


def settings_from(
    data: Path | None, changes: list[str] | None = None, stream: str | None = None
) -> Settings:
    """Return the settings that flags and environment give."""
    return load_settings({**flags_from(data, changes), "stream": stream})[0]


@contextmanager
def opened(
    settings: Settings, *, create: bool = False, needs_embedder: bool = False
) -> Iterator[Session]:
    """Open a session whose SQLite errors name this data directory and what to do."""
    from graph.session import Session
    from stores.database import explained

    with (
        Session(settings, create=create, needs_embedder=needs_embedder) as session,
        explained(session.store.database.path),
    ):
        yield session


def storable(text: str) -> str:
    """Return a text without the halves of characters that no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
