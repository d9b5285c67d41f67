"""Scores of short answers: LoCoMo's rules by hand, and the dialogues that are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from worths import worth

from core.errors import CallerError
from evals.dialogues import DialogueTurn, drafts_of, read_questions, read_turns
from evals.memory import METRICS, scores, word_f1


def test_articles_marks_and_endings_do_not_count() -> None:
    assert word_f1("the Dances!", "a dance") == 1.0
    assert word_f1("May 7 2023", "7 May, 2023") == 1.0
    assert word_f1("in Paris", "Rome") == 0.0
    assert word_f1("hiking in the hills", "hiking") == pytest.approx(0.5)


def test_each_category_has_its_rule() -> None:
    assert scores("hiking", "hiking, swimming", "multi-hop")["f1"] == 0.5
    assert scores("hiking", "hiking, swimming", "single-hop")["f1"] == pytest.approx(2 / 3)
    assert scores("yes", "yes; since she is old", "open-domain")["em"] == 1.0
    for answer, right in (("Not mentioned in it", 1.0), ("a red car", 0.0)):
        assert scores(answer, "", "adversarial") == dict.fromkeys(METRICS, right)
    same = scores("the red car of Ann", "the red car of Ann", "single-hop")
    assert same == dict.fromkeys(METRICS, pytest.approx(1.0))
    assert scores("", "red", "single-hop")["bleu1"] == 0.0


def dialogue(folder: Path) -> Path:
    corpus = [
        {
            "_id": "c1:1",
            "text": "Ann: I moved to Rome yesterday.",
            "metadata": {"conversation": "c1", "date_time": "1:56 pm on 8 May, 2023"},
        },
        {
            "_id": "20260408",
            "text": "Time: 20260408_08:38\nLiHua: Hello!\nJoeDoe: I am 30 years old.",
        },
    ]
    asked = [
        {"_id": f"q{n}", "text": f"Where {n}?", "metadata": {"type": kind, "answer": gold}}
        for n, (kind, gold) in enumerate([("single-hop", "Rome"), ("adversarial", None)] * 3)
    ]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_turns_have_speakers_and_times(tmp_path: Path) -> None:
    turns = read_turns(dialogue(tmp_path))
    assert turns == [
        DialogueTurn(
            "c1", "c1:1", "Ann", "I moved to Rome yesterday.", "2023-05-08T13:56:00+00:00"
        ),
        DialogueTurn("", "20260408", "Li Hua", "Hello!", "2026-04-08T08:38:00+00:00"),
        DialogueTurn("", "20260408", "Joe Doe", "I am 30 years old.", "2026-04-08T08:38:00+00:00"),
    ]
    whole = drafts_of(turns, worth, every_turn=True)
    assert [len(row) for row in whole] == [1, 1, 1]
    assert whole[0][0].content == "Ann: I moved to Rome yesterday."
    assert [len(row) for row in drafts_of(turns, worth, every_turn=False)] == [1, 0, 1]
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "no turns"}\n')
    with pytest.raises(CallerError, match="turns of dialogues"):
        read_turns(tmp_path)


def test_questions_are_taken_from_all_parts(tmp_path: Path) -> None:
    found = read_questions(dialogue(tmp_path), None)
    assert len(found) == 6 and {one.gold for one in found} == {"Rome", ""}
    assert [one.query_id for one in read_questions(tmp_path, 2)] == ["q0", "q2", "q1", "q3"]
