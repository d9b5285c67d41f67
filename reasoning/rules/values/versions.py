"""Versions and values of which documents hold different ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from core.language.cues import cues
from core.passages import coverage_notes, deprecation_notes, newer_versions
from core.types import Evidence, Understanding

DOTTED = re.compile(r"(?<![\w.,/$€£])v?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\w%]|[.,]\d)")


def versions_in(text: str, language: str) -> list[str]:
    """Return the versions that a text names: dotted numbers, and those beside "version"."""
    named = cues(language).alternatives("version")
    beside = re.findall(rf"{named}\s?(\d{{1,4}})(?![\d.])", text, re.IGNORECASE)
    return [*DOTTED.findall(text), *beside]


def frameworks_named(text: str, evidence: Iterable[Evidence]) -> frozenset[str]:
    """Return the frameworks of evidence that a text names, in small letters."""
    known = {str(item.metadata.get("framework") or "").casefold() for item in evidence} - {""}
    return frozenset(
        one for one in known if re.search(rf"(?<!\w){re.escape(one)}(?![\w.])", text.casefold())
    )


def is_other_framework(named: Collection[str], item: Evidence) -> bool:
    """Tell whether a question names frameworks, and evidence is of another one."""
    own = str(item.metadata.get("framework") or "").casefold()
    return bool(named and own) and own not in named


def without_edition(text: str, language: str, evidence: Sequence[Evidence]) -> str:
    """Take out the framework and the version that evidence is of: no passage need say them.

    "How do I open a stream in Zephyr 1.4?" asks how one opens a stream.
    """
    own = [re.escape(one) for one in frameworks_named(text, evidence)]
    numbers = [
        one
        for one in versions_in(text, language)
        if any(item.version and not is_other_version(one, language, item) for item in evidence)
    ]
    version, name = _written(numbers, language), rf"(?<!\w)(?:{'|'.join(own)})(?![\w.]\w)"
    for one in ([rf"{name}\s*{version}"] if own and numbers else []) + (
        [version] if numbers else []
    ) + ([name] if own else []):  # fmt: skip
        text = _removed(text, language, one)
    return text


def without_versions(text: str, language: str) -> str:
    """Take out the versions that a text names."""
    numbers = versions_in(text, language)
    return _removed(text, language, _written(numbers, language)) if numbers else text


def _written(numbers: Sequence[str], language: str) -> str:
    one_of = "|".join(map(re.escape, numbers))
    return rf"(?:{cues(language).alternatives('version')}\s*)?v?(?:{one_of})(?![\w.]\w)"


def _removed(text: str, language: str, pattern: str) -> str:
    """Take a pattern out of a text with the preposition before it."""
    before = rf"(?:{cues(language).alternatives('version_before')}\s+)?"
    text = re.sub(f"{before}{pattern}", " ", text, flags=re.IGNORECASE)
    return " ".join(re.sub(r"\s+(?=[?.!,])", "", text).split())


def is_other_version(question: str, language: str, item: Evidence) -> bool:
    """Tell whether a question names a version, and evidence is of another and does not name it."""
    versions = [item.version] if item.version else versions_in(item.title, item.language)
    asked = versions_in(question, language) if versions else []
    text = f"{item.text} {item.section}"
    return bool(asked) and not any(
        f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") or one in text
        for one in asked
        for other in versions
    )


def version_warnings(
    query: Understanding, evidence: Sequence[Evidence], found: Sequence[Evidence] = ()
) -> list[str]:
    """Warn of evidence that is deprecated, of another version than asked, or of a thin module.

    What else was `found` may be the same passage of a newer version, which is named where the
    question names none.
    """
    named = any(versions_in(query.question, query.language))
    above = {} if named else newer_versions(found)
    newer = [above[item.chunk_id] for item in evidence if item.chunk_id in above]
    others = sorted(
        {
            item.version
            for item in evidence
            if item.version and is_other_version(query.question, query.language, item)
        }
    )
    notes = deprecation_notes([*evidence, *newer])
    if newer:
        listed = ", ".join(dict.fromkeys(one.version for one in newer))
        notes.append(f"a newer version of what is cited is there: {listed}")
    if others:
        asked = ", ".join(versions_in(query.question, query.language))
        notes.append(f"asked about version {asked}, but found version {', '.join(others)}")
    return [*notes, *coverage_notes(evidence)]
