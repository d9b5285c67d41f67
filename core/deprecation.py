"""What documents say of themselves that is not to be used any more (SPEC T10)."""

from __future__ import annotations

from collections.abc import Iterable

from core.types import Evidence

_RETIRED = frozenset({"deprecated", "obsolete", "archived", "retired", "superseded"})
_TRUE = frozenset({"true", "yes", "1"})
_PATH = " › "  # between the headings of a section


def deprecation_notes(evidence: Iterable[Evidence]) -> list[str]:
    """Warn of deprecated documents, each with its notice, which may name what to use instead."""
    retired = {
        item.source: str(item.metadata.get("deprecation", ""))
        for item in evidence
        if is_deprecated(item)
    }
    named = (f"{source} ({notice})" if notice else source for source, notice in retired.items())
    return [f"deprecated: {', '.join(sorted(named))}"] if retired else []


def is_deprecated(item: Evidence) -> bool:
    """Tell whether a document says so itself: `deprecated: true`, or a status of that meaning.

    Of a page with several names, one says so of some: the innermost heading is then such a name.
    """
    names = item.metadata.get("deprecated_names")
    if isinstance(names, list) and item.section.rsplit(_PATH, 1)[-1] in names:
        return True
    flag = str(item.metadata.get("deprecated", "")).strip().casefold()
    status = str(item.metadata.get("status", "")).strip().casefold()
    return flag in _TRUE or status in _RETIRED
