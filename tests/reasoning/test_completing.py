"""A second sentence that says what the first leaves open."""

from __future__ import annotations

from collections.abc import Callable

from builders import answered, asking, graded, piece

from core.types import Evidence
from reasoning.rules.reasoner import RulesReasoner

Rules = Callable[..., RulesReasoner]
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
