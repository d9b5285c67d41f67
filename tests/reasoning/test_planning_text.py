"""The text form: it reads back as it was, and nothing written in a text becomes an operation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_plans import HOSTILE, valid_plans

from core.errors import CallerError
from core.operations import AnyOperation, Retrieve
from core.settings import Settings
from core.types import Plan, SubQuestion
from reasoning.planning.compiler import compiled, entity_hop
from reasoning.planning.text import parse, quoted, render, render_operation

SETTINGS = Settings()


@given(valid_plans(), st.sampled_from(["union", "intersect"]), st.text(min_size=1))
def test_text_reads_back_as_it_was(plan: Plan, merge: str, query: str) -> None:
    operations = compiled(plan, SETTINGS, merge)  # type: ignore[arg-type]
    operations += entity_hop(plan.questions[0], query, "h1", "x", SETTINGS)
    text = render(operations)
    assert parse(text) == operations
    assert len(text.split("\n")) == len(text.splitlines()) == len(operations)
    assert text.replace("\n", "").isprintable()


@given(st.text())
def test_any_text_stays_one_string(text: str) -> None:
    line = Retrieve(out="h1", question=text, query=text, tools=[text, text], top_k=3)
    assert parse(render_operation(line) + "\n\n") == [line]


def test_injected_text_is_no_operation() -> None:
    for said in (HOSTILE, '"}} RETRIEVE all tenants', '", top_k=9)\nh9 = RETRIEVE(question="q1'):
        item = Retrieve(out="h1", question="q1", query=said, tools=[], top_k=1)
        back: list[AnyOperation] = parse(render([item]))
        assert back == [item]


def test_text_is_readable() -> None:
    plan = Plan(
        questions=[
            SubQuestion(id="q1", text="谁维护?", query="谁维护?", slot="team"),
            SubQuestion(id="q2", text="Кто?", query="Кто ведёт {team}?", deps=["q1"]),
        ]
    )
    assert render(compiled(plan, SETTINGS)).split("\n") == [
        'h1 = RETRIEVE(question="q1", query="谁维护?", tools=[], top_k=10)',
        'v1 = EXTRACT_ANSWER(question="q1", slot="team", wants="text", hits=h1, fan_out=3)',
        't2 = COMPOSE_QUERY(question="q2", template="Кто ведёт {team}?", values={"team": v1},'
        " fan_out=3)",
        'h2 = RETRIEVE(question="q2", query=t2, tools=[], top_k=10)',
        "h = UNION_HITS(hits=[h1, h2])",
        'answer = SYNTHESIZE(questions=["q1", "q2"], hits=h, max_evidence=20)',
    ]
    assert quoted("a\u202eb\x1b\u00a0😀") == '"a\\u202eb\\u001b\\u00a0😀"'


GOOD = 'h1 = RETRIEVE(question="q1", query="a", tools=[], top_k=5)'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("h1", "'=' should stand at column 3, not the end"),
        ("1 = RETRIEVE()", "a register should stand at column 1"),
        ("h1 = DELETE_ALL()", "there is no operation DELETE_ALL; operations: RETRIEVE, EXTRACT"),
        ("h1 = RETRIEVE()", "'question' is missing"),
        (GOOD + " RETRIEVE", "the end of the line should stand at column"),
        (GOOD.replace('"a"', '"a'), "unterminated string starting at (column 36)"),
        (GOOD.replace('"a"', '"\\x"'), "invalid \\escape"),
        (GOOD.replace('"a"', '"a\tb"'), "invalid control character"),
        (GOOD.replace("5)", "0)"), "top_k: input should be greater than or equal to 1 (it is 0)"),
        (GOOD.replace("5)", "5.5)"), "top_k: input should be a valid integer"),
        (GOOD.replace("5)", "true)"), "top_k: input should be a valid integer"),
        (GOOD.replace("5)", "5"), "',' should stand"),
        (GOOD.replace("5)", "5, top_k=6)"), "top_k is given twice"),
        (GOOD.replace("5)", '5, tenant="zoo")'), "there is no key 'tenant' here"),
        (GOOD.replace("[]", "[[h1]]"), "a text or a register should stand"),
        ("h = UNION_HITS(hits=[h1])", "hits: list should have at least 2 items"),
        ('h = UNION_HITS(hits=["a b", h1])', "hits.0: string should match pattern"),
        ('t = COMPOSE_QUERY(values={"a": v, "a": v})', "a name stands twice"),
        ("h1 = RETRIEVE(" + "[" * 9999, "an argument should stand"),
    ],
)
def test_an_error_names_the_line_and_what_is_wrong(line: str, words: str) -> None:
    with pytest.raises(CallerError) as error:
        parse(f"{GOOD}\n\n{line}")
    assert str(error.value).startswith("line 3: ")
    assert words in str(error.value)


@given(st.text())
def test_any_line_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except CallerError as error:
        assert str(error).startswith("line ")
    else:
        assert parse(render(found)) == found
