"""Read how mature, active, known, long, small or large a thing must be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from core.errors import CallerError
from core.types import ToolSpec
from reasoning.recommend.need import (
    CONTRADICTION,
    SMALL,
    TEXT,
    Constraint,
    Need,
    add_values,
    project_nouns,
)
from reasoning.recommend.roles import cue, is_denied, maturity_of, tables, with_marks
from reasoning.recommend.values import find_values
from reasoning.rules.records.numbers import read_numbers as read_number_phrases
from reasoning.rules.records.schema import RecordReading, nearest, schema_of

MATURE = 0.6  # from here on a thing is mature: incubating, or 1,000 stars; chosen, not measured
REACH = 4  # phrases around a number that may belong to it; chosen, not measured
YEAR = re.compile(r"(?:1[5-9]|2[01])\d\d(?!\d)")  # in which anything here was made or changed
BESIDE = 12  # characters between a field's name and a number that may be its limit; chosen
MAINTAINED = 0.5  # activity of a year ago: half of today's


def read_maturity(need: Need) -> None:
    """Read the words for maturity, where anything here says how mature a document is."""
    info = need.roles.get("maturity")
    for one in find_values(need.text, info):
        assert info is not None
        near = rf"^[ -](?:\w+ )?(?:{project_nouns()}|level|stage)s?\b"
        label = info.name.rsplit(".", 1)[-1].replace("_", " ")
        after = need.text[one.end :]
        meant = re.search(near, after, re.IGNORECASE) or label in need.text.casefold()
        if meant and maturity_of(one.name) is not None:
            add_values(need, "maturity", info.name, [one])
            return
    known = next((need.roles[one] for one in ("maturity", "stars") if one in need.roles), None)
    mature, early = cue("mature").search(need.text), cue("experimental").search(need.text)
    if not (mature or early):
        return
    if known is None:
        need.note(mature or early)
        return
    if mature and early:
        raise CallerError(CONTRADICTION, value=f"{mature[0]}, {early[0]}", hint="leave one out")
    least, most = (MATURE, None) if mature else (None, MATURE)
    match = mature or early
    assert match is not None
    constraint = Constraint(wanted=match[0], field=known.name, least=least, most=most)
    need.add("maturity", constraint, match.span())


def read_degrees(need: Need) -> None:
    """Read the words for how active, well known and long a document is, by its own fields."""
    text, roles = need.text, need.roles
    updated = roles.get("updated")
    match = cue("maintained").search(text)
    if match and not updated:
        need.note(match)
    elif match and updated:
        constraint = Constraint(wanted=match[0], field=updated.name, least=MAINTAINED)
        need.add("activity", constraint, match.span())
    match = None if need.has("little_known") else cue("popular").search(text)
    for role, least in tables()["popular"].items() if match else ():
        if role in roles and match and "popularity" not in need.constraints:
            filters = [f"{roles[role].name}>={least}"]
            constraint = Constraint(wanted=match[0], field=roles[role].name, filters=filters)
            need.add("popularity", constraint, match.span())
    if match and "popularity" not in need.constraints:
        need.note(match)
    for name, op in (("short", "<="), ("long", ">=")):
        match = cue(name).search(text)
        if match and "pages" in roles:
            filters = [f"{roles['pages'].name}{op}{tables()['pages'][name]}"]
            constraint = Constraint(wanted=match[0], field=roles["pages"].name, filters=filters)
            need.add("length", constraint, match.span())
        elif match:
            need.note(match)


def read_size(need: Need) -> None:
    """Read that a thing must be small: by a field, else by what documents say of themselves.

    Of numbers the lower half of those that are here counts as small.
    """
    matches = [
        match
        for match in cue(SMALL).finditer(need.rest)
        if cue("before_size").search(_without_wish(need.rest[: match.start()]))
        and not is_denied(need.text, match.start())
    ]
    if not matches:
        return
    info, wanted = need.roles.get("size"), ", ".join(one[0] for one in matches)
    if info is None and not need.is_software:
        return
    if info is None:
        constraint = Constraint(wanted=wanted, field=TEXT, cue=SMALL)
    elif info.type == "number":
        limit = median(float(one) for one in info.examples)
        constraint = Constraint(
            wanted=wanted, field=info.name, filters=[f"{info.name}<={_number(limit)}"]
        )
    else:
        values = sorted(one for one in info.examples if cue(SMALL).search(one))
        constraint = Constraint(wanted=wanted, field=info.name, cue=SMALL, values=values)
    need.add("size", constraint, *(one.span() for one in matches))


def _without_wish(text: str) -> str:
    return cue("wishes").sub("", text)


def read_numbers(need: Need, spec: ToolSpec) -> None:
    """Read limits of numbers and dates whose field the need names: "more than 1000 stars"."""
    schema = schema_of(spec)
    reading = RecordReading(schema.scan(need.text), schema)
    read_number_phrases(reading)
    ranges: dict[str, list[tuple[str, float | str]]] = {}
    for place, one in zip(reading.places, reading.where, strict=True):
        near = [nearest(reading, place, ("field", "hint"), back=back) for back in (True, False)]
        beside = [reading.matches[p] for p in reading.used if abs(p - place) <= REACH]
        named = any(p is not None for p in near) or any(
            m.name == one["field"] for phrase in beside for m in phrase.of("field")
        )
        marks = any(reading.matches[p].is_a("order gt", "order lt") for p in reading.used)
        dated = one["field"] in schema.dates
        if not dated if one["op"] == "=" else not (named or marks or dated):
            continue
        if dated and not YEAR.match(str(one["value"])):
            continue  # "1000 to 5000 stars"
        behind = reading.matches[place + 1 : place + 2]  # "50 forks", whatever stands before
        fields = [m.name for phrase in behind for m in phrase.of("field") if schema.numeric(m.name)]
        name = fields[0] if fields else one["field"]
        limits = ranges.setdefault(name, [])
        limits.append((one["op"], one["value"]))
        places = [p for p in reading.used if abs(p - place) <= REACH]
        places += [place + 1] if fields else []
        spans = [(reading.matches[p].start, reading.matches[p].end) for p in places]
        filters = [f"{name}{op}{_number(value)}" for op, value in limits]
        wanted = need.text[min(s for s, _ in spans) : max(e for _, e in spans)]
        constraint = Constraint(wanted=wanted, field=name, filters=filters)
        label = name.rsplit(".", 1)[-1].replace("_", " ")
        need.add(label, constraint, *(with_marks(need.text, *span) for span in spans))
        _check_range(label, limits)
    for match in reading.matches:
        fields = [one.name for one in match.of("field") if schema.numeric(one.name)]
        around = need.text[max(0, match.start - BESIDE) : match.end + BESIDE]
        read = any(start < match.end and match.start < end for start, end in need.spans)
        if fields and not read and re.search(r"\d", around):
            word = need.text[match.start : match.end]
            need.notes.append(f"the number beside “{word}” is not read as a limit")


def _number(value: float | str) -> str:
    return f"{value:.15g}" if isinstance(value, float) else value


def _check_range(label: str, limits: Sequence[tuple[str, float | str]]) -> None:
    low = [value for op, value in limits if op.startswith(">")]
    high = [value for op, value in limits if op.startswith("<")]
    strict = any(len(op) == 1 for op, _ in limits)
    for least in low:
        for most in high:
            numbers = isinstance(least, float) and isinstance(most, float)
            if not numbers and not (isinstance(least, str) and isinstance(most, str)):
                continue
            if least > most or (least == most and strict):  # type: ignore[operator]
                shown = f"{label} {' and '.join(f'{op} {_number(v)}' for op, v in limits)}"
                raise CallerError(CONTRADICTION, value=shown, hint="nothing can be both")
