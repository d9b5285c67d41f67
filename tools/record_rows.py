"""What a record query found as a text of its own: how many, under which filter, in which groups."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from core.metadata import EXTRACTS, LABELS, LISTED_CHUNKS, ROW
from core.types import Evidence
from languages.language import find_language
from stores.sqlite.record_conditions import Condition
from stores.sqlite.records import Groups


class RecordRow:
    """Say in one language what a query over records found."""

    def __init__(self, language: str | None, file: str) -> None:
        """Speak English where there are no words for a language."""
        self._messages = find_language(language).messages["records"]
        self._file = self._messages["in"].format(file=file) if file else ""
        self._parts: list[str] = []

    def counted(
        self,
        count: int,
        total: int,
        where: Sequence[Condition],
        among: Sequence[Condition] = (),
        *,
        share: bool = False,
    ) -> None:
        """Say how many records match, under which filter, and which share of `total` that is."""
        shown, base = ("; ".join(map(str, one)) for one in (where, among))
        named = self._messages["among" if among else "some" if where else "all"]
        self._parts.append(
            named.format(count=count, total=total, filter=shown, base=base, file=self._file).strip()
        )
        if share and total:
            self.say("share", share=f"{100 * count / total:.1f}")

    def say(self, name: str, **values: object) -> None:
        """Say one of the things that the language has a message for."""
        self._parts.append(self._messages[name].format(**values))

    def grouped(self, by: str, groups: Groups, field: str | None, aggregate: str | None) -> None:
        """Say how many records each value of a field has, or what another field has of them."""
        self.say("values", field=by, values=groups.values)
        most = f"{self._messages['most']}: " if len(groups.counts) < groups.values else ""
        if field is not None:
            most = self._messages[f"{aggregate} by"].format(field=field, by=by) + ": "
        shown = (f"{value}: {round(n or 0, 2):.12g}" for value, n in groups.counts)
        self._parts.append(most + ", ".join(shown))

    def added_up(self, field: str, found: tuple[float, float, int] | None, aggregate: str) -> None:
        """Say the sum or the average of a field."""
        if found is None:
            self.say("none", field=field)
            return
        known = {"sum": f"{found[0]:.12g}", "average": f"{round(found[1], 2):.12g}"}
        self.say(aggregate, field=field, known=found[2], **known)

    def evidence(self, listed: Sequence[Evidence], file: str) -> Evidence:
        """Return the text as evidence that says which records it lists."""
        text = self._messages["join"].join(self._parts) + self._messages["end"]
        text = text if file and text.startswith(file) else text[0].upper() + text[1:]
        return row_evidence(text, file, listed)


def together(
    rows: Mapping[str, Evidence], counts: Mapping[str, int], language: str | None
) -> Evidence:
    """Return what several collections counted as one text: their sum, and the share of each."""
    messages = find_language(language).messages["records"]
    shares = " ".join(f"{name}: {rows[name].text}" for name in counts)
    text = messages["together"].format(count=sum(counts.values())) if len(counts) > 1 else ""
    listed = [key for name in counts for key in rows[name].metadata[LISTED_CHUNKS]]
    key = _key(text + shares)
    metadata: dict[str, Any] = {LISTED_CHUNKS: listed}
    if any(EXTRACTS in row.metadata for row in rows.values()):
        own = [rows[name].metadata for name in counts]
        metadata[EXTRACTS] = [one for each in own for one in each[EXTRACTS]]
        metadata[LABELS] = {key: label for each in own for key, label in each[LABELS].items()}
    update = {
        "text": text + shares,
        "metadata": metadata,
        "collection": ", ".join(counts),
    }
    ids = {"evidence_id": key, "chunk_id": key}
    return rows[next(iter(counts))].model_copy(update=update | ids)


def row_evidence(text: str, source: str, listed: Sequence[Evidence]) -> Evidence:
    """Return a text of this program's own as evidence that says which chunks it is about."""
    key = _key(text)
    return Evidence(
        evidence_id=key,
        chunk_id=key,
        document_id=ROW,
        document_key=ROW,
        source=source or ROW,
        title=ROW,
        text=text,
        kind=ROW,
        metadata={LISTED_CHUNKS: [item.chunk_id for item in listed]},
    )


def _key(text: str) -> str:
    return f"records-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
