"""Options that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.output import check_interrupted, stderr, warn
from cli.running import host, placed
from core.errors import CallerError

if TYPE_CHECKING:
    from core.settings import Settings
    from graph.session import Session
    from stores.database import Database
    from stores.lock import OwnerLock


def named_path(text: str) -> Path:
    """Return a path; an empty one, mostly a variable that is not set, would mean this folder."""
    if not text.strip():
        raise CallerError(
            "a path must be named", value=repr(text), hint="give '.' for the current folder"
        )
    return placed(Path(text))


INSECURE = "--insecure-permissions"
insecure: ContextVar[bool] = ContextVar("insecure", default=False)  # as the command was given it

DEFAULT_COLLECTION = "default"
DEFAULT_TENANT = "default"
DEFAULT_USER = "local"

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
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        "-c",
        help="Collection of documents; repeat for more.",
        show_default=DEFAULT_COLLECTION,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        "-w",
        help="Only documents that meet this: FIELD=VALUE, with != < <= > >= or ~ (contains);"
        " repeat for more.",
        show_default=False,
        metavar="<filter>",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Confined to sources of this pattern, such as 'docs/*'; repeat for more.",
        show_default="all",
        metavar="<pattern>",
    ),
]
VersionPolicy = Annotated[
    str,
    typer.Option(
        "--version-policy",
        help="Which versions of documents are seen: any, latest, or one such as 2.1; documents"
        " without a version always are.",
    ),
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


def named_collections(given: list[str] | None) -> str:
    """Return the collections of a question as one text."""
    from core.scope import joined_names

    return joined_names(storables(given) or [DEFAULT_COLLECTION])


def settings_from(
    data: Path | None, changes: list[str] | None = None, stream: str | None = None
) -> Settings:
    """Return the settings that flags and environment give."""
    from core.settings import load_settings

    return load_settings({**flags_from(data, changes), "stream": stream})[0]


@contextmanager
def opened(
    settings: Settings,
    *,
    create: bool = False,
    needs_embedder: bool = False,
    alone: bool = False,
    check_later: bool = False,
) -> Iterator[Session]:
    """Give a session whose SQLite errors name this data directory and what to do.

    Where a server owns the directory, the command leaves this process here, and the server runs it
    from its beginning: nothing may have been printed before. Not so with `alone`: such a command
    needs the directory for itself and is refused. In the server the session is its own, lent. With
    `check_later` the caller sees to the store's `checkup.finish`.
    """
    if (here := host()) is not None:
        from cli.hosting import lent

        if alone:
            raise CallerError(
                "a command that needs the directory for itself is run without a server"
            )
        yield lent(here.session, settings, needs_embedder=needs_embedder)
        return
    with _owned(settings, create=create, alone=alone) as lock:
        from graph.session import Session
        from stores.database import explained

        with (
            Session(
                settings,
                create=create,
                needs_embedder=needs_embedder,
                lock=lock,
                check_later=check_later,
            ) as session,
            explained(session.store.database.path),
        ):
            yield session


@contextmanager
def opened_catalogue(settings: Settings) -> Iterator[Database]:
    """Give the catalogue alone, as `opened` gives a session; no model is loaded."""
    if (here := host()) is not None:
        yield here.session.store.database
        return
    from stores.folder import CATALOGUE, data_folder

    path = data_folder(settings) / CATALOGUE
    with _owned(settings):
        from stores.database import Database, explained

        with explained(path), closing(Database(path)) as database:
            if database.condition.lost:  # lists of what is kept look complete otherwise
                warn(database.condition.warnings()[0])
            yield database


@contextmanager
def _owned(settings: Settings, *, create: bool = False, alone: bool = False) -> Iterator[OwnerLock]:
    from stores.folder import private_files
    from stores.lock import locked
    from stores.owner import OwnedError

    with private_files():
        try:
            lock = locked(settings, create=create)
        except OwnedError as error:
            owner = error.owner
            if owner is None or not owner.port or not owner.is_here:
                raise
            from cli.remote import ServerOwns, asked

            if alone:
                raise asked(error, owner) from None
            raise ServerOwns(error, owner) from None
        try:
            yield lock
        finally:
            lock.release()


@contextmanager
def working(session: Session, work: str, *, quiet: bool) -> Iterator[None]:
    """Hold the session's store for long work of this name, and say what is waited for."""
    said = quiet

    def waiting(other: str) -> None:
        nonlocal said
        check_interrupted()
        if not said:
            stderr().print(f"[dim]waiting for {escape(other)}…[/dim]")
        said = True

    with session.store.ingesting.turn(work, waiting):
        yield


def storable(text: str) -> str:
    """Return a text without the halves of characters that no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def storables(texts: list[str] | None) -> list[str]:
    """Return what was given for an option that may be repeated, each text storable."""
    return [storable(text) for text in texts or []]


def flags_from(data: Path | None, changes: list[str] | None) -> dict[str, Any]:
    """Return the settings given as flags."""
    from core.settings import PATHS, Settings

    flags: dict[str, Any] = {"data": data, "insecure_permissions": insecure.get() or None}
    for change in changes or []:
        name, separator, value = change.partition("=")
        if not separator or name not in Settings.model_fields:
            raise CallerError(
                "--set takes name=value with a known setting",
                value=change,
                hint="`carrel config` lists the settings",
            )
        flags[name] = named_path(value) if name in PATHS else value
    return flags
