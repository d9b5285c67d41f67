"""The values of records that a question says, and the words that only the records can explain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from core.record_names import ANY_FIELD
from reasoning.rules.field_table import HAN
from reasoning.rules.record_phrases import Meaning, is_common
from reasoning.rules.record_reading import RecordReading, condition, is_negated, nearest
from reasoning.rules.record_schema import AKIN


def read_values(reading: RecordReading) -> None:
    """Make a condition of each value that is said; those of one field are alternatives."""
    chosen: dict[tuple[str, str], list[str]] = {}
    for place, one in enumerate(reading.said):
        if place in reading.used or not one.is_a("value", "flag"):
            continue
        if one.is_a("count", "list", "not", "filler", "per") and not one.is_a("flag"):
            continue
        near = nearest(reading, place, ("field",))
        if one.is_a("average", "sum") and near is not None and _numbers_of(reading, near):
            continue
        negated = is_negated(reading, place)
        if flags := one.of("flag"):
            info = reading.schema.fields[flags[0].name]
            wanted = _yes(info.examples, yes=not negated)
            if wanted:
                chosen.setdefault((info.name, "="), []).append(wanted)
                reading.used.add(place)
            continue
        meaning = _best_value(reading, place, one.of("value"))
        listed = chosen.setdefault((meaning.name, "!=" if negated else "="), [])
        same = [m.value for m in one.of("value") if m.name == meaning.name]
        listed += [value for value in same if value not in listed]
        reading.used.add(place)
        for back in (True, False):
            near = nearest(reading, place, ("field",), back=back)
            if near is not None and any(
                m.name == meaning.name for m in reading.said[near].of("field")
            ):
                reading.used.add(near)
    reading.where += [
        condition(name, op, values if len(values) > 1 else values[0])
        for (name, op), values in chosen.items()
    ]


def _numbers_of(reading: RecordReading, place: int) -> list[str]:
    return [m.name for m in reading.said[place].of("field") if reading.schema.numeric(m.name)]


def _best_value(reading: RecordReading, place: int, meanings: Sequence[Meaning]) -> Meaning:
    """Choose the field of a value: one named beside it, of the file that is meant, with few."""
    beside = {
        m.name
        for back in (True, False)
        if (near := nearest(reading, place, ("field",), back=back)) is not None
        for m in reading.said[near].of("field")
    }
    fields = reading.schema.fields
    return min(
        meanings,
        key=lambda m: (m.name not in beside, fields[m.name].values),
    )


def _yes(held: Iterable[str], *, yes: bool) -> str:
    no = ("false", "no", "n", "0", "нет", "ні", "否")
    return next((one for one in held if (one.casefold() not in no) is yes), "")


def read_unknown(reading: RecordReading, question: str) -> bool:
    """Look for the words that nothing explains in the fields named beside them, or in all.

    Tells whether there are such words.
    """
    runs: list[tuple[int, int]] = []
    for place, one in enumerate(reading.said):
        if place in reading.used or (one.meanings and not one.is_a("quoted", "noun")):
            continue
        if one.is_a("noun"):
            if len(one.meanings) > len(one.of("noun")):
                continue
            if _is_thing(reading, place):
                reading.passed_over += 1
                continue
        if not HAN.search(one.text) and not one.is_a("quoted") and is_common(one.text):
            continue
        if _is_head(reading, place):
            reading.passed_over += 1
            continue
        joined = runs and _joined(reading, runs[-1][1], place, question)
        runs = [*runs[:-1], (runs[-1][0], place)] if joined else [*runs, (place, place)]
    for first, last in runs:
        start, end = reading.said[first].start, reading.said[last].end
        if first == last and reading.said[first].is_a("quoted"):
            start, end = start + 1, end - 1
        words = re.sub(r"['’]s\b", "", question[start:end]).strip('"“”«»„《》「」 ')
        before = nearest(reading, first, ("field",), back=True)
        near = reading.said[before].of("field") if before is not None else []
        names = [m.name for m in near if m.value != AKIN]
        told = [n for n in names if not reading.schema.numeric(n) and n not in reading.schema.dates]
        beside = before is not None and before not in reading.used and told
        if beside and before is not None:
            reading.used.add(before)
        negated = is_negated(reading, first)
        reading.where.append(
            condition(told[0] if beside else ANY_FIELD, "has", words) if not negated
            else condition(told[0] if beside else ANY_FIELD, "!=", words)
        )  # fmt: skip
    return bool(runs)


def _is_thing(reading: RecordReading, place: int) -> bool:
    """Tell whether a noun is what is asked for: the first, where none names a file's records."""
    nouns = [p for p, one in enumerate(reading.said) if one.is_a("noun")]
    return not reading.named and place == nouns[0]


def _joined(reading: RecordReading, last: int, place: int, question: str) -> bool:
    """Tell whether unknown words are one name: side by side, or with small words between names."""
    between = reading.said[last + 1 : place]
    if "," in question[reading.said[last].end : reading.said[place].start]:
        return False
    named = all(reading.said[p].text[:1].isupper() for p in (last, place))
    small = all(one.is_a("filler", "until") or is_common(one.text) for one in between)
    return not between or (named and small and len(between) <= 2)


def _is_head(reading: RecordReading, place: int) -> bool:
    """Tell whether an unknown word only says what kind of thing is asked for: "how many gadgets".

    That is taken so where there is nothing but records.
    """
    if reading.schema.prose or reading.named or HAN.search(reading.said[place].text):
        return False
    before = nearest(
        reading, place, ("count", "list", "order most", "order least", "most"), back=True
    )
    return before is not None and reading.said[place].text.islower()
