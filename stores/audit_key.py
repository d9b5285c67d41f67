"""The secret that audit rows are signed with, and the note of which row was last."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from pathlib import Path

from core.errors import OperatorError
from core.settings import Settings
from stores.audit_chain import Head

KEY_FILE = "audit.key"
HEAD_FILE = "audit.head"
KEY_BYTES = 32
NOTE = re.compile(r"([0-9]{19}):([0-9a-f]{64})\n", re.ASCII)
DAMAGED = Head(1, "")
HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


def audit_key(settings: Settings, folder: Path, *, has_rows: bool) -> bytes:
    """Return the secret of the settings, or that of the data directory, made when first needed.

    Raises OperatorError when it is unfit, or gone while there are rows that it signed.
    """
    if settings.audit_key is not None:
        given = settings.audit_key.get_secret_value().encode()
        if len(given) < KEY_BYTES:
            raise OperatorError(f"audit_key has at least {KEY_BYTES} bytes")
        return given
    path = folder / KEY_FILE
    if not path.exists():
        if has_rows:
            raise OperatorError(
                "the key of the audit log is gone",
                value=str(path),
                hint="restore it from a backup, or set CARREL_AUDIT_KEY",
            )
        _make(path)
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not HEX.fullmatch(text):
        raise OperatorError(
            "the key of the audit log is damaged",
            value=str(path),
            hint="restore it from a backup",
        )
    return bytes.fromhex(text)


def read_head(folder: Path) -> Head | None:
    """Return the note of the last row, None when there is none; a damaged one fits no chain."""
    try:
        text = (folder / HEAD_FILE).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    except OSError:
        return DAMAGED
    match = NOTE.fullmatch(text)
    return Head(int(match[1]), match[2]) if match else DAMAGED


def write_head(folder: Path, head: Head) -> None:
    """Note the last row, in one piece of always the same length.

    It is not forced to the disk: after a power cut it may name an earlier row, which is still one.
    """
    handle = os.open(folder / HEAD_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, f"{head.seq:019d}:{head.hash}\n".encode("ascii"), 0)
    finally:
        os.close(handle)


def _make(path: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=KEY_FILE)  # for its owner alone
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(name, path)  # another process may have made one: the first stays
    except FileExistsError:
        return
    finally:
        os.unlink(name)
