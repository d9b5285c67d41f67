"""Read a question as a query over records: conditions, what is listed or counted, its order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

from core.language.analysis import has_words
from core.metadata import ANY_FIELD, find_title
from core.types import Call, ToolSpec
from reasoning.rules.records.numbers import (
    read_aggregates,
    read_numbers,
    read_orders,
    with_iso_dates,
)
from reasoning.rules.records.phrases import CYRILLIC, HAN, is_common, tables
from reasoning.rules.records.schema import (
    AKIN,
    NEAR,
    TABLE_SIGN,
    RecordReading,
    RecordSchema,
    has,
    is_negated,
    label_of,
    nearest,
    schema_of,
)


def read_values(reading: RecordReading) -> None:
    """Make a condition of each value in the question; those of one field are alternatives."""
    chosen: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for place, one in enumerate(reading.matches):
        if place in reading.used or not one.is_a("value", "flag"):
            continue
        states = one.is_a("filler") and any(
            reading.schema.canonical[m.name] == "status" for m in one.of("value")
        )
        if one.is_a("count", "list", "not", "filler", "per") and not (one.is_a("flag") or states):
            continue
        after = nearest(reading, place, ("field",)) if one.is_a("average", "sum") else None
        named = reading.matches[after].of("field") if after is not None else ()
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
    for place, one in enumerate(reading.matches):
        if place in reading.used or not one.is_a("field") or one.is_a("table", "value"):
            continue
        sides = (nearest(reading, place, ("missing",), back=back) for back in (False, True))
        mark = next((near for near in sides if near is not None), None)
        if mark is not None or is_negated(reading, place):
            reading.used |= {place} if mark is None else {place, mark}
            name = one.of("field")[0].name
            # Of what is counted nothing is there where it is none.
            none = reading.schema.numeric(name) and "0" in reading.schema.fields[name].examples
            reading.add(place, name, "=" if none else "missing", 0.0 if none else "")


def read_free(reading: RecordReading) -> None:
    """Make a condition of what costs nothing, where a price of some records is none."""
    schema = reading.schema
    for place, one in enumerate(reading.matches):
        price = schema.first(tables()["worth"])
        free = one.is_a("free") and not one.is_a("value") and place not in reading.used
        if free and price and schema.numeric(price) and "0" in schema.fields[price].examples:
            reading.used.add(place)
            reading.add(place, price, "!=" if is_negated(reading, place) else "=", 0.0)


def _fields_near(reading: RecordReading, place: int) -> dict[str, int]:
    """Return the fields that are named on either side of a phrase, and where."""
    sides = [nearest(reading, place, ("field",), back=back) for back in (True, False)]
    return {m.name: p for p in sides if p is not None for m in reading.matches[p].of("field")}


def read_unknown(reading: RecordReading, question: str) -> bool:
    """Look for the words that nothing explains in the fields named beside them, or in all.

    Tells whether there are such words.
    """
    counts = reading.aggregate == "count"
    runs: list[tuple[int, int]] = []
    for place, one in enumerate(reading.matches):
        if place in reading.used or (one.meanings and not one.is_a("quoted", "noun")):
            # What only resembles a field is a value that is counted: "how many are urgent".
            if place in reading.used or not (counts and all(m.value == AKIN for m in one.meanings)):
                continue
        if one.is_a("noun") and len(one.meanings) > len(one.of("noun")):
            continue
        named = place > 0 and one.text[:1].isupper()  # "in May"
        if not one.is_a("noun", "quoted") and is_common(one.text) and not named:
            continue
        if _is_of_label(reading, place) or (place and reading.matches[place - 1].is_a("per")):
            continue
        if _is_thing(reading, place):
            # "Rows" are records of any kind, and nothing else; "items" may be something else.
            general = all(m.name == "record" for m in one.of("noun")) and one.is_a("noun")
            reading.passed_over += not general or one.text.casefold() in tables()["generic"]
            continue
        joined = runs and _joined(reading, runs[-1][1], place, question)
        runs = [*runs[:-1], (runs[-1][0], place)] if joined else [*runs, (place, place)]
    for first, last in runs:
        start, end = reading.matches[first].start, reading.matches[last].end
        if first == last and reading.matches[first].is_a("quoted"):
            start, end = start + 1, end - 1
        words = re.sub(r"['’]s\b", "", question[start:end]).strip('"“”«»„《》「」 ')
        before = nearest(reading, first, ("field",), back=True)
        within = nearest(reading, last, ("within",))
        if before is None and within is not None:  # "have history among their subjects"
            before = nearest(reading, within, ("field",))
        beside = None if before in reading.used else before
        near = reading.matches[beside].of("field") if beside is not None else []
        schema = reading.schema
        textual = [m.name for m in near if m.value != AKIN and m.name not in schema.dates
                and not schema.numeric(m.name)]  # fmt: skip
        reading.used |= {beside} if textual and beside is not None else set()
        op = "!=" if is_negated(reading, first) else "has"
        reading.add(first, textual[0] if textual else ANY_FIELD, op, words)
    return bool(runs)


def _is_of_label(reading: RecordReading, place: int) -> bool:
    """Tell whether a word names a field again whose value is named: "at the advanced level"."""
    word = reading.matches[place].text.casefold()
    for one in reading.where:
        label = label_of(one["field"]).casefold()
        if HAN.search(word):
            if word in label:
                return True
        elif len(commonprefix([label, word])) >= min(LEAST_LABEL, len(label)):
            return True
    return False


def _joined(reading: RecordReading, last: int, place: int, question: str) -> bool:
    """Tell whether unknown words are one name: side by side, or with small words between names."""
    between = reading.matches[last + 1 : place]
    if "," in question[reading.matches[last].end : reading.matches[place].start]:
        return False
    named = all(reading.matches[p].text[:1].isupper() for p in (last, place))
    small = all(one.is_a("filler", "until") or is_common(one.text) for one in between)
    return not between or (named and small and len(between) <= 2)


def _is_thing(reading: RecordReading, place: int) -> bool:
    """Tell whether a word only says what is asked for: the first noun, or of "how many gadgets".

    That is taken so where no other names a file's records, and there is nothing but records.
    """
    one, asks = reading.matches[place], ("count", "list", "order most", "order least", "most")
    if reading.named:
        return False
    if one.is_a("noun"):
        return not any(other.is_a("noun") for other in reading.matches[:place])
    if reading.schema.prose or nearest(reading, place, asks, back=True) is None:
        return False
    examples = (value for info in reading.schema.fields.values() for value in info.examples)
    # "How many chairs", of an inventory that has some, is no thing of that kind.
    return one.text.islower() and not any(has_words(value, one.text) for value in examples)


RECORDS = "query_records"
LEAST_LABEL = 3  # letters that a word and the name of a field share: "рівні", "рівень"; chosen
PLURAL = re.compile(r"[^s]s$")  # of English, but "class"
LISTED = 10  # chosen, not measured
# Chosen, not measured:
SUPERLATIVES = 5  # listed where several are asked for, and no number says how many
GROUPS = 20  # chosen, not measured
SHOWN = 4  # fields beside a title; chosen, not measured
# Chosen, not measured:
MOST_GUESSES = 1  # names that a question beside prose leaves to be found in the records
BINDING = ("not", "order most", "order least", "most", "least", "average")  # none is passed over
WANT = ("list", "who", "when", "count")


def record_calls(
    question: str, language: str, tools: Sequence[ToolSpec], *, unanswered: bool = False
) -> list[Call]:
    """Return the calls that answer a question over records, none where it is no such question.

    It is one when every word of it is explained by the schema of the records, or is looked for in
    their values; beside prose, it must name the things that the records are of, or values that they
    have. Where no passage answered it (`unanswered`), the field is enough that it orders by or adds
    up. One call is of files whose records have the same fields, and several are as good where the
    question means the things of each.
    """
    found: list[tuple[int, list[Call]]] = []
    for spec in tools:
        if spec.base == RECORDS and spec.tables:
            if spec.scoped:  # it knows its own source alone; a profile scopes tools for several
                spec = spec.model_copy(update={"others": max(1, spec.others)})
            if made := read(question, schema_of(spec), unanswered=unanswered):
                guesses = sum(one["op"] == "has" for one in made[0]["where"])
                spoken = {"language": language}
                found.append((guesses, [Call(tool=spec.name, arguments=a | spoken) for a in made]))
    return min(found, key=lambda one: one[0], default=(0, []))[1]


def read(question: str, schema: RecordSchema, *, unanswered: bool = False) -> list[dict[str, Any]]:
    """Return the arguments of the queries that a question asks for, none where it asks for none.

    Of several files those are meant that the question names, and that explain most of it.
    """
    question = with_iso_dates(question)
    if not schema.files:
        return []
    named = named_files(RecordReading(schema.scan(question), schema))
    # A table in a document is named by what stands around it, which is prose.
    prose = bool(schema.prose) and not (named and all(TABLE_SIGN not in one for one in named))
    groups = schema.alike(named or [one.file for one in schema.files])
    readings = [
        (files, _read(question, schema.alone(files), beside_prose=prose, unanswered=unanswered))
        for files in groups
    ]
    known = [
        (found[0], found[1] | {"file": _named(files, schema)}) for files, found in readings if found
    ]
    if prose:  # beside prose nothing but values that records have is sure
        guessed = [one for one in known if one[0] == 1]
        # "Which has the largest cost" asks for a row, "what is the largest cost" may be prose.
        which = any(one.is_a("list") and not one.is_a("vague") for one in schema.scan(question))
        sure = [_is_sure, *([_is_ordered] if which or unanswered else [])]
        known = [one for one in known if not one[0] and (named or any(is_(one[1]) for is_ in sure))]
        known = known or _of_things(question, schema, guessed)
    best = min((unknown for unknown, _ in known), default=0)
    return [arguments for unknown, arguments in known if unknown == best][: len(named) or 1]


def _read(
    question: str, schema: RecordSchema, *, beside_prose: bool = False, unanswered: bool = False
) -> tuple[int, dict[str, Any]] | None:
    """Return how much of the question the schema does not explain, and the arguments."""
    reading = RecordReading(schema.scan(question), schema)
    reading.named = bool(named_files(reading))
    read_numbers(reading)
    read_orders(reading)
    read_values(reading)
    read_missing(reading)
    read_free(reading)
    read_aggregates(reading)
    unknown = read_unknown(reading, question)
    _asked(reading)
    guessed = sum(one["field"] == ANY_FIELD for one in reading.where)
    arguments = _arguments(reading, unknown, guessed)
    asks = reading.aggregate != "list" or _lists(reading) or reading.verified or unanswered
    if beside_prose and not asks:
        return None
    if arguments is not None and _looks_up(reading) and schema.is_within and not unanswered:
        return None  # the row itself is in the text, and says so better
    return None if arguments is None else (guessed + reading.passed_over, arguments)


def _looks_up(reading: RecordReading) -> bool:
    """Tell whether a question asks for what stands in one row."""
    # "How much is a return for a bicycle?" counts nothing: it asks for a column.
    asks = {*reading.shown} - {one["field"] for one in reading.where}
    plain = reading.aggregate == "list" or (reading.aggregate == "count" and asks)
    compared = any(one["op"] != "=" for one in reading.where)
    return bool(plain and reading.order is None) and not (compared or has(reading, "list"))


def _lists(reading: RecordReading) -> bool:
    """Tell whether a question asks for things by more than "what"."""
    kinds = (one for one in reading.matches if one.is_a(*WANT, "order most", "order least"))
    return any(not one.is_a("vague") for one in kinds)


def _is_sure(arguments: dict[str, Any]) -> bool:
    """Tell whether a query counts or lists what exact values of its records tell apart."""
    where = [*arguments["where"], *arguments.get("among", ())]
    return bool(where) and all(one["op"] == "=" and one["field"] != ANY_FIELD for one in where)


def _is_ordered(arguments: dict[str, Any]) -> bool:
    """Tell whether a query orders its records by a field, or adds one up."""
    return bool(arguments.get("order_by") or arguments.get("field"))


def _of_things(
    question: str, schema: RecordSchema, known: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    """Return the sure query that leaves open but what the things are called that it lists.

    "Which gatherings does Lee lead" lists what has Lee for its leader. In letters other than those
    of the files' names: else the name of a file says what its records are.
    """
    found = schema.scan(question)
    labels = {m.name for one in found for m in one.of("field") if m.value != AKIN}
    made = []
    for _, arguments in known:
        where = [one for one in arguments["where"] if one["field"] != ANY_FIELD]
        guesses = [one["value"] for one in arguments["where"] if one["field"] == ANY_FIELD]
        named = any(one.is_a("noun") for guess in guesses for one in schema.scan(guess))
        sure = where and all(one["op"] == "=" for one in where)
        if guesses and not named and (sure or (not where and arguments.get("order_by") in labels)):
            made.append((0, arguments | {"where": where}))
    listed = all(one["aggregate"] == "list" for _, one in made)
    foreign = HAN.search(question) or CYRILLIC.search(question)
    return made if listed and foreign and len(made) == 1 else []


def named_files(reading: RecordReading) -> list[str]:
    """Return the files whose things the question names; their names are explained thereby."""
    schema, named = reading.schema, list[list[str]]()
    all_files = [one.file for one in schema.files]
    for place, one in enumerate(reading.matches):
        if not one.is_a("table", "noun") or one.is_a("value", "flag"):
            continue
        asked = [m.name for m in one.of("field") if not schema.names(m.name)]
        # What is called as the first column of a table in a document may be asked for of others.
        own = [m.name for m in one.of("table") if not (asked and TABLE_SIGN in m.name)]
        if schema.prose and not own and one.text.casefold() in tables()["generic"]:
            continue
        found = own or [f for noun in one.of("noun") for f in schema.of_noun(noun.name)]
        known = [file for file in dict.fromkeys(found) if file in all_files]
        if known and (own or not asked):
            named.append(known)
            reading.used.add(place)
    best = min(named, key=len, default=[])
    for place, one in enumerate(reading.matches):
        other = one.is_a("value", "field", "flag") or is_common(one.text)
        part = schema.with_word(best, one.text) if place not in reading.used and not other else []
        if part:
            reading.used.add(place)
            best = part
    return best


def _named(files: Sequence[str], schema: RecordSchema) -> str | list[str]:
    """Return the files as an argument names them; nothing where they are all."""
    return "" if len(files) == len(schema.files) else files[0] if len(files) == 1 else [*files]


def _asked(reading: RecordReading) -> None:
    """Show the fields that are named and nothing else is made of."""
    schema = reading.schema
    people = tables()["people"]
    for place, one in enumerate(reading.matches):
        if place not in reading.used and one.is_a("field") and not one.is_a("filler"):
            names = [m.name for m in one.of("field")]
            reading.shown += names[:1] if not set(names) & set(reading.shown) else []
    if not reading.shown and reading.where and has(reading, "count", "vague"):  # "what is the cost"
        costs = [m.name for one in reading.matches if one.is_a("filler") for m in one.of("field")]
        reading.shown += [name for name in costs if schema.numeric(name)][:1]
    person = schema.first(people) if has(reading, "who") and not reading.groups else None
    if person and not {schema.canonical[name] for name in reading.shown} & set(people):
        reading.shown.append(person)
    if has(reading, "when") and schema.dates and not set(schema.dates) & set(reading.shown):
        hints = [m.name for one in reading.matches for m in one.of("hint")]
        reading.shown.append([*hints, *schema.dates][0])


def _verified(reading: RecordReading) -> bool:
    """Ask a record that is named for the fields of what else is said: "is the Teal in repair?"."""
    fields, where = reading.schema.fields, reading.where
    naming = [
        one
        for one in where
        if one["op"] == "=" and one["field"] in fields and reading.schema.names(one["field"])
    ]
    others = [one["field"] for one in where if one not in naming]
    plain = reading.aggregate == "list" and reading.order is None and not has(reading, *WANT)
    if not (plain and naming and others) or ANY_FIELD in others:
        return False
    reading.where = naming
    reading.shown += [one for one in others if one not in reading.shown]
    return True


def _arguments(reading: RecordReading, unknown: bool, guesses: int) -> dict[str, Any] | None:
    schema = reading.schema
    reading.verified = _verified(reading)
    sure_of = any(one["op"] != "has" and one["field"] != ANY_FIELD for one in reading.where)
    counted = reading.aggregate != "list" or reading.order is not None
    listed = has(reading, *WANT)
    noun = reading.named or (not schema.prose and has(reading, "noun"))
    signal = counted or sure_of or (unknown and (noun or (listed and reading.shown)))
    everything = listed and noun and not reading.shown and not unknown
    left = [one for place, one in enumerate(reading.matches) if place not in reading.used]
    if (
        not (reading.sure and (signal or everything))
        or not (counted or listed or noun or reading.verified)
        or has(reading, "how")
        or any(one.is_a(*BINDING) for one in left)
        or guesses > (MOST_GUESSES if schema.prose else NEAR)
    ):
        return None
    where, among = reading.where, list[dict[str, Any]]()
    if reading.aggregate == "share":
        where, among = reading.shared()
        if not where:
            return None
    arguments: dict[str, Any] = {"where": where, "aggregate": reading.aggregate}
    if reading.groups is not None:
        arguments |= {"by": reading.groups, "characters": reading.characters}
    if reading.groups is not None or reading.adds is not None:
        arguments |= {"field": reading.adds, "limit": reading.limit or GROUPS}
    elif reading.order is not None:
        plural = any(
            one.is_a("noun", "table") and PLURAL.search(one.text) for one in reading.matches
        )
        name, down = reading.order
        arguments |= {"order_by": name, "descending": down}
        arguments |= {"limit": reading.limit or (SUPERLATIVES if plural else 1)}
        reading.shown = list(dict.fromkeys([*reading.shown, name]))
    else:
        arguments |= {"among": among, "limit": reading.limit or LISTED}
    named = [name for name in schema.fields if schema.names(name)]
    if not named and not find_title(schema.fields):  # rooms have numbers
        named = [one.fields[0] for one in schema.files[:1] if schema.numbers_each(one)]
    codes = [name for name in named if schema.is_code(name)]
    if codes or find_title(schema.fields):  # else a record is called by its first name
        named = codes
    return arguments | {"show": [*named[:1], *reading.shown][:SHOWN]}
