"""Sheets for raters: blind, safe in a spreadsheet, and read back strictly."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallerError
from core.settings import Settings
from evals.ers import (
    FORMULA,
    Answered,
    SheetQuestion,
    blind_sheet,
    checked_answering,
    neutral,
    rate,
    read_questions,
    read_sheet,
    sheet_text,
)

SETTINGS = Settings(eval_resamples=500)
ANSWERED = [
    Answered(SheetQuestion(f"q{n}", f"Question {n}?"), pipeline, f"{pipeline[0]} says {n}", "a; b")
    for n in range(6)
    for pipeline in ("agentic", "classic")
]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_the_sheet_is_blind_and_the_key_opens_it():
    sheet, key = blind_sheet(ANSWERED, seed=3)
    items = rows(sheet)
    assert list(items[0]) == ["item", "question", "answer", "sources", "score"]
    assert len(items) == len(ANSWERED)
    assert {item["score"] for item in items} == {""}
    assert "agentic" not in sheet
    assert "classic" not in sheet
    pipelines = {row["item"]: row["pipeline"] for row in rows(key)}
    assert all(item["answer"][0] == pipelines[item["item"]][0] for item in items)


def test_the_order_is_shuffled_by_the_seed_alone():
    def order(seed: int) -> list[str]:
        return [row["answer"] for row in rows(blind_sheet(ANSWERED, seed)[0])]

    assert order(1) == order(1) != order(2)
    assert order(1) != [one.answer for one in ANSWERED]
    assert sorted(order(1)) == sorted(one.answer for one in ANSWERED)


@pytest.mark.parametrize("start", FORMULA)
def test_no_cell_is_a_formula(start):
    one = Answered(SheetQuestion("q", f"{start}1+1"), "classic", f"{start}cmd|' /C calc'!A0", "-s")
    (found,) = rows(blind_sheet([one], 0)[0])
    for column in ("question", "answer", "sources"):
        assert found[column].startswith("'")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r")), min_size=1))
def test_cells_come_back_as_they_were_but_for_the_apostrophe(cells):
    headers = [f"c{n}" for n in range(len(cells))]
    text = sheet_text(headers, [cells])
    assert list(rows(text)[0].values()) == [neutral(cell) for cell in cells]


def rated(path: Path, items: Sequence[str], scores: Sequence[object], delimiter: str = ",") -> Path:
    lines = [["item", "question", "answer", "sources", "score"]]
    lines += [[item, "q", "a", "s", str(score)] for item, score in zip(items, scores, strict=True)]
    with path.open("w", encoding="utf-8-sig", newline="") as handle:
        csv.writer(handle, delimiter=delimiter).writerows(lines)
    return path


def keyed(path: Path, items: Sequence[str], pipelines: Sequence[str]) -> Path:
    path.write_text(
        sheet_text(
            ("item", "pipeline", "query"),
            [[item, name, "q"] for item, name in zip(items, pipelines, strict=True)],
        ),
        encoding="utf-8",
    )
    return path


def test_kappa_of_the_textbook_example(tmp_path):
    """20 twice yes, 15 twice no, 5 and 10 apart: agreement 0.7, by chance 0.5, kappa 0.4."""
    left = [5] * 20 + [5] * 5 + [1] * 10 + [1] * 15
    right = [5] * 20 + [1] * 5 + [5] * 10 + [1] * 15
    items = [f"i{n}" for n in range(50)]
    key = keyed(tmp_path / "key.csv", items, ["classic"] * 50)
    sheets = rated(tmp_path / "a.csv", items, left), rated(tmp_path / "b.csv", items, right, ";")
    found = rate(sheets, key, SETTINGS)
    assert found["n"] == 50
    assert found["agreement"] == 0.7
    assert found["kappa"]["plain"] == pytest.approx(0.4)
    assert found["kappa"]["quadratic"] == pytest.approx(0.4)


def test_weights_forgive_what_is_near(tmp_path):
    left, right = [1, 2, 3, 4, 5], [2, 3, 4, 5, 5]
    items = list("abcde")
    key = keyed(tmp_path / "key.csv", items, ["agentic"] * 2 + ["classic"] * 3)
    sheets = rated(tmp_path / "a.csv", items, left), rated(tmp_path / "b.csv", items, right)
    found = rate(sheets, key, SETTINGS)
    expected = sum((a - b) ** 2 for a in left for b in right) / 25
    observed = sum((a - b) ** 2 for a, b in zip(left, right, strict=True)) / 5
    assert found["kappa"]["quadratic"] == pytest.approx(1 - observed / expected, abs=1e-5)
    assert found["kappa"]["plain"] < found["kappa"]["quadratic"]
    agentic = found["pipelines"]["agentic"]
    assert (agentic["rater1"], agentic["rater2"], agentic["ers"]) == (1.5, 2.5, 2.0)
    assert found["mean"]["ers"] == pytest.approx((3 + 3.8) / 2)


def test_equal_scores_have_no_kappa(tmp_path):
    key = keyed(tmp_path / "key.csv", ["a", "b"], ["classic", "agentic"])
    sheets = rated(tmp_path / "1.csv", "ab", [4, 4]), rated(tmp_path / "2.csv", "ab", [4, 4])
    found = rate(sheets, key, SETTINGS)
    assert found["kappa"] == {"plain": None, "quadratic": None}
    assert found["warnings"]


@pytest.mark.parametrize(
    ("items", "scores", "words"),
    [
        ("ab", [3, ""], ["row 3", "item b", "nothing"]),
        ("ab", [3, 6], ["row 3", "1 to 5", "6"]),
        ("ab", [0, 3], ["row 2", "1 to 5", "0"]),
        ("ab", ["4.5", 3], ["row 2", "4.5"]),
        ("ab", ["good", 3], ["row 2", "good"]),
        ("ax", [3, 3], ["row 3", "does not have this item", "x"]),
        ("aa", [3, 3], ["row 3", "twice"]),
        ("a", [3], ["lacks 1", "b"]),
    ],
)
def test_each_fault_of_a_rater_is_named_with_its_row(tmp_path, items, scores, words):
    key = keyed(tmp_path / "key.csv", "ab", ["classic", "agentic"])
    good = rated(tmp_path / "good.csv", "ab", [1, 2])
    bad = rated(tmp_path / "bad.csv", items, scores)
    with pytest.raises(CallerError) as caught:
        rate((good, bad), key, SETTINGS)
    message = str(caught.value)
    assert "bad.csv" in message
    assert not [word for word in words if word not in message], message
    assert caught.value.hint


def test_sheets_that_are_no_sheets(tmp_path):
    key = keyed(tmp_path / "key.csv", "ab", ["classic", "agentic"])
    good = rated(tmp_path / "good.csv", "ab", [1, 2])
    for name, content in (("no.csv", None), ("bin.csv", b"\xff\xfe\x00"), ("other.csv", b"a,b\n")):
        bad = tmp_path / name
        if content is not None:
            bad.write_bytes(content)
        with pytest.raises(CallerError):
            rate((good, bad), key, SETTINGS)
        with pytest.raises(CallerError):
            rate((good, rated(tmp_path / "g2.csv", "ab", [1, 2])), bad, SETTINGS)
    with pytest.raises(CallerError, match="two sheets"):
        rate((good, good), key, SETTINGS)


def test_a_row_without_anything_is_no_row(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("item,score\na,1\n,\n\nb,2\n")
    assert [number for number, _ in read_sheet(path, ("item", "score"))] == [2, 5]


def test_questions_from_text_and_json_lines(tmp_path):
    text = tmp_path / "q.txt"
    text.write_text("Why?\n\nHow?\nWhen?\n")
    assert read_questions(text, 2) == [
        SheetQuestion("line 1", "Why?"),
        SheetQuestion("line 3", "How?"),
    ]
    packed = tmp_path / "q.jsonl"
    packed.write_text('{"_id": "x", "text": "Why?"}\n')
    assert read_questions(packed, None) == [SheetQuestion("x", "Why?")]
    for content in ("", '{"_id": "x"}\n', "{\n"):
        packed.write_text(content)
        with pytest.raises(CallerError):
            read_questions(packed, None)


@pytest.mark.parametrize("text", ["", "hybrid", "agentic,agentic", "agentic,best"])
def test_only_pipelines_that_answer_can_be_rated(text):
    with pytest.raises(CallerError):
        checked_answering(text)
    assert checked_answering("classic") == ["classic"]
