"""A library: repeats are found once, texts belong to books, what is left out is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import query
from fakes import FakeEmbedder, Shelf
from pymarc import Field, Indicators, Record, Subfield

from core.auth import AuthContext
from core.profile import Profile
from core.settings import Settings
from ingest.summary import Summary
from retrievers.hybrid import hybrid_search
from retrievers.types import Index, Query
from stores.store import Store

LIBRARY = {"drop_repeats": True, "book_links": True}
SAME = "The harbour lights of the northern coast, described for sailors and children. " * 5
LONG = "A walrus sleeps in the sea, and nobody wakes it before noon. " * 4
Ingest = Callable[..., Summary]
ACME = AuthContext(tenant="acme")


@pytest.fixture
def ingest(ingest: Ingest, tmp_path: Path) -> Ingest:
    """Return a function that writes files and ingests their folder."""

    def run(
        files: Mapping[str, str | list[dict[str, Any]] | None],
        *,
        prune: bool = True,
        folder: str = "library",
        **values: Any,
    ) -> Summary:
        place = tmp_path / folder
        for name, content in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            elif isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                lines = [json.dumps(row, ensure_ascii=False) for row in content]
                path.write_text("\n".join(lines), encoding="utf-8")
        return ingest(place, prune=prune, **{**LIBRARY, **values})

    return run


def book(name: str, annotation: str = "", **fields: Any) -> dict[str, Any]:
    return {"_id": name, "title": f"Title of {name}", **fields, "annotation": annotation or LONG}


def found(
    shelf: Shelf, text: str, auth: AuthContext = ACME, channel: str = "text", **query_values: Any
) -> list[str]:
    """Return the documents that a search finds, by the ids of their chunks' documents."""
    settings = Settings(**{"data": shelf.store.folder, "stage_near_duplicates": False})
    index = Index(shelf.store, shelf.collection, FakeEmbedder(), settings)
    asked = Query(text, auth, **query_values)
    hits = hybrid_search(index, asked, [channel], {channel: 50}, 50, choose=False)
    return sorted(item.document_id for item in hits.evidence)


def links(store: Store) -> dict[str, tuple[str | None, str]]:
    rows = query(
        store.folder,
        """SELECT t.document_id, b.document_id, rule FROM book_texts
           JOIN documents t ON t.id = text LEFT JOIN documents b ON b.id = book""",
    )
    return {row[0]: (row[1], row[2]) for row in rows}


@pytest.mark.parametrize("channel", ["text", "vector"])
def test_a_repeated_annotation_is_found_once(shelf: Shelf, ingest: Ingest, channel: str) -> None:
    rows = [book("b2", SAME), book("b1", SAME.upper()), book("b3", "Owls hunt at night. " * 12)]
    summary = ingest({"books.jsonl": rows})
    assert any(
        note.startswith("1 annotations are those of other records") for note in summary.notes
    )
    hits = found(shelf, "harbour lights coast", channel=channel, kinds=["annotation"])
    assert hits.count("b1") == 1 and "b2" not in hits
    ingest({"books.jsonl": rows[:1] + rows[2:]})
    hits = found(shelf, "harbour lights coast", channel=channel, kinds=["annotation"])
    assert hits.count("b2") == 1


def test_the_first_is_the_same_whatever_the_order_of_ingests(shelf: Shelf, ingest: Ingest) -> None:
    files = {name: [book(name, SAME)] for name in ("b1", "b2", "b3")}
    for order in (["b1", "b2", "b3"], ["b3", "b2", "b1"], ["b2", "b3", "b1"]):
        for name in order:
            ingest({f"{name}.jsonl": files[name]}, prune=False)
        assert found(shelf, "harbour", kinds=["annotation"]) == ["b1"], order
        ingest({f"{name}.jsonl": None for name in files} | {"other.jsonl": [book("z")]})
        assert found(shelf, "harbour") == []


def test_who_sees_only_the_second_finds_it(shelf: Shelf, ingest: Ingest) -> None:
    page = "# Rules\n\nThe boilerplate of every volume is printed here once more.\n"
    ingest({"a/one.md": page}, acl=["staff"], folder="first", prune=False)
    ingest({"b/two.md": page}, folder="second", prune=False)
    ingest({"c/three.md": page}, folder="third", prune=False)
    assert found(shelf, "boilerplate") == ["b/two.md"]
    staff = AuthContext(tenant="acme", roles=frozenset({"staff"}))
    assert found(shelf, "boilerplate", staff) == ["a/one.md"]
    confined = AuthContext(tenant="acme", allowed_sources=("c/*",))
    assert found(shelf, "boilerplate", confined) == ["c/three.md"]
    assert found(shelf, "boilerplate", staff, sources=["b/*"]) == ["b/two.md"]


def test_repeats_stay_where_they_are_not_asked_for(shelf: Shelf, ingest: Ingest) -> None:
    files: dict[str, Any] = {"books.jsonl": [book("b1", SAME), book("b2", SAME)]}
    ingest(files, drop_repeats=False)
    assert found(shelf, "harbour", kinds=["annotation"]) == ["b1", "b2"]
    ingest(files)
    assert found(shelf, "harbour", kinds=["annotation"]) == ["b1"]
    ingest(files, drop_repeats=False)
    assert found(shelf, "harbour", kinds=["annotation"]) == ["b1", "b2"]


def test_a_search_can_be_confined_to_kinds(shelf: Shelf, ingest: Ingest) -> None:
    ingest({"b.jsonl": [book("b1", SAME)], "t.txt": f"Harbour\n\n{LONG} The harbour is cold.\n"})
    assert found(shelf, "harbour", kinds=["annotation"]) == ["b1"]
    assert found(shelf, "harbour", kinds=["text"]) == ["t.txt"]
    assert found(shelf, "harbour", kinds=["code"]) == []
    with pytest.raises(ValueError, match="kinds narrow a search"):
        tool = {"base": "query_records", "purpose": "Find records.", "kinds": ["record"]}
        Profile.model_validate({"name": "p", "tools": [{"name": "find_it", **tool}]})


def test_texts_are_linked_by_the_surest_rule(ingest: Ingest, store: Store) -> None:
    records = [
        book("b1", file="texts/one.txt"),
        book("b2"),
        book("b3", isbn="0-306-40615-2"),
        book("b4", authors=["Abbott, Edwin A."]),
        book("b5"),
    ]
    front = '---\ntitle: "Title of b4"\nauthors: [Edwin A. Abbott]\n---\n# Title of b4\n\nFlat.\n'
    ingest(
        {
            "books.jsonl": records,
            "texts/one.txt": LONG,
            "texts/b2.txt": LONG + " Two.",
            "scans/9780306406157.txt": LONG + " Three.",
            "texts/flat.md": front,
            "guide.txt": LONG + " Guide.",
        }
    )
    assert links(store) == {
        "texts/one.txt": ("b1", "1"),
        "texts/b2.txt": ("b2", "2"),
        "scans/9780306406157.txt": ("b3", "3"),
        "texts/flat.md": ("b4", "4"),
    }


def test_a_marc_record_names_its_file(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    record = Record(force_utf8=True)
    for tag, code, value in (
        ("020", "a", "978-0-306-40615-7"),
        ("245", "a", "Candles and light"),
        ("520", "a", LONG),
        ("856", "u", "texts/light.txt"),
    ):
        subfields = [Subfield(code, value)]
        record.add_field(Field(tag=tag, indicators=Indicators(" ", " "), subfields=subfields))
    record.add_field(Field(tag="001", data="m1"))
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "books.mrc").write_bytes(record.as_marc())
    ingest({"texts/light.txt": LONG + " One.", "9780306406157.txt": LONG + " Two."})
    assert links(store) == {"texts/light.txt": ("m1", "1"), "9780306406157.txt": ("m1", "3")}


def test_what_fits_several_books_belongs_to_none(ingest: Ingest, store: Store) -> None:
    records = [book("b1", file="one.txt"), book("b2", file="one.txt"), book("b3", file="two.txt")]
    texts = {"a/one.txt": LONG, "a/two.txt": LONG + " A.", "b/two.txt": LONG + " B."}
    ingest({"books.jsonl": records, **texts})
    assert links(store) == {"a/one.txt": (None, "1")}
    ingest({"books.jsonl": records[1:], "b/two.txt": None})
    assert links(store) == {"a/one.txt": ("b2", "1"), "a/two.txt": ("b3", "1")}


def test_links_follow_what_is_changed_renamed_and_removed(ingest: Ingest, store: Store) -> None:
    ingest({"books.jsonl": [book("b1"), book("b2")], "b1.txt": LONG})
    assert links(store) == {"b1.txt": ("b1", "2")}
    ingest({"b1.txt": None, "b2.txt": LONG})
    assert links(store) == {"b2.txt": ("b2", "2")}
    ingest({"books.jsonl": [book("b1")]})
    assert links(store) == {}
    version = store.catalogue.index_version()
    ingest({})
    assert store.catalogue.index_version() == version
    ingest({"books.jsonl": [book("b1"), book("b2")]}, book_links=False)
    assert links(store) == {}


def test_evidence_of_a_full_text_names_its_book_to_those_who_may_see_it(
    shelf: Shelf, ingest: Ingest
) -> None:
    row = book("b1", authors=["Ann Wick"], year=1861, file="one.txt")
    ingest({"books.jsonl": [row]}, acl=["staff"], folder="records", prune=False)
    ingest({"one.txt": LONG}, folder="texts", prune=False)
    chunk = query(shelf.store.folder, "SELECT chunk_id FROM chunks WHERE kind = 'text'")[0][0]
    staff = AuthContext(tenant="acme", roles=frozenset({"staff"}))
    seen = shelf.catalogue.evidence(staff, shelf.id, [chunk])[chunk]
    assert seen.metadata["book"] == {
        "document_id": "b1", "title": "Title of b1", "source": "books.jsonl#b1",
        "authors": ["Ann Wick"], "year": 1861,
    }  # fmt: skip
    assert seen.work["title"] == "Title of b1"
    hidden = shelf.catalogue.evidence(ACME, shelf.id, [chunk])[chunk]
    assert "book" not in hidden.metadata
    record = query(shelf.store.folder, "SELECT chunk_id FROM chunks WHERE kind = 'record'")[0][0]
    assert [e.chunk_id for e in shelf.catalogue.full_texts(staff, shelf.id, record)] == [chunk]
    assert shelf.catalogue.full_texts(ACME, shelf.id, record) == []


def test_short_texts_are_left_out_and_told_of_every_time(shelf: Shelf, ingest: Ingest) -> None:
    files: dict[str, Any] = {"short.txt": "Too short.\n", "long.txt": LONG, "b.jsonl": [book("b")]}
    for _ in range(2):
        summary = ingest(files, min_text_words=20)
        assert [left.path for left in summary.left_out] == ["short.txt"]
        (row,) = shelf.intake.list_left_out(shelf.collection)
        assert (row.file, row.document_id) == ("short.txt", "short.txt") and "2 words" in row.reason
    summary = ingest({"short.txt": None, "brief.txt": "Too short.\n"}, min_text_words=20)
    assert [left.path for left in summary.left_out] == ["brief.txt"]
    assert [row.file for row in shelf.intake.list_left_out(shelf.collection)] == ["brief.txt"]
    ingest({"brief.txt": LONG}, min_text_words=20)
    assert list(shelf.intake.list_left_out(shelf.collection)) == []
    ingest({"brief.txt": "Short."}, min_text_words=20)
    ingest({"brief.txt": None}, min_text_words=20)
    assert list(shelf.intake.list_left_out(shelf.collection)) == []


def test_links_and_marks_are_taken_out_of_prose_alone(ingest: Ingest, store: Store) -> None:
    row = book("b", f"**Fine** {LONG} See https://lib.example/b.", url="https://lib.example/b")
    ingest({"b.jsonl": [row]}, drop_links=True)
    texts = dict(query(store.folder, "SELECT kind, text FROM chunks"))
    assert texts["annotation"].startswith("Fine A walrus") and texts["annotation"].endswith("See.")
    assert "https://lib.example/b" in texts["record"]
