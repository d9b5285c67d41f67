"""Tools are assigned by their specs alone: a hospital, in three languages, and no scoped tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.types import FieldInfo, Part, ToolSpec
from models.embeddings import Embedder
from reasoning.rules.plan import calls_for, choose_tools, plan, word_score
from reasoning.rules.understand import understand

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str, purpose: str, base: str = "search", **values: object) -> ToolSpec:
    given = {"name": name, "base": base, "purpose": purpose, "scoped": True}
    return ToolSpec.model_validate({**given, **values})


HOSPITAL = [
    tool(
        "search_guidelines",
        "Clinical guidelines; doses, intervals, contraindications and storage of medicines.",
        not_for=["who works where, phone numbers", "accidents and incidents"],
        examples=[
            "What is the highest dose for a child?",
            "Какая доза разрешена, как хранить препарат?",
            "剂量、用药间隔、禁忌症、药品储存",
        ],
    ),
    tool(
        "staff_directory",
        "Staff directory; who leads, heads or works in a department, with phone and room.",
        base="query_records",
        not_for=["doses", "incidents"],
        examples=[
            "Who leads the department?",
            "Кто заведует отделением, телефон заведующего?",
            "谁是科室主任、哪位医生负责、电话",
        ],
    ),
    tool(
        "incident_reports",
        "Reports of incidents; falls, mix-ups, broken devices and near misses with their dates.",
        base="query_records",
        not_for=["doses", "who leads a department"],
        examples=[
            "Were there any incidents recently?",
            "Были ли происшествия, падения, поломки?",
            "最近的事故、跌倒、设备故障",
        ],
        fields=[FieldInfo(name="created_at", type="text", values=3, examples=["2024-03-01"])],
    ),
]
GENERAL = [
    tool("search", "Find passages by meaning and words.", scoped=False),
    tool("search_vector", "Find passages by meaning.", base="search_vector", scoped=False),
    tool("search_text", "Find passages by words.", base="search_text", scoped=False),
    tool("query_records", "Find records by fields.", base="query_records", scoped=False),
    tool("read_document", "Read around a chunk.", base="read_document", scoped=False),
]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What is the highest dose of ibuprofen, who leads the department of surgery and "
            "were there any incidents recently?",
            ["search_guidelines", "staff_directory", "incident_reports"],
        ),
        (
            "Какая доза ибупрофена разрешена? Кто заведует отделением? Были ли происшествия?",
            ["search_guidelines", "staff_directory", "incident_reports"],
        ),
        (
            "布洛芬的剂量是多少？谁是外科主任？最近有事故吗？",
            ["search_guidelines", "staff_directory", "incident_reports"],
        ),
        ("How should insulin be stored?", ["search_guidelines"]),
        ("Did a patient fall last month?", ["incident_reports"]),
        ("Whom do I phone in radiology?", ["staff_directory"]),
    ],
)
def test_each_part_gets_the_tool_whose_spec_fits(
    question: str, expected: list[str], minilm: Embedder
) -> None:
    made = plan(understand(question, [], 5), [*HOSPITAL, *GENERAL], minilm)
    assert [[call.tool for call in q.calls] for q in made.questions] == [[n] for n in expected]


def test_the_order_of_the_specs_does_not_matter(minilm: Embedder) -> None:
    known = understand("Who leads surgery? What is the dose?", [], 5)
    first = plan(known, HOSPITAL, minilm)
    assert plan(known, HOSPITAL[::-1], minilm) == first


def test_words_that_a_spec_excludes_count_against_it() -> None:
    asked = "incidents in the department"
    plain = tool("a_tool", "Everything about the department, incidents too.")
    strict = plain.model_copy(update={"not_for": ["incidents"]})
    assert word_score(asked, "en", strict, [strict]) < word_score(asked, "en", plain, [plain])


def test_without_scoped_tools_the_general_ones_are_asked(minilm: Embedder) -> None:
    chosen = choose_tools(Part(text="What is the dose?"), "en", GENERAL, minilm)
    assert [spec.name for spec in chosen] == ["search", "query_records"]


def test_words_that_no_spec_uses_ask_every_scoped_tool() -> None:
    chosen = choose_tools(Part(text="qwzx?"), "en", HOSPITAL, None)
    assert chosen == HOSPITAL


def test_the_carried_topic_does_not_choose_the_tool(minilm: Embedder) -> None:
    part = Part(text="who leads it", about="incidents with doses")
    chosen = choose_tools(part, "en", HOSPITAL, minilm)
    assert [spec.name for spec in chosen] == ["staff_directory"]


def test_recent_asks_for_the_newest_records_first() -> None:
    calls = calls_for("any incidents recently", "en", HOSPITAL[2:])
    assert calls[0].arguments["order_by"] == "created_at"
    calls = calls_for("any incidents", "en", HOSPITAL[2:])
    assert "order_by" not in calls[0].arguments


def test_the_general_record_query_is_left_out_without_a_condition() -> None:
    assert [call.tool for call in calls_for("doses", "en", GENERAL[1:4])] == [
        "search_vector",
        "search_text",
    ]


def test_the_code_knows_no_word_of_the_examples() -> None:
    special = re.compile(
        r"xpay|ypay|zebra|refund|退款|возврат|faraday|фарадей|фарадея|catalogue\.jsonl|tickets\.jsonl|"
        r"services\.jsonl|payout|webhook|reading room|阅览室|бехтерев",
        re.IGNORECASE,
    )
    found = []
    for room in ("reasoning", "nodes", "graph", "app", "tools", "retrievers"):
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix not in (".py", ".yaml") or path.name == "exam.yaml":
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if special.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
