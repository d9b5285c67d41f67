"""The same passage of a newer version, and modules that documents hardly explain."""

from __future__ import annotations

from core.passages import coverage_notes, newer_versions
from core.types import Evidence


def passage(name: str, version: str, section: str = "Winch", **metadata: object) -> Evidence:
    return Evidence(
        evidence_id=name, chunk_id=name, document_id=name, document_key=name, source=name,
        title="Kite", text=name, section=section, version=version, metadata=metadata,
    )  # fmt: skip


def test_the_newest_of_the_same_passage_is_found() -> None:
    found = [
        passage("a", "1.9"),
        passage("b", "1.10"),
        passage("c", "2.0rc1"),
        passage("sail", "1.0", "Sail"),
        passage("odd", "first"),
        passage("none", ""),
        passage("plane", "3.0", framework="Plane"),
    ]
    newer = newer_versions(found)
    assert {key: one.chunk_id for key, one in newer.items()} == {"a": "c", "b": "c"}


def test_a_module_with_far_fewer_names_than_most_is_thinly_covered() -> None:
    found = [
        passage("a", "", module="kite.air", module_names=2, usual_names=9.5),
        passage("b", "", module="kite.air", module_names=2, usual_names=9.5),
        passage("c", "", module="kite", module_names=3, usual_names=9.5),
        passage("small", "", module="rope", module_names=1, usual_names=2),
        passage("d", "", module="kite.sea"),
    ]
    assert coverage_notes(found) == [
        "thinly covered: the documents explain little of kite.air"
        " (2 of its names, 9.5 of most modules)"
    ]
    assert coverage_notes(found[2:]) == []
