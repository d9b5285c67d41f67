"""What a question orders, counts, groups or adds up of records."""

from __future__ import annotations

from reasoning.rules.record_phrases import Said, tables
from reasoning.rules.record_reading import RecordReading, has, nearest
from reasoning.rules.record_schema import RecordSchema


def read_orders(reading: RecordReading) -> None:
    """Find the field that a superlative orders by."""
    schema, said = reading.schema, reading.said
    for place, one in enumerate(said):
        for kind, down in (("order most", True), ("order least", False)):
            for meaning in one.of(kind):
                known = schema.orders(meaning.name)
                if known and reading.order is None and place not in reading.used:
                    reading.order = known[0], down
                    reading.used.add(place)
    for place, one in enumerate(said):
        if reading.order is not None or place in reading.used or not one.is_a("most", "least"):
            continue
        for back in (False, True):
            near = nearest(reading, place, ("field",), back=back)
            names = [m.name for m in said[near].of("field")] if near is not None else []
            fitting = [n for n in names if schema.numeric(n) or n in schema.dates]
            if fitting and near is not None and near not in reading.used:
                reading.order = fitting[0], one.is_a("most")
                reading.used |= {place, near}
                break
        else:
            if one.text.casefold() == "top" and (
                best := schema.first(("rating", "votes", "stars", "score"))
            ):
                reading.order = best, True
                reading.used.add(place)


def read_aggregates(reading: RecordReading) -> None:
    """Find what is counted, grouped or added up."""
    said, schema = reading.said, reading.schema
    counts = [place for place, one in enumerate(said) if one.is_a("count")]
    for place, one in enumerate(said):
        kinds = ("per", "along") if counts or has(reading, "sum", "average") else ("per",)
        near = nearest(reading, place, ("field", "year", "month"))
        if (
            one.is_a(*kinds)
            and near is not None
            and near not in reading.used
            and reading.groups is None
        ):
            _group_by(reading, said[near])
            if reading.groups:
                reading.used |= {place, near}
    frequent = [p for p, one in enumerate(said) if one.is_a("frequent")]
    of = [p for p, one in enumerate(said) if p not in reading.used and told_apart(schema, one)]
    if frequent and of and reading.groups is None:
        reading.groups = told_apart(schema, said[of[0]])[0]
        reading.used |= {frequent[0], of[0]}
        reading.limit = reading.limit or 1
    most = [p for p, one in enumerate(said) if one.is_a("most", "least") and p not in reading.used]
    if most and reading.groups is None and reading.order is None:
        _winner(reading, most[0])
    for kind in ("average", "sum"):
        marks = [p for p, one in enumerate(said) if one.is_a(kind) and p not in reading.used]
        numbers = [
            (p, m.name) for p, one in enumerate(said) for m in one.of("field")
            if p not in reading.used and schema.numeric(m.name)
        ]  # fmt: skip
        if marks and numbers and reading.groups is None and reading.aggregate == "list":
            reading.aggregate, reading.adds = kind, numbers[0][1]
            reading.used |= {*marks, numbers[0][0]}
    if reading.groups is not None:
        reading.aggregate = "groups"
    elif counts and reading.aggregate == "list":
        near = nearest(reading, counts[0], ("field",))
        names = said[near].of("field") if near is not None and near not in reading.used else []
        numbers_asked = [m.name for m in names if schema.numeric(m.name)]
        if numbers_asked:
            return  # "how many pages": a field, and no count
        if names and near is not None and reading.order is None:
            reading.aggregate, reading.groups = "groups", names[0].name
            reading.used.add(near)
        elif reading.order is None:
            reading.aggregate = "count"


def told_apart(schema: RecordSchema, one: Said) -> list[str]:
    """Return the fields of a phrase that records can be told apart and grouped by."""
    return [
        m.name for m in one.of("field") if not schema.numeric(m.name) and not schema.names(m.name)
    ]


def _winner(reading: RecordReading, place: int) -> None:
    """Read "which author has the most books": the value that most records have."""
    said, schema = reading.said, reading.schema
    if said[place].is_a("least") and not said[place].is_a("most"):
        return
    asked = [(p, name) for p, one in enumerate(said) for name in told_apart(schema, one)
             if p not in reading.used]  # fmt: skip
    things = any(one.is_a("noun", "table") for one in said)
    if asked and things:
        reading.groups = asked[0][1]
        reading.used |= {asked[0][0], place}
    elif has(reading, "who") and things and (name := schema.first(tables()["people"])):
        reading.groups = name
        reading.used.add(place)
    if reading.groups:
        reading.limit = reading.limit or 1


def _group_by(reading: RecordReading, one: Said) -> None:
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
