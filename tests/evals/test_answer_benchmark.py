"""The rules by which the answer benchmark judges, and its file of typed questions."""

import json

import pytest

from benchmarks.answer_judge import broken_rule
from benchmarks.answer_sets import JUDGED_FILE, SOURCES, split_of
from benchmarks.answer_tables import risk_curve, share

ROWS = [json.loads(line) for line in JUDGED_FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("rule", "text", "broken"),
    [
        ({"answer_any": ["1271", "Kublai"]}, "In 1271.", ""),
        ({"answer_any": [["hydrogen", "helium"]]}, "After hydrogen.", "answer_any"),
        ({"answer_any": [["hydrogen", "helium"]]}, "After hydrogen and helium.", ""),
        ({"total": 19}, "There are 19 books.", ""),
        ({"total": 19}, "There are 119 books.", "total"),
        ({"verdict": "no", "answer_any": ["不支持"]}, "不支持：不支持 OpenID。", ""),
        ({"verdict": "no", "answer_any": ["not"]}, "It does not.", "verdict"),
        ({"answer_any": ["a"], "must_not": ["b"]}, "a b", "must_not"),
        ({"answer_any": ["a"], "sentences": 1}, "It is a. It is more.", "sentences"),
    ],
)
def test_a_rule_is_broken_by_what_it_forbids(rule, text, broken):
    assert broken_rule(rule, text, refused=False) == broken


def test_a_refusal_is_right_only_where_it_is_asked_for():
    assert broken_rule({"refuse": True}, "", refused=True) == ""
    assert broken_rule({"refuse": True}, "x", refused=False) == "answered"
    assert broken_rule({"answer_any": ["x"]}, "", refused=True) == "refused"


def test_typed_questions_have_an_id_a_split_a_corpus_and_a_rule():
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 200
    for row in ROWS:
        assert row["split"] == split_of(row["id"]), row["id"]
        assert row["corpus"] in SOURCES and row["language"] in ("en", "ru", "uk", "zh")
        assert row.get("refuse") or row.get("answer_any") or "total" in row, row["id"]


def test_the_surest_answers_come_first_and_equals_count_as_their_mean():
    assert risk_curve([(0.2, True), (0.9, False)]) == [0.0, 0.5]
    assert risk_curve([(1.0, True), (1.0, False)]) == [0.5, 0.5]


def test_a_share_tells_its_interval_and_how_many_there_were():
    assert share([True, False, None]) == ".50 (.09–.91; 2)"
    assert share([None]) == "–"
