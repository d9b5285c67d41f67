"""Groups of people from a CSV file, for a sign-in provider that sends none."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from core.errors import OperatorError
from serve.telemetry.logs import log

HEADER = ["user", "group"]
MOST_BYTES = 20_000_000  # half a million memberships; chosen, not measured


class GroupFile:
    """Hold who is in which group; the file is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        """Read it; raises OperatorError for what it may not be."""
        self._path = path.expanduser()
        self._stamp = self._stamp_now()
        self._groups = self._read()

    def groups_of(self, user: str) -> frozenset[str]:
        """Return the groups of a user; while the file has a mistake those of before."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._stamp = stamp  # also where it is bad: it is reported once
                self._groups = self._read()
        except OperatorError as error:
            log.error("the groups of before stay: %s", error)
        return self._groups.get(user, frozenset())

    def _stamp_now(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        return found.st_mtime_ns, found.st_size

    def _read(self) -> Mapping[str, frozenset[str]]:
        if self._stamp[1] > MOST_BYTES:
            raise self._unreadable(f"more than {MOST_BYTES:,} bytes")
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from None
        rows = csv.reader(io.StringIO(text))
        found: dict[str, set[str]] = defaultdict(set)
        try:
            if [name.strip() for name in next(rows, [])] != HEADER:
                raise self._unreadable("its first line is not `user,group`")
            for row in rows:
                cells = [cell.strip() for cell in row]
                if not any(cells):
                    continue
                if len(cells) != 2 or not all(cells):
                    raise self._unreadable(f"line {rows.line_num} is not a user and a group")
                found[cells[0]].add(cells[1])
        except csv.Error as error:
            raise self._unreadable(f"line {rows.line_num}: {error}") from None
        return {user: frozenset(groups) for user, groups in found.items()}

    def _unreadable(self, why: str) -> OperatorError:
        rule = "oidc.groups_file is a CSV of users and groups, one membership a line"
        return OperatorError(rule, value=f"{self._path}: {why}", hint="correct the file")
