"""Who, where and when are also answered by words that are no name and no number."""

from __future__ import annotations

import pytest

from core.language.analysis import terms
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.nameless import asked_act, names_agent, names_place, names_time

WHO = (
    ("en", "Who printed the map?", "The map was printed by the harbour office in 1998.", True),
    ("en", "Who drew the map?", "It was drawn by a team of surveyors.", True),
    ("en", "Who repaired the lamp?", "The keeper repaired the lamp twice.", True),
    ("en", "Who repaired the lamp?", "The lamp was repaired twice in 1998.", False),
    ("en", "Who repaired the lamp?", "The lamp was repaired by Monday.", False),
    ("en", "Who is responsible for keys?", "The porter is responsible for keys.", True),
    ("en", "Who do I call?", "Call the technician.", True),
    ("en", "Who do I contact?", "Contact help@museum.example.", True),
    ("en", "Who is the treasurer?", "The treasurer collects the rent.", False),
    ("en", "Who sold the bell?", "The bell was donated by the widow.", False),
    ("ru", "Кто собирает аренду?", "Аренду собирает казначей.", True),
    ("ru", "Кто построил маяк?", "Маяк построен рыбаками.", True),
    ("ru", "Кто собирает аренду?", "Аренду собирают по средам.", False),
    ("ru", "Кому отдают книгу?", "Книгу отдают реставратору.", True),
    ("ru", "Кто выдаёт ключи?", "Ключи выдаёт дежурный.", True),
    ("ru", "Кто построил маяк?", "Новый маяк построен в 1998 году.", False),
    ("uk", "Хто видає ключі?", "Ключі видає вахтер.", True),
    ("uk", "Хто видає ключі?", "Ключі видають щодня.", False),
)
WHERE = (
    ("en", "Where are the keys?", "The keys hang behind the door.", True),
    ("en", "Where are the keys?", "The keys are heavy.", False),
    ("en", "Where is the log?", "It is written to ~/.lamp/run.log.", True),
    ("en", "Where is the archive?", "The archive is upstairs.", True),
    ("en", "Where was it built?", "It was built in 1998.", False),
    ("ru", "Где ключи?", "Ключи висят за дверью котельной.", True),
    ("ru", "Где ключи?", "Ключи тяжёлые.", False),
    ("uk", "Де пральня?", "Пральня розташована в підвалі.", True),
)
WHEN = (
    ("en", "When do I get a key?", "A key is given after the briefing.", True),
    ("en", "When do I get a key?", "A key is given to you.", False),
    ("en", "When is it cleaned?", "It is cleaned daily.", True),
    ("ru", "Когда дают ключ?", "Ключ дают после инструктажа.", True),
    ("uk", "Коли зачиняють?", "Зачиняють опівночі.", True),
    ("zh", "温室什么时候被拆除？", "温室去年被拆除。", True),
    ("zh", "温室什么时候被拆除？", "温室被拆除。", False),
)


def _asked(question: str, language: str) -> frozenset[str]:
    return frozenset(terms(question, language))


@pytest.mark.parametrize(("language", "question", "text", "named"), WHO)
def test_who_does_it_may_be_no_name(language: str, question: str, text: str, named: bool) -> None:
    words = lexicon(language)
    found = names_agent(text, asked_act(question, words), _asked(question, language), words)
    assert found is named


@pytest.mark.parametrize(("language", "question", "text", "named"), WHERE)
def test_where_it_is_may_be_no_name(language: str, question: str, text: str, named: bool) -> None:
    assert names_place(text, _asked(question, language), lexicon(language)) is named


@pytest.mark.parametrize(("language", "question", "text", "named"), WHEN)
def test_when_it_is_may_be_no_date(language: str, question: str, text: str, named: bool) -> None:
    assert names_time(text, _asked(question, language), lexicon(language)) is named
