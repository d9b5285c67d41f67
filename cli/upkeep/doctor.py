"""`carrel doctor`: does everything that was ingested still answer? and `carrel reindex`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Data, Json, Set
from cli.options import opened, owned, settings_from, working
from cli.server.llm import exam_of
from cli.terminal.output import print_json, stdout, warn
from cli.terminal.progress import StageBars
from core.errors import CallerError
from core.settings import Settings
from ingest.vectors import embed_missing, rebuild
from ingest.vectors import repair as repair_store
from stores.folder import open_places
from stores.index.registry import StageProgress, switch_index
from stores.integrity.health import NAMED

if TYPE_CHECKING:
    from app.session import Session
    from stores.ports import Intake

Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="NAME",
        help="Give the directory this search index from now on: memmap, chroma or milvus.",
        show_default=False,
    ),
]


def _switched(settings: Settings, progress: StageProgress) -> bool:
    """Give the directory the index of the settings; return whether it had another."""
    from models.loading import open_embedder  # late: `--help` needs no model

    with owned(settings, alone=True, whole=True):
        embedder = open_embedder(settings)

        def embed(intake: Intake) -> None:
            embed_missing(intake, embedder, settings.ingest.batch, partial(progress, "embed"))

        note = switch_index(settings, embedder.model_id, progress, embed)
        if note:
            warn(note)
        return note is not None


def reindex(
    data: Data = None, changes: Set = None, index: Index = None, as_json: Json = False
) -> None:
    """Rebuild the full-text and vector indexes from the catalogue."""
    settings, switched = settings_from(data, changes), False
    if index is not None:
        settings = settings.model_copy(update={"index": index})
        with StageBars(as_json) as progress:
            switched = _switched(settings, progress)
    with (
        opened(settings, needs_embedder=True) as session,
        working(session, "reindex", quiet=as_json),
        StageBars(as_json) as progress,
    ):
        assert session.embedder is not None  # needs_embedder says so
        own = session.settings
        report = rebuild(
            session.store, session.embedder, own, progress, session.second, switched=switched
        )
    if as_json:
        print_json(report)
        return
    stdout().print(
        f"rebuilt {report['fts_rows']} full-text rows and {report['vectors']} vectors"
        f" ({report['embedded']} embedded again) in {report['seconds']:.1f} s"
    )


Repair = Annotated[bool, typer.Option("--repair", help="Rebuild the indexes, remove leftovers.")]
Accept = Annotated[
    bool, typer.Option("--accept-loss", help="With --repair: continue without missing rows.")
]


def _others(session: Session) -> dict[str, Any]:
    """Return the other models by their role; the chat model with what it was found to do."""
    second, reranker = session.second, session.settings.reranker
    chat = session.chat
    return {
        "second_embedder": second.model_id if second else None,
        "reranker": None if reranker == "none" else reranker,
        "reasoner": "llm" if chat else "rules",
        "chat": chat.capabilities.model_dump() if chat else None,
        "exam": exam_of(session.settings, chat.capabilities.digest) if chat else None,
    }


def _open_to_others(session: Session) -> list[str]:
    """Name what other users of the machine can read; opening leaves nothing without the flag."""
    found = [
        f"{path} (mode {status.st_mode & 0o777:o})"
        for path, status in open_places(session.store.folder)
    ]
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    return [
        f"open to other users of this machine, `chmod -R go=` closes it: {one}"
        for one in [*found[:NAMED], *more]
    ]


def _shown(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a person wants to know of the directory besides its problems."""
    versions = dict(report["versions"])
    note = versions.pop("sqlite_note")
    return {
        "versions": versions,
        **({"SQLite": note} if note else {}),
        "disk": report["disk"],
        "seal": report["seal"]["state"],
    }


def _described(value: Any) -> str:  # noqa: ANN401 - what a report holds
    if isinstance(value, dict):
        return ", ".join(f"{name} {_described(item)}" for name, item in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def doctor(
    data: Data = None, repair: Repair = False, accept_loss: Accept = False, as_json: Json = False
) -> None:
    """Check the catalogue, the full-text index, the vectors and the files beside them.

    Exit code 0: all is well (or was repaired), 1: there are problems, 4: the directory
    cannot be opened.
    """
    if accept_loss and not repair:
        raise CallerError(
            "--accept-loss goes with --repair", hint="`carrel doctor` alone says what is missing"
        )
    with opened(settings_from(data)) as session:
        done: list[str] = []
        if accept_loss:
            done = session.maintenance.accept_loss(session.settings)
        if repair and not session.maintenance.condition.lost:
            done += session.maintenance.repaired
            own, second = session.settings, session.second
            with working(session, "repair", quiet=as_json), StageBars(as_json) as progress:
                done += repair_store(session.store, session.embedder, own, progress, second)
        report = session.maintenance.examine()
        report["repaired"] = done or report["repaired"]
        report["models"] = {"embedder": session.model_id, **_others(session)}
        report["problems"] += [note for note in session.warnings if note not in report["problems"]]
        report["problems"] += _open_to_others(session)
        report["ok"] = not report["problems"]
    if as_json:
        print_json(report)
    else:
        out = stdout()
        state = "[green]ok[/green]" if report["ok"] else "[red]problems[/red]"
        out.print(
            f"{state}: {report['documents']} documents, {report['chunks']} chunks,"
            f" {report['fts_rows']} full-text rows, {report['vectors']} vectors"
        )
        for line in done:
            out.print(f"  [green]✓[/green] {escape(line)}")
        for problem in report["problems"]:
            out.print(f"  [red]✗[/red] {escape(problem)}")
        shown = {**report["models"], **_shown(report)}
        for name, value in shown.items():
            out.print(f"  [dim]{name}: {escape(_described(value))}[/dim]")
        if repair and report["lost"]:
            out.print("  [dim]nothing was repaired: that needs --accept-loss as well[/dim]")
    if not report["ok"]:
        raise typer.Exit(1)
