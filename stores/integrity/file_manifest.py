"""The manifest of a data directory: its files, as they were when it was closed (`seal.json`).

If the files equal it at the next opening, nothing changed them in between. Otherwise everything is
checked before the first answer: after a crash, a copy, or a change by another program.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from core.errors import OperatorError
from stores.folder import ALL_FOLDERS
from stores.integrity.witness import NAME as WITNESS

NAME, OPENED = "seal.json", "seal.open.json"
ALONE = ("catalogue.sqlite3", "conversations.sqlite3", "audit.key", "audit.head", WITNESS)
LOGS = ("-wal", "-journal")
SEAL_MB = 256  # files up to this size are sealed with a check sum; chosen, not measured
_READ = 1 << 20  # bytes at once; chosen, not measured

State = Literal["new", "equal", "changed", "open", "none"]


@dataclass(frozen=True)
class Stamp:
    """Describe a file: size, times of change of its bytes and of its entry (ns), check sum."""

    size: int
    modified: int
    entry: int
    crc: int | None = None


@dataclass(frozen=True)
class FileReport:
    """How the files compare with the manifest (the seal).

    `state` is "equal", "changed" since the last close, "open" where there was none after the last
    opening (a crash), "none" without any seal, or "new" for an empty folder. `files` are those that
    are not as they were; `left_out` are folders that the seal does not vouch for, with the reason.
    """

    state: State
    files: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    def touched(self, folder: str) -> bool:
        """Tell whether a file of this folder, or this file, is not known to be as it was."""
        within = any(one == folder or one.startswith(folder + "/") for one in self.files)
        return self.state == "none" or within


class FileManifest:
    """Write the manifest of one data directory, and compare the files with it."""

    def __init__(self, folder: Path, *, most_mb: int = SEAL_MB) -> None:
        """Sum up the bytes of files up to `most_mb` megabytes; of larger ones size and times."""
        self._folder = folder
        self._most = most_mb << 20
        self._kept: dict[str, Stamp] = {}

    def open(self) -> FileReport:
        """Compare the files with the seal, and put it aside until `write`.

        Raises OperatorError when the folder cannot be written.
        """
        try:
            report = self._compared()
            if (self._folder / NAME).exists():
                os.replace(self._folder / NAME, self._folder / OPENED)
            elif not (self._folder / OPENED).exists():
                _replace(self._folder / OPENED, _packed({}, {}))
        except OSError as error:
            if error.errno == errno.ENOSPC:  # reads go on, and the next opening checks everything
                return FileReport("open", ALONE[:1])
            raise OperatorError(
                "the data directory must be writable",
                value=f"{self._folder} ({error.strerror})",
                hint="correct its permissions, or give another directory with --data",
            ) from None
        return report

    def _compared(self) -> FileReport:
        state: State = "equal"
        kept, left_out = _unpacked(self._folder / NAME)
        if kept is None:
            (kept, left_out), state = _unpacked(self._folder / OPENED), "open"
        found = {
            name: stamp
            for name, stamp in _stamps(self._folder)
            if name.split("/")[0] not in left_out
        }
        if kept is None:
            return FileReport("none" if found else "new", tuple(sorted(found)))
        self._kept = {}
        differing = [name for name in kept if name not in found]
        for name, stamp in found.items():
            before = kept.get(name)
            if before is not None and self._same(name, before, stamp):
                self._kept[name] = replace(stamp, crc=before.crc)
            else:
                differing.append(name)
        if state == "equal" and differing:
            state = "changed"
        return FileReport(state, tuple(sorted(differing)), left_out)

    def write(self, left_out: dict[str, str]) -> None:
        """Seal the folder as it is now; a file whose log is not empty keeps it from being so.

        Folders in `left_out` are not vouched for, for the reasons given. Where the seal cannot be
        written, the next opening checks everything.
        """
        with contextlib.suppress(OSError):
            self._write(left_out)

    def _write(self, left_out: dict[str, str]) -> None:
        stamps: dict[str, Stamp] = {}
        for name, stamp in _stamps(self._folder):
            if name.endswith(LOGS):
                return  # another process is at work
            if name.split("/")[0] in left_out:
                continue
            before = self._kept.get(name)
            seen = before is not None and not _moved(before, stamp)
            stamps[name] = before if before and seen else replace(stamp, crc=self._crc(name))
        _replace(self._folder / NAME, _packed(stamps, left_out))
        (self._folder / OPENED).unlink(missing_ok=True)

    @contextlib.contextmanager
    def sealed_again(self) -> Iterator[None]:
        """Vouch for what the block changes, where nothing else has changed the files before.

        Otherwise the seal stays as it is: who opens the directory next still finds them changed.
        """
        report = self._compared()
        if report.state not in ("equal", "new"):
            yield
            return
        self.open()
        try:
            yield
        finally:
            self.write(report.left_out)

    def moved(self, folder: str) -> bool:
        """Tell whether files of a folder are others than at the opening."""
        now = {n: s for n, s in _stamps(self._folder) if n.startswith(folder + "/")}
        before = {n: s for n, s in self._kept.items() if n.startswith(folder + "/")}
        return now.keys() != before.keys() or any(_moved(before[n], now[n]) for n in now)

    def _same(self, name: str, before: Stamp, now: Stamp) -> bool:
        if before.size != now.size or before.crc is None:
            return not _moved(before, now)
        return not _moved(before, now) or before.crc == self._crc(name)

    def _crc(self, name: str) -> int | None:
        path = self._folder / name
        try:
            if path.stat().st_size > self._most:
                return None
            crc = 0
            with path.open("rb") as file:
                while block := file.read(_READ):
                    crc = zlib.crc32(block, crc)
            return crc
        except OSError:
            return -1


def _moved(before: Stamp, now: Stamp) -> bool:
    return replace(before, crc=None) != replace(now, crc=None)


def _stamps(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield what there is: names with "/", empty logs left out."""
    places = [folder / name for name in ALONE]
    places += [folder / (name + end) for name in ALONE[:2] for end in LOGS]
    for name in ALL_FOLDERS:
        places += sorted((folder / name).rglob("*"))
    for path in places:
        try:
            if not path.is_file():
                continue
            stat = path.stat()
        except OSError:
            continue
        name = path.relative_to(folder).as_posix()
        if stat.st_size or not name.endswith(LOGS):
            yield name, Stamp(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _packed(stamps: dict[str, Stamp], left_out: dict[str, str]) -> bytes:
    files = {name: list(astuple(stamp)) for name, stamp in stamps.items()}
    held = {"files": files, "left_out": left_out}
    return json.dumps({"format": 1, "crc": _sum(held), "held": held}).encode()


def _unpacked(path: Path) -> tuple[dict[str, Stamp] | None, dict[str, str]]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
        held = loaded["held"]
        if loaded["crc"] != _sum(held):
            return None, {}
        return {name: Stamp(*values) for name, values in held["files"].items()}, held["left_out"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, {}


def _sum(held: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(held, sort_keys=True).encode())


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
