"""`carrel reindex`: rebuild everything that is derived from the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.arguments import Data, Json, Set
from cli.options import opened, owned, settings_from, working
from cli.terminal.output import print_json, stdout, warn
from cli.terminal.progress import StageBars
from core.settings import Settings
from ingest.repair import rebuild
from stores.index.registry import switch_index

Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="NAME",
        help="Give the directory this search index from now on: memmap or chroma.",
        show_default=False,
    ),
]


def _switched(settings: Settings, index: str) -> Settings:
    """Let the directory have another index, still empty; return the settings that go with it."""
    settings = settings.model_copy(update={"index": index})
    with owned(settings, alone=True):
        if note := switch_index(settings):
            warn(note)
    return settings


def reindex(
    data: Data = None, changes: Set = None, index: Index = None, as_json: Json = False
) -> None:
    """Rebuild the full-text and vector indexes from the catalogue."""
    settings = settings_from(data, changes)
    if index is not None:
        settings = _switched(settings, index)
    with (
        opened(settings, needs_embedder=True) as session,
        working(session, "reindex", quiet=as_json),
        StageBars(as_json) as progress,
    ):
        assert session.embedder is not None  # needs_embedder says so
        own = session.settings
        report = rebuild(session.store, session.embedder, own, progress, session.second)
    if as_json:
        print_json(report)
        return
    stdout().print(
        f"rebuilt {report['fts_rows']} full-text rows and {report['vectors']} vectors"
        f" ({report['embedded']} embedded again) in {report['seconds']:.1f} s"
    )
