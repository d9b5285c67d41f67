"""What a run needs and must not persist, made and checked in one place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from core.auth import AuthContext
from core.budget import Budget, Ledger, TimeLimit, Usage, limited_time, opened_ledger, price_of
from core.errors import CallerError
from core.operations import AnyOperation
from core.settings import Settings
from core.trace import Step
from core.types import Plan, Understanding
from reasoning.planning.compiler import compiled
from reasoning.planning.files import PlanFile
from reasoning.planning.rules import proposed_plan
from reasoning.types import Reasoner
from tools.toolbox import Toolbox

if TYPE_CHECKING:  # a search needs no LangGraph
    from graph.state import State

T = TypeVar("T")
PipelineName = Literal["auto", "agentic", "classic", "single"]
ONE_SEARCH: tuple[PipelineName, ...] = ("classic", "single")


def never() -> bool:
    """Return that no caller has given up."""
    return False


class Intercept(Protocol):
    """Answer in the place of a part; `make()` asks the part itself.

    `name` is a verb of the reasoner ("grade", with its arguments), "run" (tool, arguments),
    "filter" (text, evidence, threshold, top_k), "specs", "corrections" and "respellings"
    (text, language), "visible_words" (words, language), "term_weights" (terms), or
    "calls", the calls of a search.
    """

    def __call__(self, name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return what the part, or somebody in its place, says."""


@dataclass(frozen=True)
class Context:
    """Carry the caller's rights, the limits and the parts of one run.

    With `pipeline` auto a question that is surely plain skips the planner, with agentic none does,
    with classic and single every one. `given` is a checked plan to run in place of a proposed one.
    A run that `may_clarify` has a checkpointer and someone to reply, one that `recalls` reads the
    caller's notes, and `noted` is what of its turn becomes notes, None outside of
    a conversation that is remembered. `intercept`
    stands before the parts (`graph.intercept.intercepted`), `bare` is the context without it, and
    `within` gives the context of one node of a run.
    """

    auth: AuthContext
    tools: Toolbox
    reasoner: Reasoner
    settings: Settings
    limits: Budget | None = None  # where they are not those of the settings
    clock: Callable[[], float] = time.monotonic  # or another; tools compare deadlines with it
    cancelled: Callable[[], bool] = never
    pipeline: PipelineName = "auto"
    given: PlanFile | None = None
    may_clarify: bool = False
    noted: tuple[str, ...] | None = None
    recalls: bool = False
    intercept: Intercept | None = None
    within: Callable[[Context, str, State], Context] | None = None
    bare: Context | None = None

    def __post_init__(self) -> None:
        """Raise CallerError for what no run can be made with."""
        for name, kind in (("auth", AuthContext), ("tools", Toolbox), ("settings", Settings)):
            if not isinstance(value := getattr(self, name), kind):
                raise CallerError(f"a run needs {name}", value=type(value).__name__)

    @cached_property
    def budget(self) -> Budget:
        """Return what the run may spend."""
        return self.limits or self.settings.run_budget()

    @property
    def prices(self) -> tuple[float, float]:
        """Return what the tokens cost that a chat model reads and writes."""
        return self.settings.llm.price_prompt, self.settings.llm.price_completion

    @property
    def apart(self) -> Context:
        """Return the context before which nobody stands, for what is read by `seen` as a whole."""
        return self.bare or self

    def may_ask(self, clarified: int) -> bool:
        """Tell whether a question that was asked back so often may be once more."""
        return self.may_clarify and clarified < self.settings.answering.max_clarifications

    def elapsed(self, started: float) -> Usage:
        """Return the wall-clock time since `started` as usage, and one step."""
        return Usage(steps=1, ms=round((self.clock() - started) * 1000, 3))

    def step(self, node: str, began: float, ledger: Ledger | None = None, **fields: Any) -> Step:  # noqa: ANN401
        """Record what a node did since `began`, with what the chat model did in it."""
        if ledger is not None:
            fields |= {"calls": ledger.calls, "degraded": "; ".join(ledger.degraded)}
        return Step(node=node, ms=self.elapsed(began).ms, **fields)

    def deadline(self, started: float) -> float:
        """Return when a run must have ended its searches, by the clock."""
        return started + self.budget.seconds_for(answering=False)

    def planned(self, query: Understanding) -> tuple[Plan, list[AnyOperation], list[str]]:
        """Return the plan of a question, the given one if any, its operations and its notes."""
        if self.given is not None:
            return self.given.plan, self.given.operations, []
        specs = self.tools.specs(self.auth)
        made, notes = proposed_plan(self.reasoner, query, specs, self.settings)
        return made, compiled(made, self.settings), notes

    def seen(self, name: str, arguments: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return what is read from outside of the run, as who stands before the parts has it."""
        if self.intercept is None:
            return make()
        found: T = self.intercept(name, arguments, make)
        return found

    @contextmanager
    def thinking(
        self, state: State, spent: Usage | None = None, *, answering: bool = False
    ) -> Iterator[Ledger]:
        """Open the ledger of one node: what the chat model may spend in it, and what it spends.

        `spent` is what the node has spent before, beside the state. Statements end with the run's
        time, a model's calls when the rules' answer is due. Nodes that run side by side share what
        is left. What the answer needs is kept back, and
        a model that failed to answer in an earlier node of the run is not asked again.
        """
        seconds, started = self.budget.seconds_for(answering=answering), state["started"]
        usage = state["usage"].plus(spent) if spent is not None else state["usage"]
        share = beside(state)
        due = self.settings.llm.answer_by_seconds
        ledger = Ledger(
            deadline=started + seconds * min(1.0, due / self.budget.seconds),
            tokens=self.budget.tokens_for(usage, answering=answering) // share,
            cost=self.budget.cost_for(usage, answering=answering) / share,
            prices=self.prices,
            owner=json.dumps(self.auth.describe(), sort_keys=True),
            lost=any(call.lost for step in state.get("trail") or [] for call in step.calls),
            cancelled=self.cancelled,
        )
        with limited_time(TimeLimit(started + seconds)), opened_ledger(ledger):
            yield ledger

    def spent(self, started: float, ledger: Ledger) -> Usage:
        """Return one step, the time since `started`, and what the chat model spent in it."""
        prompt = sum(call.prompt_tokens for call in ledger.calls)
        written = sum(call.completion_tokens for call in ledger.calls)
        return self.elapsed(started).plus(
            Usage(
                tokens=prompt + written,
                model_calls=sum(1 for call in ledger.calls if call.outcome != "overflow"),
                model_tokens=prompt + written,
                degraded=len(ledger.degraded),
                cost=price_of(prompt, written, self.prices),
            )
        )


def beside(state: State) -> int:
    """Return how many nodes run side by side now: a wave of several has each carry out one."""
    return len(state["wave"]) if state.get("operation") is not None else 1
