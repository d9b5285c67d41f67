"""Run gold cases and measure the way to each answer: calls, evidence, citations, refusals."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from app.session import Session
from core.auth import USER, AuthContext
from core.errors import CallerError, shorten
from core.language.detect import detect_language
from core.question import checked_question
from core.settings import Settings
from core.trace import RunRecord, Step
from core.types import Evidence, ToolSpec
from evals.answers import AnswerOutcome, contains_answer, folded, measured_figures
from evals.dataset import JudgedQuery
from evals.gold import GoldCall, GoldCase, GoldFile, GoldPassage
from evals.summary import group_figures, latency
from graph.asking import ActiveRun, stream
from graph.build import build_graph
from graph.context import Context, PipelineName
from graph.record import run_result
from reasoning.planning.files import LineError, PlanFile, read_plan
from reasoning.types import Turn
from stores.erasure.redaction import listed_by
from stores.sqlite.catalogue import Collection

LONGEST = 400  # characters of an answer that a row of JSON shows; the run has all
Planted = Callable[[Context], Context]


def same(context: Context) -> Context:
    """Return a context as it is."""
    return context


@dataclass(frozen=True, eq=False)  # one is as good as its identity for what it remembers
class GoldPlace:
    """Say where the cases of one file are asked: a session, a collection of it, and who asks.

    `planted` changes the context of every run, to test what is found of a known fault.
    """

    session: Session
    gold: GoldFile
    collection: str
    auth: AuthContext
    pipeline: PipelineName = "auto"
    planted: Planted = same

    def name(self, case: GoldCase) -> str:
        """Return the collection of a case."""
        return case.collection or self.collection

    def caller(self, case: GoldCase) -> AuthContext:
        """Return who asks a case: with roles of its own, somebody who has these alone."""
        if case.roles is None and not case.user:
            return self.auth
        given = {"user": case.user or self.auth.user, "roles": case.roles or (), "operator": False}
        return AuthContext(**{**dict(self.auth), **given})

    @property
    def operator(self) -> AuthContext:
        """Return the operator, who may know the names of all collections."""
        return AuthContext(tenant=self.auth.tenant, user="evals", operator=True)

    @cache  # noqa: B019 - a place lives as long as its file's cases
    def readers(self, name: str) -> list[AuthContext]:
        """Return callers who together may read all documents of a collection, whose rights differ.

        The first has every role that any document names.
        """
        intake, principals = self.session.intake, set[str]()
        for one in self.session.catalogue.collections_named(self.operator, name):
            for file in {file for file, _ in intake.document_hashes(one).values()}:
                for row in intake.stored_documents(one.id, file):
                    principals |= row.acl
        roles = frozenset(one for one in principals if not one.startswith(USER))
        users = sorted(one.removeprefix(USER) for one in principals - roles)
        named = [self.operator.user, *users]
        return [self.operator.model_copy(update={"user": u, "roles": roles}) for u in named]

    def context(self, case: GoldCase) -> Context:
        """Return the context of a case's run, whatever is planted in it."""
        return self.planted(self.session.context(self.caller(case), self.name(case), self.pipeline))

    @cache  # noqa: B019 - as above
    def _documents(
        self, name: str, reader: AuthContext
    ) -> list[tuple[Collection, str, tuple[str, ...]]]:
        catalogue = self.session.catalogue
        return [
            (one, row["document_id"], (row["document_id"], row["source"], row["title"]))
            for one in catalogue.collections_named(self.operator, name)
            for row in catalogue.list_documents(reader, one)
        ]

    def passages(self, wanted: GoldPassage, case: GoldCase) -> list[Evidence]:
        """Return the passages that a gold passage means, whoever may see them."""
        name, caller = self.name(case), self.caller(case)
        # All rights are looked up only for what this caller does not see.
        return self._visible(wanted, name, caller) or [
            item for reader in self.readers(name) for item in self._visible(wanted, name, reader)
        ]

    def _visible(self, wanted: GoldPassage, name: str, reader: AuthContext) -> list[Evidence]:
        catalogue, ending = self.session.catalogue, f"/{wanted.document}"
        found: list[Evidence] = []
        for collection, document, names in self._documents(name, reader):
            if wanted.document in names or any(one.endswith(ending) for one in names):
                rows = catalogue.list_passages(reader, collection, document, 0, 1 << 30)
                keys = [
                    row["chunk_id"]
                    for row in rows
                    if not folded(wanted.quote) or contains_answer([wanted.quote], [row["text"]])
                ]
                known = catalogue.evidence(reader, collection.id, keys)
                found += [known[key] for key in keys if key in known]
        return found


@dataclass(frozen=True, kw_only=True)
class Trajectory(AnswerOutcome):
    """One case and how it was answered; `gold` has the passages that its evidence means.

    A question that is not accepted has no `run`.
    """

    case: GoldCase
    file: str
    gold: list[list[Evidence]]
    run: RunRecord | None = None

    @property
    def calls(self) -> list[Step]:
        """Return the steps that called a tool."""
        return [step for step in self.trail if step.tool]

    @cached_property
    def found(self) -> frozenset[str]:
        """Return the ids of the passages that were found, also within a count of records."""
        return _ids(self.result.get("evidence", []))

    @cached_property
    def citations(self) -> list[frozenset[str]]:
        """Return the passages of each citation: one, or those that a count of records lists."""
        items = {one["evidence_id"]: one for one in self.result.get("evidence", [])}
        claims = self.result.get("claims", [])
        names = dict.fromkeys(one["evidence_id"] for claim in claims for one in claim["citations"])
        return [_ids([items[name]]) for name in names if name in items]

    def share_of_gold(self, known: frozenset[str]) -> float | None:
        """Return the share of the gold evidence that is among passages, None without any."""
        there = [any(one.chunk_id in known for one in group) for group in self.gold]
        return sum(there) / len(there) if there else None


def _ids(items: Sequence[dict[str, Any]]) -> frozenset[str]:
    return frozenset(name for one in items for name in (one["chunk_id"], *listed_by(one)))


Measure = Callable[[Trajectory], float | None]


def tool_selection_accuracy(one: Trajectory) -> float | None:
    """Return how many tools were both expected and called, of those that were either."""
    if one.case.tools is None:
        return None
    expected, called = {call.tool for call in one.case.tools}, {step.tool for step in one.calls}
    both = expected | called
    return len(expected & called) / len(both) if both else 1.0


def argument_correctness(one: Trajectory) -> float | None:
    """Return the share of the expected arguments that the best call of their tool had."""
    expected = [call for call in one.case.tools or [] if call.arguments]
    if not expected:
        return None
    return sum(_best_share(call, one.calls) for call in expected) / len(expected)


def _best_share(expected: GoldCall, calls: Sequence[Step]) -> float:
    shares = [
        sum(agrees(value, step.arguments.get(name)) for name, value in expected.arguments.items())
        for step in calls
        if step.tool == expected.tool
    ]
    return max(shares, default=0) / len(expected.arguments)


def agrees(expected: Any, given: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    """Tell whether an argument is the expected one: texts as words, lists in any order.

    Of a mapping the expected keys count alone; a `query` may say more than is expected.
    """
    if isinstance(expected, Mapping):
        return isinstance(given, Mapping) and all(
            agrees(value, given.get(name)) for name, value in expected.items()
        )
    if isinstance(expected, list):
        left = list(given) if isinstance(given, list) else [given]
        for wanted in expected:
            place = next((n for n, one in enumerate(left) if agrees(wanted, one)), None)
            if place is None:
                return False
            del left[place]
        return not left
    if isinstance(expected, str) and isinstance(given, str):
        return contains_answer([expected], [given]) or expected == given
    if isinstance(expected, str) or isinstance(given, str):
        return folded(str(expected)) == folded(str(given))
    return bool(expected == given)


def redundant_calls(one: Trajectory) -> float | None:
    """Count the calls that found passages, all of which earlier calls had found."""
    seen: set[str] = set()
    count = 0
    for step in one.calls:
        found = {name for name, _ in step.evidence}
        count += bool(found) and found <= seen
        seen |= found
    return float(count)


def evidence_recall(one: Trajectory) -> float | None:
    """Return the share of the gold evidence that was found."""
    return one.share_of_gold(one.found)


def answer_accuracy(one: Trajectory) -> float | None:
    """Return 1 when each needed text stands within the answer or what it cites."""
    if not one.case.needed:
        return None
    return float(all(contains_answer(group, one.texts) for group in one.case.needed))


def citation_precision(one: Trajectory) -> float | None:
    """Return the share of the cited passages that are gold evidence; a refusal cites nothing."""
    gold = {item.chunk_id for group in one.gold for item in group}
    if not one.case.evidence or not one.citations:
        return None
    return sum(bool(names & gold) for names in one.citations) / len(one.citations)


def citation_recall(one: Trajectory) -> float | None:
    """Return the share of the gold evidence that is cited."""
    return one.share_of_gold(frozenset[str]().union(*one.citations))


MEASURES: dict[str, Measure] = {
    found.__name__: found
    for found in (
        *(tool_selection_accuracy, argument_correctness, redundant_calls, evidence_recall),
        *(answer_accuracy, citation_precision, citation_recall),
    )
} | {
    "refusal_precision": lambda one: float(one.case.must_refuse) if one.refused else None,
    "refusal_recall": lambda one: float(one.refused) if one.case.must_refuse else None,
    "calls": lambda one: one.spent("tool_calls"),
    "cost": lambda one: one.spent("cost"),  # of the chat model
}


def succeeded(one: Trajectory) -> bool:
    """Tell whether a case passes: refused as it must be, else with the right answer.

    Where no answer is expected its evidence must be cited, and where no evidence is, its calls
    must be those expected.
    """
    case = one.case
    if case.must_refuse:
        return one.refused
    if case.needed:
        return not one.refused and answer_accuracy(one) == 1.0
    if case.evidence:
        return not one.refused and citation_recall(one) == 1.0
    return tool_selection_accuracy(one) == 1.0 and argument_correctness(one) in (None, 1.0)


def check_place(place: GoldPlace) -> None:
    """Raise CallerError for a collection, tool, plan or evidence of a case that there is not."""
    known: dict[str, list[ToolSpec]] = {}
    for case in place.gold.cases:
        name = place.name(case)
        try:
            if name not in known:
                context = place.session.context(place.operator, name, place.pipeline)
                known[name] = context.tools.specs(place.operator)
            place.caller(case)
        except CallerError as error:
            rule = f"{place.gold.place(case)}: {error.rule}"
            raise CallerError(rule, value=error.value, hint=error.hint) from None
        names = [spec.name for spec in known[name]]
        for call in case.tools or []:
            if call.tool not in names:
                raise CallerError(
                    f"{place.gold.place(case)}: an expected tool is one of the collection's",
                    value=call.tool,
                    hint=f"tools of '{name}': {', '.join(names)}",
                )
            takes = known[name][names.index(call.tool)].arguments.get("properties", {})
            if odd := sorted(call.arguments.keys() - takes.keys()):
                raise CallerError(
                    f"{place.gold.place(case)}: an expected argument is one of the tool's",
                    value=", ".join(odd),
                    hint=f"arguments of '{call.tool}': {', '.join(takes)}",
                )
        if case.plan:
            try:
                gold_plan(case, place.session.settings, known[name])
            except LineError as error:
                rule = error.rule.partition(": ")[2]
                raise CallerError(f"{place.gold.place(case)}: plan: {rule}") from None
        for group in case.evidence:
            if not any(place.passages(one, case) for one in group):
                _check_document(place, case, group[0])


def _check_document(place: GoldPlace, case: GoldCase, wanted: GoldPassage) -> None:
    """Raise CallerError for evidence that no passage has: its document, else its quote."""
    at, name = f"{place.gold.place(case)}, case {case.id}", place.name(case)
    if not place.passages(wanted.model_copy(update={"quote": ""}), case):
        rule, value = f"{at}: evidence names a document of '{name}'", wanted.document
        hint = f"`carrel documents -c {name}` lists ids and sources"
    else:
        rule, value = f"{at}: a quote stands in a passage of {wanted.document}", wanted.quote
        hint = "copy it from there, no longer than one passage; without `quote` any passage will do"
    raise CallerError(rule, value=value, hint=hint)


def gold_plan(case: GoldCase, settings: Settings, specs: Sequence[ToolSpec]) -> PlanFile:
    """Return the checked plan of a case; raises LineError."""
    return read_plan(json.dumps({"questions": case.plan}), settings, lambda: specs)


def ask_case(place: GoldPlace, case: GoldCase) -> Trajectory:
    """Ask one case and time the whole answer; the run is kept as any other."""
    one = Trajectory(
        JudgedQuery(case.id, case.question, type=case.type),
        case.language or detect_language(case.asked),
        case=case,
        file=place.gold.path.name,
        gold=[
            [item for one in group for item in place.passages(one, case)] for group in case.evidence
        ],
    )
    started = time.perf_counter()
    try:
        text = checked_question(case.question, place.session.settings)
        asked = ActiveRun(text, place.name(case), place.context(case))
        turns = [Turn(turn.question, turn.answer) for turn in case.history]
        run = place.session.asking.alone(asked, turns)
    except CallerError as error:
        return replace(one, breaks=error.rule)
    ms = (time.perf_counter() - started) * 1000
    return replace(one, run=run, result=run.result, trail=run.trail, ms=ms)


def run_again(place: GoldPlace, one: Trajectory, context: Context) -> Trajectory:
    """Run a case in another context; the run is not kept."""
    asked = ActiveRun(one.case.question, place.name(one.case), context)
    messages: list[AnyMessage] = []
    for turn in one.case.history:
        messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
    messages.append(HumanMessage(one.case.question))
    for mode, data in stream(build_graph(), {"messages": messages}, context):
        asked.take(mode, data)
    state = asked.ended()
    return replace(one, result=run_result("", state, ()), trail=state["trail"])


@dataclass
class TrajectoryRuns:
    """Hold the cases that were asked, with the cause of each failure, and those that were not."""

    asked: list[Trajectory] = field(default_factory=list)
    causes: dict[int, Any] = field(default_factory=dict)  # by the place among those asked
    skipped: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def _figures(asked: Sequence[Trajectory], settings: Settings) -> dict[str, Any]:
    found = measured_figures(asked, settings, MEASURES)
    found["metrics"]["p95_ms"] = latency(asked)["p95"]
    return {"passed": sum(map(succeeded, asked)), **found}


def trajectories_json(runs: TrajectoryRuns, settings: Settings) -> dict[str, Any]:
    """Return the figures as `carrel eval trajectories --json` prints them."""
    return {
        **_figures(runs.asked, settings),
        "latency_ms": latency(runs.asked),
        "causes": dict(Counter(one.cause for one in runs.causes.values()).most_common()),
        **group_figures(runs.asked, lambda keep: _figures([*filter(keep, runs.asked)], settings)),
        "cases": [case_row(one, runs.causes.get(place)) for place, one in enumerate(runs.asked)],
        "skipped": runs.skipped,
        "warnings": runs.warnings,
    }


def case_row(one: Trajectory, cause: Any) -> dict[str, Any]:  # noqa: ANN401 - an Attribution
    """Return one case as JSON has it, so that failures can be looked at."""
    return {
        "id": one.case.id,
        "file": one.file,
        "question": one.case.question,
        "language": one.language,
        "type": one.case.type,
        "run_id": one.run.run_id if one.run else None,
        "passed": succeeded(one),
        "refused": one.refused,
        "must_refuse": one.case.must_refuse,
        "stop_reason": one.stop_reason,
        "answer": shorten(str(one.result.get("answer", one.breaks)), LONGEST),
        "tools": [step.tool for step in one.calls],
        "ms": None if one.ms is None else round(one.ms, 1),
        **{name: found(one) for name, found in MEASURES.items() if "refusal" not in name},
        **{name: getattr(cause, name, None) for name in ("cause", "step", "shown_by")},
    }
