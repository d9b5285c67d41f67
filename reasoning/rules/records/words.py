"""The values of records that a question says, and the words that only the records can explain."""

from __future__ import annotations

import re

from core.language.held_words import has_words
from core.metadata import ANY_FIELD
from reasoning.rules.records.phrases import is_common, tables
from reasoning.rules.records.reading import RecordReading, is_negated, nearest
from reasoning.rules.records.schema import AKIN


def read_values(reading: RecordReading) -> None:
    """Make a condition of each value in the question; those of one field are alternatives."""
    chosen: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for place, one in enumerate(reading.said):
        if place in reading.used or not one.is_a("value", "flag"):
            continue
        if one.is_a("count", "list", "not", "filler", "per") and not one.is_a("flag"):
            continue
        after = nearest(reading, place, ("field",)) if one.is_a("average", "sum") else None
        named = reading.said[after].of("field") if after is not None else ()
        if any(reading.schema.numeric(m.name) for m in named):
            continue
        negated = is_negated(reading, place)
        reading.used.add(place)
        if flags := one.of("flag"):
            shown, denials = reading.schema.fields[flags[0].name].examples, tables()["values"]["no"]
            no = [value for value in shown if value.casefold() in denials]
            yes = [value for value in shown if value not in no]
            if wanted := (no if negated else yes)[:1]:
                chosen.setdefault((flags[0].name, "="), (place, []))[1].extend(wanted)
            continue
        near = _fields_near(reading, place)
        fields, known = reading.schema.fields, reading.schema.canonical
        # Of a field named beside it, else one of many collections, with few values.
        name = min(
            (m.name for m in one.of("value")),
            key=lambda n: (n not in near, not known[n], fields[n].values),
        )
        listed = chosen.setdefault((name, "!=" if negated else "="), (place, []))[1]
        listed += [m.value for m in one.of("value") if m.name == name and m.value not in listed]
        reading.used |= {near[name]} if name in near else set()
    for (name, op), (place, values) in chosen.items():
        reading.add(place, name, op, values if len(values) > 1 else values[0])


def read_missing(reading: RecordReading) -> None:
    """Make a condition of each field that records must lack."""
    for place, one in enumerate(reading.said):
        if place in reading.used or not one.is_a("field") or one.is_a("table", "value"):
            continue
        sides = (nearest(reading, place, ("missing",), back=back) for back in (False, True))
        said = next((near for near in sides if near is not None), None)
        if said is not None or is_negated(reading, place):
            reading.used |= {place} if said is None else {place, said}
            reading.add(place, one.of("field")[0].name, "missing", "")


def _fields_near(reading: RecordReading, place: int) -> dict[str, int]:
    """Return the fields that are named on either side of a phrase, and where."""
    sides = [nearest(reading, place, ("field",), back=back) for back in (True, False)]
    return {m.name: p for p in sides if p is not None for m in reading.said[p].of("field")}


def read_unknown(reading: RecordReading, question: str) -> bool:
    """Look for the words that nothing explains in the fields named beside them, or in all.

    Tells whether there are such words.
    """
    counts = reading.aggregate == "count"
    runs: list[tuple[int, int]] = []
    for place, one in enumerate(reading.said):
        if place in reading.used or (one.meanings and not one.is_a("quoted", "noun")):
            # What only resembles a field is a value that is counted: "how many are urgent".
            if place in reading.used or not (counts and all(m.value == AKIN for m in one.meanings)):
                continue
        if one.is_a("noun") and len(one.meanings) > len(one.of("noun")):
            continue
        named = place > 0 and one.text[:1].isupper()  # "in May"
        if not one.is_a("noun", "quoted") and is_common(one.text) and not named:
            continue
        if _is_thing(reading, place):
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
        within = nearest(reading, last, ("within",))
        if before is None and within is not None:  # "have history among their subjects"
            before = nearest(reading, within, ("field",))
        beside = None if before in reading.used else before
        near = reading.said[beside].of("field") if beside is not None else []
        schema = reading.schema
        told = [m.name for m in near if m.value != AKIN and m.name not in schema.dates
                and not schema.numeric(m.name)]  # fmt: skip
        reading.used |= {beside} if told and beside is not None else set()
        op = "!=" if is_negated(reading, first) else "has"
        reading.add(first, told[0] if told else ANY_FIELD, op, words)
    return bool(runs)


def _joined(reading: RecordReading, last: int, place: int, question: str) -> bool:
    """Tell whether unknown words are one name: side by side, or with small words between names."""
    between = reading.said[last + 1 : place]
    if "," in question[reading.said[last].end : reading.said[place].start]:
        return False
    named = all(reading.said[p].text[:1].isupper() for p in (last, place))
    small = all(one.is_a("filler", "until") or is_common(one.text) for one in between)
    return not between or (named and small and len(between) <= 2)


def _is_thing(reading: RecordReading, place: int) -> bool:
    """Tell whether a word only says what is asked for: the first noun, or of "how many gadgets".

    That is taken so where no other names a file's records, and there is nothing but records.
    """
    one, asks = reading.said[place], ("count", "list", "order most", "order least", "most")
    if reading.named:
        return False
    if one.is_a("noun"):
        return not any(other.is_a("noun") for other in reading.said[:place])
    if reading.schema.prose or nearest(reading, place, asks, back=True) is None:
        return False
    held = (value for info in reading.schema.fields.values() for value in info.examples)
    # "How many chairs", of an inventory that has some, is no thing of that kind.
    return one.text.islower() and not any(has_words(value, one.text) for value in held)
