"""`carrel serve`: answer over HTTP until told to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Data, Set, flags_from, opened
from cli.output import stderr, stdout, warn
from core.errors import CallerError, OperatorError

if TYPE_CHECKING:
    from core.settings import Settings
    from graph.session import Session
    from serve.desk import Desk

NEEDED = ("fastapi", "uvicorn", "sse_starlette", "jwt", "prometheus_client")


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
    _check_installed()
    from core.settings import load_settings

    flags = flags_from(data, changes) | _given(serve_host=host, serve_port=port, serve_mode=mode)
    if log:
        flags["serve_log_level"] = "info"

    def load() -> Settings:
        return load_settings(flags, file=settings_file)[0]

    settings = load()
    from serve.hosts import is_loopback

    if allow_anonymous and not is_loopback(settings.serve_host):
        raise CallerError(
            "callers without a key are let in on this machine's own addresses only",
            value=settings.serve_host,
            hint="leave --allow-anonymous out and make keys with `carrel keys create`",
        )
    raise typer.Exit(_run(settings, load, allow_anonymous=allow_anonymous))


def _run(settings: Settings, load: Callable[[], Settings], *, allow_anonymous: bool) -> int:
    from cli.app import run
    from cli.hosting import run_for
    from serve.listening import address_of, listening_socket
    from serve.logs import log_to_stderr, use_level

    bound = listening_socket(settings.serve_host, settings.serve_port)
    try:
        log_to_stderr(settings)
        with opened(settings, create=True, alone=True, check_later=True) as session:
            from serve.app import make_app
            from serve.control import Control
            from serve.desk import make_desk
            from serve.modes import check_mode
            from serve.server import serve as serve_app
            from serve.warming import warm_up

            desk = make_desk(session, allow_anonymous=allow_anonymous, load=load)
            desk.followers.append(use_level)
            nobody = desk.doorkeeper.has_no_key
            check_mode(settings, allow_anonymous=allow_anonymous, nobody_has_a_key=nobody)
            _ = session.chat  # looked for now, not by two first questions at once
            warm_up(session)
            app = make_app(desk, host=settings.serve_host)
            address = address_of(bound, settings.serve_host)
            control = Control(settings, run_for(session, desk.runner.claims, run))
            lock = session.store.lock

            def ready() -> None:
                control.open(lock.announce(address, control.bind()).secret)
                _greet(session, desk, address)

            try:
                return serve_app(
                    app,
                    settings,
                    bound,
                    ready,
                    desk.runner.stop,
                    lambda: desk.reload.on_signal(desk),
                )
            finally:
                lock.withdraw()
                control.close()
    finally:
        bound.close()


def _greet(session: Session, desk: Desk, address: str) -> None:
    from stores.folder import open_to_others

    err = stderr()
    for warning in session.warnings:
        warn(warning)
    if mode := open_to_others(session.store.folder):
        warn(f"other users of this machine may enter {session.store.folder} (mode {mode})")
    if not session.store.catalogue.collections():
        warn("there are no documents yet: upload some, or stop and run `carrel ingest PATH`")
    if desk.doorkeeper.allow_anonymous:
        err.print("[dim]callers of this machine need no key[/dim]")
    elif desk.doorkeeper.has_no_key:
        warn("nobody has a key yet: `carrel keys create` makes one, also while this runs")
    err.print(f"[dim]serving {session.store.folder}; Ctrl-C stops[/dim]")
    out = stdout()
    out.print(address)
    out.file.flush()


def _given(**flags: object) -> dict[str, object]:
    return {name: value for name, value in flags.items() if value is not None}


def _check_installed() -> None:
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise OperatorError(
            "serving needs packages that are not installed",
            value=", ".join(missing),
            hint="pip install 'carrel[serve]'",
        )
