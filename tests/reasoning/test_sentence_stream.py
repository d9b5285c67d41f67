"""Sentences are shown while they are written: verified ones only, in the order of the answer."""

from __future__ import annotations

from builders import citing, piece
from hypothesis import given
from hypothesis import strategies as st

from core.trace import StreamEvent
from core.types import Claim, Plan, SubQuestion
from reasoning.rendering import SentenceStream, render_claims

TEXT = "The ward has 12 beds. It is open at night. Doctor Adams leads it."
ITEM = piece(TEXT)
BEDS, NIGHT, LEADS = (
    citing(ITEM, quote)
    for quote in ("The ward has 12 beds.", "It is open at night.", "Doctor Adams leads it.")
)
WRONG = citing(ITEM, "The ward has 12 beds.", "The ward has 13 beds.")
FOREIGN = citing(ITEM, "It is open at night.", "Отделение открыто и ночью для всех.")
ONE = Plan(questions=[SubQuestion(id="q1", text="What of the ward", query="ward")])
TWO = Plan(
    questions=[
        SubQuestion(id="q1", text="How many beds", query="beds"),
        SubQuestion(id="q2", text="who leads it", query="leads"),
    ]
)


def shown(*claims: Claim, plan: Plan = ONE, mode: str = "verified") -> list[StreamEvent]:
    events: list[StreamEvent] = []
    stream = SentenceStream(plan, [ITEM], events.append, mode)  # type: ignore[arg-type]
    for claim in claims:
        stream.claim(claim)
    return events


def joined(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events)


def test_each_supported_sentence_appears_at_once_with_its_mark() -> None:
    events = shown(BEDS, NIGHT)
    assert [event.text for event in events] == [
        "The ward has 12 beds. [1]",
        " It is open at night. [1]",
    ]


def test_an_unsupported_sentence_never_appears() -> None:
    assert joined(shown(BEDS, WRONG, NIGHT)) == joined(shown(BEDS, NIGHT))
    assert shown(WRONG) == []


def test_nothing_follows_a_sentence_that_only_the_last_check_can_decide() -> None:
    assert joined(shown(BEDS, FOREIGN, NIGHT)) == "The ward has 12 beds. [1]"


def test_parts_are_headed_and_a_late_claim_of_an_earlier_part_waits() -> None:
    later = LEADS.model_copy(update={"question_id": "q2"})
    assert joined(shown(BEDS, later, plan=TWO)) == (
        "How many beds\n  The ward has 12 beds. [1]\nwho leads it\n  Doctor Adams leads it. [1]"
    )
    assert joined(shown(later, BEDS, NIGHT, plan=TWO)) == (
        "How many beds\n  The ward has 12 beds. [1]\nwho leads it\n  Doctor Adams leads it. [1]"
    )


def test_off_shows_nothing_and_tokens_are_shown_only_when_asked_for() -> None:
    assert shown(BEDS, mode="off") == []
    for mode, kinds in (("verified", []), ("off", []), ("tokens", ["token"])):
        events: list[StreamEvent] = []
        SentenceStream(ONE, [ITEM], events.append, mode).draft("The wa")  # type: ignore[arg-type]
        assert [event.kind for event in events] == kinds


def test_the_rest_adds_what_was_not_heard_while_it_was_written() -> None:
    events: list[StreamEvent] = []
    stream = SentenceStream(ONE, [ITEM], events.append, "verified")
    stream.claim(BEDS)
    stream.rest([BEDS, NIGHT])
    assert joined(events) == render_claims(ONE, [BEDS, NIGHT], [ITEM])


@given(st.lists(st.sampled_from([BEDS, NIGHT, LEADS, WRONG, FOREIGN]), max_size=8))
def test_what_is_shown_begins_the_final_text(claims: list[Claim]) -> None:
    supported = [claim for claim in claims if claim not in (WRONG, FOREIGN)]
    text = joined(shown(*claims))
    assert render_claims(ONE, supported, [ITEM]).startswith(text)
    assert "13" not in text
    if FOREIGN not in claims:
        assert text == render_claims(ONE, supported, [ITEM])
