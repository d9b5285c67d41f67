"""Questions taken apart: descriptions, roles, lists, times and comparisons in four languages."""

from __future__ import annotations

import pytest

from core.settings import Settings
from reasoning.rules.decomposition import patterns
from reasoning.rules.decomposition.decompose import decompose
from reasoning.rules.lexicon import lexicon
from reasoning.rules.reasoner import RulesReasoner

Steps = list[tuple[str | None, str | None]]  # the text and the slot of each


def cases(text: str) -> list[tuple[str, str, Steps]]:
    """Read a language and its question on a line, and its steps below: `SLOT: TEXT`, … for any."""
    found: list[tuple[str, str, Steps]] = []
    for line in text.splitlines():
        if not line.startswith(" "):
            language, _, question = line.partition(" ")
            found.append((language, question, []))
            continue
        slot, _, said = line.strip().partition(": ")
        found[-1][2].append((None if said == "…" else said, None if slot == "-" else slot))
    return found


CHAINS = cases("""\
en Who was the first president of the association which published Journal of Botany?
  association: What is the association which published Journal of Botany?
  -: Who was the first president of {association}?
en Who ruled the country where the composer of Aurora was a citizen?
  composer: Who is the composer of Aurora?
  country: What is the country where {composer} was a citizen?
  -: Who ruled {country}?
en Which team maintains the interface whose timeout is thirty seconds?
  interface: What is the interface whose timeout is thirty seconds?
  -: Which team maintains {interface}?
en When did the country where the town where Ann Lee was born is located join the union?
  town: What is the town where Ann Lee was born?
  country: What is the country where {town} is located?
  -: When did {country} join the union?
en Who is the father of the director of the film Night Train?
  director: Who is the director of the film Night Train?
  -: Who is the father of {director}?
en What river flows through Ann Lee's birthplace?
  birthplace: What is Ann Lee's birthplace?
  -: …
en Who coaches the team founded by Bob Ray in 1920?
  team: What is the team founded by Bob Ray in 1920?
  -: …
en The soundtrack of Aurora was produced by a man born in what year?
  man: The soundtrack of Aurora was produced by which man?
  -: {man} was born in what year?
en Who was the mayor of Lyon when the Pont Neuf was built?
  date: When was the Pont Neuf built?
  -: Who was the mayor of Lyon in {date}?
en What is the batting hand of each of the first five picks in the 1998 draft?
  pick: What are the first five picks in the 1998 draft?
  -: What is the batting hand of {pick}?
en Who are the five richest people in Peru, and where were they born?
  person: Who are the five richest people in Peru?
  -: Where were {person} born?
ru Кто был первым президентом ассоциации, которая издавала журнал «Ботаника»?
  ассоциация: Какая это ассоциация, которая издавала журнал «Ботаника»?
  -: Кто был первым президентом {ассоциация}?
ru В каком году страна, в которой родился Иван Петров, вступила в союз?
  страна: Какая это страна, в которой родился Иван Петров?
  -: В каком году {страна} вступила в союз?
ru Кто правил страной, гражданином которой был композитор оперы «Заря»?
  композитор: Кто композитор оперы «Заря»?
  страна: Какая это страна, гражданином которой был {композитор}?
  -: Кто правил {страна}?
ru Кто тренирует команду, основанную Иваном Петровым?
  команда: Какая это команда, основанная Иваном Петровым?
  -: …
uk Яка річка протікає через місто, у якому народився Іван Франко?
  місто: Яке це місто, у якому народився Іван Франко?
  -: Яка річка протікає через {місто}?
uk Хто батько режисера фільму «Тіні»?
  режисер: Хто режисер фільму «Тіні»?
  -: Хто батько {режисер}?
uk Хто заснував університет, що розташований у місті Острог?
  університет: Який це університет, що розташований у місті Острог?
  -: …
zh 发表《植物》杂志的协会的第一任主席是谁？
  协会: 发表《植物》杂志的协会是哪个？
  -: {协会}的第一任主席是谁？
zh 《晨光》的作者的父亲是谁？
  作者: 《晨光》的作者是谁？
  -: {作者}的父亲是谁？
""")

WHOLE = [
    ("en", "Who is the director of Jump for Glory?"),
    ("en", "What is the name of the city where the Pont Neuf is located?"),
    ("en", "What is the capital of France?"),
    ("en", "What happens when the alarm rings?"),
    ("en", "Who said that the ward is closed?"),
    ("en", "When was the company founded by Ann Lee?"),
    ("en", "Which of the two outbreaks killed the most people?"),
    ("en", "The gene which encodes X binds to the receptor that Y blocks."),
    ("ru", "Кто автор пьесы «Заря»?"),
    ("ru", "Как называется город, в котором находится Эрмитаж?"),
    ("ru", "Где родился писатель Иван Петров?"),
    ("ru", "Какой город, основанный Петром, стоит на Неве?"),
    ("uk", "Хто автор поеми «Енеїда»?"),
    ("zh", "《晨光》的作者是谁？"),
    ("zh", "支付接口和退款接口的超时是多少？"),
]

COMPARED = cases("""\
en When were North Mill and Grey Works founded?
  -: When was North Mill founded?
  -: When was Grey Works founded?
en Compare the net profit of North Mill in 2019 and Grey Works in 2021. Which had more?
  -: What is the net profit of North Mill in 2019?
  -: What is the net profit of Grey Works in 2021?
en What is the difference between ports 80 and 81?
  -: What is port 80?
  -: What is port 81?
en Who is older, Ann Lee or Bob Ray?
  -: How old is Ann Lee?
  -: How old is Bob Ray?
en Which band was formed first, The Larks or Night Owls?
  -: When was The Larks formed?
  -: When was Night Owls formed?
en Are Ann Lee and Bob Ray from the same country?
  -: Which country is Ann Lee from?
  -: Which country is Bob Ray from?
en Are Chess and Go both board games?
  -: Is Chess a board game?
  -: Is Go a board game?
en What do Ann Lee and Bob Ray have in common?
  -: What is Ann Lee?
  -: What is Bob Ray?
en Which genus has more species, Lantana or Silybum?
  -: How many species has Lantana?
  -: How many species has Silybum?
ru Кто старше, Иван Петров или Анна Ли?
  -: Иван Петров: кто старше?
  -: Анна Ли: кто старше?
zh 甲山和乙山哪个更高？
  -: 甲山：哪个更高？
  -: 乙山：哪个更高？
en How do cats and dogs differ?
  -: What are cats?
  -: What are dogs?
en What is the difference between a list and a tuple?
  -: What is a list?
  -: What is a tuple?
en How do paid and free accounts differ?
  -: What are paid accounts?
  -: What are free accounts?
zh 列表和元组有什么区别？
  -: 列表是什么？
  -: 元组是什么？
ru В чём разница между базой данных и сервером?
  -: Что такое база данных?
  -: Что такое сервер?
uk Чим відрізняється список від кортежу?
  -: Що таке список?
  -: Що таке кортеж?
""")


@pytest.mark.parametrize(("language", "question", "expected"), CHAINS)
def test_a_description_is_asked_for_first(language: str, question: str, expected: Steps) -> None:
    steps = decompose(question, lexicon(language), 5)
    assert [step.slot for step in steps] == [slot for _, slot in expected]
    for step, (text, _) in zip(steps, expected, strict=True):
        assert text is None or step.text == text


@pytest.mark.parametrize(("language", "question"), WHOLE)
def test_a_question_of_one_fact_stays_whole(language: str, question: str) -> None:
    assert decompose(question, lexicon(language), 5) == []


@pytest.mark.parametrize(("language", "question", "expected"), COMPARED)
def test_compared_things_are_asked_about_apart(
    language: str, question: str, expected: Steps
) -> None:
    steps = decompose(question, lexicon(language), 5)
    assert [(step.text, step.slot) for step in steps] == expected


def test_each_side_may_be_a_chain() -> None:
    question = "Are the directors of films The Lost City and Night Owls from the same country?"
    steps = decompose(question, lexicon("en"), 5)
    assert [step.text for step in steps] == [
        "Who is the director of The Lost City?",
        "Which country is {director} from?",
        "Who is the director of Night Owls?",
        "Which country is {director2} from?",
    ]


@pytest.mark.parametrize("room", [1, 2, 3])
def test_there_are_at_most_as_many_parts_as_asked_for(room: int) -> None:
    question = "Who ruled the country where the composer of Aurora was a citizen?"
    assert len(decompose(question, lexicon("en"), room)) <= room


def test_slots_of_one_plan_have_names_of_their_own() -> None:
    question = "Who is the wife of the author of the book that the author of Aurora praised?"
    slots = [step.slot for step in decompose(question, lexicon("en"), 5) if step.slot]
    assert slots[0] == "author"
    assert len(slots) == len(set(slots)) == 3


def test_an_item_of_a_list_is_found_as_a_list() -> None:
    question = "What are the capitals of the five largest countries in Asia?"
    first, _ = decompose(question, lexicon("en"), 5)
    assert first.wants == "list"


def test_a_row_that_is_not_tried_would_not_have_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [(language, text) for language, text, _ in CHAINS]

    def found() -> list[list[tuple[str, dict[str, tuple[int, int]]]]]:
        patterns.table.cache_clear()
        return [
            [(one.row.ask, dict(one.places)) for one in patterns.find(text, section, lexicon(code))]
            for code, text in asked
            for section in ("beside", "inside", "whole")
        ]

    with_needs = found()
    compiled = [
        "pattern" in vars(row) for rows in patterns.table("en").rows.values() for row in rows
    ]
    assert not all(compiled)
    monkeypatch.setattr(patterns, "_needs", lambda *given: [])
    assert found() == with_needs
    assert any(with_needs)
    patterns.table.cache_clear()


APART = [
    (
        "Which team runs the API that allows 12 calls per minute?",
        "What is the API that allows 12 calls",
        2,
    ),
    ("Who runs the service that counts beds?", "What is the service that counts beds?", 2),
    (
        "Which city does the service that greets each guest serve?",
        "What is the service that greets",
        2,
    ),
    ("Who leads the club founded by Acme Inc. in Lyon?", "founded by Acme Inc. in Lyon?", 2),
    ("最大延迟为 40 秒的接口由哪个团队维护？", "最大延迟为 40 秒的接口是哪个？", 2),
    ("每晚核对床位数据的服务由谁维护？", "每晚核对床位数据的服务是哪个？", 2),
    ("Who leads the UN that meets in spring?", "Who leads the UN", 1),
    ("What is the delay of the bed list API, who runs it and is it new?", "What is the delay", 3),
    ("What is the delay of the bed service, who runs it?", "What is the delay", 2),
    ("使用该服务的公司有哪些？", "使用该服务的公司有哪些", 1),
    ("参加比赛的人是谁？", "参加比赛的人是谁", 1),
    ("最大的接口有哪些？", "最大的接口有哪些", 1),
]


@pytest.mark.parametrize(("question", "first", "count"), APART)
def test_a_described_thing_is_asked_for_first(question: str, first: str, count: int) -> None:
    reasoner = RulesReasoner(Settings(), lambda found: dict.fromkeys(found, 1.0), None)
    parts = reasoner.understand(question, []).parts
    assert len(parts) == count
    assert first in parts[0].text
