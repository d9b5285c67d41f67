"""A fragment stands in the place of its counterpart in the question before it."""

from __future__ import annotations

import pytest

from reasoning.rules.follow_up import stand_alone
from reasoning.types import Turn

FRAGMENTS = [
    ("When is the pool open on Monday?", "And on Sunday?", "When is the pool open on Sunday?"),
    ("What is the fee for a late return?", "And for pupils?", "What is the fee for pupils?"),
    ("What is the limit of the import API?", "What about the export API?",
     "What is the limit of the export API?"),
    ("When was the bridge built?", "And the tower?", "When was the tower built?"),
    ("What is the warranty of the A200?", "And the B300?", "What is the warranty of the B300?"),
    ("What does a transfer to a bank account cost?", "And to a wallet?",
     "What does a transfer to a wallet cost?"),
    ("Кто написал «Мёртвые души»?", "А «Ревизор»?", "Кто написал «Ревизор»?"),
    ("Когда открыт бассейн в понедельник?", "А во вторник?", "Когда открыт бассейн во вторник?"),
    ("Какая плата за опоздание?", "А для детей?", "Какая плата за опоздание для детей?"),
    ("Коли працює басейн у понеділок?", "А в неділю?", "Коли працює басейн в неділю?"),
    ("游泳馆周一几点开门?", "周日呢?", "游泳馆周日几点开门？"),
    ("Where can I park my car?", "And my bike?", "Where can I park my bike?"),
    ("How long may I keep a book?", "And a DVD?", "How long may I keep a DVD?"),
    ("Где находится читальный зал?", "А гардероб?", "Где находится гардероб?"),
    ("Скільки коштує квиток?", "А абонемент?", "Скільки коштує абонемент?"),
    ("白鹭项目什么时候截止?", "云雀呢?", "云雀项目什么时候截止？"),
    ("张伟是哪年毕业的?", "李娜呢?", "李娜是哪年毕业的？"),
    ("《红楼梦》的作者是谁?", "那《西游记》呢?", "《西游记》的作者是谁？"),
]  # fmt: skip
WHOLE = [
    "And who maintains it?", "So what did it cost?", "How long is it?", "And how do I get there?",
    "А кто его написал?", "那么是谁写的?", "Thanks", "And?",
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "fragment", "whole"), FRAGMENTS)
def test_a_fragment_takes_over_the_rest_of_the_question(earlier, fragment, whole):
    assert stand_alone(fragment, [Turn(question=earlier, answer="")]) == whole


@pytest.mark.parametrize("question", WHOLE)
def test_what_asks_by_itself_stays_as_it_is(question):
    earlier = [Turn(question="When was the bridge of Riga built?", answer="In 2008.")]
    assert stand_alone(question, earlier) == question


def test_fragments_follow_each_other():
    asked = ["When is the pool open on Monday?", "And on Sunday?"]
    history = [Turn(question=one, answer="") for one in asked]
    assert stand_alone("And in May?", history) == "When is the pool open on Sunday in May?"


def test_a_fragment_with_nothing_before_it_is_a_question_of_its_own():
    assert stand_alone("And on Sunday?", []) == "And on Sunday?"
