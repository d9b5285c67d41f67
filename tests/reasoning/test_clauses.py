"""Splitting a question: where a new question begins, and where a conjunction only joins nouns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.detect import detect_language
from languages.language import known_languages
from reasoning.rules.lexicon import lexicon
from reasoning.rules.understand import split_clauses

ONE_CLAUSE = [
    ("en", "What is the boiling point of water?"),
    ("en", "How do cats and dogs differ?"),
    ("en", "What are the opening hours, fees and rules?"),
    ("en", "What causes fever, cough and pain?"),
    ("en", "What is the maximum dose and the minimum age?"),
    ("en", "Who is the head of surgery and of radiology?"),
    ("en", "What happens when the alarm rings?"),
    ("en", "What changed in v2.1.3?"),
    ("en", "How does jax.lax.scan differ from jax.numpy.where?"),
    ("en", "Is 3.5 mg enough for a child of 20.5 kg?"),
    ("en", "pumps and valves"),
    ("ru", "Чем отличаются кошки и собаки?"),
    ("ru", "Какая доза нужна взрослым и детям?"),
    ("ru", "Что изменилось в версии 2.1.3?"),
    ("ru", "насосы, клапаны и фильтры"),
    ("uk", "Чим відрізняються коти і собаки?"),
    ("uk", "Яка доза потрібна дорослим та дітям?"),
    ("uk", "Що змінилося у версії 2.1.3?"),
    ("zh", "支付接口和退款接口的超时是多少?"),
    ("zh", "猫和狗有什么区别？"),
    ("zh", "成人和儿童的剂量是多少？"),
    ("zh", "v2.1.3 版本改了什么？"),
]

MANY_CLAUSES = [
    ("en", "Who wrote the report? When was it published?", 2),
    ("en", "Who wrote the report and when was it published?", 2),
    ("en", "Where is the office, who runs it, and how many people work there?", 3),
    ("en", "What is a pump and why does it stop?", 2),
    ("en", "How much does it cost and who pays?", 2),
    ("en", "Is the ward open, or is it closed at night?", 2),
    ("en", "Who runs the ward, and on which floors does it have beds?", 2),
    ("en", "What's the dose? Who's in charge? Where's the key?", 3),
    ("ru", "Кто заведует отделением и когда оно открывается?", 2),
    ("ru", "Где находится аптека, кто ею заведует и сколько там сотрудников?", 3),
    ("ru", "Какая температура нужна? Кто отвечает за хранение?", 2),
    ("ru", "Кто заведует аптекой и на каком этаже она находится?", 2),
    ("uk", "Хто завідує відділенням і коли воно відчиняється?", 2),
    ("uk", "Де розташована аптека, хто нею завідує і скільки там працівників?", 3),
    ("uk", "Яка потрібна температура? Хто відповідає за зберігання?", 2),
    ("uk", "Хто завідує аптекою та на якому поверсі вона розташована?", 2),
    ("zh", "谁负责药房，什么时候开门？", 2),
    ("zh", "药房在哪里和谁负责？", 2),
    ("zh", "药房的容量是多少？谁维护？最近有故障吗？", 3),
    ("zh", "药房在几楼？几点开门？", 2),
]


@pytest.mark.parametrize(("language", "text"), ONE_CLAUSE)
def test_a_question_that_asks_one_thing_stays_whole(language: str, text: str) -> None:
    assert split_clauses(text, lexicon(language), 5) == [text.rstrip("?？")]


@pytest.mark.parametrize(("language", "text", "count"), MANY_CLAUSES)
def test_each_question_becomes_a_clause(language: str, text: str, count: int) -> None:
    words = lexicon(language)
    clauses = split_clauses(text, words, 5)
    assert len(clauses) == count
    assert all(words.is_question(clause) for clause in clauses)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "I am a nurse. What dose is allowed?", ["I am a nurse What dose is allowed"]),
        ("en", "What dose is allowed? I am a nurse.", ["What dose is allowed I am a nurse"]),
        ("ru", "Я медсестра. Какая доза разрешена?", ["Я медсестра Какая доза разрешена"]),
        ("uk", "Я медсестра. Яка доза дозволена?", ["Я медсестра Яка доза дозволена"]),
        ("zh", "我是护士。最大剂量是多少？", ["我是护士 最大剂量是多少"]),
        (
            "en",
            "We are open at night. Who is on call? The bell is broken. Who repairs it?",
            ["We are open at night Who is on call", "The bell is broken Who repairs it"],
        ),
    ],
)
def test_context_stays_with_the_question_it_belongs_to(
    language: str, text: str, expected: list[str]
) -> None:
    assert split_clauses(text, lexicon(language), 5) == expected


def test_a_relative_clause_is_no_question_of_its_own() -> None:
    text = "What is the ward, in which children sleep?"
    assert len(split_clauses(text, lexicon("en"), 5)) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_what_is_beyond_the_limit_joins_the_last_clause(limit: int) -> None:
    text = "Who runs it? When is it open? Where is it? Why is it closed? How big is it?"
    clauses = split_clauses(text, lexicon("en"), limit)
    assert len(clauses) == limit
    assert words_of(" ".join(clauses)) == words_of(text)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize("language", known_languages())
def test_every_entry_of_a_lexicon_is_text(language: str) -> None:
    # YAML reads a bare on, yes or no as a truth value.
    words = lexicon(language)
    lists = [*words.synonyms, *(words.words(name) for name in words._lists)]
    assert not {"True", "False", "None"} & {word for group in lists for word in group}


FRAGMENTS = st.sampled_from(
    "who what when и кто когда де хто 谁 多少 吗 和 and or , . ? ？ ， 、 \n ; 3.5 v2.1 猫".split(
        " "
    )
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(FRAGMENTS, max_size=25).map(" ".join),
    st.lists(FRAGMENTS, max_size=25).map("".join),
)


@settings(max_examples=examples(150), deadline=None)
@given(text=TEXTS, limit=st.integers(1, 6), language=st.sampled_from([*known_languages()]))
def test_the_clauses_hold_every_word_in_order(text: str, limit: int, language: str) -> None:
    words = lexicon(language)
    clauses = split_clauses(text, words, limit)
    assert len(clauses) <= limit
    assert all(clause.strip() for clause in clauses)
    kept, given_words = words_of(" ".join(clauses)), words_of(text)
    joiners = {word for entry in words.words("joiner") for word in words_of(entry.casefold())}
    if language == "zh":  # words are not spaced: compare characters, less the conjunctions
        for joiner in sorted(words.words("joiner"), key=len, reverse=True):
            text = text.replace(joiner, "")
            clauses = [clause.replace(joiner, "") for clause in clauses]
        assert "".join(words_of("".join(clauses))) == "".join(words_of(text))
    else:
        assert [w for w in kept if w.casefold() not in joiners] == [
            w for w in given_words if w.casefold() not in joiners
        ]
    assert detect_language(text)


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("Кто построил мост, когда его открыли и были ли жертвы?", 2),
        ("Когда открывается касса и есть ли скидки?", 2),
        ("Хто збудував міст, коли його відкрили і чи були жертви?", 2),
        ("Есть ли в городе метро или трамвай?", 1),
    ],
)
def test_a_particle_that_asks_begins_a_clause(question: str, count: int) -> None:
    words = lexicon(detect_language(question))
    assert len(split_clauses(question, words, 5)) == count
