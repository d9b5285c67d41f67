"""Take from the parser process what no parser needs: network, programs, files of others."""

from __future__ import annotations

import ctypes
import mimetypes
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

SCRATCH = "carrel-parser-"
ROOT = Path(__file__).resolve().parents[2]
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET of unshare(2)
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)
_OPEN_FILES = 64  # chosen, not measured
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = {
    f"os.{name}"
    for name in (
        "remove", "rename", "mkdir", "rmdir", "link", "symlink", "chmod", "chown", "truncate",
        "utime", "chflags", "setxattr", "removexattr",
    )
}  # fmt: skip
_NEVER = (
    "socket.", "subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.system",
    "os.startfile", "pty.", "pickle.", "webbrowser.", "http.client.", "urllib.", "ftplib.",
    "smtplib.", "imaplib.", "poplib.", "nntplib.", "telnetlib.", "os.kill", "signal.pthread_kill",
)  # fmt: skip
_READABLE = (
    "/usr/share", "/usr/lib", "/usr/local/lib", "/lib", "/lib64", "/proc/self", "/dev/null",
    "/dev/urandom", "/etc/localtime", *mimetypes.knownfiles,
)  # fmt: skip


class RefusedError(PermissionError):
    """Stop a parser at something that no document needs."""


class Confinement:
    """Refuse network, programs, writing, and reading of all but the file, or docset, at hand.

    Writing is allowed below the folder for temporary files, which is private to the process.
    """

    def __init__(self) -> None:
        """Remember what may be read: the interpreter, its libraries, this code."""
        self.file = ""
        self._scratch = os.path.realpath(tempfile.gettempdir())
        code = (ROOT / name for name in ("languages", "core", "ingest", "stores"))
        libraries = (entry for entry in sys.path if entry and Path(entry).resolve() != ROOT)
        roots = (*_READABLE, sys.prefix, sys.base_prefix, *libraries, *code, self._scratch)
        self._roots = tuple({os.path.realpath(root) for root in map(str, roots)})

    def enter(self) -> None:
        """Confine this process, for as long as it lives."""
        _bound_resources()
        _leave_network()
        sys.addaudithook(self._judge)

    def _judge(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            self._judge_open(path, mode, flags)
        elif event in _CHANGING:
            for path in arguments[:2]:
                named = isinstance(path, str | bytes | os.PathLike)
                if named and not _below(os.path.realpath(os.fsdecode(path)), self._scratch):
                    raise RefusedError(f"a parser may not call {event}")
        elif event.startswith(_NEVER):
            raise RefusedError(f"a parser may not call {event}")

    def _judge_open(self, path: object, mode: str | None, flags: int) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor that is open already
        real = os.path.realpath(os.fsdecode(path))
        if (flags or 0) & _WRITING or (mode and set(mode) & set("wax+")):
            if real != os.devnull and not _below(real, self._scratch):
                raise RefusedError("a parser may not write files")
        elif not any(_below(real, root) for root in (self.file or self._scratch, *self._roots)):
            raise RefusedError("a parser may not open another file")


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _bound_resources() -> None:
    import resource  # where there are no processes of this kind there is no such module

    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))


def _leave_network() -> None:
    """Move to an empty network namespace where the system lets one; elsewhere the hook holds."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):
        system = ctypes.CDLL(None)
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # Root would lose its right to read files in a user namespace of its own.
        system.unshare(_NEW_NETWORK if os.geteuid() == 0 else _NEW_USER | _NEW_NETWORK)
