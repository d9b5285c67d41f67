"""Read a question as a query over records: conditions, what is listed or counted, its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.record_names import ANY_FIELD, find_title
from core.tool_spec import ToolSpec
from core.types import Call
from reasoning.rules.record_aggregates import read_aggregates, read_orders
from reasoning.rules.record_dates import with_iso_dates
from reasoning.rules.record_numbers import read_numbers
from reasoning.rules.record_phrases import tables
from reasoning.rules.record_reading import NEAR, RecordReading, has
from reasoning.rules.record_schema import RecordSchema, schema_of
from reasoning.rules.record_words import read_unknown, read_values

RECORDS = "query_records"
LISTED = 10
SUPERLATIVES = 5  # listed where several are asked for, and no number says how many
GROUPS = 20
SHOWN = 4  # fields beside a title
MOST_GUESSES = 1  # names that a question beside prose leaves to be found in the records
WANT = ("list", "who", "when", "count")


def record_call(question: str, language: str, tools: Sequence[ToolSpec]) -> Call | None:
    """Return the call that answers a question over records, None where it is no such question.

    It is one when every word of it is explained by the schema of the records, or is looked for in
    their values; beside prose, it must name the things that the records are of.
    """
    found: list[tuple[int, int, Call]] = []
    for spec in tools:
        if spec.base == RECORDS and spec.tables:
            if spec.scoped:  # it knows its own source alone; a profile scopes tools for several
                spec = spec.model_copy(update={"others": max(1, spec.others)})
            arguments = read(question, schema_of(spec))
            if arguments is not None:
                guesses = sum(one["op"] == "has" for one in arguments["where"])
                call = Call(tool=spec.name, arguments={**arguments, "language": language})
                found.append((guesses, len(found), call))
    return min(found)[2] if found else None


def read(question: str, schema: RecordSchema) -> dict[str, Any] | None:
    """Return the arguments of the query that a question asks for, None where it asks for none.

    Of several files the one is meant that the question names, or else that explains most of it.
    """
    question = with_iso_dates(question)
    if not schema.files:
        return None
    named = named_files(RecordReading(schema.scan(question), schema))
    if schema.prose and not named:
        return None
    if len({tuple(sorted(one.fields)) for one in schema.files}) == 1:
        found = _read(question, schema)
        return found[1] if found else None
    files = named or [one.file for one in schema.files]
    readings = [(file, _read(question, schema.alone(file))) for file in files]
    known = [(found[0], found[1] | {"file": file}) for file, found in readings if found]
    return min(known, key=lambda one: one[0], default=(0, None))[1]


def _read(question: str, schema: RecordSchema) -> tuple[int, dict[str, Any]] | None:
    """Return how much of the question the schema does not explain, and the arguments."""
    reading = RecordReading(schema.scan(question), schema)
    reading.named = bool(named_files(reading))
    read_numbers(reading)
    read_orders(reading)
    read_values(reading)
    read_aggregates(reading)
    unknown = read_unknown(reading, question)
    _asked(reading)
    arguments = _arguments(reading, unknown)
    if arguments is None:
        return None
    guessed = sum(one["field"] == ANY_FIELD for one in reading.where)
    return guessed + reading.passed_over, arguments


def named_files(reading: RecordReading) -> list[str]:
    """Return the files whose things the question names; their names are explained thereby."""
    schema, named = reading.schema, list[list[str]]()
    all_files = [one.file for one in schema.files]
    for place, one in enumerate(reading.said):
        if not one.is_a("table", "noun") or one.is_a("value", "flag"):
            continue
        own = [meaning.name for meaning in one.of("table")]
        if schema.prose and not own and one.text.casefold() in tables()["generic"]:
            continue
        found = own or [f for noun in one.of("noun") for f in schema.of_noun(noun.name)]
        known = [file for file in dict.fromkeys(found) if file in all_files]
        asked = [m.name for m in one.of("field") if not schema.names(m.name)]
        if known and (own or not asked):
            named.append(known)
            reading.used.add(place)
    return min(named, key=len, default=[])


def _asked(reading: RecordReading) -> None:
    """Show the fields that are named and nothing else is made of."""
    schema = reading.schema
    for place, one in enumerate(reading.said):
        if place not in reading.used and one.is_a("field") and not one.is_a("filler"):
            names = [m.name for m in one.of("field")]
            if not any(n in reading.shown for n in names):
                reading.shown.append(names[0])
    if has(reading, "who") and not reading.groups:
        person = schema.first(tables()["people"])
        known = {schema.canonical[name] for name in reading.shown}
        if person and not known & set(tables()["people"]):
            reading.shown.append(person)
    if has(reading, "when") and schema.dates and not set(schema.dates) & set(reading.shown):
        hints = [m.name for one in reading.said for m in one.of("hint")]
        reading.shown.append(next(iter([*hints, *schema.dates])))


def _arguments(reading: RecordReading, unknown: bool) -> dict[str, Any] | None:
    schema = reading.schema
    sure_of = [c for c in reading.where if c["op"] != "has" and c["field"] != ANY_FIELD]
    counted = reading.aggregate != "list" or reading.order is not None
    listed = has(reading, *WANT)
    noun = reading.named or (not schema.prose and has(reading, "noun"))
    signal = counted or sure_of or (unknown and (noun or (listed and reading.shown)))
    everything = listed and noun and not reading.shown and not unknown
    if has(reading, "how") or not reading.sure or not (signal or everything):
        return None
    if sum(c["field"] == ANY_FIELD for c in reading.where) > (
        MOST_GUESSES if schema.prose else NEAR
    ):
        return None
    if not (counted or listed or noun):
        return None  # words alone are looked for
    arguments: dict[str, Any] = {"where": reading.where, "aggregate": reading.aggregate}
    if reading.groups is not None:
        few = reading.limit or GROUPS
        arguments |= {"field": reading.groups, "characters": reading.characters, "limit": few}
    elif reading.adds is not None:
        arguments |= {"field": reading.adds}
    elif reading.order is not None:
        plural = any(one.is_a("noun", "table") and one.text.endswith("s") for one in reading.said)
        name, down = reading.order
        arguments |= {"order_by": name, "descending": down}
        arguments |= {"limit": reading.limit or (SUPERLATIVES if plural else 1)}
        reading.shown = list(dict.fromkeys([*reading.shown, name]))
    else:
        arguments["limit"] = reading.limit or LISTED
    if not find_title(schema.fields):  # else a record is called by its number
        reading.shown = [
            *[name for name in schema.fields if schema.names(name)][:1],
            *reading.shown,
        ]
    return arguments | {"show": reading.shown[:SHOWN]}
