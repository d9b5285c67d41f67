"""`carrel ingest`: read files and folders into a collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import (
    DEFAULT_TENANT,
    Data,
    FilledCollection,
    Json,
    Set,
    Tenant,
    path_argument,
    values,
)
from cli.options import collection_to_fill, flags_from, opened, working
from cli.server.access import record as record
from cli.server.running import STDIN, placed, shown
from cli.terminal.output import fail, input_piece, print_json, stdout
from cli.terminal.progress import IngestBar
from core.auth import checked_name, checked_principal
from core.errors import CallerError, shorten
from core.profile import load_profile
from core.settings import load_settings
from ingest.discover import SourceFile
from ingest.loaders.formats import checked_file_name, known_formats
from ingest.loaders.limits import MB
from ingest.summary import Summary, Tally
from stores.runlog.jobs import new_ingest
from stores.sqlite.implementation import opened_catalogue

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection

SHOWN_FAILURES = 20  # chosen to fit a screen; --json lists all


AccessList = Annotated[
    list[str] | None,
    typer.Option(
        "--acl",
        help="Who may read these documents: a role or user:NAME; repeat for more, none means all.",
        show_default=False,
    ),
]


def ingest(
    paths: Annotated[
        list[Path], path_argument("paths", "Files and folders; - reads one document from stdin.")
    ],
    collection: FilledCollection = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="Profile: a built-in name or a YAML file.",
            autocompletion=values("cli.values:profiles"),
        ),
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    acl: AccessList = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the document on stdin; its ending says the type.")
    ] = "",
    prune: Annotated[
        bool, typer.Option("--prune", help="Forget files of the collection that are not given.")
    ] = False,
    enqueue: Annotated[
        bool,
        typer.Option("--enqueue", help="Leave it to a worker or server; print the job."),
    ] = False,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Read files and folders into a collection; unchanged files are skipped."""
    collection = collection_to_fill(collection)
    _check_input(paths, name, alone=not (prune or enqueue))
    if enqueue:
        job = _enqueued(
            paths, collection, profile, tenant, _readers(acl or []), prune, data, changes
        )
        print_json({"job": job, "state": "waiting"}) if as_json else stdout().print(job)
        return
    summary = run_ingest(
        paths,
        collection,
        profile=profile,
        tenant=tenant,
        acl=_readers(acl or []),
        prune=prune,
        flags=flags_from(data, changes),
        quiet=as_json,
        name=name,
    )
    if as_json:
        lists = {"failed": summary.failed, "left_out": summary.left_out}
        shown = {name: [one.model_dump() for one in found] for name, found in lists.items()}
        print_json({**vars(summary), **shown})
    else:
        print_summary(summary, collection)
    if not summary.ok:
        fail(_nothing(summary))
        raise typer.Exit(1)


def _elsewhere(path: Path) -> str:
    """Say what to do about a path that is not there: it may be an address, or standard input."""
    scheme, _, rest = str(path).partition(":/")
    if rest and scheme.isalpha():
        return "`carrel source add NAME ADDRESS`, then `carrel source sync NAME`, read an address"
    return "check the spelling"


def _check_input(paths: list[Path], name: str, *, alone: bool) -> None:
    """Raise CallerError where standard input is given no usable name, or a name no input."""
    if STDIN not in paths:
        if name:
            rule = "--name names the document on standard input"
            raise CallerError(rule, value=name, hint=f"give - as the path, not {shown(paths[0])}")
    elif len(paths) > 1 or not alone:
        rule = "standard input is one document, read at once"
        raise CallerError(rule, value="-", hint="leave out other paths, --prune and --enqueue")
    elif not name:
        rule = "a document on standard input needs a name, whose ending says its type"
        raise CallerError(rule, value="-", hint="add --name FILE.md")
    else:
        checked_file_name(name)


@contextmanager
def _spooled(name: str, most_mb: int) -> Iterator[list[SourceFile]]:
    """Keep standard input as a file for as long as it is read; raises CallerError."""
    with TemporaryDirectory(prefix="carrel-") as folder:
        path, size = Path(folder, Path(name).name), 0
        with path.open("wb") as file:
            while piece := input_piece():
                size += len(piece)
                if size > most_mb * MB:
                    rule = f"a document has at most {most_mb} MB (ingest.max_file_mb)"
                    hint = "split it, or raise the limit with --set ingest.max_file_mb=N"
                    raise CallerError(rule, value=name, hint=hint)
                file.write(piece)
        if not size:
            rule = "standard input was empty"
            raise CallerError(rule, value=name, hint="pipe a document into the command")
        yield [SourceFile(path, name)]


def _readers(acl: list[str]) -> str:
    """Return who may read, with commas between; an empty name would open documents to all."""
    for given in acl:
        if not given.strip(" ,"):
            rule = "--acl names a role or user:NAME"
            raise CallerError(rule, value=repr(given), hint="leave it out to let all read")
    return ",".join(acl)


def _nothing(summary: Summary) -> str:
    """Say why nothing was ingested."""
    if failed := len(summary.failed):
        first = summary.failed[0]
        return (
            f"nothing could be ingested: {failed} failed, the first is {first.path}"
            f" ({shorten(first.reason)}). Correct them and run it again."
        )
    if left_out := len(summary.left_out):
        return f"nothing could be ingested: {left_out} left out. Choose another profile."

    return f"there is no file to ingest below these paths. Known formats: {known_formats()}."


def run_ingest(
    paths: list[Path],
    collection: str,
    *,
    profile: str | None,
    tenant: str,
    acl: str,
    prune: bool,
    flags: dict[str, Any],
    quiet: bool,
    alone: bool = False,
    name: str = "",
) -> Summary:
    """Ingest and return the summary; progress is drawn on stderr unless quiet.

    With `alone` it is never a server that does it; with `name` standard input is the document.
    """
    readers = _checked([] if name else paths, collection, tenant, acl)
    loaded = load_profile(profile, placed) if profile else None
    settings, _ = load_settings(flags, loaded.settings if loaded else None)

    tally = Tally()
    with (
        IngestBar(quiet, tally) as progress,
        opened(settings, create=True, needs_embedder=True, alone=alone) as session,
        _spooled(name, settings.ingest.max_file_mb) if name else nullcontext(paths) as given,
        working(session, f"ingest into {collection}", quiet=quiet),
    ):
        target = session.intake.open_collection(tenant, collection, loaded)
        summary = session.ingest(
            target,
            given,
            acl=readers,
            progress=progress,
            prune=prune,
            tally=tally,
            renames=not name,
        )
        _record(session, target, summary, readers)
        return summary


def _checked(paths: list[Path], collection: str, tenant: str, acl: str) -> frozenset[str]:
    """Return who may read; raises CallerError for bad names and paths of nothing."""
    checked_name("tenant", tenant)
    checked_name("collection", collection)
    readers = frozenset(checked_principal(one.strip()) for one in acl.split(",") if one.strip())
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise CallerError(
            "a path to ingest must exist", value=str(missing[0]), hint=_elsewhere(missing[0])
        )
    return readers


def _enqueued(
    paths: list[Path],
    collection: str,
    profile: str | None,
    tenant: str,
    acl: str,
    prune: bool,
    data: Path | None,
    changes: list[str] | None,
) -> str:
    """Put an ingest into the queue, beside whatever process owns the directory; return its id."""
    if changes:
        rule = "a job is done with the settings of its worker"
        raise CallerError(rule, value=f"--set {changes[0]}", hint="give them to `carrel worker`")
    readers = _checked(paths, collection, tenant, acl)
    loaded = load_profile(profile, placed) if profile else None
    settings, _ = load_settings(flags_from(data, None), loaded.settings if loaded else None)
    own = loaded.model_dump(mode="json") if loaded else None
    row = new_ingest(tenant, collection, paths, readers, own, prune=prune)
    insecure, catalogue = settings.storage.insecure_permissions, settings.catalogue
    with opened_catalogue(
        settings.data, create=True, insecure=insecure, catalogue=catalogue
    ) as kept:
        kept.accounts.jobs(0).save(row)
    return row.id


def _record(
    session: Session, target: Collection, summary: Summary, readers: frozenset[str]
) -> None:
    """Have the audit log name what came in and what went."""
    accounts, settings, tenant = session.accounts, session.settings, target.tenant
    if summary.indexed:
        done = {"collection": target.name, "files": summary.indexed, "readers": sorted(readers)}
        record(accounts, settings, "upload", tenant, **done)
    if summary.removed:
        gone = {"collection": target.name, "documents": summary.removed}
        record(accounts, settings, "deletion", tenant, **gone)


def print_summary(summary: Summary, collection: str) -> None:
    """Print what happened, with every file that failed and why."""
    out = stdout()
    others = f" · {summary.others} of other formats" if summary.others else ""
    out.print(
        f"[bold]{collection}[/bold]: {summary.files} files · {summary.indexed} indexed"
        f" · {summary.unchanged} unchanged · {len(summary.failed)} failed{others}"
        f" → {summary.documents} documents, {summary.chunks} chunks in {summary.seconds:.1f} s"
    )
    if summary.renamed:
        out.print(f"  {summary.renamed} files renamed")
    if summary.removed:
        out.print(f"  {summary.removed} documents removed")
    for failure in summary.failed[:SHOWN_FAILURES]:
        out.print(f"  [red]failed[/red] {escape(failure.path)}: {escape(failure.reason)}")
    if len(summary.failed) > SHOWN_FAILURES:
        out.print(f"  … {len(summary.failed) - SHOWN_FAILURES} more; --json lists all")
    for failure in summary.left_out[:SHOWN_FAILURES]:
        out.print(f"  [yellow]left out[/yellow] {escape(failure.path)}: {escape(failure.reason)}")
    if len(summary.left_out) > SHOWN_FAILURES:
        more = len(summary.left_out) - SHOWN_FAILURES
        out.print(f"  … {more} more were left out; --json lists all")
    for note in summary.notes:
        out.print(f"  [yellow]note[/yellow] {escape(note)}")
