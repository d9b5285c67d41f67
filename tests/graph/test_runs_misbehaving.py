"""A reasoner that makes things up: what it writes never reaches an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core.types import (
    Citation,
    Claim,
    Draft,
    Evidence,
    Finding,
    Grade,
    Plan,
    Rewrite,
    SubQuestion,
    Understanding,
)
from reasoning.types import Reasoner

QUESTION = "What is the default timeout of the order query API?"
TRUE = "The default timeout of the order query API is 30 seconds."


class Misbehaving:
    """Decide like the given reasoner, except for the drafts (and grades) a test supplies."""

    name = "misbehaving"

    def __init__(
        self,
        honest: Reasoner,
        write: Callable[[Draft, Sequence[Evidence]], Draft],
        grades: Callable[[list[Grade]], list[Grade]] = lambda grades: grades,
    ) -> None:
        self._honest = honest
        self._write = write
        self._grades = grades
        self.offered: list[list[Evidence]] = []
        self.understand = honest.understand
        self.plan = honest.plan
        self.nearest = honest.nearest

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        return self._grades(self._honest.grade(question, evidence))

    def rewrite(self, *arguments: Any) -> Rewrite | None:  # noqa: ANN401
        return self._honest.rewrite(*arguments)

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        return self._honest.supports(claim, quotes, language)

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        return self._honest.extract(question, evidence)

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        self.offered.append(list(evidence))
        return self._write(self._honest.answer(understanding, plan, evidence), evidence)


def spoiled(claim: Claim, text: str | None = None, **citation: object) -> Claim:
    first = claim.citations[0].model_copy(update=citation)
    return claim.model_copy(update={"text": text or claim.text, "citations": [first]})


def test_one_bad_claim_of_two_is_dropped_with_a_warning(run: Callable[..., Any]) -> None:
    def write(draft: Draft, evidence: Sequence[Evidence]) -> Draft:
        (good, *_) = draft.claims
        bad = spoiled(good, text="The default timeout of the order query API is 31 seconds.")
        return Draft(claims=[bad, good])

    state = run(QUESTION, reasoner=lambda honest: Misbehaving(honest, write))
    answer = state["answer"]
    assert [claim.text for claim in answer.claims] == [TRUE]
    assert not answer.refused
    assert "31" not in answer.text
    assert any("number 31" in warning for warning in answer.warnings)
    assert state["drafts"] == 1


BAD = {
    "wrong number": lambda claim: spoiled(claim, text=TRUE.replace("30", "31")),
    "wrong name": lambda claim: spoiled(claim, text=TRUE.replace("order query", "Moonbase")),
    "negated": lambda claim: spoiled(claim, text=TRUE.replace(" is ", " is not ")),
    "quote": lambda claim: spoiled(claim, quote=TRUE.replace("30", "31")),
    "span": lambda claim: spoiled(claim, start=10**6, end=10**6 + 9),
    "no citation": lambda claim: claim.model_copy(update={"citations": []}),
    "invented evidence": lambda claim: spoiled(claim, evidence_id="invented"),
    "invented chunk": lambda claim: spoiled(claim, chunk_id="invented"),
}


@pytest.mark.parametrize("how", BAD)
def test_all_bad_claims_are_written_once_more_and_then_refused(
    how: str, run: Callable[..., Any]
) -> None:
    made: list[Misbehaving] = []
    kept: list[Claim] = []

    def write(draft: Draft, evidence: Sequence[Evidence]) -> Draft:
        kept.extend(draft.claims[:1])
        return Draft(claims=[BAD[how](kept[0])])

    def wrap(honest: Reasoner) -> Misbehaving:
        made.append(Misbehaving(honest, write))
        return made[0]

    state = run(QUESTION, reasoner=wrap)
    assert state["answer"].refused
    assert state["answer"].claims == []
    assert state["answer"].stop_reason == "unsupported_answer"
    assert [step.node for step in state["trail"]].count("generate") == 2
    assert "passed the check" in state["answer"].text
    rejected = set(state["unsupported"])
    assert not rejected & {item.evidence_id for item in made[0].offered[1]}


def test_a_better_second_draft_is_taken(run: Callable[..., Any]) -> None:
    drafts: list[Draft] = []

    def write(draft: Draft, evidence: Sequence[Evidence]) -> Draft:
        drafts.append(draft)
        if len(drafts) == 1:
            return Draft(claims=[spoiled(draft.claims[0], text="It is 31 seconds.")])
        return draft

    state = run(QUESTION, reasoner=lambda honest: Misbehaving(honest, write))
    assert len(drafts) == 2
    answer = state["answer"]
    # The rejected piece of evidence is not offered again: others may answer, or nothing does.
    assert answer.refused or all(
        c.evidence_id not in state["unsupported"]
        for claim in answer.claims
        for c in claim.citations
    )


def test_an_empty_draft_is_refused(run: Callable[..., Any]) -> None:
    state = run(QUESTION, reasoner=lambda honest: Misbehaving(honest, lambda *_: Draft(claims=[])))
    assert state["answer"].refused
    assert state["answer"].stop_reason == "no_relevant_evidence"


def test_evidence_that_was_never_retrieved_is_refused(run: Callable[..., Any]) -> None:
    text = "The default timeout of the order query API is 99 seconds."
    citation = Citation(
        evidence_id="x",
        document_id="x",
        source="docs/secret.md",
        chunk_id="x",
        start=0,
        end=len(text),
        quote=text,
    )
    draft = Draft(claims=[Claim(text=text, citations=[citation], question_id="q1")])
    state = run(QUESTION, reasoner=lambda honest: Misbehaving(honest, lambda *_: draft))
    assert state["answer"].refused
    assert "99" not in state["answer"].text


def test_evidence_that_was_graded_off_topic_is_not_cited(run: Callable[..., Any]) -> None:
    seen: list[Evidence] = []

    def grades(given: list[Grade]) -> list[Grade]:
        # All but the first are off topic, whatever they say.
        return [g.model_copy(update={"grade": 3 if n == 0 else 0}) for n, g in enumerate(given)]

    class Keeping(Misbehaving):
        def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
            seen.extend(evidence)
            return super().grade(question, evidence)

    def write(draft: Draft, evidence: Sequence[Evidence]) -> Draft:
        offered = {item.evidence_id for item in evidence}
        item = next(item for item in seen if item.evidence_id not in offered)
        end = min(40, len(item.text))
        citation = Citation(
            evidence_id=item.evidence_id,
            document_id=item.document_id,
            source=item.source,
            chunk_id=item.chunk_id,
            start=0,
            end=end,
            quote=item.text[:end],
        )
        return Draft(claims=[Claim(text=item.text[:end], citations=[citation], question_id="q1")])

    state = run(QUESTION, reasoner=lambda honest: Keeping(honest, write, grades))
    assert state["answer"].refused
    assert state["answer"].stop_reason == "unsupported_answer"


def test_a_plan_that_names_an_unknown_tool_does_not_end_the_run(run: Callable[..., Any]) -> None:
    def wrap(honest: Reasoner) -> Misbehaving:
        made = Misbehaving(honest, lambda draft, _: draft)

        def plan(known: Understanding, tools: Any) -> Plan:  # noqa: ANN401
            first = honest.plan(known, tools).questions[0]
            call = first.calls[0].model_copy(update={"tool": "read_everything"})
            return Plan(questions=[first.model_copy(update={"calls": [call, *first.calls]})])

        made.plan = plan
        return made

    state = run(QUESTION, reasoner=wrap)
    assert [claim.text for claim in state["answer"].claims] == [TRUE]
    assert any("read_everything" in warning for warning in state["answer"].warnings)
