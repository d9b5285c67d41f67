"""Audit rows kept beside the catalogue while it is not written: a signed chain of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stores.audit_chain import ChainCheck, Head, Verdict

ASIDE = "audit.aside"


class Aside:
    """Keep rows as lines of JSON; what was changed in the file is not given back."""

    def __init__(self, folder: Path, key: bytes) -> None:
        """Open nothing yet."""
        self._path = folder / ASIDE
        self._key = key
        self._head: Head | None = None

    def head(self) -> Head:
        """Return the last row, which the next one follows."""
        if self._head is None:
            self._head = self.read()[1].head
        return self._head

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep rows, each following the one before; when this returns they are on the disk."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())
        if rows:
            self._head = Head(rows[-1]["seq"], rows[-1]["hash"])

    def read(self) -> tuple[list[dict[str, Any]], Verdict]:
        """Return the rows up to the first that is not what was written, and what is wrong."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        rows: list[dict[str, Any]] = []
        check = ChainCheck(self._key)
        try:
            verdict = check.walk(_noting(lines, rows))
        except (ValueError, TypeError, KeyError):  # a line that is no row
            verdict = Verdict(check.rows, check.head, "a row cannot be read")
        return rows[: verdict.rows], verdict

    def clear(self) -> None:
        """Forget the rows, which the catalogue has by now."""
        self._path.unlink(missing_ok=True)
        self._head = None


def _noting(lines: list[bytes], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for line in lines:
        rows.append(json.loads(line))
        yield rows[-1]
