"""What a passage is by the names above it: deprecated, of an older version, of a kind asked for."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from packaging.version import InvalidVersion, Version

from core.metadata import OF_PASSAGES, Filter, entries_of
from core.types import Evidence

# Types of names that a whole page is about.
MODULES = frozenset(("module", "package", "namespace", "library", "framework"))
_RETIRED = frozenset({"deprecated", "obsolete", "archived", "retired", "superseded"})
IN_PART = "in part"  # deprecated: some of the names of a page
_TRUE = frozenset({"true", "yes", "1"})
# Share of the names of most modules, up to which one is thinly covered: 12 of the 98 of JAX.
THIN = 0.25
_WILDCARD = re.compile(r"\.[xX*]$")
PATH = " › "  # between the headings of a section


def deprecation_notes(evidence: Iterable[Evidence]) -> list[str]:
    """Warn of what is deprecated, each with its notice, which may name what to use instead."""
    retired = dict(_retired(item) for item in evidence if is_deprecated(item))
    named = (f"{name} ({notice})" if notice else name for name, notice in retired.items())
    return [f"deprecated: {', '.join(sorted(named))}"] if retired else []


def newer_versions(evidence: Iterable[Evidence]) -> dict[str, Evidence]:
    """Return, by chunk id, the same passage of the newest version, where its own is older.

    It is the same by its framework and headings. Versions that cannot be compared give nothing.
    """
    found: defaultdict[tuple[str, str, str], list[tuple[Version, Evidence]]] = defaultdict(list)
    for item in evidence:
        version = parse_version(item.version)
        if version is not None:
            place = (str(item.metadata.get("framework", "")), item.title, item.section)
            found[place].append((version, item))
    newer = {}
    for same in found.values():
        newest, best = max(same, key=lambda pair: pair[0])
        newer.update({item.chunk_id: best for version, item in same if version < newest})
    return newer


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version | None:
    """Return a version that can be compared, "2.x" as 2; None for what is none."""
    try:
        return Version(_WILDCARD.sub("", text.strip()))
    except InvalidVersion:
        return None


def coverage_notes(evidence: Iterable[Evidence]) -> list[str]:
    """Warn of modules of which documentation explains far fewer names than of most others."""
    named = {}
    for item in evidence:
        facts = item.metadata
        count, usual = facts.get("module_names"), facts.get("usual_names")
        if isinstance(count, int) and isinstance(usual, int | float) and count <= THIN * usual:
            named[str(facts.get("module"))] = f"{count} of its names, {usual:g} of most modules"
    shown = ", ".join(f"{name} ({counts})" for name, counts in sorted(named.items()))
    return [f"thinly covered: the documents explain little of {shown}"] if named else []


def _retired(item: Evidence) -> tuple[str, str]:
    """Return what of a document is deprecated, a name in it or all, and what its notice says."""
    named = next((one for one in _headings(item) if one.get("deprecated")), None)
    if named is None:
        return item.source, str(item.metadata.get("deprecation", ""))
    return f"{named['name']} in {item.source}", str(named["deprecated"])


def _headings(item: Evidence) -> list[dict[str, Any]]:
    """Return what the page says of the headings above a passage, of the innermost first.

    Below the name of an API what is said of sections around it does not count.
    """
    known = {one.get("name"): one for one in reversed(entries_of(item.metadata))}
    found = [known[name] for name in reversed(item.section.split(PATH)) if name in known]
    return [one for one in found if one.get("type")] or found


def is_deprecated(item: Evidence) -> bool:
    """Tell whether a document says so itself: `deprecated: true`, or a status of that meaning.

    Of a page with several names, one says so of some: one of these heads the passage.
    """
    flag = str(item.metadata.get("deprecated", "")).strip().casefold()
    status = str(item.metadata.get("status", "")).strip().casefold()
    named = any(one.get("deprecated") for one in _headings(item))
    return named or flag in _TRUE or status in _RETIRED


def passage_meets(item: Evidence, filters: Iterable[Filter]) -> bool:
    """Tell whether a passage meets what its document meets somewhere: type, since, deprecated.

    Each is that of the names above it, or of the page where they have none.
    """
    asked = [one for one in filters if one.name in OF_PASSAGES]
    if not asked:
        return True
    above = _headings(item)
    types = [one["type"] for one in above if one.get("type")]
    page = (one for one in entries_of(item.metadata) if not one.get("anchor"))
    whole = [one["type"] for one in page if one.get("type")]  # such as the guide of its sections
    types += [one for one in whole if not types or one not in MODULES]
    others = {one.get("since") for one in entries_of(item.metadata)}
    stated = item.metadata.get("since")
    listed = stated if isinstance(stated, list) else [stated]
    since = next((one["since"] for one in above if one.get("since")), None)
    since = since or [one for one in listed if one not in others]
    own = {"type": types or item.metadata.get("type"), "since": since,
           "deprecated": is_deprecated(item) or None}  # fmt: skip

    def meets(one: Filter, metadata: Mapping[str, Any]) -> bool:
        known = {"source": item.source, "metadata": json.dumps(metadata)}
        return one.meets(*(known.get(column, "") for column in one.columns))

    # What a document does not meet by its metadata it meets by its format.
    return all(meets(one, own) or not meets(one, item.metadata) for one in asked)
