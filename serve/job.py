"""One upload or deletion, as its owner follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stores.jobs import JobRow

SHOWN = (
    *("id", "kind", "user", "collection", "name", "bytes", "state", "error"),
    *("documents", "chunks", "notes", "created_at", "updated_at"),
)


@dataclass(eq=False)
class Job:
    """Follow one job; `stage`, `done` and `total` are those of the ingest."""

    row: JobRow
    stage: str = ""
    done: int = 0
    total: int = 0
    cancelled: bool = False

    @property
    def id(self) -> str:
        """Return the id that its owner asks by."""
        return self.row.id

    @property
    def name(self) -> str:
        """Return the name of the file, empty for a deletion."""
        return self.row.name

    def describe(self) -> dict[str, Any]:
        """Return the job as its owner sees it."""
        shown = {name: getattr(self.row, name) for name in SHOWN}
        shown |= {"roles": sorted(self.row.roles)}
        return shown | {"stage": self.stage, "done": self.done, "total": self.total}
