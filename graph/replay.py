"""Carry a stored run out again, from what was recorded or with parts asked again, and compare."""

from __future__ import annotations

import difflib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from core.budget import TimeUpError, current_ledger
from core.distribution import program_version
from core.errors import CarrelError
from core.trace import RunRecord, Step
from graph.asking import ActiveRun, stream
from graph.context import Context, PipelineName
from graph.intercept import InterceptedTools, intercepted
from graph.record import run_result
from graph.recording import NodeReadings, Reading, Recording, decoded, digest_of, visit_name
from graph.state import Graph, State, state_serializer

TOOLS = frozenset(
    {"run", "filter", "corrections", "respellings", "visible_words", "term_weights", "calls"}
)
SPECS = "specs"  # of a record they are bare: whoever plans again needs those of now
REMEMBERED = "the result of an earlier search"  # depends on who else has asked
THREAD = "replay"


class DivergedError(CarrelError):
    """Say that a run asks for what its record does not have; no node takes it for its own."""


class StepDifference(NamedTuple):
    """Say what differs: in which step, counted from 1, of which node; `what` names the field."""

    step: int
    node: str
    what: str
    recorded: Any
    now: Any

    def lines(self) -> list[str]:
        """Return it as lines that were taken away or added."""
        old, new = _lines(self.recorded), _lines(self.now)
        return [one for one in difflib.ndiff(old, new) if one[0] in "+-"]


@dataclass(frozen=True)
class Replayed:
    """Hold what a replay came to; `notes` say what had to be asked again, or has changed since."""

    steps: int
    differences: list[StepDifference]
    notes: list[str]

    @property
    def identical(self) -> bool:
        """Tell whether nothing differs."""
        return not self.differences


class Player:
    """Say again what a run read; ask the parts for what is `live` or not in its record.

    Without a live context nothing can be asked.
    """

    def __init__(
        self, recording: Recording, live: Context | None, asks: Callable[[str], bool]
    ) -> None:
        self.notes: list[str] = []
        self._recording = recording
        self._live = live
        self._asks = asks
        self._base = float(int(time.monotonic()))
        self._counts: Counter[str] = Counter()
        visits = recording.visits.values()
        self._known = {(one.name, one.digest): one for visit in visits for one in visit.read}

    def context(self, run: RunRecord) -> Context:
        """Return the context of the replay; only live parts are asked with anybody's rights."""
        recording, live = self._recording, self._live
        none = cast(Any, None)  # what is never asked
        return Context(
            live.auth if live else recording.auth,
            live.tools if live else InterceptedTools(none, none),
            live.reasoner if live else none,
            recording.settings,
            limits=recording.budget,
            pipeline=cast(PipelineName, run.pipeline),
            given=recording.given,
            may_clarify=recording.clarify,
            noted=recording.noted,
            recalls=recording.recalls,
            within=self.within,
        )

    def seed(self) -> dict[str, Any]:
        """Return what the run began with, by the clock of the replay."""
        seed = self._recording.seed
        return seed | {"started": seed["started"] + self._base} if "started" in seed else seed

    def within(self, given: Context, node: str, state: State) -> Context:
        """Return the context of one visit of a node."""
        visit = self._recording.visits.get(visit_name(self._counts, node, state), NodeReadings())
        left, clock = list(reversed(visit.read)), iter(visit.clock)
        last = 0.0

        def read_clock() -> float:
            nonlocal last
            last = next(clock, last)
            return self._base + last

        def intercept(name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
            if self._live is not None and (name == SPECS or self._asks(name)):
                return make()
            key = (name, digest_of(name, arguments))
            in_turn = bool(left) and (left[-1].name, left[-1].digest) == key
            one = left.pop() if in_turn else self._known.get(key)
            if one is not None:
                return _recall(one)
            if self._live is None:
                raise DivergedError("the record has nothing of what is asked", value=name)
            self.notes.append(f"{node}: {name} was asked again, as the record has nothing for it")
            return make()

        own = intercepted(given, intercept)
        return own if self._live is not None else replace(own, clock=read_clock)


def _recall(one: Reading) -> Any:  # noqa: ANN401 - what was recorded
    """Return what was said, and leave in the ledger what that had left."""
    ledger = current_ledger()
    for call in one.calls:
        ledger.record(call)
    for reason in one.degraded:
        ledger.degrade(reason)
    for text in one.notes:
        ledger.note(text)
    if one.error:  # the narrowest kind that any node takes; else there would be no record
        raise TimeUpError(one.error)
    return one.value


def replay_run(
    graph: Graph,
    run: RunRecord,
    live: Callable[[Recording], Context] | None = None,
    *,
    tools: bool = False,
    model: bool = False,
) -> Replayed:
    """Carry a run out again; raises CallerError or OperatorError where its record is not whole.

    With `tools` or `model` those of the context that `live` makes are asked again, with the rights
    of its caller.
    """
    recording = decoded(run)
    context = live(recording) if live is not None else None
    player = Player(recording, context, lambda name: tools if name in TOOLS else model)
    if recording.program != program_version():
        player.notes.append(f"the run was kept by version {recording.program}")
    asked = ActiveRun(run.question, run.collection, player.context(run))
    stopped = ""
    try:
        for mode, data in _events(graph, player, asked.context):
            asked.take(mode, data)
        state = asked.ended()
    except DivergedError as error:
        state, stopped = asked.state, str(error)
    trail = list(state.get("trail") or [])
    steps = _step_differences(run.trail, trail, is_live=context is not None)
    end = max(len(run.trail), 1), run.trail[-1].node if run.trail else ""
    if stopped:
        steps.append(StepDifference(len(trail) + 1, end[1], "record", "", stopped))
        return Replayed(len(run.trail), steps, player.notes)
    result = run_result(run.run_id, state, run.result["warnings"][: recording.warnings[0]])
    ends = [StepDifference(*end, *one) for one in _result_differences(run, result, recording)]
    return Replayed(len(run.trail), steps + ends, player.notes)


def _events(graph: Graph, player: Player, context: Context) -> Iterator[Any]:
    """Start the graph where the run began, or went on after a reply."""
    seed = player.seed()
    if not context.may_clarify:
        return stream(graph, seed, context)
    graph = graph.copy(update={"checkpointer": InMemorySaver(serde=state_serializer())})
    if not seed.get("clarified"):
        return stream(graph, seed, context, THREAD)
    config: RunnableConfig = {"configurable": {"thread_id": THREAD}}
    graph.update_state(config, seed, as_node="clarify")
    return stream(graph, None, context, THREAD)


def _step_differences(
    recorded: Sequence[Step], now: Sequence[Step], *, is_live: bool
) -> list[StepDifference]:
    """Compare steps field by field; of live tools nothing that depends on who else has asked."""
    found = []
    for place, (old, new) in enumerate(zip_longest(recorded, now), start=1):
        if old is None or new is None or old.node != new.node:
            names = [one.node if one else "" for one in (old, new)]
            found.append(StepDifference(place, names[0] or names[1], "node", *names))
            continue
        before, after = (_comparable(one, is_live=is_live) for one in (old, new))
        found += [
            StepDifference(place, old.node, name, before[name], after[name])
            for name in before
            if before[name] != after[name]
        ]
    return found


def _comparable(step: Step, *, is_live: bool) -> dict[str, Any]:
    """Return a step without its times."""
    shown = _plain(step.model_dump(mode="json", exclude={"ms"}))
    for part in (*shown["stages"], *shown["calls"]):
        part.pop("ms")
        part.pop("first_ms", None)
    if is_live:
        shown["stages"] = []
        shown["reason"] = "; ".join(one for one in shown["reason"].split("; ") if one != REMEMBERED)
    return cast(dict[str, Any], shown)


def _result_differences(
    run: RunRecord, result: Mapping[str, Any], recording: Recording
) -> Iterator[tuple[str, Any, Any]]:
    kept = {name: run.result.get(name) for name in result}
    kept["warnings"] = run.result["warnings"][: recording.warnings[1]]
    for name in result:
        old, new = _plain(kept[name]), _plain(result[name])
        if name == "usage":
            old, new = ({**one, "ms": 0} for one in (old, new))
        if old == new:
            continue
        if name == "evidence":
            ids = [[one["evidence_id"] for one in items] for items in (old, new)]
            if ids[0] != ids[1]:
                yield "evidence order", ids[0], ids[1]
            other = [one for one in old if one not in new], [one for one in new if one not in old]
            old, new = other
        if old or new:
            yield name, old, new


def _plain(value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    return json.loads(json.dumps(value))


def _lines(value: Any) -> list[str]:  # noqa: ANN401 - as JSON has it
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, list):
        return [
            one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in value
        ]
    return [json.dumps(value, ensure_ascii=False)]
