"""Ids, hashes, language and fields of a document's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.language.scan import estimate_tokens
from core.profile import Profile
from core.settings import Settings
from ingest.chunkers.chunkers import Chunkers
from ingest.enrich import embedded_text, enrich
from ingest.types import Block, ParsedDocument
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow, digest

BOOKS = Collection(id=1, tenant="acme", name="books", profile=Profile(name="default"), secret="s")


def row(
    collection: Collection = BOOKS,
    acl: frozenset[str] = frozenset(),
    context: str = "",
    **given: Any,
) -> DocumentRow:
    values: dict[str, Any] = {
        "document_id": "a.md",
        "source": "a.md",
        "title": "Herons",
        "format": "markdown",
        "blocks": [Block(text="A heron fishes in the shallow water of the river.")],
    }
    document = ParsedDocument(**{**values, **given})
    chunkers = Chunkers(Settings(data=Path("unused"), chunk_size=400, chunk_overlap=50))
    return enrich(document, collection, "a.md", chunkers=chunkers, acl=acl, context=context)


def test_equal_input_gives_equal_rows() -> None:
    assert row() == row()


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Storks"},
        {"blocks": [Block(text="A stork stands.")]},
        {"metadata": {"authors": ["Ann"]}},
        {"fields": {"year": 1}},
        {"acl": frozenset({"editor"})},
        {"context": "← Storks stand."},
    ],
)
def test_whatever_is_stored_changes_the_hash(change: dict[str, Any]) -> None:
    assert row(**change).content_hash != row().content_hash
    assert row(**change).key == row().key


def test_tenant_collection_and_version_make_other_chunk_ids() -> None:
    ids = {
        found.chunks[0].chunk_id
        for found in (
            row(),
            row(Collection(1, "zoo", "books", BOOKS.profile, "s")),
            row(Collection(1, "acme", "notes", BOOKS.profile, "s")),
            row(metadata={"version": "1"}),
            row(metadata={"version": "2"}),
        )
    }
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("declared", "language"),
    [("de", "de"), ("DE-at", "de"), ("pt_BR", "pt"), ("python", "en"), ("", "en"), (None, "en")],
)
def test_a_declared_language_wins_when_it_is_one(declared: object, language: str) -> None:
    assert row(metadata={"language": declared}).language == language


def test_code_does_not_decide_the_language() -> None:
    blocks = [
        Block(text="Цапля ловит рыбу в реке."),
        Block(text="for i in range(9): x()", kind="code"),
    ]
    assert row(blocks=blocks).language == "ru"


def test_fields_become_rows_with_numbers() -> None:
    fields = {
        "year": "1861",
        "tags": ["a", "", None, "b"],
        "price": 1.5,
        "sold": True,
        "note": None,
    }
    assert row(fields=fields).fields == [
        ("year", "1861", 1861.0),
        ("tags", "a", None),
        ("tags", "b", None),
        ("price", "1.5", 1.5),
        ("sold", "True", None),
    ]


@pytest.mark.parametrize(
    ("title", "section", "text", "expected"),
    [
        ("Guide", "Limits", "Ten.", "Guide › Limits\nTen."),
        ("Guide", "Guide › Limits", "Ten.", "Guide › Limits\nTen."),
        ("", "Limits", "Ten.", "Limits\nTen."),
        ("Guide", "", "Ten.", "Guide\nTen."),
        ("Guide", "", "Guide to ten.", "Guide to ten."),
        ("", "", "Ten.", "Ten."),
    ],
)
def test_what_is_embedded(title: str, section: str, text: str, expected: str) -> None:
    assert embedded_text(title, section, text) == expected
    assert embedded_text(title, section, text, "→ Next.") == f"{expected}\n→ Next."


def test_digest_keeps_its_parts_apart_and_survives_odd_characters() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert len(digest("\ud800", length=24)) == 24
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_tokens_are_never_zero() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "x" * 40, "茶" * 4)] == [1, 1, 10, 3]


def test_english_names_in_addresses_stand_beside_headings_in_another_script() -> None:
    entries = [
        {"name": "复数", "anchor": "complex-numbers"},
        {"name": "Файлы static", "anchor": "static-files"},
    ]
    given = {"source": "notes/fast-math.html", "metadata": {"entries": entries}}
    blocks = [
        Block(text="一个数。", section="复数"),
        Block(text="Их отдаёт сервер.", section="Файлы static"),
        Block(text="Plain.", section="Plain"),
    ]
    made = row(blocks=blocks, **given).chunks
    words = [chunk.context for chunk in made]
    assert words == ["complex numbers", "files", ""]
    assert "complex numbers" not in made[0].text
    again = row(blocks=blocks[2:], context="Previous: a reed.", **given).chunks
    assert again[0].context == "Previous: a reed."
