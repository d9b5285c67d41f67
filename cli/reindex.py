"""`carrel reindex`: make everything that is derived anew from the catalogue."""

from __future__ import annotations

from cli.options import Data, Json, Set, opened, settings_from, working
from cli.output import print_json, stdout
from cli.progress import StageBars


def reindex(data: Data = None, changes: Set = None, as_json: Json = False) -> None:
    """Rebuild the full-text and vector indexes from the catalogue."""
    from ingest.reindex import rebuild

    settings = settings_from(data, changes)
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
        f" ({report['embedded']} embedded anew) in {report['seconds']:.1f} s"
    )
