"""Questions in words that the documents do not use are answered; what is not said is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings

ANN = AuthContext(tenant="default", user="ann")
TEXTS = {
    "en": """# Lindow Ferry, staff handbook, 3 March 2025

Crew receive 24 days of paid leave each year; leave not taken lapses at the end of March.
Bicycles travel free of charge, except on Saturdays in August.
The booking hall closes at 19:30 on Fridays.

## Fares

| Ticket | Foot passenger | Bicycle | Car |
|---|---|---|---|
| Single | 4 EUR | 6 EUR | 18 EUR |
| Return | 7 EUR | 11 EUR | 33 EUR |
| Season | 90 EUR | 130 EUR | 400 EUR |
""",
    "ru": """# Правила проката «Бриз»

Залог за байдарку составляет 3000 рублей и возвращается при сдаче.
Детям до 12 лет лодки не выдаются.
При утере весла взимается 800 рублей.
""",
    "uk": """# Пам'ятка кемпінгу «Явір»

Собак слід тримати на повідку.
Після 23:00 шуміти заборонено.
За намет беруть 90 гривень на добу, за автомобіль — 50.

## Як поставити намет

Місце обирайте сухе. Порядок:
1. Розстеліть дно.
2. Вставте дуги.
3. Забийте кілочки.

Багаття палять лише в колі.
""",
    "zh": """# 云杉图书室须知

借出的图书须在三十天内归还，逾期每天收取两角。
阅览室内不得饮食。
遗失借书证补办需交十元。
""",
}
ANSWERED = [
    ("How much holiday does the crew get?", "24 days"),
    ("Do bikes go free?", "Bicycles travel free"),
    ("Вернут ли мне залог?", "возвращается"),
    ("可以在阅览室吃东西吗？", "不得饮食"),
    ("书多久要还？", "三十天"),
]
REFUSED = [
    "Who founded the ferry?",
    "When does the booking hall close on Mondays?",
    "How much does the captain earn?",
    "Хто власник кемпінгу?",
    "图书室有多少本书？",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("everyday")
    for language, text in TEXTS.items():
        (folder / f"{language}.md").write_text(text, encoding="utf-8")
    given = {"data": folder / "data", "embedder": "embedded"}  # which has a reader
    with Session(load_settings(given)[0], create=True, needs_embedder=True) as opened:
        target = opened.intake.open_collection("default", "default", None)
        opened.ingest(target, sorted(folder.glob("*.md")))
        yield opened


@pytest.mark.parametrize(("question", "answer"), ANSWERED)
def test_a_question_in_other_words_is_answered(
    session: Session, question: str, answer: str
) -> None:
    result = session.ask(question, ANN, "default").result
    assert not result["refused"]
    assert answer in result["answer"]


@pytest.mark.parametrize("question", REFUSED)
def test_what_is_not_said_is_refused(session: Session, question: str) -> None:
    assert session.ask(question, ANN, "default").result["refused"]


def test_what_says_when_is_not_led_by_the_date_above_it(session: Session) -> None:
    answer = session.ask("When does the booking hall close on Fridays?", ANN, "default").result[
        "answer"
    ]
    assert answer == "The booking hall closes at 19:30 on Fridays. [1]"


def test_a_row_says_what_is_in_the_column_asked_for(session: Session) -> None:
    result = session.ask("How much is a return ticket for a bicycle?", ANN, "default").result
    assert result["answer"] == "Return — Bicycle: 11 EUR [1]"


def test_how_to_do_something_is_answered_by_the_steps_alone(session: Session) -> None:
    answer = session.ask("Як поставити намет?", ANN, "default").result["answer"]
    assert "1. Розстеліть дно." in answer
    assert answer.endswith("3. Забийте кілочки. [1]")


def test_a_misspelt_name_is_asked_back_as_the_evidence_spells_it(session: Session) -> None:
    asked = "What is the Lyndow season fare for a bicycle?"
    result = session.ask(asked, ANN, "default").result
    assert result["refused"]
    assert "What is the Lindow season fare for a bicycle?" in result["answer"]
