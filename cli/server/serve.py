"""`carrel serve`, `worker` and `mcp`: answer over HTTP, take jobs, or speak MCP, until stopped."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import Data, Set
from cli.options import (
    CallerOptions,
    flags_from,
    opened,
    opened_catalogue,
    settings_from,
    with_options,
)
from cli.server.remote import SERVER_GONE, ServerOwns, run_there
from cli.server.running import host
from cli.terminal.output import check_interrupted, counted, stderr, stdout
from core.errors import CallerError
from core.settings import Settings, load_settings
from serve.access.network import is_loopback, listening_socket
from serve.telemetry.logs import log_to_stderr
from stores.lock import OwnedError

if TYPE_CHECKING:
    from serve.jobs import Jobs
    from stores.runlog.jobs import JobRow


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


# Between two tries to own a directory that another process has; chosen, not measured: a dead one's
# job goes on after it.
AGAIN_S = 1.0
KEPT = 1000  # ended jobs of a tenant, as in a server


def worker(
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when no job waits or is at work.")
    ] = False,
    cancel: Annotated[
        str | None,
        typer.Option(
            "--cancel",
            metavar="JOB",
            help="Only stop this job.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    changes: Set = None,
) -> None:
    """Take jobs from the queue until stopped; beside another worker or server, wait for its end."""
    settings = settings_from(data, changes)
    if cancel is not None:
        _cancel(settings, cancel)
        return
    if (here := host()) is not None:
        _wait(here.jobs, until_empty)
        return
    ending, noted = threading.Event(), False
    before = signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        while not ending.is_set():
            try:
                _work(settings, until_empty, ending)
                return
            except OwnedError as error:  # a command has it for a while
                if not noted and error.owner:
                    stderr().print(f"[dim]waiting for {escape(error.owner.describe())}[/dim]")
                noted = True
            time.sleep(AGAIN_S)
    finally:
        signal.signal(signal.SIGTERM, before)


def _work(settings: Settings, until_empty: bool, ending: threading.Event) -> None:
    from cli.server.hosting import work_session  # late: `--help` loads no server

    def stop(jobs: Jobs) -> bool:
        return ending.is_set() or (until_empty and jobs.is_empty())

    try:
        with opened(settings, create=True, needs_embedder=True) as session:
            stderr().print(f"[dim]taking jobs of {session.store.folder}; Ctrl-C stops[/dim]")
            work_session(session, session.settings, stop, _tell)
    except ServerOwns as found:
        there = ["worker", *(["--until-empty"] if until_empty else []), "--data"]
        if (code := run_there(found, [*there, str(settings.data.absolute())])) != SERVER_GONE:
            raise typer.Exit(code) from None
        raise found.refusal from None  # it has ended: who waits takes its place


def _wait(jobs: Jobs, until_empty: bool) -> None:
    """Wait in the process that does the jobs, until they are done or it ends."""
    while not (until_empty and jobs.is_empty()):
        check_interrupted()
        time.sleep(AGAIN_S)


def _tell(row: JobRow) -> None:
    done = counted(row.documents, "document")
    stdout().print(f"{row.id} {row.state}: {row.error or done}", markup=False, soft_wrap=True)


def _cancel(settings: Settings, job_id: str) -> None:
    with opened_catalogue(settings) as kept:
        if (here := host()) is not None:
            here.jobs.cancel_any(job_id)
            return
        rows = kept.accounts.jobs(KEPT)
        row = rows.find(job_id)
        if row is None or row.ended:
            raise CallerError(
                "no job of this id waits or is at work",
                value=job_id,
                hint="`carrel status --json` lists them",
            )
        rows.cancel(row)


@with_options
def mcp(options: CallerOptions) -> None:
    """Offer the collections to a program that speaks MCP, over stdin and stdout.

    `carrel serve` offers the same at /mcp, for callers with a key.
    """
    settings = options.settings()
    with opened(settings, alone=True) as session:
        from serve.protocols.mcp_tools import serve_stdio  # late: it loads a server
        from serve.services import make_app_state

        serve_stdio(make_app_state(session), options.auth)
