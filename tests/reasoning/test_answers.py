"""Extractive answers: whole sentences, exact spans, one item per document in a list."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import answered, asking, graded, piece, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.sentences import sentence_spans
from core.settings import Settings
from core.types import Draft, Evidence, Plan, SubQuestion, Understanding
from reasoning.rules.answering.relevance import Relevance
from reasoning.rules.reasoner import RulesReasoner

Rules = Callable[..., RulesReasoner]
DOSE = asking("What is the highest dose of morphine for an adult?", wants="number")
KNOWN = Understanding(question=DOSE.text, language="en")


def draft(
    rules: Rules, questions: list[SubQuestion], evidence: list[Evidence], **v: object
) -> Draft:
    return rules(evidence, **v).answer(KNOWN, Plan(questions=questions), evidence)


def check_spans(made: Draft, evidence: list[Evidence]) -> None:
    by_id = {item.evidence_id: item for item in evidence}
    for claim in made.claims:
        (citation,) = claim.citations
        item = by_id[citation.evidence_id]
        assert item.text[citation.start : citation.end] == citation.quote
        assert claim.text == " ".join(citation.quote.split())
        assert (citation.chunk_id, citation.document_id, citation.source) == (
            item.chunk_id,
            item.document_id,
            item.source,
        )
        ends = {span for span in sentence_spans(item.text)}
        assert any(citation.end == end and citation.start >= start for start, end in ends)


@pytest.mark.parametrize(
    ("question", "evidence", "answer"),
    [
        (
            DOSE,
            piece("Soup is served. The highest dose of morphine for an adult is 20 mg. Ask us."),
            "The highest dose of morphine for an adult is 20 mg.",
        ),
        (
            asking("Какая наибольшая доза морфина?", "ru", wants="number"),
            piece("Суп готов. Наибольшая доза морфина составляет 20 мг.", "ru"),
            "Наибольшая доза морфина составляет 20 мг.",
        ),
        (
            asking("Яка найбільша доза морфіну?", "uk", wants="number"),
            piece("Суп готовий. Найбільша доза морфіну становить 20 мг.", "uk"),
            "Найбільша доза морфіну становить 20 мг.",
        ),
        (
            asking("吗啡的最大剂量是多少？", "zh", wants="number"),
            piece("食堂供应汤。吗啡的最大剂量是 20 毫克。", "zh"),
            "吗啡的最大剂量是 20 毫克。",
        ),
        (
            DOSE,
            piece("The highest dose\nof morphine for an adult\nis 20 mg.", title="Doses"),
            "The highest dose of morphine for an adult is 20 mg.",
        ),
    ],
)
def test_the_best_sentence_is_the_claim(
    question: SubQuestion, evidence: Evidence, answer: str, rules: Rules
) -> None:
    item = graded(evidence)
    made = draft(rules, [question], [item])
    assert made.claims[0].text == answer
    assert made.missing == []
    check_spans(made, [item])


def test_a_question_in_a_document_is_no_answer(rules: Rules) -> None:
    item = graded(
        piece(
            "What is the highest dose of morphine for an adult of 70 kg? "
            "The highest dose of morphine for an adult is 20 mg."
        )
    )
    made = draft(rules, [DOSE], [item])
    assert made.claims[0].text == "The highest dose of morphine for an adult is 20 mg."


def test_evidence_in_the_language_of_the_question_comes_first(rules: Rules) -> None:
    question = asking("XR9 dose mg", "en", wants="number")
    english = graded(piece("XR9 dose: 20 mg, once daily.", "en"))
    russian = graded(piece("XR9 dose: 20 mg, раз в день.", "ru"))
    made = draft(rules, [question], [russian, english], claims_per_question=1)
    assert made.claims[0].citations[0].chunk_id == english.chunk_id


def test_claims_do_not_repeat_each_other(rules: Rules) -> None:
    text = "The highest dose of morphine for an adult is 20 mg."
    evidence = [graded(piece(text, title=str(place))) for place in range(4)]
    made = draft(rules, [DOSE], evidence, claims_per_question=5)
    assert [claim.text for claim in made.claims] == [text]


def test_a_second_claim_adds_words_of_the_question(rules: Rules) -> None:
    question = asking("How many beds and how many nurses does the ward have?", wants="number")
    item = graded(piece("The ward has 12 beds. The ward has 5 nurses. The ward has a door."))
    made = draft(rules, [question], [item])
    assert {claim.text for claim in made.claims} == {
        "The ward has 12 beds.",
        "The ward has 5 nurses.",
    }


def test_a_part_without_graded_evidence_is_named_as_missing(rules: Rules) -> None:
    other = asking("Who leads surgery?", wants="person").model_copy(update={"id": "q2"})
    item = graded(piece("The highest dose of morphine for an adult is 20 mg."))
    weak = graded(piece("Surgery is on the second floor with Room Nine."), 1, "q2")
    made = draft(rules, [DOSE, other], [item, weak])
    assert made.missing == ["Who leads surgery?"]
    assert {claim.question_id for claim in made.claims} == {"q1"}


def test_no_evidence_gives_no_claim(rules: Rules) -> None:
    assert draft(rules, [DOSE], []) == Draft(claims=[], missing=[DOSE.text])


def test_a_list_has_one_item_per_document_and_at_most_so_many(rules: Rules) -> None:
    question = asking("What can I read on botany?", wants="list")
    evidence = [
        graded(
            piece(
                f"A book on botany for all, number {n}. It is about botany.",
                document_key=str(n // 2),
            )
        )
        for n in range(12)
    ]
    made = draft(rules, [question], evidence, list_items=4)
    keys = [
        next(i.document_key for i in evidence if i.chunk_id == claim.citations[0].chunk_id)
        for claim in made.claims
    ]
    assert len(keys) == 4
    assert len(set(keys)) == 4
    check_spans(made, evidence)


def test_findings_hold_a_value_of_the_wanted_kind(rules: Rules) -> None:
    item = graded(piece("The dose is written on a card. The highest dose of morphine is 20 mg."))
    found = rules([item]).extract(DOSE, [item])
    assert [finding.value for finding in found] == ["20 mg"]
    assert item.text[found[0].start : found[0].end] == found[0].value


WORDS = (
    "The ward. has 12 beds! Где врач? 床位 20 张。 \n\n - | e.g. Dr. No… «тут» dose, 3.5 mg;".split(
        " "
    )
)


@settings(max_examples=examples(60), deadline=None)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join), min_size=1, max_size=3
    )
)
def test_every_claim_quotes_its_chunk_exactly(texts: list[str]) -> None:
    evidence = [graded(piece(text, title=str(place))) for place, text in enumerate(texts)]
    reasoner = RulesReasoner(Settings(), weights_for(evidence), None)
    question = asking("How many beds has the ward?", wants="number")
    made = answered(reasoner, question, evidence)
    by_id = {item.evidence_id: item for item in evidence}
    for claim in made.claims:
        (citation,) = claim.citations
        text = by_id[citation.evidence_id].text
        assert text[citation.start : citation.end] == citation.quote
    quotes = [claim.text for claim in made.claims]
    assert len(quotes) == len(set(quotes))


ASKED = (
    ("Can I share the cache with others?", "Do not share the cache with others.", "no"),
    ("Can I lend it to people I do not trust?", "Do not lend it to people you don't trust.", "no"),
    (
        "Should I use the old engine in winter?",
        "In winter use the new engine instead of the old engine.",
        "no",
    ),
    ("Is the museum free on Sundays?", "The museum is free on Sundays.", "yes"),
    ("Is the pass valid on ferries?", "The pass is valid on buses, but not on ferries.", "no"),
    ("Can guests edit rules?", "Guests can edit rules, readers cannot edit anything.", "yes"),
    (
        "Can a ticket be refunded?",
        "A ticket can be refunded if it has not been used.",
        "",
    ),
    ("Можно ли обедать в зале?", "В зале можно обедать, если не идут занятия.", ""),
    ("May I wash the bowl?", "Do not wash the bowl and do not scratch it.", "no"),
    ("Can I take a motorbike?", "No, I cannot take a motorbike since 2019.", ""),
    ("Can I take a dog?", "Can I take a dog? No, dogs stay ashore.", ""),
    ("Did the board buy a boat?", "The board refused to buy a boat.", ""),
    ("Did the fund renew the lease?", "The fund forgot to renew the lease.", ""),
    ("Did visitors like the hall?", "Hardly any visitors liked the hall.", ""),
    ("Did the clerk lose the keys?", "The clerk is said to have lost the keys.", ""),
    ("Can the lamp be lent?", "The lamp can be lent by anyone who has no debts.", "yes"),
    ("Можно ли брать велосипед?", "Велосипед можно брать без залога.", ""),
    ("Чи можна плавати?", "Плавати можна без шапочки.", ""),
    ("Does the crate weigh 30 kg?", "The barrel weighs 30 kg and the crate weighs 12 kg.", ""),
    ("Does the crate weigh 12 kg?", "The barrel weighs 30 kg and the crate weighs 12 kg.", "yes"),
    ("Is Ida Sund the chair?", "Present: Per Holm (chair), Ida Sund (secretary).", ""),
    ("May I use the kiln without a course?", "Nobody may use the kiln without a course.", ""),
    ("Должен ли сторож мыть зал?", "Сторож должен запирать двери, мыть зал должен дворник.", ""),
)


@pytest.mark.parametrize(("question", "said", "verdict"), ASKED)
def test_a_verdict_counts_denials(rules: Rules, question: str, said: str, verdict: str) -> None:
    evidence = [graded(piece(said))]
    asked = asking(question, wants="yesno")
    draft = answered(rules(evidence), asked, evidence)
    assert draft.claims[0].verdict == verdict


def test_keywords_of_a_document_settle_nothing(rules: Rules) -> None:
    item = piece("Version 2 raised the limit of the pump.", metadata={"keywords": ["deprecated"]})
    draft = answered(
        rules([item]), asking("Is the pump deprecated?", wants="yesno"), [graded(item)]
    )
    assert [one.verdict for one in draft.claims] == [""]


def test_what_a_sentence_announces_in_the_next_chunk_is_said_too(rules: Rules) -> None:
    same = {"document_id": "d", "document_key": "d", "title": "Setup"}
    intro = piece("Install the package with this command:", ordinal=3, **same)
    code = piece("$ pip install lamp\nDone.", ordinal=4, kind="code", **same)
    other = piece("The lamp has three colours.", ordinal=9, **same)
    question = asking("How do I install the package?")
    given = rules([intro, code, other])
    grades = {g.evidence_id: g.grade for g in given.grade(question, [intro, code, other])}
    assert grades[code.evidence_id] == grades[intro.evidence_id] >= 2
    draft = answered(given, question, [graded(intro), graded(code), other])
    assert [claim.text for claim in draft.claims] == [intro.text, code.text]


def test_lines_of_code_answer_only_who_asks_how(rules: Rules) -> None:
    code = graded(piece("lamp.set_colour(1)\nlamp.on()", kind="code", title="Lamp colour"))
    question = asking("What is the colour of the lamp?")
    draft = answered(rules([code]), question, [code])
    assert draft.claims == []


def test_bold_words_lead_their_line_as_a_heading(rules: Rules) -> None:
    text = "1. **Roof.** The repair costs £900.\n2. **Bicycle shed.** The budget is £2,000."
    evidence = [graded(piece(text, title="Minutes"))]
    question = asking("What is the budget of the bicycle shed?")
    draft = answered(rules(evidence), question, evidence)
    assert "2,000" in draft.claims[0].text
    assert all("£900" not in claim.text for claim in draft.claims)


def test_only_and_except_give_no_verdict(rules: Rules) -> None:
    evidence = [graded(piece("The tower is open daily except Mondays."))]
    question = asking("Is the tower open on Mondays?", wants="yesno")
    draft = answered(rules(evidence), question, evidence)
    assert draft.claims[0].verdict == ""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Can porters work at night?", "Office staff may work at night."),
        ("May I borrow nine books?", "You may borrow five books."),
        ("Is fuel sold at the quay?", "Fuel was sold at the quay."),
        ("Is fuel sold at the quay?", "Fuel is sold at the quay from 2029."),
        ("Does the bar close?", "The bar almost closed."),
        ("Is nightly.sh still used?", "The script nightly.sh has been replaced by a timer."),
        ("Are alerts sent during maintenance?", "Alerts are silenced during maintenance windows."),
    ],
)
def test_a_verdict_needs_all_that_is_asked(rules: Rules, question: str, said: str) -> None:
    evidence = [graded(piece(said))]
    draft = answered(rules(evidence), asking(question, wants="yesno"), evidence)
    assert all(claim.verdict == "" for claim in draft.claims)


def test_a_plus_within_a_sentence_is_no_list_mark(rules: Rules) -> None:
    said = "The bindings of C++ in Zig are written by Ada Frost."
    evidence = [graded(piece(said))]
    question = asking("Who writes the bindings of C++?")
    draft = answered(rules(evidence), question, evidence)
    assert draft.claims[0].text == said


@pytest.mark.parametrize(
    ("said", "refers"), [("Its lead is Ada Frost.", True), ("A lead is Ada Frost.", False)]
)
def test_a_sentence_that_refers_speaks_of_what_stands_before_it(said: str, refers: bool) -> None:
    evidence = [graded(piece(f"The harbour team keeps the cranes. {said} Meals are free."))]
    relevance = Relevance(None, weights_for(evidence))
    wanted = relevance.wanted(asking("Who leads the harbour team?"), [])
    [found] = [one for one in relevance.sentences(wanted, evidence) if one.text == said]
    assert (found.coverage > 0.9) is refers


QUESTION = asking("Where was the founder of the museum born and buried?", wants="place")
MUSEUM = graded(piece("The founder of the museum was Ann Lee.", title="Museum"))
PERSON = graded(piece("Ann Lee was born in Brest and buried in Lille.", title="Ann Lee"), 2)
OTHER = graded(piece("Bob Ray was born and buried in Nantes.", title="Bob Ray"), 2)


def said(rules: Rules, *evidence: Evidence, **settings: object) -> list[str]:
    reasoner = rules(list(evidence), **settings)
    made = answered(reasoner, QUESTION, evidence)
    return [claim.text for claim in made.claims]


def test_a_linked_sentence_completes_the_answer(rules: Rules) -> None:
    assert set(said(rules, MUSEUM, OTHER, PERSON)) == {MUSEUM.text, PERSON.text}


def test_a_sentence_without_a_link_does_not(rules: Rules) -> None:
    assert OTHER.text not in said(rules, MUSEUM, OTHER)


def test_one_claim_stays_one(rules: Rules) -> None:
    assert len(said(rules, MUSEUM, PERSON, claims_per_question=1)) == 1


def test_what_is_graded_too_low_completes_nothing(rules: Rules) -> None:
    assert said(rules, MUSEUM, graded(PERSON, 1)) == [MUSEUM.text]
