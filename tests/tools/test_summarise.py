"""The tool that reads a whole: by title or file, the newest version, and only what may be seen."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.metadata import LISTED_CHUNKS, ROW
from models.vectors import central
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store
from tools.toolbox import Toolbox
from tools.types import ToolResult

ANN = AuthContext(tenant="acme", user="ann")
Run = Callable[..., ToolResult]


@pytest.fixture
def run(
    index: Callable[..., Index], store: Store, collection: Collection, embedder: FakeEmbedder
) -> Run:
    rows = [
        document(collection, "a", "Boats land.", "Boats sail.", title="The Harbour", source="a.md"),
        document(collection, "g1", "Old.", title="Guide", source="g-1.md", version="1.9"),
        document(collection, "g2", "New.", title="Guide", source="g-2.md", version="1.10"),
        document(collection, "s", "Hidden.", title="Secret", source="s.md", acl=["user:bob"]),
    ]
    write(store, collection, rows, embedder)

    def call(name: str = "", near: bool = True, auth: AuthContext = ANN) -> ToolResult:
        arguments = {"document": name, "near": near, "language": "en"}
        return Toolbox(index()).run("summarise", arguments, auth, time.monotonic() + 60)

    return call


def texts(result: ToolResult) -> list[str]:
    return [item.text for item in result.evidence if item.kind != ROW]


@pytest.mark.parametrize("name", ["The Harbour", "the harbour", "a.md", "harbour", "The Harbor"])
def test_a_document_is_found_by_title_and_file(run: Run, name: str) -> None:
    found = run(name)
    assert texts(found) == ["Boats land.", "Boats sail."]
    assert len(found.evidence[0].metadata[LISTED_CHUNKS]) == 2


def test_the_newest_version_counts_unless_a_file_is_named(run: Run) -> None:
    assert texts(run("Guide")) == ["New."]
    assert texts(run("g-1.md")) == ["Old."]


def test_what_a_caller_may_not_see_is_neither_found_nor_offered_nor_counted(run: Run) -> None:
    assert run("Secret").evidence == []
    assert run().evidence[0].text == "3 documents."
    bob = AuthContext(tenant="acme", user="bob")
    assert texts(run("Secret", auth=bob)) == ["Hidden."]


def test_of_an_absent_document_similar_names_are_found_where_wanted(run: Run) -> None:
    found = run("The Harbour of Odessa at Night")
    assert [item.title for item in found.evidence] == ["The Harbour"]
    assert found.notes == ["no document is called “The Harbour of Odessa at Night”"]
    assert run("The Harbour of Odessa at Night", near=False).evidence == []


def test_central_vectors_stand_for_all_and_do_not_repeat_each_other() -> None:
    import numpy as np

    rows = np.array([[1, 0], [1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
    assert central(rows, 2) == [2, 0]
    assert central(rows, 3, (0,)) == [0, 3, 2]
    assert central(np.zeros((3, 1), dtype=np.float32), 2) == [0, 1]


GILEAD = (
    ("Chapter 1. Arrival", "The ship brought forty families to the northern harbour in spring."),
    ("Chapter 2. Winter", "The first winter killed a third of the settlers of the harbour town."),
    ("Notes", "The author took the numbers of this book from the letters of the governor."),
)


def sections(number: int) -> list[list[str]]:
    from tools.naming import find_chapter

    return find_chapter([(1, f"c{n}", title) for n, (title, _) in enumerate(GILEAD)], number)


def test_a_chapter_is_found_by_its_number_and_by_its_place_where_there_are_no_numbers() -> None:
    from tools.naming import find_chapter, find_section

    assert sections(2) == [["c1"]]
    assert sections(3) == []
    rows = [(1, f"c{n}", f"Gilead › {title}") for n, title in enumerate(("Arrival", "Winter"))]
    assert find_chapter(rows, 2) == [["c1"]]
    assert find_chapter([*rows, (2, "d", "Other")], 2) == []
    assert find_section(rows, "the winter", {}) == [["c1"]]
    assert find_section(rows, "summer", {}) == []


def test_an_overview_tells_the_groups_of_documents_and_quotes_whole_sentences(
    index: Callable[..., Index], store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    from core.metadata import EXTRACTS, LABELS

    rows = [
        document(collection, f"d{n}", text, title=title, source=f"{n}.md")
        for n, (title, text) in enumerate(GILEAD)
    ]
    write(store, collection, rows, embedder)
    found = Toolbox(index()).run("summarise", {"language": "en"}, ANN, time.monotonic() + 60)
    row, *passages = found.evidence
    quoted = {item.chunk_id: item.text for item in passages}
    assert len(row.metadata[EXTRACTS]) == 3
    for key, start, end in row.metadata[EXTRACTS]:
        assert quoted[key][start:end] in {text for _, text in GILEAD}
    assert set(row.metadata[LABELS].values()) == {title for title, _ in GILEAD}
