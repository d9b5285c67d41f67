"""Examine a model: the same small decisions by the model and by the rules, judged by rule."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import log

import yaml
from filelock import FileLock, Timeout
from pydantic import Field

from core.budget import Ledger, opened_ledger
from core.fields.chat import DECISIONS, NULL
from core.language.analysis import terms
from core.settings import Settings
from core.types import (
    AnswerKind,
    Evidence,
    FrozenModel,
    Part,
    Plan,
    SubQuestion,
    TermWeights,
    ToolSpec,
    Understanding,
)
from models.chat.types import ChatModel, ModelUnavailable
from models.embeddings import Embedder
from reasoning.llm.exam_result import (
    ITEMS_FILE,
    ExamResult,
    ItemResult,
    items_version,
    keep_result,
    kept_result,
    place_of,
    result_path,
)
from reasoning.llm.reasoner import LlmReasoner
from reasoning.llm.replies import other_language
from reasoning.rules.grade import PARTLY
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Reasoner, Turn

# Chosen, not measured:
WAIT_SECONDS = 0.5  # between two looks at an exam that another process is holding
ITEM_TOKENS = 20_000  # chosen, not measured
# An item may take twice the time of an answer: a machine that has other work makes a model slow,
# not wrong, and the mean of the seconds decides whether it is too slow.
ITEM_TIMES = 2  # chosen, not measured


class ExamItem(FrozenModel):
    """Hold one item; what is right is said by the fields that its decision has."""

    decision: str
    language: str
    question: str
    history: tuple[str, str] | None = None
    passages: list[str] = Field(default_factory=list)
    wants: AnswerKind = "text"
    parts: int = 0
    tool: str = ""
    answers: bool = False
    null: bool = False
    any: list[str | list[str]] = Field(default_factory=list)
    none: list[str] = Field(default_factory=list)

    def holds(self, text: str) -> bool:
        """Tell whether a text has one of the alternatives, and nothing that it must not have."""
        folded_text = text.casefold()
        ways = [[way] if isinstance(way, str) else way for way in self.any]
        found = any(all(part.casefold() in folded_text for part in way) for way in ways)
        return found and not any(wrong.casefold() in folded_text for wrong in self.none)


class Items(FrozenModel):
    """Hold the items, and the passages and tools that they name."""

    passages: dict[str, str]
    tools: dict[str, str]
    items: list[ExamItem]

    def evidence(self, names: Sequence[str]) -> list[Evidence]:
        """Return passages as evidence; the language is the end of a name."""
        return [
            Evidence(
                evidence_id=name,
                chunk_id=name,
                document_id=name,
                document_key=name,
                source=f"{name}.md",
                title="",
                text=self.passages[name],
                language=name.rpartition("_")[2],
            )
            for name in names
        ]

    def specs(self) -> list[ToolSpec]:
        """Return the tools."""
        return [
            ToolSpec(name=name, base="search", purpose=purpose, scoped=True)
            for name, purpose in self.tools.items()
        ]

    def weights(self) -> TermWeights:
        """Weigh terms by how few passages have them."""
        texts = [(text, name.rpartition("_")[2]) for name, text in self.passages.items()]
        uses = Counter(term for text, language in texts for term in set(terms(text, language)))
        return lambda wanted: {term: log(1 + len(texts) / (1 + uses[term])) for term in wanted}


@lru_cache(maxsize=1)
def exam_items() -> Items:
    """Return the built-in items."""
    return Items.model_validate(yaml.safe_load(ITEMS_FILE.read_text(encoding="utf-8")))


def is_right(item: ExamItem, reasoner: Reasoner) -> bool:
    """Let a reasoner make the decision of an item, and judge it."""
    return bool(JUDGES[item.decision](item, reasoner))


def _understood(item: ExamItem, reasoner: Reasoner) -> bool:
    turns = [Turn(*item.history)] if item.history else []
    known = reasoner.understand(item.question, turns)
    if item.parts:
        return len(known.parts) == item.parts
    return item.holds(" ".join([known.question, *(part.search_text for part in known.parts)]))


def _planned(item: ExamItem, reasoner: Reasoner) -> bool:
    known = Understanding(
        question=item.question,
        language=item.language,
        required_fields=["text"],
        parts=[Part(text=item.question)],
    )
    calls = reasoner.plan(known, exam_items().specs()).questions[0].calls
    return bool(calls) and calls[0].tool == item.tool


def _rewritten(item: ExamItem, reasoner: Reasoner) -> bool:
    found = reasoner.rewrite(_asked(item), [], exam_items().specs())
    return found is not None and item.holds(found.query)


def _graded(item: ExamItem, reasoner: Reasoner) -> bool:
    evidence = exam_items().evidence(item.passages)
    grades = reasoner.grade(_asked(item), evidence)
    return (max(one.grade for one in grades) >= PARTLY) is item.answers


def _extracted(item: ExamItem, reasoner: Reasoner) -> bool:
    evidence = [
        one.model_copy(update={"grades": {"q1": PARTLY + 1}})
        for one in exam_items().evidence(item.passages)
    ]
    found = reasoner.extract(_asked(item), evidence)
    return bool(found) and item.holds(found[0].value)


def _answered(item: ExamItem, reasoner: Reasoner) -> bool:
    """Judge an answer from passages as the same reasoner grades them."""
    evidence = exam_items().evidence(item.passages)
    question = _asked(item)
    graded = {one.evidence_id: one.grade for one in reasoner.grade(question, evidence)}
    usable = [
        one.model_copy(update={"grades": {"q1": graded[one.evidence_id]}})
        for one in evidence
        if graded[one.evidence_id] >= PARTLY
    ]
    known = Understanding(question=item.question, language=item.language)
    claims = reasoner.answer(known, Plan(questions=[question]), usable).claims if usable else []
    text = " ".join(claim.text for claim in claims)
    if item.null:
        return not claims
    return item.holds(text) and not other_language(text, item.language)


def _asked(item: ExamItem) -> SubQuestion:
    return SubQuestion(
        id="q1",
        text=item.question,
        query=item.question,
        language=item.language,
        wants=item.wants,
    )


JUDGES: dict[str, Callable[[ExamItem, Reasoner], bool]] = {
    "understand": _understood,
    "plan": _planned,
    "grade": _graded,
    "rewrite": _rewritten,
    "extract": _extracted,
    "answer": _answered,
}


class Examiner:
    """Examine one model; what has been tried is kept after every item."""

    def __init__(self, chat: ChatModel, settings: Settings, embedder: Embedder | None) -> None:
        """Compare `chat` with the rules under the same settings and embedder."""
        self._chat = chat
        self._settings = settings
        weights = exam_items().weights()
        self._rules = RulesReasoner(settings, weights, embedder)
        wider = RulesReasoner(settings.for_model(), weights, embedder)
        self._model = {
            name: LlmReasoner(
                chat,
                wider if name == "answer" else self._rules,
                settings,
                embedder,
                frozenset({name, NULL}),
            )
            for name in DECISIONS
        }

    def run(self, until: float, on_item: Callable[[ExamResult], None]) -> ExamResult:
        """Go on with the exam until it is finished or `time.monotonic()` is past `until`.

        One that another process holds is watched instead. The items are tried in turns of all
        decisions, so that one which is stopped says something of each.
        """
        digest = self._chat.capabilities.digest
        path = result_path(self._settings, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock")
        while True:
            result = self._kept()
            if result.finished or time.monotonic() >= until:
                return result
            try:
                with lock.acquire(timeout=0):
                    return self._hold(until, on_item)
            except Timeout:
                on_item(result)
                time.sleep(WAIT_SECONDS)

    def _kept(self) -> ExamResult:
        can = self._chat.capabilities
        new = ExamResult(
            digest=can.digest,
            model=can.model,
            url=place_of(self._settings, can),
            version=items_version(),
            of=Counter(item.decision for item in exam_items().items),
        )
        return kept_result(self._settings, can.digest) or new

    def _hold(self, until: float, on_item: Callable[[ExamResult], None]) -> ExamResult:
        result = self._kept()
        for item in in_turns(exam_items().items)[len(result.items) :]:
            if time.monotonic() >= until:
                break
            tried = self._tried(item, until)
            if tried is None:
                break
            result = result.model_copy(update={"items": [*result.items, tried]})
            keep_result(self._settings, result)
            on_item(result)
        return result

    def _tried(self, item: ExamItem, until: float) -> ItemResult | None:
        """Try one item; a decision that the rules had to take counts as the model's mistake.

        None is returned for one that the end of the exam broke off. Raises ModelUnavailable for a
        server that is gone, which says nothing of the model.
        """
        seconds = ITEM_TIMES * self._settings.llm.answer_by_seconds
        ledger = Ledger(min(until, time.monotonic() + seconds), ITEM_TOKENS)
        began = time.monotonic()
        with opened_ledger(ledger):
            right = is_right(item, self._model[item.decision]) and not ledger.degraded
        if any(call.outcome == "unavailable" for call in ledger.calls):
            rule = "the model does not answer any more; the exam goes on when it does"
            raise ModelUnavailable(
                rule, value=ledger.calls[-1].error, hint="see `carrel llm status`"
            )
        if ledger.degraded and time.monotonic() >= until:
            return None
        return ItemResult(
            decision=item.decision,
            right=right,
            rules=is_right(item, self._rules),
            tokens=ledger.spent,
            seconds=round(time.monotonic() - began, 3),
        )


def in_turns(items: Sequence[ExamItem]) -> list[ExamItem]:
    """Return items so that every beginning holds about the same share of each decision."""
    kinds = [(item.decision, item.null) for item in items]
    of, seen = Counter(kinds), Counter[tuple[str, bool]]()
    places = []
    for number, kind in enumerate(kinds):
        seen[kind] += 1
        places.append(((seen[kind] - 0.5) / of[kind], number))
    return [items[number] for _, number in sorted(places)]
