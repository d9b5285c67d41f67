"""`carrel serve`: answer over HTTP until it is stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.arguments import Data, Set
from cli.options import flags_from, opened
from core.errors import CallerError
from core.settings import Settings, load_settings
from serve.access.network import is_loopback, listening_socket
from serve.telemetry.logs import log_to_stderr


def serve(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")
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
    flags = flags_from(data, changes)
    named = {"serve.host": host, "serve.port": port, "serve.mode": mode}
    flags |= {name: value for name, value in named.items() if value is not None}
    if log:
        flags["serve.log_level"] = "info"

    def load() -> Settings:
        return load_settings(flags, file=settings_file)[0]

    settings = load()
    if allow_anonymous and not is_loopback(settings.serve.host):
        raise CallerError(
            "callers without a key are let in on this machine's own addresses only",
            value=settings.serve.host,
            hint="leave --allow-anonymous out and make keys with `carrel keys create`",
        )
    bound = listening_socket(settings.serve.host, settings.serve.port)
    try:
        log_to_stderr(settings)
        with opened(settings, create=True, alone=True, check_later=True) as session:
            from cli.server.hosting import serve_session  # late: who is refused loads no server

            code = serve_session(session, settings, bound, load, allow_anonymous=allow_anonymous)
    finally:
        bound.close()
    raise typer.Exit(code)
