"""Which version a question asks about, and how far evidence is from it (SPEC T4, T10)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from core.language.cues import cues, stopwords
from core.language.detect import detect_language
from core.passages import coverage_notes, deprecation_notes, parse_version
from core.types import Evidence
from retrievers.types import Searched

NEAR_RELEASES = 1  # minor releases between neighbouring versions at most

Distance = Literal["exact", "near", "far"]

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9.,])(?P<v>[vV]?)(?P<number>\d{1,8}(?:\.\d{1,8}){0,4}"
    r"(?:[-.]?(?:rc|alpha|beta|dev|post|a|b)\.?\d{1,4})?)(?![A-Za-z0-9%]|[.,]\d|\s?[%°])"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LAST_WORD = re.compile(r"([^\W\d_]{2,})[\s-]*$")
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")


def asked_versions(searched: Searched, evidence: Sequence[Evidence]) -> list[str]:
    """Return the versions that the question or else the caller's policy asks about.

    A number is a version when "v" or a word such as "version" stands by it or when evidence
    declares it; also when nothing that it could count follows and a preposition, or a name from
    the title or source of evidence with a version, leads to it. Without a dot the name must lead.
    """
    query = searched.query
    declared = [item for item in evidence if item.version]
    named = [
        match.group("number")
        for match in _NUMBER.finditer(query.text)
        if _is_version(query.text, match, query.language, declared)
    ]
    return named or list(filter(None, [query.auth.asked_version]))


def _is_version(
    text: str, match: re.Match[str], language: str | None, declared: Sequence[Evidence]
) -> bool:
    words = cues(language or detect_language(text))
    before, after = text[: match.start()], text[match.end() :]
    beside = rf"{words.alternatives('version')}\W{{0,2}}$"
    if match.group("v") or re.search(beside, before, re.IGNORECASE):
        return True
    if re.match(rf"\s?{words.alternatives('version')}", after, re.IGNORECASE):
        return True
    number, dotted = match.group("number"), "." in match.group("number")
    common = stopwords(words.language)
    last = _LAST_WORD.search(before)
    named = last is not None and last.group(1).casefold() in _named(declared) - common
    if any(version_distance(number, item.version) == "exact" for item in declared):
        return dotted or named
    led = re.search(rf"{words.alternatives('version_before')}\s*$", before, re.IGNORECASE)
    following = _NEXT_WORD.match(after)
    counts = following is not None and following.group(1).casefold() not in common
    return bool(declared) and dotted and not counts and (named or led is not None)


def _named(declared: Iterable[Evidence]) -> set[str]:
    """Return the words in titles and sources of evidence that declares a version."""
    texts = (f"{item.title} {item.source}" for item in declared)
    return {word.casefold() for text in texts for word in _WORD.findall(text)}


def version_distance(asked: str, declared: str) -> Distance | None:
    """Compare two versions by their release numbers; None when they cannot be compared.

    "2.1" and "2.1.3" are the same, since one is a part of the other. Neighbours share the major
    number and are at most NEAR_RELEASES minor ones apart (plain numbers: so many).
    """
    one, other = parse_version(asked), parse_version(declared)
    if one is None or other is None:
        return "exact" if asked.casefold() == declared.casefold() else None
    length = min(len(one.release), len(other.release))
    if one.epoch == other.epoch and one.release[:length] == other.release[:length]:
        return "exact"
    major = one.epoch == other.epoch and one.major == other.major
    if length == 1:
        return "near" if abs(one.major - other.major) <= NEAR_RELEASES else "far"
    return "near" if major and abs(one.minor - other.minor) <= NEAR_RELEASES else "far"


def nearest_version(asked: Sequence[str], declared: str) -> tuple[str, Distance | None]:
    """Return the version asked about that is nearest to a declared one, and how far it is."""
    order: list[Distance | None] = ["exact", "near", "far", None]
    pairs = [(one, version_distance(one, declared)) for one in asked]
    return min(pairs, key=lambda pair: order.index(pair[1]))


def version_notes(searched: Searched, evidence: Sequence[Evidence]) -> list[str]:
    """Warn of evidence of another version than the one asked for, and of deprecated documents.

    And where the best of it is of a module that the documents hardly explain.
    """
    notes: list[str] = []
    asked = asked_versions(searched, evidence)
    others = Counter(
        item.version
        for item in evidence
        if asked and item.version and nearest_version(asked, item.version)[1] != "exact"
    )
    if others:
        listed = ", ".join(f"{version} ({count})" for version, count in sorted(others.items()))
        notes.append(f"asked about version {', '.join(asked)}, but found version {listed}")
    return [*notes, *deprecation_notes(evidence), *coverage_notes(evidence[:1])]
