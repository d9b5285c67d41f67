"""The classic one-pass pipeline as a Reasoner: no planning, no rewriting, the same answers."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Call, Evidence, Part, Plan, Rewrite, SubQuestion, ToolSpec, Understanding
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn


class ClassicReasoner(RulesReasoner):
    """Ask everything at once, of one tool, once (SPEC L4)."""

    name = "classic"

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Take the whole question as one part."""
        known = super().understand(question, history)
        about = known.parts[0].about if len(known.parts) == 1 else ""
        return known.model_copy(
            update={
                "kind": "plain",
                "reason": "the classic pipeline does not split",
                "parts": [Part(text=question, about=about)],
                "required_fields": known.required_fields[:1],
            }
        )

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Call the classic search alone."""
        part = understanding.parts[0]
        question = SubQuestion(
            id="q1",
            text=part.text,
            about=part.about,
            query=part.search_text,
            language=understanding.language,
            wants="list" if understanding.intent == "recommend" else "text",
            calls=[
                Call(
                    tool="search_classic",
                    arguments={"query": part.search_text, "language": understanding.language},
                )
            ],
        )
        return Plan(questions=[question])

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
    ) -> Rewrite | None:
        """Never search twice."""
        return None
