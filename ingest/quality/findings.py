"""What is said of each thing that is found, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from ingest.quality.types import Level


class Said(NamedTuple):
    """Say what a finding is, how much it matters, what it is a share of, and what to do."""

    level: Level
    of: str
    what: str
    advice: str


FINDINGS = {
    "left_out": Said(
        "left out", "texts", "texts were left out for being short",
        "lower `min_text_words`, or give longer texts",
    ),
    "failed": Said(
        "left out", "files", "parts of files could not be read",
        "correct them and ingest again; each ingest names the files that it can read nothing of",
    ),
    "repeated_annotations": Said(
        "left out", "annotations", "annotations are those of other records",
        "correct the catalogue if they are of different books; only the first is searched",
    ),
    "repeated_passages": Said(
        "left out", "passages", "passages repeat others",
        "nothing, as a rule: of equal passages a reader finds the first that he may see",
    ),
    "lacks_title": Said(
        "problem", "records", "records have no title", "add a field `title` to them"
    ),
    "lacks_authors": Said(
        "note", "records", "records have no author", "add a field `authors` to them"
    ),
    "lacks_year": Said("note", "records", "records have no year", "add a field `year` to them"),
    "lacks_annotation": Said(
        "note", "records", "records have no annotation",
        "add a field `annotation`: topics and audience are found by it",
    ),
    "lacks_keywords": Said(
        "note", "records", "records have no keywords", "add a field `keywords` to them"
    ),
    "lacks_udc": Said("note", "records", "records have no UDC class", "add a field `udc` to them"),
    "bad_year": Said(
        "note", "records", "years lie before printing or in the future",
        "see whether they are meant",
    ),
    "same_work": Said(
        "note", "records", "groups of records have the same title, authors and year",
        "join them, or tell the editions apart",
    ),
    "short_annotation": Said(
        "note", "annotations", "annotations are unusually short",
        "say what the book is about, and for whom",
    ),
    "long_annotation": Said(
        "note", "annotations", "annotations are unusually long",
        "see whether they hold the full text: an annotation is never split",
    ),
    "several_books": Said(
        "problem", "texts", "full texts fit several records, so they are linked to none",
        "name the file in the record it belongs to (field `file`)",
    ),
    "text_without_book": Said(
        "note", "texts", "texts belong to no record",
        "name the file in its record (field `file`), or after the record's id",
    ),
    "book_without_text": Said("note", "records", "records have no full text", "nothing, as a rule"),
    "long_sentence": Said(
        "problem", "prose", "texts run on for long without the end of a sentence",
        "see whether the text lost its punctuation, or is a table",
    ),
    "lone_words": Said(
        "problem", "prose", "texts are mostly sentences of one word",
        "see whether the columns or letters of a scan were torn apart",
    ),
    "broken_words": Said(
        "problem", "prose", "texts have words broken by hyphens",
        "join the broken lines before ingest: such words are not found",
    ),
    "noise": Said(
        "note", "prose", "texts have passages that are mostly not letters",
        "see whether they are tables and formulas, or noise of a scan",
    ),
    "headers": Said(
        "note", "prose", "texts repeat a line as headers of pages do",
        "take running titles out before ingest",
    ),
    "lost_characters": Said(
        "problem", "prose", "texts have lost characters (U+FFFD)",
        "convert the files from their real encoding to UTF-8",
    ),
    "garbled": Said(
        "problem", "prose", "texts were read in a wrong encoding before they came here",
        "take the files from their source again, as UTF-8",
    ),
    "language": Said(
        "note", "documents", "documents are of no known language",
        "add a field `language`, so that words are reduced to their forms",
    ),
}  # fmt: skip
