"""Commands in a running server: the live session, lent, and the command line run over it."""

from __future__ import annotations

import copy
import socket
import time
import traceback
from collections.abc import Callable

from app.session import Session
from cli.app import run
from cli.server.running import Host, hosted
from cli.terminal.output import fail, stderr, stdout, warn
from core.errors import CallerError, ModelError
from core.settings import SECRETS, Settings, changes_of, load_settings
from core.settings_sources import using
from serve.access.network import address_of, check_mode
from serve.app import make_app
from serve.jobs import Jobs
from serve.operator.control import Command, Control
from serve.runs.observers import Claims
from serve.self_checks import warm_up
from serve.server import serve as serve_app
from serve.services import AppState, make_app_state
from serve.shared_jobs import make_jobs
from serve.telemetry.logs import use_level
from stores.folder import open_to_others
from stores.runlog.jobs import JobRow

STOPPED = 4
LOOK_S = 0.2  # between two looks whether a worker is to stop; chosen, not measured
OnEnd = Callable[[JobRow], object]


def run_for(
    session: Session, claims: Claims, jobs: Jobs, run: Callable[[list[str]], int]
) -> Callable[[Command], int]:
    """Return how a server runs a client's command: by `run`, over its session."""

    def run_command(command: Command) -> int:
        given = command.request
        with hosted(Host(session, claims, jobs, command)), using(given.variables):
            try:
                code = run(given.arguments)
            except KeyboardInterrupt:  # while the last words were said
                code = STOPPED
            except SystemExit as error:  # Typer's way out of a broken pipe
                code = error.code if isinstance(error.code, int) else 1
            except Exception:  # CARREL_DEBUG asks for it
                stderr().print(traceback.format_exc(), markup=False)
                code = 1
            if command.stopping:
                fail("the server was stopped meanwhile; what was finished is kept. Run it again.")
                code = STOPPED
        return code

    return run_command


def lent(session: Session, settings: Settings, *, needs_embedder: bool) -> Session:
    """Return the session with a command's settings on top of the server's.

    Raises CallerError when the command asks for what the server made once, ModelError when it needs
    an embedder and the server has none.
    """
    if needs_embedder and session.embedder is None:
        raise ModelError(
            "documents need the embedder, which the server could not load",
            hint="correct that and start the server again",
        )
    other = copy.copy(session)
    other.settings = on_top(session.settings, settings)
    return other


def on_top(server: Settings, command: Settings) -> Settings:
    """Return the server's settings with those that a command gives and may give."""
    given = command.given()
    for name in sorted(one for one in given if changes_of(one).command == "refused"):
        if command.value(name) != server.value(name):
            value = None if name in SECRETS else f"{name}={command.value(name)}"
            raise CallerError(
                f"the running server decides {name}",
                value=value,
                hint="leave it out, or stop the server and run it again",
            )
    values = {name: server.value(name) for name in server.given()}
    values |= {name: command.value(name) for name in given if changes_of(name).command == "own"}
    with using({}):  # the command's variables are among its own as far as they count
        return load_settings(values, file="")[0]


def serve_session(
    session: Session,
    settings: Settings,
    bound: socket.socket,
    load: Callable[[], Settings],
    *,
    allow_anonymous: bool,
) -> int:
    """Serve a session over HTTP, and to commands of its operator, until stopped."""
    services = make_app_state(session, allow_anonymous=allow_anonymous, load=load)
    services.followers.append(use_level)
    nobody = services.authenticator.has_no_key
    check_mode(settings, allow_anonymous=allow_anonymous, nobody_has_a_key=nobody)
    _ = session.chat  # looked for now, not by two first questions at once
    warm_up(session)
    app = make_app(services, host=settings.serve.host)
    address = address_of(bound, settings.serve.host)
    control = Control(settings, run_for(session, services.runner.claims, services.jobs, run))
    lock = session.maintenance.lock

    def ready() -> None:
        control.open(lock.announce(address, 0 if lock.shared else control.bind()).secret)
        _greet(session, services, address)

    try:
        return serve_app(
            app,
            settings,
            bound,
            ready,
            services.runner.stop,
            lambda: services.reload.on_signal(services),
        )
    finally:
        lock.withdraw()
        control.close()


def work_session(
    session: Session, settings: Settings, stop: Callable[[Jobs], bool], on_end: OnEnd
) -> None:
    """Take jobs until `stop` says so, and commands of the operator meanwhile.

    What is at work then stops after its current piece, and waits again.
    """
    jobs = make_jobs(session, settings)
    jobs.on_end = on_end
    control = Control(settings, run_for(session, Claims(), jobs, run))
    lock = session.maintenance.lock
    control.open(lock.announce("", 0 if lock.shared else control.bind()).secret)
    jobs.resume()
    try:
        while not stop(jobs):
            session.maintenance.check_writable()  # where nothing can be kept, no job ends
            time.sleep(LOOK_S)
    finally:
        lock.withdraw()
        control.close()
        jobs.close()


def _greet(session: Session, services: AppState, address: str) -> None:
    err = stderr()
    for warning in session.warnings:
        warn(warning)
    if mode := open_to_others(session.store.folder):
        warn(f"other users of this machine may enter {session.store.folder} (mode {mode})")
    if not session.catalogue.collections():
        warn("there are no documents yet: upload some, or stop and run `carrel ingest PATH`")
    if services.authenticator.allow_anonymous:
        err.print("[dim]callers of this machine need no key[/dim]")
    elif services.authenticator.has_no_key:
        warn("nobody has a key yet: `carrel keys create` makes one, also while this runs")
    err.print(f"[dim]serving {session.store.folder}; Ctrl-C stops[/dim]")
    out = stdout()
    out.print(address)
    out.file.flush()
