"""Versions of documents in order, and which documents are versions of the same one."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version

ANY, LATEST = "any", "latest"  # what a version policy may say in place of one version
DIGITS = 12  # longer numbers than dates written as one are no versions
_NUMBER = re.compile(r"\d+")
_NUMBERS = re.compile(r"\d+(?:[._-]\d+)*")


@lru_cache(maxsize=4096)
def version_order(version: str) -> str:
    """Return a text that sorts as versions do: 2.9 < 2.10, 2.0rc1 < 2.0; no version sorts first.

    What is no version by PEP 440 comes before all that are, its numbers compared as numbers.
    """
    try:
        one = Version(version.strip())
    except InvalidVersion:
        text = version.strip().casefold()
        return "0" + _NUMBER.sub(_padded, text) if text else ""
    numbers = list(one.release)
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    release = ".".join(f"{number:0{DIGITS}}" for number in numbers)
    early = f"{one.pre[0]}{one.pre[1]:0{DIGITS}}" if one.pre else "~"
    if one.dev is not None and not one.pre:
        early = ""  # before the first alpha
    late = f"{one.post:0{DIGITS}}" if one.post is not None else ""
    developed = "~" if one.dev is None else f"{one.dev:0{DIGITS}}"
    return f"1{one.epoch:04}!{release} {early} {late} {developed}"


def _padded(match: re.Match[str]) -> str:
    return match.group().zfill(DIGITS)


def document_family(title: str, source: str) -> str:
    """Return what all versions of a document share: its title and source without their numbers."""
    return _NUMBERS.sub("#", f"{title}\n{source}".casefold())
