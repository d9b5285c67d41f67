"""Ingest files in this process, for fixtures that open what others ask about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cli.upkeep.ingest import run_ingest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
# paths, collection, profile, tenant, roles
Corpus = tuple[Sequence[Path], str, str | None, str, str]


def ingest_corpora(data: Path, corpora: Iterable[Corpus]) -> None:
    """Ingest corpora into a data directory; each is one call of the command."""
    for paths, collection, profile, tenant, acl in corpora:
        summary = run_ingest(
            list(paths),
            collection,
            profile=profile,
            tenant=tenant,
            acl=acl,
            prune=False,
            flags={"data": data},
            quiet=True,
        )
        assert summary.ok
