"""Questions over records are read by the schema alone: a museum, a garage, in four languages."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal

import pytest
from builders import graded, piece

from core.types import (
    Call,
    Evidence,
    FieldInfo,
    Plan,
    RecordTable,
    SubQuestion,
    ToolSpec,
    Understanding,
)
from reasoning.rendering import render_answer, render_claims
from reasoning.rules.records.answers import record_claims, record_grades
from reasoning.rules.records.fields import asked_fields
from reasoning.rules.records.phrases import Meaning, Phrases, general_phrases
from reasoning.rules.records.questions import read
from reasoning.rules.records.schema import schema_of
from reasoning.verification import unsupported_reason
from stores.sqlite.record_conditions import Condition
from tools.query_records import RecordRow, together


def field(
    name: str, *examples: str, kind: Literal["text", "number"] = "text", values: int = 0
) -> FieldInfo:
    shown = list(examples)
    return FieldInfo(name=name, type=kind, values=values or len(shown), examples=shown)


PAINTINGS = [
    field("title", "Dusk", values=300),
    field("painted_by", "Ada Frost", "Ken Mori", values=250),
    field("year", "1901", "1957", kind="number", values=80),
    field("technique", "oil", "ink", "pastel"),
    field("country", "Japan", "Norway"),
    field("height_cm", "30", "210", kind="number", values=90),
    field("on_display", "true", "false"),
]
REPAIRS = [
    field("order_id", "R-1", values=90),
    field("status", "open", "closed"),
    field("mechanic", "Olga Brandt", "Li Wei"),
    field("received", "2023-05-01", "2024-02-11", values=70),
    field("price", "120", "80", kind="number", values=60),
]


def spec(others: int = 0) -> ToolSpec:
    named = [("paintings.csv", 300, PAINTINGS), ("repair_orders.jsonl", 90, REPAIRS)]
    tables = [
        RecordTable(file=f, records=n, fields=[i.name for i in infos]) for f, n, infos in named
    ]
    return ToolSpec(
        name="query_records",
        base="query_records",
        purpose="",
        fields=[*PAINTINGS, *REPAIRS],
        tables=tables,
        others=others,
    )


def where(found: dict[str, Any], name: str = "where") -> list[str]:
    return sorted(str(Condition.model_validate(one)) for one in found[name])


@pytest.mark.parametrize(
    "question", ["How many tickets are urgent?", "How many urgent tickets are open?"]
)
def test_a_value_that_no_record_has_is_not_passed_over(question: str) -> None:
    """Though "urgent" resembles "urgency", which is what people call a priority."""
    fields = [field("id", "T1", values=40), field("priority", "high", "medium")]
    fields.append(field("status", "open", "closed"))
    table = RecordTable(file="tickets.csv", records=40, fields=[one.name for one in fields])
    tickets = spec().model_copy(update={"fields": fields, "tables": [table]})
    (found,) = read(question, schema_of(tickets))
    assert found["aggregate"] == "count"
    assert "*: urgent" in where(found)


@pytest.mark.parametrize(
    ("question", "conditions"),
    [
        ("How many repair orders have no mechanic?", ["mechanic: –"]),
        (
            "Which closed repair orders are without a mechanic?",
            ["mechanic: –", "status = closed"],
        ),
        ("For which paintings is the technique missing?", ["technique: –"]),
        ("How many paintings have velvet among their techniques?", ["technique: velvet"]),
    ],
)
def test_what_has_no_value_and_what_is_among_several(question: str, conditions: list[str]) -> None:
    assert where(read(question, schema_of(spec()))[0]) == conditions


@pytest.mark.parametrize(
    ("question", "aggregate", "conditions"),
    [
        ("How many paintings are there?", "count", []),
        (
            "How many paintings from Norway are in oil?",
            "count",
            ["country = Norway", "technique = oil"],
        ),
        ("paintings made after 1950", "list", ["year > 1950"]),
        ("Which paintings are not on display?", "list", ["on_display = false"]),
        ("paintings by Ada Frost", "list", ["*: Ada Frost"]),
        ("How many repair orders are opne?", "count", ["status = open"]),
        ("Repair orders received in May 2023", "list", ["received = 2023-05"]),
        ("Сколько открытых заказов?", "count", ["status = open"]),
        ("Скільки картин з Японії?", "count", ["country = Japan"]),
        ("1950年以后有哪些记录？", "list", ["year > 1950"]),
    ],
)
def test_a_question_becomes_conditions_on_its_fields(
    question: str, aggregate: str, conditions: list[str]
) -> None:
    found = read(question, schema_of(spec()))[0]
    assert where(found) == conditions
    assert found["aggregate"] == aggregate


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What is the tallest painting?",
            {"order_by": "height_cm", "descending": True, "limit": 1},
        ),
        ("3 oldest paintings", {"order_by": "year", "descending": False, "limit": 3}),
        ("average price of closed repair orders", {"aggregate": "average", "field": "price"}),
        ("How many repair orders per year?", {"by": "received", "characters": 4}),
        ("How many paintings per technique?", {"aggregate": "groups", "by": "technique"}),
        (
            "average price of repair orders per mechanic",
            {"aggregate": "average", "field": "price", "by": "mechanic"},
        ),
        ("What is the newest repair order?", {"order_by": "received", "limit": 1}),
    ],
)
def test_orders_and_groups_come_from_the_schema(question: str, expected: dict[str, Any]) -> None:
    found = read(question, schema_of(spec()))[0]
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("question", "asked", "among"),
    [
        ("What share of the paintings is in oil?", ["technique = oil"], []),
        (
            "What share of paintings from Japan is in oil?",
            ["technique = oil"],
            ["country = Japan"],
        ),
        ("Какой процент заказов не закрыт?", ["status != closed"], []),
    ],
)
def test_a_share_is_of_what_is_said_before(
    question: str, asked: list[str], among: list[str]
) -> None:
    found = read(question, schema_of(spec()))[0]
    assert found["aggregate"] == "share"
    assert (where(found), where(found, "among")) == (asked, among)


def test_the_word_for_when_it_was_done_is_no_state() -> None:
    found = read("Repair orders opened between March and May 2024", schema_of(spec()))[0]
    assert where(found) == ["received <= 2024-05", "received >= 2024-03"]


@pytest.mark.parametrize(
    "question",
    [
        "How many people live in Norway?",
        "Who painted the ceiling of the chapel?",
        "When was the status of the colony changed?",
        "What is the most common language in Japan?",
        "Как открыть заказ?",
        "What does an open pastel cost in Japan?",
        "",
    ],
)
def test_beside_prose_a_question_that_names_no_records_is_left_alone(question: str) -> None:
    assert read(question, schema_of(spec(others=50))) == []


@pytest.mark.parametrize(
    ("question", "conditions"),
    [
        ("How many pastels are there?", ["technique = pastel"]),
        ("How many are in Japan?", ["country = Japan"]),
    ],
)
def test_beside_prose_values_of_records_name_them_too(question: str, conditions: list[str]) -> None:
    [found] = read(question, schema_of(spec(others=50)))
    assert found["aggregate"] == "count"
    assert where(found) == conditions


def test_what_was_counted_and_listed_is_cited_and_stands_the_check() -> None:
    record = piece("title: Dusk\npainted by: Ada Frost\nyear: 1957", kind="record", title="Dusk")
    row = RecordRow("en", ["paintings.csv"])
    row.counted(1, 300, [Condition(field="year", op=">", value=1950)])
    counted = row.evidence([record])
    beside = piece("Dusk is when the sun sets in 1957.")
    call = Call(tool="query_records", arguments={"show": ["painted_by"], "where": []})
    asked = SubQuestion(id="q1", text="?", query="?", wants="list", calls=[call])
    grades = {g.evidence_id: g.grade for g in record_grades(asked, [counted, record, beside])}
    assert grades[beside.evidence_id] == 0
    evidence: list[Evidence] = [
        graded(one, grades[one.evidence_id]) for one in (counted, record, beside)
    ]
    claims, rest = record_claims(Plan(questions=[asked]), evidence)
    known = {item.evidence_id: item for item in evidence}
    assert [unsupported_reason(claim, known) for claim in claims] == ["", ""]
    assert not rest.questions
    assert render_answer(
        Understanding(question="?", language="en"), Plan(questions=[asked]), claims, [], evidence
    ).split("\n") == [
        "1 of 300 records in paintings.csv match: year > 1950. [1]",
        "1. Dusk — painted by: Ada Frost [2]",
    ]


def test_one_table_that_is_kept_twice_answers_once_and_others_stay_out() -> None:
    text = "boat: Tern\nspeed: 31\nharbour: Sund"
    twins = [
        piece(text, kind="record", evidence_id=key, chunk_id=key, source=f"{key}.csv#1")
        for key in ("a1", "b1")
    ]
    call = Call(
        tool="query_records",
        arguments={"aggregate": "list", "order_by": "speed", "show": ["speed"], "where": []},
    )
    asked = SubQuestion(id="q1", text="?", query="?", wants="list", calls=[call])
    known = [Condition(field="harbour", op="=", value="Sund")]
    rows = []
    for file, count, listed in (("a.csv", 4, twins[:1]), ("b.csv", 4, twins[1:]), ("c.csv", 0, [])):
        row = RecordRow("en", [file])
        row.counted(count, 8, known)
        rows.append(row.evidence(listed))
    evidence = [graded(one, 3) for one in (*rows, *twins)]
    plan = Plan(questions=[asked])
    claims, _ = record_claims(plan, evidence)
    assert [one.text for one in claims if one.text.startswith("boat")] == ["boat: Tern — speed: 31"]
    assert not any("c.csv" in one.text for one in claims)
    assert len({one.chunk_id for one in claims[0].citations}) == 2
    assert unsupported_reason(claims[0], {one.evidence_id: one for one in evidence}) == ""


def test_the_one_record_is_shown_first_as_it_stays() -> None:
    """Its claim is streamed before the one that says what was counted."""
    record = piece("boat: Tern\nspeed: 31", kind="record")
    row = RecordRow("en", ["a.csv"])
    row.counted(4, 8, [Condition(field="harbour", op="=", value="Sund")])
    evidence = [graded(row.evidence([record])), graded(record)]
    arguments = {"aggregate": "list", "order_by": "speed", "show": ["speed"], "where": []}
    call = Call(tool="query_records", arguments=arguments)
    plan = Plan(questions=[SubQuestion(id="q1", text="?", query="?", wants="list", calls=[call])])
    claims, _ = record_claims(plan, evidence)
    first, whole = (render_claims(plan, some, evidence) for some in (claims[:1], claims))
    assert first == "boat: Tern — speed: 31 [1]" and whole.startswith(f"{first}\n4 of 8")


def test_a_share_says_of_what_and_a_list_that_it_is_cut() -> None:
    row = RecordRow("en")
    known = [Condition(field="technique", op="=", value="oil")]
    row.counted(3, 8, known, [Condition(field="country", op="=", value="Japan")], share=True)
    row.say("cut", shown=2, count=3, most=3)
    assert row.evidence([]).text == (
        "Of 8 records with country = Japan, 3 match: technique = oil; that is 37.5 %;"
        " the first 2 of 3 are listed (“show 3 …” lists 3)."
    )


def test_nothing_is_graded_where_no_record_query_answered() -> None:
    asked = SubQuestion(id="q1", text="Is it dark?", query="?", wants="yesno")
    assert record_grades(asked, [piece("Dusk.")]) == []


def test_several_collections_are_counted_together_with_the_share_of_each() -> None:
    rows, counts = {}, {"north": 2, "south": 3}
    for name, count in counts.items():
        row = RecordRow("en")
        row.counted(count, 10, [Condition(field="year", op=">", value=1950)])
        rows[name] = row.evidence([]).model_copy(update={"collection": name})
    assert together(rows, counts, "en").text == (
        "5 together. north: 2 of 10 records match: year > 1950."
        " south: 3 of 10 records match: year > 1950."
    )
    assert together(rows, {"north": 2}, "en").text.startswith("north: 2 of 10")


VALUES = ("IT-компания", "python для детей", "б123", "наука и техника", "R-1", "дом")


@pytest.mark.parametrize(
    "text",
    [
        "How many IT companies and python books are there after 1990?",
        "Which a123 or b123 has the most pages, it or r-1?",
        "List all books by Ada Frost, newest first",
        "哪本书的价格最高?",
    ],
)
def test_phrases_in_cyrillic_mean_nothing_to_a_text_without_it(text: str) -> None:
    listed = [(value.casefold(), Meaning("value", "kind", value)) for value in VALUES]
    mixed = Phrases(listed, general_phrases())
    words = [*text.split(), "a123", "comp", "nauka"]
    found = mixed.scan(text), [mixed.corrected(word) for word in words]
    mixed._held = lambda text: mixed._all  # type: ignore[method-assign]
    assert (mixed.scan(text), [mixed.corrected(word) for word in words]) == found


def test_an_english_question_loads_no_dictionary_of_another_language() -> None:
    code = (
        f"import sys; from {asked_fields.__module__} import asked_fields;"
        "print(asked_fields('Who published the atlas?').fields, 'pymorphy3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "('publisher',) False\n"
