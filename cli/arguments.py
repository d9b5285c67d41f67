"""Arguments and options that several commands share, as Typer reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.server.running import placed
from core.errors import CallerError


def named_path(text: str) -> Path:
    """Return a path; an empty one, mostly a variable that is not set, would mean this folder."""
    if not text.strip():
        raise CallerError(
            "a path must be named", value=repr(text), hint="give '.' for the current folder"
        )
    return placed(Path(text))


def path_option(name: str, help: str) -> Any:  # noqa: ANN401 - Typer's own
    """Return an option that takes a path, and shows no default."""
    return typer.Option(name, help=help, show_default=False, parser=named_path, metavar="<path>")


def path_argument(name: str, help: str) -> Any:  # noqa: ANN401 - Typer's own
    """Return an argument that takes a path, and is called `name` in the help."""
    return typer.Argument(help=help, show_default=False, parser=named_path, metavar=name)


def values(name: str) -> Callable[[str], list[str]]:
    """Return what completes a value: "module:name" of the values, or of a function of them."""

    def complete(incomplete: str) -> list[str]:
        try:
            module, _, attribute = name.partition(":")
            found = getattr(import_module(module), attribute)
            found = found() if callable(found) else found
        except Exception:  # a shell that completes wants no error
            return []
        return [one for one in found if one.startswith(incomplete)]

    return complete


INSECURE = "--insecure-permissions"
insecure: ContextVar[bool] = ContextVar("insecure", default=False)  # as the command was given it

DEFAULT_COLLECTION = "default"
DEFAULT_TENANT = "default"
DEFAULT_USER = "local"

Data = Annotated[Path | None, path_option("--data", "Data directory (or CARREL_DATA).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
CHOSEN = "CARREL_COLLECTION, else default, else the only one"
CollectionName = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        help="Collection of documents.",
        show_default=CHOSEN,
        autocompletion=values("cli.values:collections"),
    ),
]
FilledCollection = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        help="Collection of documents.",
        show_default="CARREL_COLLECTION, else default",
        autocompletion=values("cli.values:collections"),
    ),
]
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
        help="Collection of documents; repeat for more, * for all.",
        show_default=CHOSEN,
        autocompletion=values("cli.values:collections"),
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
    list[str] | None, typer.Option("--set", help="Change one setting: name=value; repeat for more.")
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
