"""The check that fails closed: every claim against the spans it cites."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from builders import citing, piece
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.types import Claim, Evidence
from reasoning.verification import unsupported_reason

ITEMS = {
    "en": piece("The ward of Doctor Adams has 12 beds. It is open at night."),
    "ru": piece("В отделении врача Петрова 12 коек. Оно открыто ночью.", "ru"),
    "uk": piece("У відділенні лікаря Петренка 12 ліжок. Воно відчинене вночі.", "uk"),
    "zh": piece("夜间病房有 12 张床位。病房允许探视。", "zh"),
}


def verdict(claim: Claim, *evidence: Evidence) -> str:
    return unsupported_reason(claim, {item.evidence_id: item for item in evidence})


def said(language: str, quote: str, text: str) -> str:
    return verdict(citing(ITEMS[language], quote, text), ITEMS[language])


@pytest.mark.parametrize(
    ("language", "quote", "text", "reason"),
    [
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward has 13 beds.", "number 13"),
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward has 1 beds.", "number 1"),
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward has 1.2 beds.", "number 1.2"),
        (
            "ru",
            "В отделении врача Петрова 12 коек.",
            "В отделении врача Петрова 15 коек.",
            "number 15",
        ),
        (
            "uk",
            "У відділенні лікаря Петренка 12 ліжок.",
            "У відділенні лікаря Петренка 15 ліжок.",
            "number 15",
        ),
        ("zh", "夜间病房有 12 张床位。", "夜间病房有 21 张床位。", "number 21"),
        ("en", "It is open at night.", "It is open one night.", "number one"),
        ("zh", "病房允许探视。", "三个病房允许探视。", "number 三"),
    ],
)
def test_a_wrong_number(language: str, quote: str, text: str, reason: str) -> None:
    assert reason in said(language, quote, text)


@pytest.mark.parametrize(
    ("language", "quote", "text", "name"),
    [
        (
            "en",
            "The ward of Doctor Adams has 12 beds.",
            "The ward of Doctor Baker has 12 beds.",
            "Baker",
        ),
        (
            "ru",
            "В отделении врача Петрова 12 коек.",
            "В отделении врача Сидорова 12 коек.",
            "Сидорова",
        ),
        (
            "uk",
            "У відділенні лікаря Петренка 12 ліжок.",
            "У відділенні лікаря Шевченка 12 ліжок.",
            "Шевченка",
        ),
        (
            "en",
            "The ward of Doctor Adams has 12 beds.",
            "Baker ward has 12 beds.",
            "Baker",
        ),
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward of Li has 12 beds.", "Li"),
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward of Ada has 12 beds.", "Ada"),
    ],
)
def test_a_wrong_name(language: str, quote: str, text: str, name: str) -> None:
    assert f"name {name}" in said(language, quote, text)


@pytest.mark.parametrize(
    ("language", "quote", "text"),
    [
        ("en", "It is open at night.", "It is not open at night."),
        ("en", "It is open at night.", "It is never open at night."),
        ("en", "It is open at night.", "It isn't open at night."),
        ("ru", "Оно открыто ночью.", "Оно не открыто ночью."),
        ("ru", "Оно открыто ночью.", "Оно никогда не открыто ночью."),
        ("uk", "Воно відчинене вночі.", "Воно не відчинене вночі."),
        ("zh", "病房允许探视。", "病房不允许探视。"),
        ("zh", "病房允许探视。", "病房从不允许探视。"),
    ],
)
def test_an_added_negation(language: str, quote: str, text: str) -> None:
    assert "negation" in said(language, quote, text)


@pytest.mark.parametrize(
    ("language", "text", "claim"),
    [
        ("en", "The ward is not open at night.", "The ward is open at night."),
        ("en", "The ward can't be visited.", "The ward can be visited."),
        ("en", "No visitor may enter the ward.", "A visitor may enter the ward."),
        ("ru", "Отделение не открыто ночью.", "Отделение открыто ночью."),
        ("ru", "Никто не входит в отделение.", "Петров входит в отделение."),
        ("uk", "Відділення не відчинене вночі.", "Відділення відчинене вночі."),
        ("zh", "病房不允许探视。", "病房允许探视吗病房。"),
        ("zh", "夜间病房没有医生。", "夜间病房有医生在。"),
    ],
)
def test_a_dropped_negation(language: str, text: str, claim: str) -> None:
    item = piece(text, language)
    assert "negation" in verdict(citing(item, text, claim), item)


def test_a_citation_must_be_exact() -> None:
    item = ITEMS["en"]
    quote = "It is open at night."
    start = item.text.index(quote)
    assert verdict(citing(item, quote), item) == ""
    for spoiled, reason in [
        ({"quote": "It is open at Night."}, "differs"),
        ({"quote": quote[:-1]}, "differs"),
        ({"quote": quote + " "}, "differs"),
        ({"start": start + 1}, "differs"),
        ({"end": start + len(quote) - 1}, "differs"),
        ({"end": len(item.text) + 1}, "outside"),
        ({"start": -1}, "outside"),
        ({"start": start, "end": start}, "outside"),
        ({"start": start + 9, "end": start}, "outside"),
        ({"start": 10**9, "end": 10**9 + 5}, "outside"),
        ({"evidence_id": "invented"}, "did not find relevant"),
        ({"evidence_id": ""}, "did not find relevant"),
        ({"chunk_id": "another"}, "did not find relevant"),
    ]:
        assert reason in verdict(citing(item, quote, **spoiled), item), spoiled


def test_a_claim_must_cite() -> None:
    assert verdict(Claim(text="It is open at night.", citations=[])) == "it cites nothing"


def test_one_bad_citation_spoils_the_claim() -> None:
    item = ITEMS["en"]
    good, bad = (
        citing(item, "It is open at night."),
        citing(item, "It is open at night.", quote="It is open by night."),
    )
    both = good.model_copy(update={"citations": [*good.citations, *bad.citations]})
    assert "differs" in verdict(both, item)


@pytest.mark.parametrize(
    ("language", "quote", "text"),
    [
        (
            "en",
            "It is open at night.",
            "The unit is open for emergency patients around the clock.",
        ),
        ("ru", "Оно открыто ночью.", "Оно принимает пациентов круглосуточно."),
        ("uk", "Воно відчинене вночі.", "Воно приймає пацієнтів цілодобово щодня."),
        ("zh", "病房允许探视。", "病房全天接收急诊患者。"),
    ],
)
def test_a_claim_in_other_words(language: str, quote: str, text: str) -> None:
    assert "words are in the quote" in said(language, quote, text)


@pytest.mark.parametrize(
    ("language", "quote", "text"),
    [
        ("en", "The ward of Doctor Adams has 12 beds.", "The ward has 12 beds."),
        ("en", "It is open at night.", "It opens at night."),
        ("ru", "В отделении врача Петрова 12 коек.", "В отделении 12 коек."),
        ("uk", "У відділенні лікаря Петренка 12 ліжок.", "У відділенні 12 ліжок."),
        ("zh", "夜间病房有 12 张床位。", "病房有 12 张床位。"),
    ],
)
def test_a_shorter_form_of_the_quote_is_supported(language: str, quote: str, text: str) -> None:
    assert said(language, quote, text) == ""


def test_a_claim_may_rest_on_several_quotes() -> None:
    first = piece("The Kepler ward has 12 beds.")
    second = piece("The Tycho ward has 30 beds.")
    claim = Claim(
        text="The Kepler ward has 12 beds and the Tycho ward has 30 beds.",
        citations=[*citing(first, first.text).citations, *citing(second, second.text).citations],
    )
    assert verdict(claim, first, second) == ""


LETTERS = st.characters(blacklist_categories=("Cs", "Cc"))
SENTENCES = st.one_of(
    st.text(LETTERS, min_size=1, max_size=60),
    st.lists(
        st.sampled_from(
            "The ward has not 12,5 beds at 10:30 и не открыто Петров ні 病房 没有 3.14 e.g.".split()
        ),
        min_size=1,
        max_size=12,
    ).map(" ".join),
)


@settings(max_examples=examples(200), deadline=None)
@given(
    before=st.text(LETTERS, max_size=20), sentence=SENTENCES, after=st.text(LETTERS, max_size=20)
)
def test_a_verbatim_sentence_is_always_supported(before: str, sentence: str, after: str) -> None:
    item = piece(f"{before}.\n\n{sentence}\n\n{after}")
    start = len(before) + 3
    claim = citing(item, sentence, start=start, end=start + len(sentence))
    assert verdict(claim, item) == ""


@settings(max_examples=examples(100), deadline=None)
@given(sentence=SENTENCES, number=st.integers(100000, 999999))
def test_a_number_that_is_not_quoted_is_never_supported(sentence: str, number: int) -> None:
    item = piece(sentence)
    assert verdict(citing(item, sentence, f"{sentence} {number}"), item) != ""


@settings(max_examples=examples(100), deadline=None)
@given(
    text=st.text(max_size=40), quote=st.text(max_size=20), start=st.integers(), end=st.integers()
)
def test_an_invented_span_is_never_supported(text: str, quote: str, start: int, end: int) -> None:
    item = piece(text)
    claim = citing(item, quote, start=start, end=end)
    if text[max(0, start) : max(0, end)] != quote or not quote:
        assert verdict(claim, item) != ""


QUOTE = "The ward of Doctor Adams has 12 beds."
RUSSIAN = "В отделении доктора Адамса стоит 12 коек для больных."


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        (RUSSIAN, True, ""),
        (RUSSIAN, False, "was not found to support it"),
        (RUSSIAN, None, "another language"),
        (RUSSIAN.replace("12", "13"), True, "number 13"),
        # In the quote's own language nobody is asked.
        (QUOTE.replace("12", "13"), True, "number 13"),
        (QUOTE, False, ""),
    ],
)
def test_a_claim_in_another_language_needs_somebody_who_reads_both(
    text: str, answer: bool | None, reason: str
) -> None:
    asked: list[tuple[str, tuple[str, ...], str]] = []

    def supports(claim: str, quotes: Sequence[str], language: str) -> bool:
        asked.append((claim, tuple(quotes), language))
        return bool(answer)

    evidence = {ITEMS["en"].evidence_id: ITEMS["en"]}
    claim = citing(ITEMS["en"], QUOTE, text)
    found = unsupported_reason(claim, evidence, None if answer is None else supports)
    assert (reason in found) if reason else found == ""
    expected = (text, (QUOTE,), "ru")
    assert asked == ([expected] if text == RUSSIAN and answer is not None else [])
