"""`carrel serve`: answer over HTTP until it is stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.arguments import Data, Set
from cli.server.remote import refuse_second


def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port; 0: any.", show_default="8400"),
    ] = None,
    allow_anonymous: Annotated[
        bool,
        typer.Option("--allow-anonymous", help="Let callers of this machine in without a key."),
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Log every request to stderr.")] = False,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="dev or prod.", show_default="default", metavar="<mode>"),
    ] = None,
    settings_file: Annotated[
        str | None,
        typer.Option(
            "--settings",
            help="YAML file of settings (or CARREL_SETTINGS), read again on SIGHUP.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    changes: Set = None,
) -> None:
    """Serve the data directory over HTTP; Ctrl-C stops it."""
    if port is not None and not changes:  # else it may be the owner's own port, or elsewhere
        refuse_second(data, settings_file, port)
    from cli.server.serving import run_server  # late: a second server is refused at once

    flags = {"serve.host": host, "serve.port": port, "serve.mode": mode}
    if log:
        flags["serve.log_level"] = "info"
    given = {name: value for name, value in flags.items() if value is not None}
    raise typer.Exit(
        run_server(data, changes, given, settings_file, allow_anonymous=allow_anonymous)
    )
