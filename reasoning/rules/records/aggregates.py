"""What a question orders, counts, groups or adds up of records."""

from __future__ import annotations

from reasoning.rules.records.phrases import PhraseMatch, tables
from reasoning.rules.records.reading import RecordReading, has, nearest
from reasoning.rules.records.schema import AKIN


def read_orders(reading: RecordReading) -> None:
    """Find the field that a superlative orders by."""
    schema, said = reading.schema, reading.said
    for place, one in enumerate(said):
        known = [(of[0], kind == "order most") for kind in ("order most", "order least")
                 for m in one.of(kind) if (of := schema.orders(m.name))]  # fmt: skip
        if known and place not in reading.used:
            reading.order = known[0]
            reading.used.add(place)
            return
    for place, one in enumerate(said):
        if place in reading.used or not one.is_a("most", "least"):
            continue
        for back in (False, True):
            near = nearest(reading, place, ("field",), back=back)
            names = [m.name for m in said[near].of("field")] if near is not None else []
            fitting = [n for n in names if schema.numeric(n) or n in schema.dates]
            if fitting and near is not None and near not in reading.used:
                reading.order = fitting[0], one.is_a("most")
                reading.used |= {place, near}
                return
        if one.text.casefold() == "top" and (best := schema.first(tables()["best"])):
            reading.order = best, True
            reading.used.add(place)
            return


def read_aggregates(reading: RecordReading) -> None:
    """Find what is counted, grouped or added up."""
    said, schema = reading.said, reading.schema
    counts = [place for place, one in enumerate(said) if one.is_a("count")]
    marks = ("per", "along") if counts or has(reading, "sum", "average") else ("per",)
    for place, one in enumerate(said):
        near = nearest(reading, place, ("field", "year", "month"))
        if one.is_a(*marks) and near is not None and near not in reading.used:
            if reading.groups is None:
                _group_by(reading, said[near])
            if reading.groups:
                reading.used |= {place, near}
    _read_winner(reading)
    for kind in ("average", "sum"):
        marked = [p for p, one in enumerate(said) if one.is_a(kind) and p not in reading.used]
        numbers = [
            (p, m.name) for p, one in enumerate(said) for m in one.of("field")
            if p not in reading.used and schema.numeric(m.name) and m.name != reading.groups
        ]  # fmt: skip
        if marked and numbers and reading.adds is None:
            reading.aggregate, reading.adds = kind, numbers[0][1]
            reading.used |= {*marked, numbers[0][0]}
    if reading.groups is not None and reading.adds is None:
        reading.aggregate = "groups"
    if reading.aggregate != "list" or reading.order is not None:
        return
    if has(reading, "share"):
        reading.aggregate = "share"
    elif counts:
        near = nearest(reading, counts[0], ("field",))
        if near is None:  # "价格是多少"
            near = nearest(reading, counts[0], ("field",), back=True)
        names = said[near].of("field") if near is not None and near not in reading.used else ()
        if any(schema.numeric(m.name) for m in names):
            return  # "how many pages": a field, and no count
        if near is not None and _describes(reading, near):
            names = ()
        reading.aggregate = "groups" if names else "count"
        if names and near is not None:
            reading.groups = names[0].name
            reading.used.add(near)


def _read_winner(reading: RecordReading) -> None:
    """Read "which author has the most books", or "the most common author"."""
    said, schema = reading.said, reading.schema
    marks = [p for p, one in enumerate(said)
             if p not in reading.used and one.is_a("frequent", "most")]  # fmt: skip
    if not marks or reading.groups is not None or reading.order is not None:
        return
    # Fields that records can be told apart and grouped by.
    asked = [(p, m.name) for p, one in enumerate(said) for m in one.of("field") if p not in
             reading.used and not (schema.numeric(m.name) or schema.names(m.name))]  # fmt: skip
    things = any(one.is_a("noun", "table") for one in said)
    person = schema.first(tables()["people"]) if has(reading, "who") else None
    if asked and (things or said[marks[0]].is_a("frequent")):
        reading.groups = asked[0][1]
        reading.used |= {asked[0][0], marks[0]}
    elif person and things:
        reading.groups = person
        reading.used.add(marks[0])
    if reading.groups:
        reading.limit = reading.limit or 1


def _describes(reading: RecordReading, place: int) -> bool:
    """Tell whether a word that only resembles a field says which records: "urgent tickets"."""
    behind = reading.said[place + 1 : place + 2]
    akin = all(one.value == AKIN for one in reading.said[place].of("field"))
    return akin and any(one.is_a("noun", "table") for one in behind)


def _group_by(reading: RecordReading, one: PhraseMatch) -> None:
    schema = reading.schema
    names = [m.name for m in one.of("field")]
    if (
        one.is_a("year", "month")
        and not any(schema.canonical[n] == "month" for n in names)
        and schema.dates
    ):
        reading.groups = next((n for n in names if n in schema.dates), schema.dates[0])
        reading.characters = 7 if one.is_a("month") else 4
    elif names:
        reading.groups = names[0]
