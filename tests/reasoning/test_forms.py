"""Forms of values: a version, an amount of money, an age, a maximum."""

from __future__ import annotations

import pytest

from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.forms import form_asked, has_kind

ASKED = (
    ("en", "Since which release does it know events?", "version"),
    ("uk", "У якій версії з’явилися події?", "version"),
    ("zh", "从哪个版本开始支持？", "version"),
    ("ru", "Сколько стоит подписка?", "money"),
    ("zh", "每个月多少钱？", "money"),
    ("en", "What percentage of the seats is free?", "share"),
    ("en", "What time does the museum open?", "clock"),
    ("ru", "В каком году построен мост?", "year"),
    ("uk", "Скільки днів триває пошта?", "duration"),
    ("en", "How old was the queen?", "age"),
    ("en", "What is the maximum size of a file?", "maximum"),
    ("ru", "Сколько весит прибор?", "weight"),
    ("zh", "它有多重？", "weight"),
    ("en", "How hot is it in the kiln?", "temperature"),
    ("en", "How fast is the ferry?", "speed"),
    ("en", "How often is it cleaned?", "frequency"),
    ("zh", "堆肥多久翻一次？", "frequency"),
    ("uk", "Як швидко розглядають заяву?", "speed"),
    ("en", "How many rooms are there?", ""),
    ("en", "Who built the bridge?", ""),
)


@pytest.mark.parametrize(("language", "question", "form"), ASKED)
def test_a_question_asks_for_a_form(language: str, question: str, form: str) -> None:
    assert form_asked(question, language) == form


@pytest.mark.parametrize(
    ("form", "language", "text", "holds"),
    [
        ("version", "en", "Added in Lamp 0.135.0.", True),
        ("version", "en", "It costs 32.99 in all shops.", False),
        ("money", "ru", "Подписка стоит 300 рублей.", True),
        ("money", "uk", "Візит коштує 450 гривень.", True),
        ("weight", "en", "Weight: 11.4 kg", True),
        ("weight", "en", "It takes up to 12 litres a day.", False),
        ("maximum", "zh", "修正值不得超过 8。", True),
        ("phone", "en", "Call +44 20 7946 0018 at any time.", True),
        ("phone", "en", "It costs 48,300 pounds.", False),
        ("money", "ru", "Запуск в один клик за 3 минуты.", False),
        ("money", "ru", "Поездка до центра занимает 2 часа.", False),
        ("duration", "ru", "Там работает 3 человека.", False),
        ("duration", "ru", "Поездка занимает 2 часа.", True),
        ("duration", "uk", "Поїздка триває 2 доби.", True),
        ("age", "zh", "他39岁。", True),
        ("share", "uk", "Це половина всіх місць.", True),
        ("share", "en", "About 31 per cent of payments failed.", True),
        ("frequency", "en", "A filter lasts for four months.", True),
        ("frequency", "ru", "Фильтр служит около четырёх месяцев.", True),
        ("frequency", "uk", "Фільтр служить близько чотирьох місяців.", True),
        ("frequency", "zh", "滤芯寿命约为四个月。", True),
        ("frequency", "en", "The filter is below the four taps.", False),
    ],
)
def test_a_text_holds_a_form(form: str, language: str, text: str, *, holds: bool) -> None:
    assert has_kind("number", text, lexicon(language), form=form) is holds


@pytest.mark.parametrize(
    ("language", "text", "holds"),
    [
        ("en", "One of them is open.", False),
        ("en", "Three of them are open.", True),
        ("ru", "Один из залов открыт.", False),
        ("zh", "它是一个图书馆。", False),
    ],
)
def test_one_is_no_number(language: str, text: str, *, holds: bool) -> None:
    assert has_kind("number", text, lexicon(language)) is holds
