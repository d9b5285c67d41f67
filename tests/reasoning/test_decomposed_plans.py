"""Whatever is asked: the plan of the rules is valid, and its parts keep what the question says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.analysis import terms
from core.settings import Settings
from core.types import Understanding
from languages.language import known_languages
from reasoning.planning.rules import first_problem
from reasoning.planning.slots import escaped, filled, literal, slots_in
from reasoning.rules.lexicon import lexicon
from reasoning.rules.plan import plan
from reasoning.rules.understand import understand

PIECES = (
    "Who|What|which|When did|the author of|the country where|the city in which|that|whose|Ann Lee"
    "|Lyon|was born|is located|by|the team founded by|and|or|both|older|the five largest|countries"
    '|in Asia|their|\'s wife|published|(|)|,|?|.|«Заря»|"Night Train"|{x}|}}|{{|{country}|1998'
    "|Кто|Какая|страна|страны|, которая|, в которой|родился|Иван Петров|автор романа|старше|или"
    "|команду|, основанную|каждого из|Хто|місто|, у якому|, що|народився|дружина|谁|是|的|作者"
    "|《晨光》|协会|发表|和|哪个|更高|？|，"
).split("|")
PIECED = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14)
QUESTIONS = st.one_of(PIECED.map(" ".join), PIECED.map("".join), st.text(min_size=1, max_size=80))
STEERING = (
    *("question", "auxiliary", "joiner", "naming", "relative", "be", "both", "same", "compare"),
    *("common", "theirs", "anaphor", "each", "respective", "invariant", "relative_place", "whose"),
    *("first_last", "contrast", "between", "either", "have", "inverting", "demonstrative"),
)
ASKED = "How many old tall long large big high deep fast heavy rich is the in a an this it that"


def understood(question: str) -> Understanding:
    return understand(question, [], Settings().max_sub_questions, Settings().plan_in_degree)


@settings(max_examples=examples(200), deadline=None)
@given(question=QUESTIONS)
def test_every_plan_is_valid(question: str) -> None:
    known = understood(question)
    made = plan(known, [], None)
    slotted = any(part.slot for part in known.parts)
    if any(character.isalnum() for character in question):
        assert first_problem(made if slotted else literal(made), Settings()) is None
    assert (known.kind == "multi") == (len(known.parts) > 1)
    assert 0 <= known.confidence <= 1
    assert len(known.parts) == len(known.required_fields)
    for place, part in enumerate(known.parts, start=1):
        assert all(dep < place for dep in part.deps)


@settings(max_examples=examples(200), deadline=None)
@given(question=PIECED.map(" ".join))
def test_the_parts_keep_the_words_of_the_question(question: str) -> None:
    known = understood(question)
    if not any(part.slot for part in known.parts):
        return
    said = " ".join(
        filled(part.text, {name: "" for name in slots_in(part.text)}) for part in known.parts
    )
    lists = lexicon(known.language)
    steering = {
        term
        for name in STEERING
        for word in lists.any_of(name)
        for term in terms(word, known.language)
    }
    kept = set(terms(f"{said} {ASKED}", known.language))
    asked = set(terms(re.sub(r"['’]s\b", "", question), known.language))
    assert asked - kept - steering == set()


@pytest.mark.parametrize("language", known_languages())
def test_every_list_that_takes_questions_apart_is_text(language: str) -> None:
    words = lexicon(language)
    assert words.any_of("role") and words.any_of("person_noun") and words.any_of("place_noun")
    assert all(isinstance(word, str) for word in words.any_of(*words._lists))


def test_braces_that_a_person_typed_stay_braces() -> None:
    known = understood("Who leads the team that {Ann Lee} founded in {team}?")
    made = plan(known, [], None)
    assert first_problem(made, Settings()) is None
    first, second = made.questions
    assert filled(first.text, {}) == "What is the team that {Ann Lee} founded in {team}?"
    assert filled(second.text, {"team": "Owls"}) == "Who leads Owls?"
    assert understood("Who wrote {team} in Lyon?").parts[0].text == "Who wrote {team} in Lyon"


def test_a_clause_beside_a_chain_keeps_its_braces() -> None:
    known = understood("Who runs {x}? Who is the wife of the author of Aurora?")
    assert [part.slot for part in known.parts] == [None, "author", None]
    assert known.parts[0].text == f"Who runs {escaped('{x}')}"
    assert known.parts[2].deps == [2]


def test_a_question_of_many_names_is_less_surely_plain() -> None:
    one = understood("Where is the ward?")
    many = understood("Did Ann Lee meet Bob Ray at the Night Ward in Lyon?")
    assert one.kind == many.kind == "plain"
    assert one.confidence > many.confidence


def test_their_waits_for_what_the_clause_before_finds() -> None:
    known = understood("What are the names of popular violinists, and what are their websites?")
    assert [part.deps for part in known.parts] == [[], [1]]
    assert [part.deps for part in understood("Where is Lyon, and who runs it?").parts] == [[], []]
