"""A chain of audit rows: each is signed together with the one before it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

GENESIS = "0" * 64
CHECKPOINT = "checkpoint"  # says up to where the chain was pruned
STRUCK = "struck"  # says what rows hold since names were struck out of them
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
    """Say whether a chain is whole; `seq` is the first row that is not, when it is known."""

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
    return hmac.new(key, signed_text(row).encode("ascii"), hashlib.sha256).hexdigest()


def signed_text(row: Mapping[str, Any]) -> str:
    """Return a row's fields but for its hash as the one text that is signed."""
    values = [row[name] for name in FIELDS[:-1]]
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"))


def is_signed(key: bytes, row: Mapping[str, Any]) -> bool:
    """Tell whether a row's hash is that of its fields under this key."""
    return hmac.compare_digest(str(row["hash"]).encode(), signed(key, row).encode())


@dataclass
class ChainCheck:
    """Walk rows in their order and keep the first thing that is wrong.

    `struck` tells whether a row holds what a signed one says that it holds since it was struck.
    """

    key: bytes
    expected: tuple[Head, ...] = ()
    struck: Callable[[Mapping[str, Any]], bool] = lambda row: False
    rows: int = 0
    head: Head = field(default_factory=Head)
    _pruned: Head | None = None  # what the row before the first one must have been
    _confirmed: bool = False

    def walk(self, rows: Iterable[Mapping[str, Any]]) -> Verdict:
        """Return what was found; `expected` are rows known from elsewhere to be in the chain."""
        awaited = {head for head in self.expected if head.seq}
        for row in rows:
            if problem := self._problem(row):
                return Verdict(self.rows, self.head, problem, self._seq(row))
            self.rows += 1
            self.head = Head(row["seq"], row["hash"])
            if any(one.seq == self.head.seq and one != self.head for one in awaited):
                problem = "this is not the row that was once the last: rows were replaced"
                return Verdict(self.rows, self.head, problem, self.head.seq)
        return self._ended(max((one.seq for one in awaited), default=0))

    def _ended(self, awaited: int) -> Verdict:
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
        if not is_signed(self.key, row) and not self.struck(row):
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

    def _seq(self, row: Mapping[str, Any]) -> int:
        return row["seq"] if type(row["seq"]) is int else self.head.seq + 1
