"""Numbers of a question over records: conditions on a field, and what is counted or summed."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache

from languages.language import known_languages
from reasoning.rules.records.phrases import HAN, PhraseMatch, is_common, tables
from reasoning.rules.records.schema import AKIN, RecordReading, has, is_negated, nearest

COMPARES = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "order gt": ">", "order lt": "<"}
TURNED = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
SIGNS = {"$": "", "€": "", "≥": ">=", "≤": "<="}
WHOLE_DATE = 10  # characters of a date with its day
YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
SUPERLATIVE = ("most", "least", "order most", "order least")
LEAST_ENDED = 5  # letters of a word that may end otherwise ("тысяча", "тысяч"); chosen
LARGEST = sys.float_info.max  # JSON has no infinity


def read_numbers(reading: RecordReading) -> None:
    """Make a condition of each number, on the field that it is of."""
    schema = reading.schema
    value: float | str
    high: float | str | None
    for place, one in enumerate(reading.matches):
        if place in reading.used or not one.is_a("number", "decade", "date"):
            continue
        if one.is_a("decade"):
            name = next(iter(schema.dates), None)
            value, op, high, marks = float(one.text), "<", float(one.text) + 10, list[int]()
        else:
            op, marks = _operator(reading, place)
            value, high = _value(one), None
            if op == "=" and _limits(reading, place, value):
                continue
            if op == "between" and (last := nearest(reading, marks[-1], ("number", "date"))):
                high = _value(reading.matches[last])
                marks.append(last)
            name = _field_of_number(reading, place, marks, value)
            if op == "between":
                op = "<="
                if isinstance(high, str) and isinstance(value, float) and len(high) == WHOLE_DATE:
                    # "From 1 to 13 February 2026": the month is that of both.
                    value, name = f"{high[:8]}{int(value):02d}", next(iter(schema.dates), None)
        if name is None:
            reading.sure = False
            continue
        if high is not None:
            reading.add(place, name, ">=", value)
        reading.add(place, name, op, value if high is None else high)
        reading.used |= {place, *marks}


def _operator(reading: RecordReading, place: int) -> tuple[str, list[int]]:
    """Return how a number compares, and the places that say so; its field may stand between."""

    def beside(kinds: Sequence[str], *, back: bool = False) -> int | None:
        near = nearest(reading, place, kinds, back=back)
        if near is None and (of := nearest(reading, place, ("field",), back=back)) is not None:
            near = nearest(reading, of, kinds, back=back)
        return None if near in reading.used else near

    before = beside((*COMPARES, "between", "from", "sign"), back=True)
    until, after = beside(("until",)), beside(tuple(COMPARES))
    if until is not None and nearest(reading, until, ("number", "date")) == until + 1:
        return "between", [until] if before is None else [before, until]
    for near in (before, after):
        one = reading.matches[near] if near is not None else None
        if one is None or near is None:
            continue
        text = one.text.casefold()
        # "From 150" leads its number at once; «с ценой 150» is "with a price of 150".
        leads = one.is_a("sign") or (one.is_a("from") and near == place - 1)
        if near == before and leads:
            return ">=" if one.is_a("from") else SIGNS.get(text, text) or "=", [near]
        # "or more" follows its number, as any comparison may in Chinese.
        late = text.startswith(tuple(f"{word} " for word in tables()["late"]))
        fits = not late if near == before else late or one.is_a("ge") or HAN.search(text)
        op = next((op for kind, op in COMPARES.items() if one.is_a(kind) and fits), None)
        if op is not None:
            of = nearest(reading, near, ("field",), back=True)  # "no release since 2023"
            denied = is_negated(reading, near) or (of is not None and is_negated(reading, of))
            return TURNED[op] if denied and near == before else op, [near]
    return "=", []


def _limits(reading: RecordReading, place: int, value: float | str) -> bool:
    """Take a small number beside a superlative as how many are listed."""
    if not isinstance(value, float) or not 0 < value <= 100 or not value.is_integer():
        return False
    orders = ("order most", "order least", "most", "least")
    beside = [nearest(reading, place, orders), nearest(reading, place, orders, back=True)]
    listed = nearest(reading, place, ("list",), back=True) is not None
    if beside == [None, None] and not (listed and nearest(reading, place, ("table", "noun"))):
        return False
    reading.limit = int(value)
    reading.used.add(place)
    return True


def _field_of_number(
    reading: RecordReading, place: int, marks: Sequence[int], value: float | str
) -> str | None:
    schema, matches = reading.schema, reading.matches
    dated = isinstance(value, str) or YEAR.fullmatch(f"{value:g}") is not None
    for order in (
        m for p in marks for m in matches[p].meanings if m.kind in ("order gt", "order lt")
    ):
        known = schema.orders(order.name)
        if known and (dated or known[0] not in schema.dates):
            return known[0]
    starts = [place, *marks]
    for start, back in ((min(starts), True), (max(starts), False), (place, False)):
        near = nearest(reading, start, ("field", "hint"), back=back)
        # What names the things themselves is no field of them: "rooms that have four beds".
        phrase = matches[near] if near is not None and near not in reading.used else None
        names = [m.name for kind in ("field", "hint") for m in (phrase.of(kind) if phrase else ())]
        fitting = [n for n in names if (dated if n in schema.dates else schema.numeric(n))]
        if fitting and near is not None:
            reading.used.add(near)
            return fitting[0]
    if dated:
        return next(
            iter([*(m.name for one in matches for m in one.of("hint")), *schema.dates]), None
        )
    numbers = [n for n in schema.fields
               if schema.numeric(n) and schema.tells(n) and n not in schema.dates]  # fmt: skip
    return schema.first(tables()["worth"], numbers) or (numbers[0] if len(numbers) == 1 else None)


def _value(one: PhraseMatch) -> float | str:
    """Return a date, or read a number: the comma of "1,000" and "4,5" sets off other things."""
    if one.is_a("date"):
        return one.text
    text = one.of("number")[0].name
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        found = float(text.replace(",", ""))
    else:
        try:
            found = float(text.replace(",", "."))
        except ValueError:
            found = float(re.sub(r"\D", "", text))
    return min(found, LARGEST)


def with_whole_numbers(text: str) -> str:
    """Write out numbers with a word for thousands or more: "5k", "10 тыс.", "1万"."""

    def written(match: re.Match[str]) -> str:
        word = match["scale"].casefold()
        factor = next(many for scale, many in _scales() if word.startswith(scale))
        return f"{float(match['number'].replace(',', '.')) * factor:.0f}"

    return _scaled().sub(written, text)


@cache
def _scales() -> list[tuple[str, int]]:
    """Return the beginnings of words for thousands and more, the longest first."""
    found = {"k": 1000}
    for one in known_languages().values():
        for word, many in one.read("claims").get("scales", {}).items():
            if many >= 1000:
                found[word if HAN.search(word) or len(word) < LEAST_ENDED else word[:-1]] = many
    return sorted(found.items(), key=lambda one: -len(one[0]))


@cache
def _scaled() -> re.Pattern[str]:
    words = "|".join(
        rf"{word}\w*" if len(word) >= LEAST_ENDED - 1 and not HAN.search(word)
        else word if HAN.search(word) else rf"{word}(?!\w)\.?"
        for word, _ in _scales()
    )  # fmt: skip
    return re.compile(
        rf"(?<![A-Za-z\d.,_])(?P<number>\d{{1,6}}(?:[.,]\d{{1,3}})?) ?(?P<scale>{words})",
        re.IGNORECASE,
    )


def with_iso_dates(text: str) -> str:
    """Write dates and months of a year as ISO 8601 does: "15 марта 2024", "2024年3月"."""

    def written(match: re.Match[str]) -> str:
        if match["name"]:
            month = next(n for n, names in _months().items() if match["name"].casefold() in names)
        else:
            month = int(match["han"])
        day = match["before"] or match["after"] or match["handay"]
        return f"{match['year'] or match['later'] or match['hanyear']}-{month:02d}" + (
            f"-{int(day):02d}" if day else ""
        )

    return _dates().sub(written, text)


@cache
def _months() -> dict[int, frozenset[str]]:
    return {number: frozenset(names) for number, names in tables()["months"].items()}


@cache
def _dates() -> re.Pattern[str]:
    names = "|".join(sorted((n for one in _months().values() for n in one), key=len, reverse=True))
    return re.compile(
        rf"(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?\b(?P<name>{names})\.?"
        r"(?: (?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? (?:of )?(?P<year>\d{4})\b"
        # "between March and May 2025": the year of the second month is that of both.
        rf"|(?=,? ?(?:[–—-]|\w+) ?(?:\d+ )?(?:{names})\.?(?: \d{{1,2}},?)? (?P<later>\d{{4}})\b))"
        r"|(?P<hanyear>\d{4})年(?P<han>\d{1,2})月(?:份|(?P<handay>\d{1,2})[日号])?",
        re.IGNORECASE,
    )


def read_orders(reading: RecordReading) -> None:
    """Find the field that a superlative orders by."""
    schema, matches = reading.schema, reading.matches
    for place, one in enumerate(matches):
        known = [(of[0], kind == "order most") for kind in ("order most", "order least")
                 for m in one.of(kind) if (of := schema.orders(m.name))]  # fmt: skip
        if known and place not in reading.used:
            reading.order = known[0]
            reading.used.add(place)
            return
    for place, one in enumerate(matches):
        if place in reading.used or not one.is_a(*SUPERLATIVE):
            continue
        for back in (False, True):
            near = nearest(reading, place, ("field",), back=back)
            names = [m.name for m in matches[near].of("field")] if near is not None else []
            fitting = [n for n in names if schema.numeric(n) or n in schema.dates]
            if fitting and near is not None and near not in reading.used:
                reading.order = fitting[0], one.is_a("most", "order most")
                reading.used |= {place, near}
                return
        if one.text.casefold() == "top" and (best := schema.first(tables()["best"])):
            reading.order = best, True
            reading.used.add(place)
            return


def read_aggregates(reading: RecordReading) -> None:
    """Find what is counted, grouped or added up."""
    matches, schema = reading.matches, reading.schema
    counts = [place for place, one in enumerate(matches) if one.is_a("count")]
    marks = ("per", "along") if counts or has(reading, "sum", "average") else ("per",)
    for place, one in enumerate(matches):
        near = nearest(reading, place, ("field", "year", "month"))
        if one.is_a(*marks) and near is not None and near not in reading.used:
            if reading.groups is None:
                _group_by(reading, matches[near])
            if reading.groups:
                reading.used |= {place, near}
    _read_winner(reading)
    for kind in ("average", "sum"):
        marked = [p for p, one in enumerate(matches) if one.is_a(kind) and p not in reading.used
                  and not _describes_other(reading, p)]  # fmt: skip
        numbers = [
            (p, m.name) for p, one in enumerate(matches) for m in one.of("field")
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
    elif counts and not _asks_of_one(reading):
        near = nearest(reading, counts[0], ("field",))
        if near is None:  # "价格是多少"
            near = nearest(reading, counts[0], ("field",), back=True)
        names = matches[near].of("field") if near is not None and near not in reading.used else ()
        if any(schema.numeric(m.name) for m in names) or (
            near is not None and matches[near].is_a("filler")
        ):
            return  # "how many pages", "how much does it cost": a field, and no count
        if near is not None and _describes(reading, near):
            names = ()
        reading.aggregate = "groups" if names else "count"
        if names and near is not None:
            reading.groups = names[0].name
            reading.used.add(near)


def _describes_other(reading: RecordReading, place: int) -> bool:
    """Tell whether a mark stands before no number: «общий сеанс» is one of the sessions."""
    following = reading.matches[place + 1 : place + 2]
    return any(
        one.is_a("table") or (not one.meanings and not is_common(one.text)) for one in following
    )


def _asks_of_one(reading: RecordReading) -> bool:
    """Tell whether a number of a record that is named is asked for: "how much is the pump"."""
    schema = reading.schema
    equal = [one["field"] for one in reading.where if one["op"] == "="]
    # No things are named that could be counted, or a thing by its own name.
    one_thing = equal and (not reading.named or any(map(schema.names, equal)))
    return bool(one_thing) and any(
        place not in reading.used and schema.numeric(m.name)
        for place, one in enumerate(reading.matches)
        for m in one.of("field")
    )


def _read_winner(reading: RecordReading) -> None:
    """Read "which author has the most books", or "the most common author"."""
    matches, schema = reading.matches, reading.schema
    marks = [p for p, one in enumerate(matches)
             if p not in reading.used and one.is_a("frequent", "most")]  # fmt: skip
    if not marks or reading.groups is not None or reading.order is not None:
        return
    # Fields that records can be told apart and grouped by.
    asked = [(p, m.name) for p, one in enumerate(matches) for m in one.of("field") if p not in
             reading.used and not (schema.numeric(m.name) or schema.names(m.name))]  # fmt: skip
    things = any(one.is_a("noun", "table") for one in matches)
    person = schema.first(tables()["people"]) if has(reading, "who") else None
    if asked and (things or matches[marks[0]].is_a("frequent")):
        reading.groups = asked[0][1]
        reading.used |= {asked[0][0], marks[0]}
    elif person and things:
        reading.groups = person
        reading.used.add(marks[0])
    if reading.groups:
        reading.limit = reading.limit or 1


def _describes(reading: RecordReading, place: int) -> bool:
    """Tell whether a word that only resembles a field says which records: "urgent tickets"."""
    behind = reading.matches[place + 1 : place + 2]
    akin = all(one.value == AKIN for one in reading.matches[place].of("field"))
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
