"""What a file says of itself, as a passage that can be found and cited."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import only

from ingest.loaders.text.plain_text import text_header
from ingest.types import Block, ParsedDocument
from ingest.usable import with_metadata_passage


def document(format_name: str = "epub", **described: object) -> ParsedDocument:
    return ParsedDocument(
        document_id="b.epub",
        source="b.epub",
        title=str(described.get("title", "b")),
        format=format_name,
        blocks=[Block(text="The wick draws melted wax up to the flame.")],
        metadata=described,
    )


def card(made: ParsedDocument) -> str:
    """Return the card of a document, "" where it has none."""
    last = with_metadata_passage(made).blocks[-1]
    return last.text if last.kind == "record" else ""


def test_what_a_file_says_of_itself_is_its_last_block() -> None:
    made = document(
        title="Candles", authors=["Ann Wick", "Bo Wax"], year=1861, isbn="9780000000002"
    )
    assert with_metadata_passage(made).blocks[0] == made.blocks[0]
    assert card(made) == (
        "title: Candles\nauthors: Ann Wick, Bo Wax\nyear: 1861\nisbn: 9780000000002"
    )


def test_labels_are_in_the_language_of_the_document() -> None:
    made = document(title="Свічки", authors=["Олена Гніт"], publisher="Віск", language="uk")
    assert card(made) == "назва: Свічки\nавтори: Олена Гніт\nвидавництво: Віск\nмова: uk"


def test_a_date_is_said_once() -> None:
    made = document(authors=["A"], year=2008, published="2008-06-27", updated_at="2008-06-27")
    assert card(made) == "title: b\nauthors: A\npublished: 2008-06-27"


@pytest.mark.parametrize(
    ("format_name", "described"),
    [
        ("epub", {"title": "Candles", "updated_at": "2024-01-01", "keywords": ["wax"]}),
        ("html", {"title": "Candles", "language": "en"}),
        ("eml", {"title": "Candles", "authors": ["Ann Wick"]}),
        ("epub", {"title": "Candles", "authors": ["x" * 300]}),
    ],
)
def test_too_little_is_no_card(format_name: str, described: dict[str, object]) -> None:
    assert card(document(format_name, **described)) == ""


def test_a_record_is_its_own_card() -> None:
    record = document(authors=["A"]).model_copy(update={"is_record": True})
    assert with_metadata_passage(record) is record


def test_the_header_of_a_plain_text(tmp_path: Path) -> None:
    text = "Title: Candles\nAuthor: Ann Wick\nLanguage: English\n\nA flame needs air: no wind.\n"
    made = only(tmp_path / "c.txt", text.encode())
    assert made.title == "Candles"
    assert made.metadata == {"title": "Candles", "authors": ["Ann Wick"], "language": "English"}


@pytest.mark.parametrize("text", ["Author: Ann Wick\n\nNo title.", "Title: Candles\n\nNote: hot."])
def test_one_line_is_no_header(text: str) -> None:
    assert text_header(text) == {}
