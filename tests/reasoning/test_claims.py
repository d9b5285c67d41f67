"""Claims beside their evidence, word by word: what is the same and what was changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import citing, piece
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.types import Claim, Evidence
from reasoning.claims.alignment import align
from reasoning.claims.support import Supporting
from reasoning.claims.tokens import claim_tokens
from reasoning.verification import judge, settle

ROWS: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("claim_rows.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("language", ROWS)
def test_what_changes_a_claim_and_what_does_not(language: str) -> None:
    evidence = ROWS[language]["evidence"]
    wrong = []
    for row in ROWS[language]["claims"]:
        reason = judge(row[2:], [evidence], language[:2])
        if row.startswith("+") == bool(reason):
            wrong.append((row, reason))
    assert not wrong


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "3 March 2020", "March 3, 2020"),
        ("en", "2020-03-03", "3rd of March 2020"),
        ("en", "two hundred and fifty", "250"),
        ("en", "$1.5 million", "1,500,000 dollars"),
        ("en", "XIX century", "19th century"),
        ("ru", "3 марта 2020", "03.03.2020"),
        ("ru", "двадцать пять", "25"),
        ("ru", "1,5 млн", "1 500 000"),
        ("uk", "п'ять тисяч", "5000"),
        ("zh", "2020年3月3日", "2020-03-03"),
        ("zh", "百分之五", "5%"),
        ("zh", "两千五百万", "2500万"),
        ("en", "007.50 kg", "7.5 kg"),
        ("en", "9" * 5000, "0" + "9" * 5000),
    ],
)
def test_ways_to_write_a_number_or_date(language: str, one: str, other: str) -> None:
    def keys(text: str) -> list[set[str]]:
        return [
            {key for key in token.keys if key.startswith(("#", "months", "units"))}
            for token in claim_tokens(text, language)
            if token.is_content
        ]

    assert keys(one) == keys(other)


@pytest.mark.parametrize("number", ["9007199254740992", "3.14159265358", "9" * 400 + "0"])
def test_a_number_is_compared_to_its_last_digit(number: str) -> None:
    other = str(int(number[-1]) + 1).join((number[:-1], ""))
    assert judge(f"The code is {number}.", [f"The code is {other}."])
    assert not judge(f"The code is {number}.", [f"The code is {number}."])


def test_evidence_that_is_none() -> None:
    assert judge("The ward has 12 beds.", []) == "there is no evidence"
    assert judge("The ward has 12 beds.", [""]) == "there is no evidence"


def test_one_of_several_texts_and_languages_supports() -> None:
    texts = ["The ward has 12 beds.", "病房有30把椅子和一张桌子。"]
    assert judge("The ward has twelve beds.", texts) == ""
    assert judge("病房有三十把椅子。", texts) == ""
    assert "number" in judge("The ward has thirty beds.", texts)


def test_a_record_and_a_table() -> None:
    record = ["title: Foo\nstars: 500\nforks: 20"]
    assert judge("Foo has 500 stars.", record) == ""
    assert judge("Foo has 20 stars.", record)
    table = ["| name | stars |\n|---|---|\n| Foo | 500 |\n| Bar | 20 |"]
    assert judge("Foo has 500 stars.", table) == ""
    assert judge("Foo has 20 stars.", table)


def test_words_of_a_model_that_may_be_the_same_are_asked_about() -> None:
    asked: list[str] = []

    def supports(claim: str, quotes: object, language: str) -> bool:
        asked.append(claim)
        return True

    quote = ["The old mill by the river grinds the wheat of eleven villages."]
    same = "The old mill by the river grinds the corn of eleven villages."
    other = "The old mill by the river does not grind the corn of eleven villages."
    assert judge(same, quote)
    assert judge(same, quote, supports=supports) == ""
    assert judge(other, quote, supports=supports)
    assert asked == [same]


def test_a_claim_is_cited_again_from_what_was_gathered() -> None:
    wrong = piece("The garden is open on Sundays.")
    right = piece("It is quiet. The ward of Doctor Adams has 12 beds. It is open at night.")
    claim = citing(wrong, wrong.text, "The ward of Doctor Adams has 12 beds.")
    known = {item.evidence_id: item for item in (wrong, right)}
    again, reason = settle(claim, known)
    assert reason and again is not None
    assert [one.quote for one in again.citations] == ["The ward of Doctor Adams has 12 beds."]
    assert settle(claim, {wrong.evidence_id: wrong})[0] is None
    invented = claim.model_copy(update={"text": "The ward of Doctor Adams has 13 beds."})
    assert settle(invented, known)[0] is None


def test_what_stands_before_a_quote_in_its_sentence_counts() -> None:
    item = piece("It is false that the ward has 12 beds. It is quiet.")
    quote = "the ward has 12 beds"
    claim: Claim = citing(item, quote, "The ward has 12 beds.")
    evidence: dict[str, Evidence] = {item.evidence_id: item}
    assert "falsity" in settle(claim, evidence)[1]


WORDS = st.sampled_from(
    "the ward has not 12 beds 30 % open before after Monday Adams may all some 5 km or by".split()
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=14).map(" ".join)


@settings(max_examples=examples(300, quick=60), deadline=None)
@given(claim=SENTENCES, text=SENTENCES)
def test_an_alignment_accounts_for_every_word(claim: str, text: str) -> None:
    ours, theirs = claim_tokens(claim, "en"), claim_tokens(text, "en")
    aligned = align(ours, theirs)
    assert list(aligned.matched.values()) == sorted(aligned.matched.values(), reverse=True)
    assert len({*aligned.matched.values()}) == len(aligned.matched)
    assert not aligned.matched.keys() & aligned.exchanged.keys()
    if claim == text:
        assert aligned.cost == 0


@settings(max_examples=examples(300, quick=60), deadline=None)
@given(before=SENTENCES, claim=SENTENCES, after=SENTENCES)
def test_a_sentence_of_the_evidence_is_supported(before: str, claim: str, after: str) -> None:
    text = f"{before}.\n\n{claim}.\n\n{after}."
    supporting = Supporting([text], "en")
    assert supporting.difference(f"{claim}.") == ""
    if claim != "%":
        (start, end), *_ = supporting.spans(f"{claim}.")
        assert text[start:end].rstrip(".") == claim


@settings(max_examples=examples(200, quick=40), deadline=None)
@given(claim=st.text(max_size=200), text=st.text(max_size=400), code=st.sampled_from(list(ROWS)))
def test_no_text_breaks_it(claim: str, text: str, code: str) -> None:
    Supporting([text], code).difference(claim)


@pytest.mark.parametrize(
    ("language", "evidence", "true", "false"),
    [
        (
            "en",
            "Unrest fell by 7 % in May, while wages rose by 3 %.",
            "Unrest fell by 7 % in May.",
            "Wages fell by 3 %.",
        ),
        (
            "en",
            "Aspirin lowers fever and caffeine raises blood pressure.",
            "Caffeine raises blood pressure.",
            "Aspirin raises blood pressure.",
        ),
        (
            "en",
            "Then the county paid 5 million and private donors the rest.",
            "The county paid 5 million.",
            "Private donors paid 5 million.",
        ),
        (
            "ru",
            "Зимой спрос упал на 7 %, а весной вырос на 3 %.",
            "Зимой спрос упал на 7 %.",
            "Весной спрос упал на 3 %.",
        ),
        ("zh", "失业率下降到5%，工资上涨了3%。", "工资上涨了3%。", "工资下降了3%。"),
    ],
)
def test_what_one_clause_says_is_not_said_of_another(
    language: str, evidence: str, true: str, false: str
) -> None:
    assert Supporting([evidence], language).difference(true) == ""
    assert Supporting([evidence], language).difference(false) != ""


def test_a_value_is_matched_beside_its_own_words() -> None:
    evidence = "The Kestrel drone weighs 3.2 kg and flies, and the Merlin drone weighs 5.1 kg."
    assert Supporting([evidence], "en").difference("The Kestrel drone weighs 3.2 kg.") == ""
