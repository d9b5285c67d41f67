"""Make the report on the quality of one collection."""

from __future__ import annotations

import time
from datetime import date

from core.settings import Settings
from ingest.quality.findings import FINDINGS
from ingest.quality.texts import TextChecks
from ingest.quality.types import Finding, QualityReport
from stores.catalogue import Collection
from stores.quality import Counted, QualityCounts
from stores.segments.truth import snapshot
from stores.store import Store


def quality_report(store: Store, collection: Collection, settings: Settings) -> QualityReport:
    """Read all of a collection once, within one snapshot, and say what is unusual in it."""
    started = time.monotonic()
    with snapshot(store.database):
        counts = QualityCounts(store.database, collection, settings.quality_examples)
        checks = TextChecks(settings)
        checks.look(counts.passages())
        totals, kinds = counts.totals(), counts.kinds()
        found = _counted(counts, settings)
        languages = counts.languages()
    for code, count in checks.found.counts.items():
        found[code] = count, checks.found.examples[code]
    if not totals["linked"]:  # where nothing is linked, links are not what the collection is for
        found.pop("text_without_book")
        found.pop("book_without_text")
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


def _counted(counts: QualityCounts, settings: Settings) -> dict[str, Counted]:
    return {
        "left_out": counts.left_out(),
        "failed": counts.failed(),
        "repeated_annotations": counts.repeated(annotations=True),
        "repeated_passages": counts.repeated(annotations=False),
        **{f"lacks_{name}": lacking for name, lacking in counts.lacking().items()},
        **counts.others(settings.first_year, date.today().year + 1),
        "same_work": counts.same_work(),
    }


def _findings(found: dict[str, Counted], sizes: dict[str, int]) -> list[Finding]:
    """Return what was found, in the order of the table of findings."""
    return [
        Finding(
            code=code,
            level=said.level,
            count=found[code][0],
            of=max(sizes[said.of], found[code][0]),
            what=said.what,
            examples=found[code][1],
            advice=said.advice,
        )
        for code, said in FINDINGS.items()
        if found.get(code, (0, []))[0]
    ]
