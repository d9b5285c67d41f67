"""Which sentences of a turn are worth a note: rows in four languages, and turns of others."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from worths import worth

from core.notes import NoteDraft, TurnSource
from languages.language import read_yaml
from reasoning.statements import (
    asks_to_keep,
    find_statements,
    question_beside,
    repeats_answer,
    stated_values,
)

ROWS = read_yaml(Path(__file__).with_name("statement_rows.yaml"))
LABELS = read_yaml(Path(__file__).with_name("labelled_turns.yaml"))
DATA = Path(__file__).parents[3] / "shared" / "data"
SETS = {"locomo": "locomo/conversations.jsonl", "lihua_world": "lihua_world/corpus.jsonl"}


def stated(text: str) -> list[NoteDraft]:
    return find_statements(text, TurnSource(conversation="c", run_id="r", quote=text), worth)


@pytest.mark.parametrize("language", ROWS)
def test_statements_are_kept_and_talk_is_not(language: str) -> None:
    rows = ROWS[language]
    missed = [text for text in rows["kept"] if not stated(text)]
    assert len(missed) <= 0.1 * len(rows["kept"]), missed
    assert [text for text in rows["left"] if stated(text)] == []


@pytest.mark.parametrize(
    ("first", "second", "subject"),
    [
        ("My name is Olena.", "call me Max", "i|name"),
        ("Меня зовут Олена.", "Мене звати Оксана", "i|name"),
        ("Our deadline is June 3.", "our deadline is now June 10", "our|deadlin"),
        ("I live in Kyiv.", "Yesterday I moved to Rome.", "i|live"),
        ("I like tea.", "I don't like tea", "i|like|tea"),
        ("我叫李华。", "我的名字是王伟。", "i|name"),
    ],
)
def test_what_says_something_new_of_a_subject_replaces(
    first: str, second: str, subject: str
) -> None:
    [one], [other] = stated(first), stated(second)
    assert one.subject == other.subject == subject
    assert one.replaces and other.replaces and one.value != other.value


@pytest.mark.parametrize(
    ("stated_first", "denied"),
    [
        ("I live in Paris.", "I don't live in Paris."),
        ("I work at Nokia.", "I don't work at Nokia anymore."),
        ("I am allergic to fish.", "I am not allergic to fish."),
        ("We decided to use Kafka.", "We decided not to use Kafka."),
        ("Я живу в Туле.", "Я больше не живу в Туле."),
        ("Меня зовут Боб.", "Меня зовут не Боб."),
        ("У меня аллергия на рыбу.", "У меня больше не аллергия на рыбу."),
        ("Я живу у Львові.", "Я більше не живу у Львові."),
        ("我叫李四。", "我不叫李四。"),
        ("我们决定购买服务器。", "我们决定不购买服务器。"),
    ],
)
def test_a_denial_is_of_the_same_subject_and_another_value(stated_first: str, denied: str) -> None:
    [one], [other] = stated(stated_first), stated(denied)
    assert one.subject == other.subject != "" and other.replaces
    assert one.value != other.value and other.value.startswith(("not ", "no"))


@pytest.mark.parametrize(
    "text",
    [
        *("We no longer want the blue logo.", "I have no children.", "We won't renew the lease."),
        *("У меня нет машины.", "Мы больше не хотим синий логотип.", "Мы не будем менять сервер."),
        *(
            "У мене немає машини.",
            "Ми більше не хочемо синій логотип.",
            "我没有车。",
            "我们不续签合同了。",
        ),
    ],
)
def test_a_denial_is_a_statement(text: str) -> None:
    [one] = stated(text)
    assert one.content == text and one.value == "no"


def test_what_is_denied_after_a_value_is_another_one() -> None:
    [one] = stated("I live in Oslo, not in Rome.")
    assert one.value == "oslo"
    assert stated("My birthday is probably on 3 May.")[0].subject.startswith("=")
    assert stated("Maybe I will move to Oslo next year.") == []


@pytest.mark.parametrize(
    ("text", "kept", "asked"),
    [
        ("My name is Bea, when does it open?", "My name is Bea", "when does it open?"),
        ("I live in Rome. Thanks!", "I live in Rome.", ""),
        ("У меня две кошки, а когда обед?", "У меня две кошки", "когда обед?"),
        ("У мене дві кішки, а коли обід?", "У мене дві кішки", "коли обід?"),
        ("我叫王芳，食堂几点开门？", "我叫王芳", "食堂几点开门？"),
    ],
)
def test_a_statement_before_a_question_is_kept_and_the_question_asked(
    text: str, kept: str, asked: str
) -> None:
    assert [one.content for one in stated(text)] == [kept]
    assert question_beside(text, [kept]) == asked


def test_relatives_may_be_several_and_their_names_are_compared() -> None:
    [one], [other] = stated("My sister is Anna."), stated("My sister is Berta.")
    assert one.subject == other.subject and not one.replaces and one.value != other.value
    assert stated("My sister is tall.")[0].subject == "=attribute|sister tall"


def test_each_clause_is_quoted_as_it_was_typed() -> None:
    text = "Hi, I’m Sam and I’ve got two cats. How are you? Thanks!"
    assert [one.content for one in stated(text)] == ["I’m Sam", "I’ve got two cats."]
    for one in stated(text):
        assert isinstance(one.provenance, TurnSource) and one.provenance.quote in text


def test_an_answer_is_not_kept_as_a_statement_of_the_user() -> None:
    [draft] = stated("Our deadline is June 3.")
    assert repeats_answer(draft, ["The deadline of our project is June 3."])
    assert not repeats_answer(draft, ["The deadline is May 3.", ""])


@pytest.mark.parametrize(
    "text", ["Remember this.", "запомни это", "Збережи цю відповідь", "记住这个"]
)
def test_an_answer_is_kept_when_that_is_asked(text: str) -> None:
    assert asks_to_keep(text) and stated(text) == []
    assert not asks_to_keep("Remember that I live in Rome.")


def test_a_pasted_text_is_no_statement() -> None:
    assert stated("I live in Kyiv. " * 30) == []


@pytest.mark.parametrize(
    "text", ["i " * 3000, "my a" * 3000, "I am " + "very " * 2000, "我" * 3000, "thanks " * 2000]
)
def test_no_text_takes_long(text: str) -> None:
    stated("I live in Kyiv.")  # the patterns are compiled
    started = time.perf_counter()
    stated(text)
    assert time.perf_counter() - started < 5


def turns_of(name: str) -> dict[str, str]:
    """Return the text of each turn of a data set by its conversation and id."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = {}
    for one in map(json.loads, lines):
        for session in one.get("sessions", []):
            for turn in session["turns"]:
                found[f"{one['conversation_id']}#{turn['dia_id']}"] = turn["text"]
        for number, line in enumerate(one.get("text", "").split("\n")):
            found[f"{one.get('_id')}#{number}"] = line.partition(": ")[2]
    return found


@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not on this machine")
def test_talk_of_others_leaves_almost_no_note_and_most_facts_of_theirs_one() -> None:
    """Casual talk says less outright than what one tells a program."""
    counts: Counter[str] = Counter()
    for name, file in SETS.items():
        texts = turns_of(file)
        for label, named in LABELS[name].items():
            for one in named.split():
                counts[label] += 1
                counts[f"{label} kept"] += bool(stated(texts[one]))
    assert counts["talk"] >= 500 and counts["talk kept"] <= 0.02 * counts["talk"], counts
    assert counts["worth kept"] >= 0.6 * counts["worth"], counts


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("en", "My height is 1.82 metres.", "1.82 metres"),
        ("en", "Our deadline moved to 8 May.", "8 May"),
        ("ru", "Моя почта — anna@pochta.example.", "anna@pochta.example"),
        ("uk", "Мій зріст 1.75 м.", "1.75 м"),
    ],
)
def test_a_value_may_hold_a_dot(language: str, text: str, value: str) -> None:
    found = stated_values(text, language).values()
    assert [text[slice(*span)] for span in found] == [value]


def test_what_says_that_something_changed_gives_no_value() -> None:
    assert not stated_values("The gate code was changed, it is 5150 now.", "en")
