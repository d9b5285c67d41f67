"""Numbers, years and dates of a question as conditions on fields of records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoning.rules.field_table import HAN
from reasoning.rules.record_phrases import tables
from reasoning.rules.record_reading import RecordReading, condition, is_negated, nearest
from reasoning.rules.record_schema import RecordSchema

COMPARES = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "order gt": ">", "order lt": "<"}
SIGNS = {"$": "", "€": "", "≥": ">=", "≤": "<="}
YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
AFTER = ("or ", "and ", "и ", "или ", "і ", "або ")  # such a comparison follows its number


def read_numbers(reading: RecordReading) -> None:
    """Make a condition of each number, on the field that it is of."""
    for place, one in enumerate(reading.said):
        if place in reading.used or not one.is_a("number", "decade", "date"):
            continue
        if one.is_a("decade"):
            _decade(reading, place, int(one.text))
            continue
        op, marks = _operator(reading, place)
        value: float | str = one.text if one.is_a("date") else _number(one.text)
        if op == "=" and _limits(reading, place, value):
            continue
        name = _field_of_number(reading, place, marks, value)
        if name is None:
            reading.sure = False
            continue
        if op == "between":
            last = nearest(reading, marks[-1], ("number", "date"))
            upper = reading.said[last] if last is not None else None
            if last is None or upper is None:
                reading.sure = False
                continue
            high = upper.text if upper.is_a("date") else _number(upper.text)
            reading.where += [condition(name, ">=", value), condition(name, "<=", high)]
            reading.used.add(last)
        else:
            reading.where.append(condition(name, op, value))
        reading.used |= {place, *marks}


def _decade(reading: RecordReading, place: int, first: int) -> None:
    if reading.schema.dates:
        name = reading.schema.dates[0]
        reading.where += [condition(name, ">=", float(first)), condition(name, "<", first + 10.0)]
        reading.used.add(place)


def _operator(reading: RecordReading, place: int) -> tuple[str, list[int]]:
    """Return how a number compares, and the places that say so."""
    said = reading.said
    before = nearest(reading, place, (*COMPARES, "between", "from", "sign"), back=True)
    field_before = nearest(reading, place, ("field",), back=True)
    if before is None and field_before is not None:
        before = nearest(reading, field_before, (*COMPARES, "between", "from"), back=True)
    after = nearest(reading, place, tuple(COMPARES))
    if after is None and (unit := nearest(reading, place, ("field",))) is not None:
        after = nearest(reading, unit, tuple(COMPARES))
    until = nearest(reading, place, ("until",))
    if until is None and (unit := nearest(reading, place, ("field",))) is not None:
        until = nearest(reading, unit, ("until",))
    if until is not None and nearest(reading, until, ("number", "date")) == until + 1:
        return "between", [until] if before is None else [before, until]
    if before is not None and before not in reading.used:
        one = said[before]
        if one.is_a("from"):
            return ">=", [before]
        if one.is_a("sign"):
            return SIGNS.get(one.text, one.text) or "=", [before]
        for kind, op in COMPARES.items():
            if one.is_a(kind) and not one.text.casefold().startswith(AFTER):
                turned = is_negated(reading, before)
                return {">": "<=", "<": ">="}.get(op, op) if turned else op, [before]
    if after is not None and after not in reading.used:
        one = said[after]
        follows = HAN.search(one.text) or one.text.casefold().startswith(AFTER) or one.is_a("ge")
        for kind, op in COMPARES.items():
            if follows and one.is_a(kind):
                return op, [after]
    return "=", []


def _limits(reading: RecordReading, place: int, value: float | str) -> bool:
    """Take a small number beside a superlative as how many are listed."""
    if not isinstance(value, float) or not 0 < value <= 100 or not value.is_integer():
        return False
    orders = ("order most", "order least", "most", "least")
    beside = nearest(reading, place, orders) or nearest(reading, place, orders, back=True)
    listed = (
        nearest(reading, place, ("table", "noun"))
        if nearest(reading, place, ("list",), back=True) is not None
        else None
    )
    if beside is None and listed is None:
        return False
    reading.limit = int(value)
    reading.used.add(place)
    return True


def _field_of_number(
    reading: RecordReading, place: int, marks: Sequence[int], value: float | str
) -> str | None:
    schema, said = reading.schema, reading.said
    dated = isinstance(value, str) or YEAR.fullmatch(f"{value:g}") is not None
    for mark in marks:
        for kind in ("order gt", "order lt"):
            for meaning in said[mark].of(kind):
                known = schema.orders(meaning.name)
                if known and (dated or known[0] not in schema.dates):
                    return known[0]
    starts = [place, *marks]
    sides = [(min(starts), True), (max(starts), False), (place, False)]
    for start, back in sides:
        near = nearest(reading, start, ("field",), back=back)
        names = [m.name for m in said[near].of("field")] if near is not None else []
        fitting = [n for n in names if _fits(schema, n, dated=dated)]
        if fitting and near is not None:
            reading.used.add(near)
            return fitting[0]
    if not dated:
        numbers = [
            n
            for n in schema.fields
            if schema.numeric(n) and schema.tells(n) and n not in schema.dates
        ]
        worth = schema.first(tables()["worth"], numbers)
        return worth or (numbers[0] if len(numbers) == 1 else None)
    hints = [m.name for one in said for m in one.of("hint")]
    return next(iter([*hints, *schema.dates]), None)


def _fits(schema: RecordSchema, name: str, *, dated: bool) -> bool:
    if name in schema.dates:
        return dated
    return schema.numeric(name)


def _number(text: str) -> float:
    """Read a number: of "1,000" and "4,5" the comma sets off thousands, or decimals."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return float(text.replace(",", ""))
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return float(re.sub(r"\D", "", text))
