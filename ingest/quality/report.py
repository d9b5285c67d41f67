"""Make the report on the quality of one collection."""

from __future__ import annotations

import time
from datetime import date
from typing import NamedTuple

from ingest.quality.texts import EXAMPLES, Level, QualityFinding, QualityReport, TextChecks
from stores.ports import Maintenance
from stores.sqlite.catalogue import Collection
from stores.sqlite.quality import Counted

FIRST_YEAR = 1450  # of publication that is believed: about when printing with movable type began


class FindingText(NamedTuple):
    """Say what a finding is, how much it matters, what it is a share of, and what to do."""

    level: Level
    of: str
    what: str
    advice: str


def _lacking(field: str, called: str, level: Level = "note") -> FindingText:
    what = f"records have no {called}"
    return FindingText(level, "records", what, f"add a field `{field}` to them")


FINDINGS = {
    "left_out": FindingText(
        "left out", "texts", "texts were left out for being short",
        "lower `library.min_text_words`, or give longer texts",
    ),
    "failed": FindingText(
        "left out", "files", "parts of files could not be read",
        "correct them and ingest again; each ingest names the files that it can read nothing of",
    ),
    "repeated_annotations": FindingText(
        "left out", "annotations", "annotations are those of other records",
        "correct the catalogue if they are of different books; only the first is searched",
    ),
    "repeated_passages": FindingText(
        "left out", "passages", "passages repeat others",
        "nothing, as a rule: of equal passages a reader finds the first that he may see",
    ),
    "lacks_title": _lacking("title", "title", "problem"),
    "lacks_authors": _lacking("authors", "author"),
    "lacks_year": _lacking("year", "year"),
    "lacks_annotation": FindingText(
        "note", "records", "records have no annotation",
        "add a field `annotation`: topics and audience are found by it",
    ),
    "lacks_keywords": _lacking("keywords", "keywords"),
    "lacks_udc": _lacking("udc", "UDC class"),
    "bad_year": FindingText(
        "note", "records", "years lie before printing or in the future",
        "see whether they are meant",
    ),
    "same_work": FindingText(
        "note", "records", "groups of records have the same title, authors and year",
        "join them, or tell the editions apart",
    ),
    "short_annotation": FindingText(
        "note", "annotations", "annotations are unusually short",
        "say what the book is about, and for whom",
    ),
    "long_annotation": FindingText(
        "note", "annotations", "annotations are unusually long",
        "see whether they hold the full text: an annotation is never split",
    ),
    "several_books": FindingText(
        "problem", "texts", "full texts fit several records, so they are linked to none",
        "name the file in the record it belongs to (field `file`)",
    ),
    "text_without_book": FindingText(
        "note", "texts", "texts belong to no record",
        "name the file in its record (field `file`), or after the record's id",
    ),
    "book_without_text": FindingText(
        "note", "records", "records have no full text", "nothing, as a rule"
    ),
    "long_sentence": FindingText(
        "problem", "prose", "texts run on for long without the end of a sentence",
        "see whether the text lost its punctuation, or is a table",
    ),
    "lone_words": FindingText(
        "problem", "prose", "texts are mostly sentences of one word",
        "see whether the columns or letters of a scan were torn apart",
    ),
    "broken_words": FindingText(
        "problem", "prose", "texts have words broken by hyphens",
        "join the broken lines before ingest: such words are not found",
    ),
    "noise": FindingText(
        "note", "prose", "texts have passages that are mostly not letters",
        "see whether they are tables and formulas, or noise of a scan",
    ),
    "headers": FindingText(
        "note", "prose", "texts repeat a line as headers of pages do",
        "take running titles out before ingest",
    ),
    "lost_characters": FindingText(
        "problem", "prose", "texts have lost characters (U+FFFD)",
        "convert the files from their real encoding to UTF-8",
    ),
    "garbled": FindingText(
        "problem", "prose", "texts were read in a wrong encoding before they came here",
        "take the files from their source again, as UTF-8",
    ),
    "language": FindingText(
        "note", "documents", "documents are of no known language",
        "add a field `language`, so that words are reduced to their forms",
    ),
}  # fmt: skip


def quality_report(maintenance: Maintenance, collection: Collection) -> QualityReport:
    """Read all of a collection once, within one snapshot, and say what is unusual in it."""
    started = time.monotonic()
    with maintenance.quality_counts(collection, EXAMPLES) as counts:
        checks = TextChecks()
        checks.look(counts.passages())
        totals, kinds = counts.totals(), counts.kinds()
        found: dict[str, Counted] = {
            "left_out": counts.left_out(),
            "failed": counts.failed(),
            "repeated_annotations": counts.repeated(annotations=True),
            "repeated_passages": counts.repeated(annotations=False),
            **{f"lacks_{name}": lacking for name, lacking in counts.lacking().items()},
            **counts.others(FIRST_YEAR, date.today().year + 1),
            "same_work": counts.same_work(),
        }
        languages = counts.languages()
    for code, count in checks.found.counts.items():
        found[code] = count, checks.found.examples[code]
    if not totals["linked"]:  # where nothing is linked, links are not what the collection is for
        found.pop("text_without_book")
        found.pop("book_without_text")
    lacks = [f"lacks_{name}" for name in ("authors", "annotation", "keywords", "udc")]
    if all(found[name][0] == totals["records"] for name in lacks if name in found):
        for name in lacks:  # it is no catalogue
            found.pop(name, None)
    sizes = {
        **totals,
        "documents": totals["records"] + totals["texts"],
        "annotations": kinds.get("annotation", 0),
        "passages": sum(kinds.values()),
        "prose": checks.prose,
    }
    sizes["texts"] += found["left_out"][0]
    return QualityReport(
        tenant=collection.tenant,
        collection=collection.name,
        profile=collection.profile.name,
        **totals,
        chunks=sum(kinds.values()),
        kinds=kinds,
        languages=languages,
        annotation_lengths=checks.annotations.spread(),
        chunk_lengths=checks.chunks.spread(),
        sentence_lengths=checks.sentences.spread(),
        findings=_findings(found, sizes),
        seconds=round(time.monotonic() - started, 3),
    )


def _findings(found: dict[str, Counted], sizes: dict[str, int]) -> list[QualityFinding]:
    return [
        QualityFinding(
            code=code,
            level=entry.level,
            count=found[code][0],
            of=max(sizes[entry.of], found[code][0]),
            what=entry.what,
            examples=found[code][1],
            advice=entry.advice,
        )
        for code, entry in FINDINGS.items()
        if found.get(code, (0, []))[0]
    ]
