"""Answers over documentation: signature, a short explanation, code to the letter as a block."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import answered, asking, graded, piece

from core.types import Claim, Evidence, marked, numbered_sources
from reasoning.rules.answering.documentation import definition
from reasoning.rules.reasoner import RulesReasoner

Rules = Callable[..., RulesReasoner]
CODE = "```\nline = Line(20)\n\n\nfor kite in kites:\n    kite.fly(\n        line,\n    )\n```"
FLY = f"""kites.fly(line, *, wind=1)

Fly all kites on one line. It needs wind.
Parameters:
- line (Line) – what holds the kites.
- wind – metres a second.
Returns:
- float – the height.
Raises:
- CalmError – if there is no wind.

{CODE}"""
FLY_ITEM = piece(FLY, title="kites", section="kites › kites.fly")
GUIDE = piece(
    f"Kites are tied to a line before they rise:\n\n{CODE}\n\nThen they are let go.",
    title="Guide",
    section="Guide › Tying kites",
)
HEADED = piece("Land a kite on the ground.", title="Kites", section="Kites › `land(kite, speed=2)`")
SECTIONS = {"chunker": "structural"}


def texts(
    rules: Rules, question: str, *items: Evidence, wants: str = "text", **settings: object
) -> list[str]:
    asked = asking(question, wants=wants)
    reasoner = rules(list(items), ingest=SECTIONS, **settings)
    grades = reasoner.grade(asked, list(items))
    evidence = [graded(one, grade.grade) for one, grade in zip(items, grades, strict=True)]
    return [claim.text for claim in answered(reasoner, asked, evidence).claims]


def test_a_question_about_a_name_gets_its_signature_and_example(rules: Rules) -> None:
    signature = "`kites.fly(line, *, wind=1)`"
    for question in ("How do I use kites.fly?", "What does kites.fly do?", "What is fly()?"):
        assert texts(rules, question, GUIDE, FLY_ITEM) == [
            signature,
            "Fly all kites on one line.",
            CODE,
        ], question


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What arguments does kites.fly take?", "- line (Line) – what holds the kites."),
        ("What does kites.fly return?", "Returns:\n- float – the height."),
        ("Which exception does fly raise?", "Raises:\n- CalmError – if there is no wind."),
    ],
)
def test_what_is_asked_of_a_name_stands_behind_its_signature(
    rules: Rules, question: str, shown: str
) -> None:
    first, *rest = texts(rules, question, GUIDE, FLY_ITEM)
    assert first == "`kites.fly(line, *, wind=1)`"
    assert any(shown in one for one in rest) and CODE not in rest


def test_a_signature_in_a_heading_leads_the_sentence(rules: Rules) -> None:
    [text] = texts(rules, "What arguments does land take?", HEADED)
    assert text == "`land(kite, speed=2)`: Land a kite on the ground."


def test_how_to_gets_the_block_with_its_indentation(rules: Rules) -> None:
    found = texts(rules, "How do I tie kites to a line?", GUIDE)
    assert found == ["Kites are tied to a line before they rise:", CODE]


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("kites.fly wind parameter", "wind – metres a second."),
        ("What is the default wind of kites.fly?", "wind – metres a second."),
        ("How many metres a second does kites.fly take?", "wind – metres a second."),
    ],
)
def test_a_name_answers_what_its_passage_says_of_it(
    rules: Rules, question: str, shown: str
) -> None:
    found = texts(rules, question, GUIDE, FLY_ITEM)
    assert found[0] == "`kites.fly(line, *, wind=1)`" and shown in found


def test_a_sentence_of_a_named_thing_stands_behind_its_name(rules: Rules) -> None:
    found = texts(rules, "Is wind needed to get everything up into the air?", FLY_ITEM)
    assert found[:1] in ([], ["`kites.fly(line, *, wind=1)`"])


VERSIONS = [
    piece(
        f"kites.fly(line, wind={wind})\n\nFly all kites.\nParameters:\n- wind – longest gust, m/s",
        title="kites",
        section="kites › kites.fly",
        source=f"kites-{version}.html",
        version=version,
        metadata={"framework": "Aloft"},
    )
    for version, wind in (("1.4", 5), ("2.1", 9))
]


@pytest.mark.parametrize(("version", "wind"), [("1.4", 5), ("2.1", 9)])
def test_a_framework_and_its_version_are_no_words_of_the_answer(
    rules: Rules, version: str, wind: int
) -> None:
    question = f"What is the longest gust of kites.fly in Aloft {version}?"
    found = texts(rules, question, *VERSIONS)
    assert found == [f"`kites.fly(line, wind={wind})`", "wind – longest gust, m/s"]
    assert texts(rules, "What is the longest gust of kites.fly in Aloft 3.0?", *VERSIONS) == []


def test_since_when_it_is_there_explains_no_name(rules: Rules) -> None:
    text = "kites.dive(speed)\n\nNew in version 2.0.\n\nLet all kites fall."
    found = texts(rules, "kites.dive", piece(text, title="kites", section="kites › kites.dive"))
    assert found == ["`kites.dive(speed)`", "Let all kites fall."]


def test_of_several_versions_the_newest_answers_where_none_is_named(rules: Rules) -> None:
    for items in (VERSIONS, VERSIONS[::-1]):
        assert texts(rules, "kites.fly", *items)[0] == "`kites.fly(line, wind=9)`"


GONE = piece(
    "kites.toss(kite)\n\nDeprecated since version 0.9: Use `kites.fly` instead.\n\n"
    "Throw a kite up.",
    title="kites",
    section="kites › kites.toss",
)


def test_a_note_of_a_version_answers_what_asks_for_it_alone(rules: Rules) -> None:
    note = "Deprecated since version 0.9: Use `kites.fly` instead."
    assert texts(rules, "kites.toss", GONE) == ["`kites.toss(kite)`", "Throw a kite up.", note]
    assert note in texts(rules, "Is toss deprecated?", GONE)
    assert note not in texts(rules, "How do I mend a torn kite?", GONE)


RAISED = piece(
    "exception kites.errors.Calm\n\nThere is no wind at all. It rises again at noon.",
    title="kites.errors",
    section="kites.errors › kites.errors.Calm",
)


def test_what_is_raised_comes_with_what_helps(rules: Rules) -> None:
    found = texts(rules, "kites.errors.Calm", RAISED, FLY_ITEM)
    assert found == [
        "`exception kites.errors.Calm`",
        "There is no wind at all.",
        "It rises again at noon.",
    ]


def test_a_further_word_makes_it_another_question(rules: Rules) -> None:
    found = texts(rules, "What is the maximum height of kites.fly?", GUIDE, FLY_ITEM)
    assert "`kites.fly(line, *, wind=1)`" not in found


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("Guide › Installation", "Install it (with pip)."),
        ("kites › fly", f"Call it:\n\n{CODE}"),
        ("", "fly(line) is a call."),
        ("Guide › 3. How to fly", "fly(line)"),
    ],
)
def test_prose_and_calls_in_code_define_no_name(section: str, text: str) -> None:
    assert definition(piece(text, section=section)) is None


def test_the_marks_of_a_block_stand_below_it() -> None:
    item = piece(CODE)
    claim = Claim(text=CODE, citations=[item.cited(0, len(CODE))])
    assert marked(claim, numbered_sources([claim])).endswith("    )\n```\n[1]")


OTHER_CODE = "```\nline.cut()\n```"
MENDING = piece(
    f"A torn knot is mended by hand. Tie it:\n\n{CODE}\n\nThen wait.\n\n{OTHER_CODE}",
    section="Guide › Mending",
)
APART = piece(f"Kites are mended by hand. Then wait.\n\n{OTHER_CODE}", section="Guide › Mending")


def test_an_example_is_what_is_announced_or_has_a_name_of_the_answer(rules: Rules) -> None:
    question = "How do I mend a torn knot?"
    assert texts(rules, question, MENDING) == ["A torn knot is mended by hand. Tie it:", CODE]
    assert texts(rules, "How are kites mended?", APART) == ["Kites are mended by hand."]


def test_a_beginner_gets_words_and_an_expert_parameters(rules: Rules) -> None:
    for question in ("Explain kites.fly for beginners", "What is kites.fly, in simple words?"):
        shown = texts(rules, question, GUIDE, FLY_ITEM)
        assert shown == ["Fly all kites on one line.", "It needs wind.", CODE], question
    [signature, first, lists, code] = texts(rules, "Explain kites.fly in detail", GUIDE, FLY_ITEM)
    assert (signature, code) == ("`kites.fly(line, *, wind=1)`", CODE)
    assert "- wind – metres a second." in lists


def test_what_is_said_of_another_name_answers_nothing(rules: Rules) -> None:
    assert texts(rules, "What is the signature of sky.pull_down?", GUIDE, FLY_ITEM) == []


def test_a_pointer_goes_behind_what_it_points_to(rules: Rules) -> None:
    pointing = piece("You have already seen how kites are tied to a line.", title="Later")
    telling = piece("Kites are tied to a line with a bowline.", title="Knots")
    order = {"factor_amounts": ["order=0.1"]}
    asked = "How are kites tied to a line?"
    [first, *_] = texts(rules, asked, pointing, telling, selection=order)
    assert "bowline" in first
