"""The Reasoner protocol: who decides, behind verbs and one check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pydantic import Field

from core.recall import RecallState
from core.settings import Settings
from core.types import (
    AnswerKind,
    Call,
    Draft,
    Evidence,
    Finding,
    FrozenModel,
    Grade,
    Plan,
    Rewrite,
    SubQuestion,
    ToolSpec,
    Understanding,
)


class Turn(NamedTuple):
    """Hold one earlier question with its answer."""

    question: str
    answer: str


def recent(history: Sequence[Turn], settings: Settings) -> Sequence[Turn]:
    """Return the turns that a question may be completed from."""
    return history[-settings.answering.history_turns :] if settings.answering.history_turns else []


class Nearest(FrozenModel):
    """Hold what comes nearest to an answer where there is none: a sentence of evidence, if any.

    `lacking` are the words of the question that no passage says, `lacking_here` those that this
    one does not where others do, and `kind` is the kind of value that it lacks ("text" for none).
    `better` is a question that the evidence does answer, "" for none; `answers` tells that it
    answers after all, as far as rules can tell.
    """

    evidence_id: str = ""
    start: int = 0
    end: int = 0
    lacking: list[str] = Field(default_factory=list)
    lacking_here: list[str] = Field(default_factory=list)
    kind: AnswerKind = "text"
    better: str = ""
    answers: bool = False


class Reasoner(Protocol):
    """Make every decision of a run; the graph only carries them out."""

    name: str

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Give each part its search text and its tools, chosen by their specs."""

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Judge each piece of evidence for one sub-question, 0..3."""

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
    ) -> Rewrite | None:
        """Propose another search, or None when every idea drifts from the question."""

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Find values of the kind the sub-question wants, best first."""

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Write claims from evidence alone, each with its citations."""

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Say whether quotes in other words or another language support it; False in doubt."""

    def nearest(self, question: SubQuestion, evidence: Sequence[Evidence]) -> Nearest:
        """Return what comes nearest to answering, and what it lacks."""

    def recall(self, state: RecallState, notes: Sequence[Evidence]) -> Call:
        """Choose the memory agent's next action from what it knows and the notes it has."""
