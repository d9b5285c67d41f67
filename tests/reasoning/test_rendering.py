"""What a person reads: marks in the printed order, lists, and refusals in four languages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from builders import asking, citing, piece

from core.auth import AuthContext
from core.types import Evidence, Plan, StopReason, Understanding, numbered_sources
from languages.language import find_language
from reasoning.rendering import Help, render_answer, render_refusal
from reasoning.types import Nearest

FIRST = piece("The ward has 12 beds. It is open at night.")
SECOND = piece("Marta Diaz leads the ward.")
KNOWN = Understanding(question="?", language="en")
LANGUAGES = ("en", "ru", "uk", "zh")


def answer(questions: list[str], claims: list[tuple[Evidence, str, str]], **values: object) -> str:
    asked = [asking(text).model_copy(update={"id": f"q{n}"}) for n, text in enumerate(questions, 1)]
    made = [citing(i, quote).model_copy(update={"question_id": q}) for i, quote, q in claims]
    missing = values.pop("missing", [])
    known = KNOWN.model_copy(update=values)
    return render_answer(known, Plan(questions=asked), made, missing, [FIRST, SECOND])


def test_marks_count_up_in_the_order_that_is_printed() -> None:
    claims = [
        (SECOND, "Marta Diaz leads the ward.", "q1"),
        (FIRST, "The ward has 12 beds.", "q1"),
        (FIRST, "It is open at night.", "q1"),
    ]
    text = answer(["Who leads the ward?"], claims)
    assert text == (
        "Marta Diaz leads the ward. [1] The ward has 12 beds. [2] It is open at night. [2]"
    )


def test_parts_have_a_block_each_and_share_the_numbers() -> None:
    claims = [
        (FIRST, "The ward has 12 beds.", "q1"),
        (SECOND, "Marta Diaz leads the ward.", "q2"),
        (FIRST, "It is open at night.", "q3"),
    ]
    text = answer(["How many beds", "who leads it", "is it open"], claims)
    assert text.splitlines() == [
        "How many beds",
        "  The ward has 12 beds. [1]",
        "who leads it",
        "  Marta Diaz leads the ward. [2]",
        "is it open",
        "  It is open at night. [1]",
    ]
    assert re.findall(r"\[(\d)\]", text) == ["1", "2", "1"]


def test_one_sentence_that_answers_all_parts_stands_alone() -> None:
    claims = [(FIRST, "The ward has 12 beds.", one) for one in ("q1", "q2")]
    assert answer(["How many beds", "where"], claims) == "The ward has 12 beds. [1]"
    third = (SECOND, "Marta Diaz leads the ward.", "q3")
    assert answer(["How many beds", "where", "who leads it"], [*claims, third]).splitlines() == [
        "How many beds; where",
        "  The ward has 12 beds. [1]",
        "who leads it",
        "  Marta Diaz leads the ward. [2]",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_missing_parts_are_named_in_the_language_of_the_question(language: str) -> None:
    text = answer(
        ["How many beds", "what is the price"],
        [(FIRST, "The ward has 12 beds.", "q1")],
        missing=["what is the price"],
        language=language,
    )
    assert "what is the price" in text.splitlines()[-1]
    said = {"en": "Not found", "ru": "Не найдено", "uk": "Не знайдено", "zh": "未找到"}
    found, missing = text.splitlines()[-1].split(said[language])
    assert "How many beds" in found
    assert "what is the price" in missing


def test_an_item_of_a_list_names_its_work() -> None:
    item = piece(
        "A book for all.",
        title="Plants",
        metadata={"authors": ["A. Gray", "B. White"], "year": 1898},
    )
    question = asking("What can I read?", wants="list")
    text = render_answer(
        KNOWN, Plan(questions=[question]), [citing(item, "A book for all.")], [], [item]
    )
    assert text == "1. Plants (A. Gray, B. White, 1898): A book for all. [1]"


def test_the_same_chunk_has_one_number() -> None:
    claims = [citing(FIRST, "The ward has 12 beds."), citing(SECOND, SECOND.text)]
    claims.append(citing(FIRST, "It is open at night."))
    assert numbered_sources(claims) == {FIRST.chunk_id: 1, SECOND.chunk_id: 2}


REFUSALS = {
    "en": ("I found nothing", "no passage is relevant enough"),
    "ru": ("не нашлось ответа", "нет достаточно близких фрагментов"),
    "uk": ("не знайшлося відповіді", "немає достатньо близьких фрагментів"),
    "zh": ("没有找到", "没有足够相关的段落"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_says_what_where_and_why(language: str) -> None:
    plan = Plan(questions=[asking("who leads it", about="Kepler ward")])
    known = KNOWN.model_copy(update={"language": language})
    text = render_refusal(
        known, plan, ["search", "staff", "search"], StopReason.no_relevant_evidence
    )
    nothing, why = REFUSALS[language]
    assert nothing in text
    assert why in text
    passages = find_language(language).messages["tools"]["search"]
    assert f"{passages}, staff" in text
    assert text.count(passages) == 1
    assert "who leads it Kepler ward" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_shows_the_nearest_passage_and_what_it_lacks(language: str) -> None:
    known = KNOWN.model_copy(update={"language": language})
    item = piece("<b>Rent</b> is paid monthly. It is late.", title="Rent", section="Rent › Dates")
    place: dict[str, Any] = {"evidence_id": item.evidence_id, "start": 0, "end": 28}
    auth = AuthContext(tenant="t", user="ann", roles=frozenset({"hr"}), allowed_sources=("a/*",))

    def refusal(near: Nearest, **more: Any) -> list[str]:  # noqa: ANN401
        given = Help(near=near, passage=item, **more)
        return render_refusal(known, None, [], StopReason.no_relevant_evidence, given).split("\n")

    plain = refusal(Nearest())
    lines = refusal(Nearest(**place, lacking=["in Spain"], better="What of rent?"), rights=auth)
    assert len(plain) == 4 and "Rent › Dates" in lines[1] and "Rent is paid monthly." in lines[1]
    assert "Rent › Rent" not in lines[1] and "<b>" not in lines[1]
    assert "in Spain" in lines[2] and "What of rent?" in lines[3]
    assert "ann" not in lines[5] and "hr" not in lines[5] and "a/*" in lines[6]
    kinds = [refusal(Nearest(**place, kind=kind))[2] for kind in ("date", "number", "person")]
    assert len(set(kinds)) == 3
    filtered = refusal(Nearest(), filters=["year>=2021"])
    assert any("year>=2021" in line for line in filtered)
    assert len(refusal(Nearest(), filters=["year>=2021"], unfiltered=True)) == len(filtered) + 1


@pytest.mark.parametrize(("language", "mark"), [*zip(LANGUAGES, "???？", strict=True)])
def test_no_stop_follows_the_mark_of_a_question(language: str, mark: str) -> None:
    known = KNOWN.model_copy(update={"question": f"Who leads it{mark}", "language": language})
    text = render_refusal(known, None, ["search"], StopReason.timeout)
    assert text.endswith(f"Who leads it{mark}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_to_refuse_has_its_own_words(language: str) -> None:
    named = {
        StopReason.no_relevant_evidence,
        StopReason.unsupported_answer,
        StopReason.max_steps,
        StopReason.max_tool_calls,
        StopReason.max_tokens,
        StopReason.max_cost,
        StopReason.timeout,
    }
    why = find_language(language).messages["stop_reasons"]
    assert {reason.value for reason in named} <= set(why)
    assert len(set(why.values())) == len(why)
    known = KNOWN.model_copy(update={"language": language})
    for reason in named:
        spent = {"used": "7", "limit": "8"}
        text = render_refusal(known, None, [], reason, Help(spent=spent))
        assert why[reason.value].format(**spent) in text


def test_a_language_without_a_lexicon_is_answered_in_english() -> None:
    known = KNOWN.model_copy(update={"language": "fi"})
    text = render_refusal(known, None, [], StopReason.timeout)
    assert text.startswith("The run ended before an answer was found: the time for")


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "2 passages read"),
        ("ru", "фрагментов: 2"),
        ("uk", "фрагментів: 2"),
        ("zh", "段落数:2"),
    ],
)
def test_a_classic_answer_names_the_elected_document(language: str, words: str) -> None:
    read = [
        item.model_copy(update={"tool": "search_classic", "title": "Night nursing"})
        for item in (FIRST, SECOND)
    ]
    claim = citing(FIRST, "The ward has 12 beds.").model_copy(update={"question_id": "q1"})
    plan = Plan(questions=[asking("How many beds?").model_copy(update={"id": "q1"})])
    known = KNOWN.model_copy(update={"language": language})
    text = render_answer(known, plan, [claim], [], read)
    assert "Night nursing" in text.splitlines()[-1]
    assert words in text.splitlines()[-1]
    mixed = [read[0], SECOND]
    assert "Night nursing" not in render_answer(known, plan, [claim], [], mixed)
