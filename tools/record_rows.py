"""What a record query found as a text of its own: how many, under which filter, in which groups."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from core.record_names import HELD, ROW
from core.types import Evidence
from stores.record_conditions import Condition

SAID = {
    "en": {
        "all": "{total} records{file}",
        "some": "{count} of {total} records{file} match: {filter}",
        "down": "by {field}, highest first",
        "up": "by {field}, lowest first",
        "values": "{values} different values of {field}",
        "most": "the most frequent",
        "sum": "sum of {field}: {sum}",
        "average": "average {field}: {average} (of {known} records)",
        "none": "none of them has a number as {field}",
        "in": " in {file}",
        "join": "; ",
        "end": ".",
    },
    "ru": {
        "all": "всего записей{file}: {total}",
        "some": "подходит записей{file}: {count} из {total} ({filter})",
        "down": "по полю {field}, сначала наибольшие",
        "up": "по полю {field}, сначала наименьшие",
        "values": "разных значений поля {field}: {values}",
        "most": "самые частые",
        "sum": "сумма по полю {field}: {sum}",
        "average": "среднее по полю {field}: {average} (записей: {known})",
        "none": "ни у одной нет числа в поле {field}",
        "in": " в {file}",
        "join": "; ",
        "end": ".",
    },
    "uk": {
        "all": "усього записів{file}: {total}",
        "some": "відповідає записів{file}: {count} із {total} ({filter})",
        "down": "за полем {field}, спочатку найбільші",
        "up": "за полем {field}, спочатку найменші",
        "values": "різних значень поля {field}: {values}",
        "most": "найчастіші",
        "sum": "сума за полем {field}: {sum}",
        "average": "середнє за полем {field}: {average} (записів: {known})",
        "none": "у жодного немає числа в полі {field}",
        "in": " у {file}",
        "join": "; ",
        "end": ".",
    },
    "zh": {
        "all": "{file}共有 {total} 条记录",
        "some": "{file}共 {total} 条记录，符合条件的有 {count} 条（{filter}）",
        "down": "按 {field} 从高到低",
        "up": "按 {field} 从低到高",
        "values": "{field} 有 {values} 个不同的值",
        "most": "最常见的",
        "sum": "{field} 的总和：{sum}",
        "average": "{field} 的平均值：{average}（{known} 条记录）",
        "none": "没有一条记录的 {field} 是数字",
        "in": "{file} 中",
        "join": "；",
        "end": "。",
    },
}


class RecordRow:
    """Say in one language what a query over records found."""

    def __init__(self, language: str | None, file: str) -> None:
        """Speak English where there are no words for a language."""
        self._said = SAID.get(language or "en", SAID["en"])
        self._file = self._said["in"].format(file=file) if file else ""
        self._parts: list[str] = []

    def counted(self, count: int, total: int, where: Sequence[Condition]) -> None:
        """Say how many records match, under which filter."""
        shown = "; ".join(map(str, where))
        named = self._said["some" if where else "all"]
        self._parts.append(
            named.format(count=count, total=total, filter=shown, file=self._file).strip()
        )

    def ordered(self, field: str, *, descending: bool) -> None:
        """Say in which order they are listed."""
        self._parts.append(self._said["down" if descending else "up"].format(field=field))

    def grouped(self, field: str, counts: Sequence[tuple[str, int]], values: int) -> None:
        """Say how many records each value of a field has."""
        self._parts.append(self._said["values"].format(field=field, values=values))
        most = f"{self._said['most']}: " if len(counts) < values else ""
        self._parts.append(most + ", ".join(f"{value}: {n}" for value, n in counts))

    def added_up(self, field: str, found: tuple[float, float, int] | None, aggregate: str) -> None:
        """Say the sum or the average of a field."""
        if found is None:
            self._parts.append(self._said["none"].format(field=field))
            return
        known = {"sum": f"{found[0]:.12g}", "average": f"{round(found[1], 2):.12g}"}
        self._parts.append(self._said[aggregate].format(field=field, known=found[2], **known))

    def evidence(self, held: Sequence[Evidence], file: str) -> Evidence:
        """Return the text as evidence that says which records it lists."""
        text = self._said["join"].join(self._parts) + self._said["end"]
        text = text if file and text.startswith(file) else text[0].upper() + text[1:]
        key = f"records-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        return Evidence(
            evidence_id=key,
            chunk_id=key,
            document_id=ROW,
            document_key=ROW,
            source=file or ROW,
            title=ROW,
            text=text,
            kind=ROW,
            metadata={HELD: [item.chunk_id for item in held]},
        )
