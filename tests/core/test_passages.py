"""What of a page is deprecated, and which of its passages meet a filter."""

from __future__ import annotations

import pytest

from core.metadata import parse_filters
from core.passages import deprecation_notes, is_deprecated, passage_meets
from core.types import Evidence

ENTRIES = [
    {"name": "heron", "type": "module"},
    {"name": "Old ways", "deprecated": "Gone since 3.0."},
    {"name": "heron.pile", "type": "function", "anchor": "p", "deprecated": "Use heron.stack."},
    {"name": "heron.stack", "type": "function", "anchor": "s", "since": "2.2"},
    {"name": "heron.Shelf", "type": "class", "anchor": "c"},
    {"name": "heron.Shelf.sort", "type": "method", "anchor": "m", "since": "3.1"},
]
TYPES = ["module", "function", "class", "method"]


def passage(section: str, **metadata: object) -> Evidence:
    return Evidence(
        evidence_id=section, chunk_id=section, document_id="d", document_key="d",
        source="shelf.html", title="Shelves", text="Text.", section=section,
        metadata={"type": TYPES, "since": ["2.2", "3.1"], "entries": ENTRIES, **metadata},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("section", "deprecated"),
    [
        ("Shelves", False),
        ("Shelves › heron.stack", False),
        ("Shelves › heron.pile", True),
        ("Shelves › heron.pile › Notes", True),
        ("Shelves › Old ways", True),
        ("Shelves › Old ways › heron.stack", False),
    ],
)
def test_only_what_a_notice_is_about_is_deprecated(section: str, deprecated: bool) -> None:
    assert is_deprecated(passage(section)) is deprecated
    assert is_deprecated(passage(section, deprecated=True))


def test_a_warning_names_what_is_deprecated_and_what_its_notice_says() -> None:
    found = [passage("Shelves › heron.pile"), passage("Shelves › heron.stack")]
    assert deprecation_notes(found) == ["deprecated: heron.pile in shelf.html (Use heron.stack.)"]


@pytest.mark.parametrize(
    ("where", "sections"),
    [
        ("type=function", ["heron.stack", "heron.pile"]),
        ("type=class", ["heron.Shelf", "heron.Shelf › heron.Shelf.sort"]),
        ("type=method", ["heron.Shelf › heron.Shelf.sort"]),
        ("type=module", ["Aim"]),
        ("type=html", ["Aim", "heron.stack", "heron.pile", "heron.Shelf",
                       "heron.Shelf › heron.Shelf.sort"]),
        ("since>=3", ["heron.Shelf › heron.Shelf.sort"]),
        ("since=2.2", ["heron.stack"]),
        ("deprecated=true", ["heron.pile"]),
        ("deprecated!=true", ["Aim", "heron.stack", "heron.Shelf",
                              "heron.Shelf › heron.Shelf.sort"]),
        ("language=en", ["Aim", "heron.stack", "heron.pile", "heron.Shelf",
                         "heron.Shelf › heron.Shelf.sort"]),
    ],
)  # fmt: skip
def test_a_filter_is_of_the_name_that_a_passage_is_about(where: str, sections: list[str]) -> None:
    every = ["Aim", "heron.stack", "heron.pile", "heron.Shelf", "heron.Shelf › heron.Shelf.sort"]
    filters = parse_filters([where])
    met = [one for one in every if passage_meets(passage(f"Shelves › {one}"), filters)]
    assert met == sections


def test_the_document_of_a_name_meets_its_filter() -> None:
    text = '{"deprecated": "in part", "entries": [{"name": "b", "deprecated": "Use a."}]}'
    for where, met in (("deprecated=true", True), ("deprecated!=true", True)):
        assert parse_filters([where])[0].meets(text) is met, where
