"""Lay a failed case at one cause, by running it again with right decisions in place of its own.

The decisions of a run are taken in an order: `STAGES`. From the last stage backwards, all before it
are given as the gold case has them and the stage itself, with what follows, decides as it did. The
first that fails on right input is the cause: those behind it have been seen to work, and those
before it did not decide in that run. A retrieval that fails is one of four causes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from core.auth import AuthContext
from core.errors import CallerError
from core.language.sentences import sentence_spans
from core.metadata import ROW
from core.types import (
    LIMITS,
    Call,
    Claim,
    Draft,
    Evidence,
    Finding,
    Grade,
    Part,
    Plan,
    SubQuestion,
    Understanding,
)
from evals.answers import contains_answer
from evals.trajectories import (
    GoldPlace,
    Trajectory,
    TrajectoryRuns,
    agrees,
    ask_case,
    gold_plan,
    run_again,
    succeeded,
)
from graph.intercept import intercepted
from reasoning.planning.compiler import in_order
from reasoning.planning.rules import one_part
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox
from tools.types import ToolResult

DEEP = 100  # results in which a passage that was not among the best is looked for: the tools' most
# In the order in which a run decides, with the nodes whose steps show it, the likeliest first.
STAGES: dict[str, tuple[str, ...]] = {
    "understanding": ("understand",),
    "planning": ("plan", "understand"),
    "tool_choice": ("retrieve",),
    "extraction": ("extract",),
    "retrieval": ("retrieve",),
    "grading": ("grade_documents",),
    "answering": ("generate",),
    "verification": ("verify",),
}
NAMES = list(STAGES)
# What a retrieval that fails on right calls may be, and what was seen then.
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
        why = f"the question was not accepted: {failed.breaks}"
        try:
            place.context(failed.case)
        except CallerError:  # the caller may see nothing of the collection
            return Attribution("policy", None, why)
        return Attribution(NAMES[0], None, why)
    reason = failed.result.get("stop_reason")
    if reason in LIMITS:
        number = len(failed.trail)
        step = {"number": number, "node": failed.trail[-1].node}
        return Attribution("policy", step, f"a limit ended the run: {reason}")
    case = failed.case
    if case.must_refuse or case.needed or case.evidence:
        cause, why = GoldRuns(place, failed).find_cause()
    else:  # where calls alone are expected, it is theirs
        cause, why = "tool_choice", "the run made other calls than those expected"
    nodes = STAGES.get(cause, STAGES["retrieval"])
    steps = [(nodes.index(one.node), -number) for number, one in enumerate(failed.trail, start=1)
             if one.node in nodes]  # fmt: skip
    number = -min(steps)[1] if steps else len(failed.trail)
    return Attribution(cause, {"number": number, "node": failed.trail[number - 1].node}, why)


class GoldRuns:
    """Run one failed case again, with right decisions up to one stage after another."""

    def __init__(self, place: GoldPlace, failed: Trajectory) -> None:
        """Find the right decisions: the gold case's, else the rules' for the whole question."""
        self._place, self._failed, self._case = place, failed, failed.case
        self._reader = place.readers(place.name(self._case))[0]
        context = place.session.context(self._reader, place.name(self._case))
        self._specs, self._clean = context.tools.specs(self._reader), context.tools
        self._settings = context.settings
        embedder = place.session.remembering(place.auth.tenant)
        parts = (context.tools.term_weights(), embedder, context.tools.sentence_vectors)
        self._reference = RulesReasoner(context.settings, *parts)
        self._passages = self._find_passages()
        self._names = {item.chunk_id for item in self._passages}

    def find_cause(self) -> tuple[str, str]:
        """Return the first stage, from the end, that fails on right input, and what was seen.

        What the collection does not have cannot be given.
        """
        groups = self._failed.gold or ([self._passages] if self._case.needed else [])
        if not all(groups):
            return "not_in_the_documents", SEEN["not_in_the_documents"]
        for place in range(len(NAMES) - 1, 0, -1):
            stage, given = NAMES[place], frozenset(NAMES[:place])
            if stage == "extraction" and not self._case.slots:
                continue
            if any(self._works(given, plan) for plan in self._plans):
                continue
            if stage == "retrieval":
                cause = self._retrieval_cause(given, groups)
                return cause, SEEN[cause]
            before, shown = (one.replace("_", " ") for one in (NAMES[place - 1], stage))
            return stage, f"with right decisions up to {before} the run's own {shown} fails"
        return NAMES[0], f"with the question as it is meant the run's own {NAMES[1]} succeeds"

    @cached_property
    def _plans(self) -> list[Plan]:
        """Return the right plan, or those that may be: one step, and what the rules make of it."""
        if self._case.plan:
            made: Plan = gold_plan(self._case, self._settings, self._specs).plan
            return [Plan(questions=in_order(made), whole=self._case.asked)]
        known = self._reference.understand(self._case.asked, [])
        single, whole = (self._reference.plan(one, self._specs) for one in (one_part(known), known))
        return [single, whole] if len(whole.questions) > 1 else [single]

    def _find_passages(self) -> list[Evidence]:
        """Return the gold passages; of a case that names none, those that have a needed text.

        They are looked for by the right calls, and by a deep search.
        """
        if self._case.evidence or not self._case.needed:
            return [item for group in self._failed.gold for item in group]
        asked = {"query": self._case.asked, "limit": DEEP}
        for plan in self._plans:
            right = self._planned(
                plan, self._reference.plan, self._understanding(plan), frozenset(NAMES[:3])
            )
            calls = [call for question in right.questions for call in question.calls]
            for call in [*calls, Call(tool="search", arguments=asked)]:
                found = [
                    item
                    for item in self._call(self._clean, call.tool, call.arguments, self._reader)
                    if any(contains_answer(group, [item.text]) for group in self._case.needed)
                ]
                if found:
                    return found[:1] if len(self._case.needed) == 1 else found
        return []

    def _call(
        self, tools: Toolbox, name: str, arguments: dict[str, Any], auth: AuthContext
    ) -> list[Evidence]:
        with suppress(CallerError):
            until = time.monotonic() + self._settings.budget.seconds
            return tools.run(name, arguments, auth, until).evidence
        return []

    def _works(self, given: frozenset[str], plan: Plan) -> bool:
        again = self._again(given, plan)
        if "answering" in given and (self._passages or self._case.must_refuse):
            # The gold draft may say it in words that answer no such case.
            return again.refused == self._case.must_refuse
        return succeeded(again)

    def _again(self, given: frozenset[str], plan: Plan) -> Trajectory:
        """Run the case with the decisions of these stages given; the run is not kept."""
        context = self._place.context(self._case)
        understood = self._understanding(plan)
        verbs: dict[str, tuple[str, Callable[..., Any]]] = {
            "understand": ("understanding", lambda *_: understood),
            "plan": (
                "planning",
                lambda *_: self._planned(plan, context.reasoner.plan, understood, given),
            ),
            "extract": ("extraction", lambda make, *asked: self._values(*asked) or make()),
            "run": ("retrieval", self._inserted),
            "grade": ("grading", lambda _, question, evidence: self._grades(evidence)),
            "answer": ("answering", lambda _, query, made, evidence: self._draft(query, made)),
        }

        def intercept(name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
            stage, decide = verbs.get(name, ("", None))
            return decide(make, *arguments) if decide and stage in given else make()

        return run_again(self._place, self._failed, intercepted(context, intercept))

    def _understanding(self, plan: Plan) -> Understanding:
        """Return the analysis of the question as it stands for itself, with the plan's parts."""
        made = one_part(self._reference.understand(self._case.asked, []))
        if len(plan.questions) < 2:
            return made
        places = {question.id: place for place, question in enumerate(plan.questions, start=1)}
        parts = [
            Part(text=one.text, about=one.about, slot=one.slot, deps=[places[d] for d in one.deps])
            for one in plan.questions
        ]
        wants = [one.wants for one in plan.questions]
        return made.model_copy(update={"kind": "multi", "parts": parts, "required_fields": wants})

    def _planned(
        self,
        plan: Plan,
        own: Callable[..., Plan],
        understood: Understanding,
        given: frozenset[str],
    ) -> Plan:
        """Return the right plan with the calls that the run's planner chooses, or right ones."""
        questions = []
        planner = self._reference.plan if "tool_choice" in given else own
        for question in plan.questions:
            asked = {"question": question.text, "required_fields": [question.wants]}
            made = planner(one_part(understood.model_copy(update=asked)), self._specs)
            calls = [
                Call(tool=call.tool, arguments={**call.arguments, **_query(call, question)})
                for call in (made.questions[0].calls if made.questions else [])
            ]
            if "tool_choice" in given:
                calls = self._calls(question, calls)
            questions.append(question.model_copy(update={"calls": calls}))
        return plan.model_copy(update={"questions": questions})

    def _calls(self, question: SubQuestion, proposed: Sequence[Call]) -> list[Call]:
        """Return the expected calls, with what the rules would ask of these tools.

        Where none are expected, those of the rules and the general search.
        """
        by_tool = {call.tool: call.arguments for call in proposed}
        asked = {"query": question.query, "language": question.language}
        if self._case.tools is None:
            by_tool = {"search": asked, **by_tool}
            return [Call(tool=name, arguments=given) for name, given in by_tool.items()]
        searches = {spec.name for spec in self._specs if spec.base.startswith("search")}
        calls = []
        for wanted in self._case.tools:
            given = {**by_tool.get(wanted.tool, {}), **(asked if wanted.tool in searches else {})}
            for name, value in wanted.arguments.items():
                if not agrees(value, given.get(name)):
                    given[name] = value
            calls.append(Call(tool=wanted.tool, arguments=given))
        return calls

    def _values(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Return the right values of a slot, where evidence has them."""
        return [
            Finding(value=one, evidence_id=item.evidence_id, start=at, end=at + len(one))
            for one in self._case.slots.get(question.slot or "", [])
            for item in evidence
            if (at := item.text.find(one)) >= 0
        ]

    def _inserted(
        self, make: Callable[[], ToolResult], name: str, arguments: dict[str, Any]
    ) -> ToolResult:
        """Return the gold passages before what a call finds."""
        found = ToolResult()
        with suppress(CallerError):
            found = make()
        first = [item.model_copy(update={"tool": name}) for item in self._passages]
        rest = [item for item in found.evidence if item.chunk_id not in self._names]
        return replace(found, evidence=[*first, *rest])

    def _grades(self, evidence: Sequence[Evidence]) -> list[Grade]:
        """Grade gold passages 3, and what right calls have counted, unless none is right."""
        right = {
            item.evidence_id
            for item in evidence
            if item.chunk_id in self._names or (item.kind == ROW and not self._case.must_refuse)
        }
        return [
            Grade(evidence_id=name, grade=3 * (name in right), reason="gold")
            for name in (item.evidence_id for item in evidence)
        ]

    def _draft(self, query: Understanding, plan: Plan) -> Draft:
        """Return claims that are right: what the rules say of the gold passages, or their words."""
        ids = [question.id for question in plan.questions]
        graded = [
            one.model_copy(update={"grades": dict.fromkeys(ids, 3)}) for one in self._passages
        ]
        drafted = self._reference.answer(query, plan, graded) if graded else Draft(claims=[])
        texts = [claim.text for claim in drafted.claims]
        if texts and all(contains_answer(group, texts) for group in self._case.needed):
            return drafted
        claims = []
        for number, item in enumerate(self._passages):
            start, end = self._telling_span(item)
            own, cited = ids[min(number, len(ids) - 1)], [item.cited(start, end)]
            claims.append(Claim(text=item.text[start:end], citations=cited, question_id=own))
        return Draft(claims=claims)

    def _telling_span(self, item: Evidence) -> tuple[int, int]:
        """Return the sentence of a passage that has its gold quote or a needed text."""
        quotes = [one.quote for group in self._case.evidence for one in group if one.quote]
        for texts in [quotes, *self._case.needed]:
            for start, end in sentence_spans(item.text):
                if contains_answer(texts, [item.text[start:end]]):
                    return start, end
        return 0, len(item.text)

    def _retrieval_cause(self, given: frozenset[str], groups: Sequence[list[Evidence]]) -> str:
        """Say why right calls did not bring the evidence."""
        place, caller = self._place, self._place.caller(self._case)
        catalogue = place.session.catalogue
        collections = catalogue.collections_named(place.operator, place.name(self._case))
        for group in groups:
            names = [item.chunk_id for item in group if item.kind != ROW]
            seen = (catalogue.evidence(caller, one.id, names) for one in collections)
            if names and not any(seen):
                return "policy"
        again = self._again(given, self._plans[0])
        tools = place.context(self._case).tools
        deep = {
            item.chunk_id
            for step in again.calls
            for item in self._call(tools, step.tool, {**step.arguments, "limit": DEEP}, caller)
        } | again.found
        lost = any(not deep & {item.chunk_id for item in group} for group in groups)
        return "retrieval" if lost else "ranking"


def _query(call: Call, question: SubQuestion) -> dict[str, str]:
    return {"query": question.query} if "query" in call.arguments else {}


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
