"""`carrel worker`: take what `carrel ingest --enqueue` and others have put into the queue."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import Data, Set
from cli.options import opened, opened_catalogue, settings_from
from cli.server.remote import SERVER_GONE, ServerOwns, run_there
from cli.server.running import host
from cli.terminal.output import check_interrupted, counted, stderr, stdout
from core.errors import CallerError
from core.settings import Settings
from stores.lock import OwnedError

if TYPE_CHECKING:
    from serve.jobs import Jobs
    from stores.runlog.jobs import JobRow

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
        row.state = "cancelled"
        rows.save(row)
