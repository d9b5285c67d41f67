"""Damage to files: what disks, networks, editors and people who mean harm do to them."""

from __future__ import annotations

import random
from pathlib import Path

MUTATIONS = ("flip", "truncate", "zero", "insert", "delete", "repeat", "splice", "numbers")
_NUMBERS = (b"0", b"-1", b"4294967295", b"99999999999999999999", b"2147483648")


def mutated(content: bytes, kind: str, draw: random.Random, other: Path) -> bytes:
    """Return a damaged copy of some content; a splice goes on with another file's."""
    if not content:
        return draw.randbytes(16)
    at = draw.randrange(len(content))
    size = min(len(content) - at, draw.choice((1, 8, 64, 512, 4096)))
    if kind == "flip":
        return _flipped(content, draw)
    if kind == "truncate":
        return content[:at]
    if kind == "zero":
        return content[:at] + bytes(size) + content[at + size :]
    if kind == "insert":
        return content[:at] + draw.randbytes(size) + content[at:]
    if kind == "delete":
        return content[:at] + content[at + size :]
    if kind == "repeat":
        return content[:at] + content[at : at + size] * draw.choice((2, 9, 99)) + content[at:]
    if kind == "splice":
        return content[:at] + other.read_bytes()[at:]
    return _renumbered(content, draw)


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 4, 32, 256))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _renumbered(content: bytes, draw: random.Random) -> bytes:
    """Change a number written in digits: a length, an offset, a count."""
    digits = [at for at, byte in enumerate(content[:200_000]) if 48 <= byte <= 57]
    if not digits:
        return _flipped(content, draw)
    at = draw.choice(digits)
    return content[:at] + draw.choice(_NUMBERS) + content[at + 1 :]
