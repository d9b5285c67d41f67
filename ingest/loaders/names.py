"""Names and headings that a page explains, and what it says of each, as its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from core.passages import IN_PART, MODULES

Entry = dict[str, str]  # name, and where known type, anchor, since, deprecated (its notice)

MOST_ENTRIES = 300  # names that the metadata of a page list; chosen, not measured
PAGE = ""  # stands for the page itself among its names
_MOST_NOTICE = 300  # characters of a notice; chosen, not measured
_SINCE = re.compile(r"(?<![\w.])v?(\d[\w.]*\w|\d)")
_DOTTED = re.compile(r"[\w.]+\.\w+(?:\(\))?")
# What Sphinx writes for its directives.
VERSIONED = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}


def version_note(directive: str, version: str, text: str) -> str:
    """Return what a page shows for a directive that says when something came, changed or goes."""
    lead = VERSIONED[directive]
    lead = f"{lead} {version}" if version else lead.split()[0]
    return f"{lead}: {text}" if text else f"{lead}."


class PageNames:
    """Gather the names of one page, in their order."""

    def __init__(self) -> None:
        self._facts: dict[str, Entry] = {}

    def __contains__(self, name: str) -> bool:
        return self._facts.get(name, {}).get("type", "module") not in MODULES

    def mark(self, name: str, **facts: str) -> None:
        """Add what is known of a name; what was known before stays."""
        known = self._facts.setdefault(name, {})
        for key, value in facts.items():
            if value:
                known.setdefault(key, value)

    def note(self, name: str, directive: str, text: str) -> None:
        """Add what a page says of the versions of a name, or of itself under the name PAGE."""
        version = _SINCE.search(text)
        if directive == "versionadded" and version:
            self.mark(name, since=version[1])
        elif directive == "deprecated":
            self.mark(name, deprecated=" ".join(text.split())[:_MOST_NOTICE])

    def metadata(self) -> dict[str, Any]:
        """Return type, module, entries, since, deprecated and deprecation of the page.

        Types and versions are those of all its names; `deprecated` is true where the page is.
        """
        entries = [{"name": name, **facts} for name, facts in self._facts.items() if name and facts]
        own = self._facts.get(PAGE, {})
        types = dict.fromkeys(one["type"] for one in entries if "type" in one)
        since = dict.fromkeys(one["since"] for one in (own, *entries) if "since" in one)
        partly = any("deprecated" in one for one in entries)
        found: dict[str, Any] = {
            "type": [*types],
            "module": module_of("", entries) if types else "",
            "entries": bounded(entries),
            "since": [*since],
            "deprecated": IN_PART if partly else "",
        }
        if notice := own.get("deprecated"):
            found |= {"deprecated": True, "deprecation": notice}
        return {name: value for name, value in found.items() if value}


def bounded(entries: Iterable[Entry]) -> list[Entry]:
    """Return as many entries as metadata list, first those of which the page says most."""
    listed = list(entries)
    if len(listed) > MOST_ENTRIES:
        listed.sort(key=lambda one: -len(one))
    return listed[:MOST_ENTRIES]


def module_of(title: str, entries: Iterable[Mapping[str, str]]) -> str:
    """Return the module of a page: one that it explains, or the one around its first name."""
    listed = list(entries)
    for entry in listed:
        if entry.get("type") in MODULES:
            return entry["name"]
    names = [entry["name"] for entry in listed if entry.get("type")] or [title]
    dotted = next((name for name in names if _DOTTED.fullmatch(name)), "")
    return dotted.rpartition(".")[0]
