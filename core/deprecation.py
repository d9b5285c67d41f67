"""What documents say of themselves that is not to be used any more (SPEC T10)."""

from __future__ import annotations

from collections.abc import Iterable

from core.types import Evidence

_RETIRED = frozenset({"deprecated", "obsolete", "archived", "retired", "superseded"})
_TRUE = frozenset({"true", "yes", "1"})
_PATH = " › "  # between the headings of a section


def deprecation_notes(evidence: Iterable[Evidence]) -> list[str]:
    """Warn of what is deprecated, each with its notice, which may name what to use instead."""
    retired = dict(_retired(item) for item in evidence if is_deprecated(item))
    named = (f"{name} ({notice})" if notice else name for name, notice in retired.items())
    return [f"deprecated: {', '.join(sorted(named))}"] if retired else []


def _retired(item: Evidence) -> tuple[str, str]:
    """Return what of a document is deprecated, a name in it or all, and what its notice says."""
    names, name = _names(item), item.section.rsplit(_PATH, 1)[-1]
    if name not in names:
        return item.source, str(item.metadata.get("deprecation", ""))
    notices = item.metadata.get("deprecations")
    listed = notices if isinstance(notices, list) else []
    place = names.index(name)
    return f"{name} in {item.source}", str(listed[place]) if place < len(listed) else ""


def _names(item: Evidence) -> list[str]:
    names = item.metadata.get("deprecated_names")
    return names if isinstance(names, list) else []


def is_deprecated(item: Evidence) -> bool:
    """Tell whether a document says so itself: `deprecated: true`, or a status of that meaning.

    Of a page with several names, one says so of some: the innermost heading is then such a name.
    """
    if item.section.rsplit(_PATH, 1)[-1] in _names(item):
        return True
    flag = str(item.metadata.get("deprecated", "")).strip().casefold()
    status = str(item.metadata.get("status", "")).strip().casefold()
    return flag in _TRUE or status in _RETIRED
