"""Lay a failed case at one cause, by running it again with right decisions in place of its own.

The decisions of a run are taken in an order: `STAGES`. From the last stage backwards, all before it
are given as the gold case has them and the stage itself, with what follows, decides as it did. The
first that fails on right input is the cause: those behind it have been seen to work, and those
before it did not decide in that run. A retrieval that fails is one of four causes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from langchain_core.messages import AIMessage, HumanMessage

from core.auth import AuthContext
from core.errors import CallerError
from core.language.sentences import sentence_spans
from core.types import (
    Call,
    Claim,
    Draft,
    Evidence,
    Finding,
    Grade,
    Part,
    Plan,
    Rewrite,
    SubQuestion,
    ToolSpec,
    Understanding,
)
from evals.answers import contains_answer
from evals.gold import GoldCall, GoldCase
from evals.trajectories import (
    GoldPlace,
    Trajectory,
    TrajectoryRuns,
    agrees,
    ask_case,
    gold_plan,
    succeeded,
)
from graph.asking import ActiveRun, stream
from graph.build import build_graph
from graph.context import Context
from graph.record import run_result
from reasoning.planning.compiler import in_order
from reasoning.planning.rules import one_part
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Reasoner, Turn
from tools.toolbox import Toolbox
from tools.types import ToolResult

Stage = Literal[
    "understanding",
    "planning",
    "tool_choice",
    "extraction",
    "retrieval",
    "grading",
    "answering",
    "verification",
]
STAGES: tuple[Stage, ...] = get_args(Stage)
RETRIEVAL_CAUSES = ("not_in_the_documents", "policy", "ranking", "retrieval")
CAUSES = (*STAGES, "not_in_the_documents", "policy", "ranking")
DEEP = 100  # results in which a passage that was not among the best is looked for: the tools' most
# The nodes whose steps show a decision, the likeliest first.
NODES: dict[str, tuple[str, ...]] = {
    "understanding": ("understand",),
    "planning": ("plan", "understand"),
    "tool_choice": ("retrieve",),
    "extraction": ("extract",),
    "grading": ("grade_documents",),
    "answering": ("generate",),
    "verification": ("verify",),
    **dict.fromkeys(RETRIEVAL_CAUSES, ("retrieve",)),
}
SEEN = {
    "not_in_the_documents": "the collection does not have the gold evidence",
    "policy": "the gold evidence is in the collection and closed to who asks",
    "ranking": "the calls find the gold evidence, but not among their best results",
    "retrieval": "right calls do not find the gold evidence, which the caller may see",
}


@dataclass(frozen=True)
class Attribution:
    """Hold the cause of a failure, the step that shows it, and by which runs it was found.

    `step` is the number in the trace, from 1, and the node; None where no run was made.
    """

    cause: str
    step: dict[str, Any] | None
    shown_by: str


def attribute(place: GoldPlace, failed: Trajectory) -> Attribution:
    """Return the cause of a failed case."""
    if failed.run is None:
        return Attribution("policy", None, f"the question was not accepted: {failed.breaks}")
    cause, why = GoldRuns(place, failed).find_cause()
    trail = failed.run.trail
    nodes = NODES[cause]
    shown = [n for n, step in enumerate(trail) for name in nodes[:1] if step.node == name]
    shown = shown or [n for n, step in enumerate(trail) if step.node in nodes]
    number = shown[-1] if shown else len(trail) - 1
    step = {"number": number + 1, "node": trail[number].node} if trail else None
    return Attribution(cause, step, why)


@dataclass(frozen=True)
class GoldDecisions:
    """Hold the right decisions for one case, and from which stages on the run takes its own."""

    case: GoldCase
    plan: Plan
    passages: list[Evidence]
    reference: RulesReasoner
    given: frozenset[Stage]

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the ids of the gold passages."""
        return frozenset(item.chunk_id for item in self.passages)

    @cached_property
    def understanding(self) -> Understanding:
        """Return the analysis of the question as it stands for itself, with the plan's parts."""
        made = one_part(self.reference.understand(self.case.asked, []))
        questions = self.plan.questions
        if len(questions) < 2:
            return made
        places = {question.id: place for place, question in enumerate(questions, start=1)}
        parts = [
            Part(text=one.text, about=one.about, slot=one.slot, deps=[places[d] for d in one.deps])
            for one in questions
        ]
        wants = [one.wants for one in questions]
        return made.model_copy(update={"kind": "multi", "parts": parts, "required_fields": wants})

    def planned(self, base: Reasoner, specs: Sequence[ToolSpec]) -> Plan:
        """Return the gold plan with the tools that the run chooses for it, or the gold ones."""
        questions = []
        for question in self.plan.questions:
            own = _own_calls(base, question, self.understanding, specs)
            calls = self._gold_calls(question, own, specs) if "tool_choice" in self.given else own
            questions.append(question.model_copy(update={"calls": calls}))
        return self.plan.model_copy(update={"questions": questions})

    def _gold_calls(
        self, question: SubQuestion, own: Sequence[Call], specs: Sequence[ToolSpec]
    ) -> list[Call]:
        """Return the expected calls; where none are known, the own ones and the general search."""
        by_tool = {call.tool: call for call in own}
        searches = {spec.name for spec in specs if spec.base.startswith("search")}
        if self.case.tools is None:
            asked = {"query": question.query, "language": question.language}
            return list({"search": Call(tool="search", arguments=asked), **by_tool}.values())
        calls = []
        for wanted in self.case.tools:
            known = by_tool.get(wanted.tool)
            given = dict(known.arguments) if known else {}
            if wanted.tool in searches:
                given |= {"query": question.query, "language": question.language}
            for name, value in wanted.arguments.items():
                if not agrees(value, given.get(name)):
                    given[name] = value
            calls.append(Call(tool=wanted.tool, arguments=given))
        return calls

    def draft(self, plan: Plan) -> Draft:
        """Return claims that are right: what the rules say of the gold passages, or their words."""
        graded = [_graded(item, plan) for item in self.passages]
        drafted = (
            self.reference.answer(self.understanding, plan, graded) if graded else Draft(claims=[])
        )
        texts = [claim.text for claim in drafted.claims]
        if texts and all(contains_answer(group, texts) for group in self.case.needed):
            return drafted
        ids = [question.id for question in plan.questions]
        claims = []
        for number, item in enumerate(self.passages):
            start, end = _telling_span(item, self.case)
            own = ids[min(number, len(ids) - 1)]
            cited = [item.cited(start, end)]
            claims.append(Claim(text=item.text[start:end], citations=cited, question_id=own))
        return Draft(claims=claims)


def _own_calls(
    base: Reasoner, question: SubQuestion, whole: Understanding, specs: Sequence[ToolSpec]
) -> list[Call]:
    """Return the calls that the run's planner makes for one right sub-question."""
    text = question.text
    asked = one_part(
        whole.model_copy(update={"question": text, "required_fields": [question.wants]})
    )
    made = base.plan(asked, specs)
    calls = made.questions[0].calls if made.questions else []
    return [
        call.model_copy(update={"arguments": {**call.arguments, "query": question.query}})
        if "query" in call.arguments
        else call
        for call in calls
    ]


def _graded(item: Evidence, plan: Plan) -> Evidence:
    return item.model_copy(update={"grades": {question.id: 3 for question in plan.questions}})


def _telling_span(item: Evidence, case: GoldCase) -> tuple[int, int]:
    """Return the sentence of a passage that has its gold quote or a needed text."""
    quotes = [one.quote for group in case.evidence for one in group if one.quote]
    wanted = [*([quotes] if quotes else []), *case.needed]
    for texts in wanted:
        for start, end in sentence_spans(item.text):
            if contains_answer(texts, [item.text[start:end]]):
                return start, end
    for quote in quotes:  # of several sentences
        if quote in item.text:
            return item.text.index(quote), item.text.index(quote) + len(quote)
    return 0, len(item.text)


class GuidedReasoner:
    """Decide as gold has it in the stages that are given, else as the run's own reasoner does."""

    name = "guided"

    def __init__(self, base: Reasoner, gold: GoldDecisions) -> None:
        """Wrap the reasoner of a run."""
        self._base = base
        self._gold = gold

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""
        if "understanding" in self._gold.given:
            return self._gold.understanding
        return self._base.understand(question, history)

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Give each part its search text and its tools, chosen by their specs."""
        if "planning" in self._gold.given:
            return self._gold.planned(self._base, tools)
        return self._base.plan(understanding, tools)

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Judge each piece of evidence for one sub-question, 0..3."""
        if "grading" not in self._gold.given:
            return self._base.grade(question, evidence)
        names = self._gold.names
        return [
            Grade(
                evidence_id=item.evidence_id,
                grade=3 if item.chunk_id in names else 0,
                reason="gold",
            )
            for item in evidence
        ]

    def rewrite(
        self, question: SubQuestion, evidence: Sequence[Evidence], tools: Sequence[ToolSpec]
    ) -> Rewrite | None:
        """Propose another search, or None when every idea drifts from the question."""
        return self._base.rewrite(question, evidence, tools)

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Find values of the kind the sub-question wants, best first."""
        if "extraction" not in self._gold.given:
            return self._base.extract(question, evidence)
        values = self._gold.case.slots.get(question.slot or "", [])
        return [
            Finding(
                value=item.text[at : at + len(one)],
                evidence_id=item.evidence_id,
                start=at,
                end=at + len(one),
            )
            for one in values
            for item in evidence
            if (at := item.text.find(one)) >= 0
        ] or self._base.extract(question, evidence)

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Write claims from evidence alone, each with its citations."""
        if "answering" in self._gold.given:
            return self._gold.draft(plan)
        return self._base.answer(understanding, plan, evidence)

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Say whether quotes in another language than the claim's support it; False in doubt."""
        return self._base.supports(claim, quotes, language)


class GuidedToolbox(Toolbox):
    """Return the gold passages before what a call finds."""

    def __init__(self, base: Toolbox, passages: Sequence[Evidence]) -> None:
        """Share the tools of a run."""
        self.__dict__ = base.__dict__
        self._base_toolbox, self._passages = base, list(passages)

    def run(
        self,
        name: str,
        arguments: dict[str, Any],
        *given: Any,  # noqa: ANN401 - as the toolbox has them
        **named: Any,  # noqa: ANN401
    ) -> ToolResult:
        """Run one call."""
        try:
            found = self._base_toolbox.run(name, arguments, *given, **named)
        except CallerError:
            found = ToolResult()
        known = {item.chunk_id for item in self._passages}
        first = [item.model_copy(update={"tool": name}) for item in self._passages]
        rest = [item for item in found.evidence if item.chunk_id not in known]
        return replace(found, evidence=[*first, *rest])


class GoldRuns:
    """Run one failed case again, with right decisions up to one stage after another."""

    def __init__(self, place: GoldPlace, failed: Trajectory) -> None:
        """Find the right decisions: the gold case's, else the rules' for the whole question."""
        self._place, self._failed, self._case = place, failed, failed.case
        context = place.session.context(place.operator, place.name(self._case), "auto")
        self._specs = context.tools.specs(place.operator)
        self._clean = context.tools
        self._settings = context.settings
        self._reference = RulesReasoner(
            context.settings,
            context.tools.term_weights(),
            place.session.remembering(place.auth.tenant),
            context.tools.sentence_vectors,
        )
        self._missing: list[int] = []
        self._passages = list(self._find_passages())

    def find_cause(self) -> tuple[str, str]:
        """Return the first stage, from the end, that fails on right input, and what was seen."""
        for place in range(len(STAGES) - 1, 0, -1):
            stage = STAGES[place]
            if stage == "extraction" and not self._case.slots:
                continue
            given = frozenset(STAGES[:place])
            if any(self._works(given, plan) for plan in self._plans):
                continue
            if stage == "retrieval":
                cause = self._retrieval_cause(given)
                return cause, SEEN[cause]
            before = STAGES[place - 1].replace("_", " ")
            shown = stage.replace("_", " ")
            return stage, f"with right decisions up to {before} the run's own {shown} fails"
        first = STAGES[1]
        return STAGES[0], f"with the question as it is meant the run's own {first} succeeds"

    @cached_property
    def _plans(self) -> list[Plan]:
        """Return the right plan, or those that may be: one step, and what the rules make of it."""
        if self._case.plan:
            made: Plan = gold_plan(self._case, self._settings, self._specs).plan
            ordered = made.model_copy(update={"questions": in_order(made)})
            return [ordered.model_copy(update={"whole": self._case.asked})]
        known = self._reference.understand(self._case.asked, [])
        both = [self._reference.plan(one, self._specs) for one in (one_part(known), known)]
        return both if len(both[1].questions) > 1 else both[:1]

    def _find_passages(self) -> Iterator[Evidence]:
        """Yield the gold passages; what the collection lacks is made of its quote."""
        for number, group in enumerate(self._failed.gold):
            if not group:
                self._missing.append(number)
            for one in self._case.evidence[number] if not group else []:
                if one.quote:
                    yield Evidence(
                        evidence_id=f"gold-{number}", chunk_id=f"gold-{number}",
                        document_id=one.document, document_key=f"gold-{number}",
                        source=one.document, title=one.document, text=one.quote,
                        language=self._failed.language,
                    )  # fmt: skip
            yield from group
        if not self._failed.gold and self._case.needed:
            yield from self._answering_passages()

    def _answering_passages(self) -> list[Evidence]:
        """Return the passages with a needed text, of the expected calls and a deep search."""
        asked = {"query": self._case.asked, "limit": DEEP}
        calls = [*(self._case.tools or []), GoldCall(tool="search", arguments=asked)]
        for call in calls:
            if not call.arguments:
                continue
            found = self._call(self._clean, call.tool, call.arguments, self._place.operator)
            items = [
                item
                for item in found
                if any(contains_answer(group, [item.text]) for group in self._case.needed)
            ]
            if items:
                return items[:1] if len(self._case.needed) == 1 else items
        return []

    def _call(
        self, tools: Toolbox, name: str, arguments: dict[str, Any], auth: AuthContext
    ) -> list[Evidence]:
        try:
            return tools.run(
                name, arguments, auth, time.monotonic() + self._settings.budget.seconds
            ).evidence
        except CallerError:
            return []

    def _works(self, given: frozenset[Stage], plan: Plan) -> bool:
        again = self._again(given, plan)
        if "answering" in given:  # the gold draft may say it in words that answer no such case
            return again.refused if self._case.must_refuse else not again.refused
        return succeeded(again)

    def _again(self, given: frozenset[Stage], plan: Plan) -> Trajectory:
        """Run the case with the decisions of these stages given; the run is not kept."""
        context = self._place.context(self._case)
        gold = GoldDecisions(self._case, plan, self._passages, self._reference, given)
        inserted = self._passages if "retrieval" in given else None
        guided: Context = replace(
            context,
            reasoner=GuidedReasoner(context.reasoner, gold),
            tools=GuidedToolbox(context.tools, inserted) if inserted else context.tools,
        )
        asked = ActiveRun(self._case.question, self._place.name(self._case), guided)
        messages: list[Any] = []
        for turn in self._case.history:
            messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
        messages.append(HumanMessage(self._case.question))
        for mode, data in stream(build_graph(), {"messages": messages}, guided):
            asked.take(mode, data)
        state = asked.ended()
        assert self._failed.run is not None
        run = self._failed.run.model_copy(
            update={"result": run_result("again", state, ()), "trail": state["trail"]}
        )
        return replace(self._failed, run=run)

    def _retrieval_cause(self, given: frozenset[Stage]) -> str:
        """Say why right calls did not bring the evidence."""
        if self._missing or not self._passages:
            return "not_in_the_documents"
        place, caller = self._place, self._place.caller(self._case)
        collections = place.session.catalogue.collections_named(
            place.operator, place.name(self._case)
        )
        groups = self._failed.gold or [self._passages]
        for group in groups:
            names = [item.chunk_id for item in group]
            seen = (place.session.catalogue.evidence(caller, one.id, names) for one in collections)
            if group[0].kind != "records" and not any(seen):
                return "policy"
        again = self._again(given, self._plans[0])
        tools = place.context(self._case).tools
        deep = {
            item.chunk_id
            for step in again.calls
            for item in self._call(tools, step.tool, {**step.arguments, "limit": DEEP}, caller)
        } | again.found
        lost = [group for group in groups if not deep & {item.chunk_id for item in group}]
        return "retrieval" if lost else "ranking"


def run_cases(
    place: GoldPlace, runs: TrajectoryRuns, progress: Callable[[str, int, int], None]
) -> None:
    """Ask the cases of one file, and find the cause of each that fails."""
    for done, case in enumerate(place.gold.cases, start=1):
        one = ask_case(place, case)
        if not succeeded(one):
            runs.causes[len(runs.asked)] = attribute(place, one)
        runs.asked.append(one)
        progress(place.gold.path.name, done, len(place.gold.cases))
