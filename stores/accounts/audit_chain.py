"""A chain of audit rows: each is signed together with the one before it."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import OperatorError
from core.settings import Settings

GENESIS = "0" * 64  # as long as a SHA-256 in hexadecimal
CHECKPOINT = "checkpoint"  # says up to where the chain was pruned
TAMPERED = "tampered"  # says that rows once written were gone when this one was
ACCEPTED = "loss_accepted"  # says that the operator goes on without rows that were gone
FIELDS = ("seq", "at", "kind", "tenant", "user", "facts", "previous", "hash")


@dataclass(frozen=True)
class Head:
    """Name the last row of a chain by its number and hash; 0 when there is none."""

    seq: int = 0
    hash: str = GENESIS

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True)
class Verdict:
    """Say whether a chain is intact; `seq` is the first broken row, when it is known."""

    rows: int
    head: Head
    problem: str = ""
    seq: int | None = None


def canonical(facts: Mapping[str, Any]) -> str:
    """Return facts as the one JSON text that is signed; what UTF-8 cannot hold is replaced."""
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")


def signed(key: bytes, row: Mapping[str, Any]) -> str:
    """Return the HMAC-SHA256 (RFC 2104) of a row's fields, `previous` among them, as hex."""
    values = [row[name] for name in FIELDS[:-1]]
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


@dataclass
class ChainCheck:
    """Walk rows in their order and keep the first thing that is wrong."""

    key: bytes
    expected: tuple[Head, ...] = ()
    rows: int = 0
    head: Head = field(default_factory=Head)
    _pruned: Head | None = None  # what the row before the first one must have been
    _confirmed: bool = False

    def walk(self, rows: Iterable[Mapping[str, Any]]) -> Verdict:
        """Return the verdict on the chain; `expected` are rows known from elsewhere to be in it."""
        awaited = {head for head in self.expected if head.seq}
        for row in rows:
            if problem := self._problem(row):
                seq = row["seq"] if type(row["seq"]) is int else self.head.seq + 1
                return Verdict(self.rows, self.head, problem, seq)
            self.rows += 1
            self.head = Head(row["seq"], row["hash"])
            if any(one.seq == self.head.seq and one != self.head for one in awaited):
                problem = "this is not the row that was once the last: rows were replaced"
                return Verdict(self.rows, self.head, problem, self.head.seq)
        return self._end(max((one.seq for one in awaited), default=0))

    def _end(self, awaited: int) -> Verdict:
        problem, seq = "", None
        if awaited > self.head.seq:
            problem, seq = f"rows up to {awaited} were written and are gone", self.head.seq + 1
        elif self._pruned is not None and not self._confirmed:
            problem, seq = "rows before the first were removed without a checkpoint", 1
        return Verdict(self.rows, self.head, problem, seq)

    def _problem(self, row: Mapping[str, Any]) -> str:
        texts = [row[name] for name in FIELDS[1:]]
        if type(row["seq"]) is not int or not all(isinstance(text, str) for text in texts):
            return "the row has values of a wrong type"
        if not self.rows and row["seq"] > 1:
            self._pruned = self.head = Head(row["seq"] - 1, row["previous"])
        if row["seq"] != self.head.seq + 1:
            return f"the row is not the one after {self.head.seq}"
        if row["previous"] != self.head.hash:
            return "the row does not follow the one before it"
        if not hmac.compare_digest(row["hash"].encode(), signed(self.key, row).encode()):
            return "the row was changed, or its key is another"
        if row["kind"] == TAMPERED:
            return "when this row was written, rows before it were gone"
        if row["kind"] == CHECKPOINT and self._pruned is not None:
            facts = json.loads(row["facts"])
            self._confirmed |= (facts["upto"], facts["hash"]) == (
                self._pruned.seq,
                self._pruned.hash,
            )
        return ""


KEY_FILE = "audit.key"
HEAD_FILE = "audit.head"
KEY_BYTES = 32  # as long as the hash, the least that RFC 2104 advises
NOTE = re.compile(r"([0-9]{19}):([0-9a-f]{64})\n", re.ASCII)
DAMAGED = Head(1, "")
HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


def audit_key(settings: Settings, folder: Path, *, has_rows: bool) -> bytes:
    """Return the secret of the settings, or that of the data directory, made when first needed.

    Raises OperatorError when it is unfit, or gone while there are rows that it signed.
    """
    if settings.audit.key is not None:
        given = settings.audit.key.get_secret_value().encode()
        if len(given) < KEY_BYTES:
            raise OperatorError(f"audit.key has at least {KEY_BYTES} bytes")
        return given
    path = folder / KEY_FILE
    if not path.exists():
        if has_rows:
            raise OperatorError(
                "the key of the audit log is gone",
                value=str(path),
                hint="restore it from a backup, or set CARREL_AUDIT__KEY",
            )
        _make(path)
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not HEX.fullmatch(text):
        raise OperatorError(
            "the key of the audit log is damaged", value=str(path), hint="restore it from a backup"
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
