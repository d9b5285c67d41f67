"""What a run read from outside, complete and small, so that it can be carried out again.

That is what its tools and its reasoner said, the readings of its clock, and what it began with. It
is kept by the node that read it: nodes that run side by side end in any order. Passages stand in
the run's evidence already, so tool results name them, with what differs.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from core.auth import AuthContext
from core.budget import Budget, current_ledger
from core.distribution import program_version
from core.errors import CallerError, OperatorError
from core.settings import PATHS, SECRETS, Settings
from core.trace import ModelCall, RunRecord
from core.types import Call, Evidence, StopReason, ToolSpec
from graph.context import Context
from graph.intercept import intercepted
from graph.state import State, state_serializer
from reasoning.planning.files import PlanFile
from reasoning.types import Reasoner
from tools.types import ToolResult

FORMAT = 1  # raise it when what is recorded changes
NOT_STORED = "document_key"  # of evidence: results leave it out
FOUND: dict[str, Any] = {  # what is not a verb of the reasoner
    "specs": list[ToolSpec],
    "corrections": dict[str, str],
    "respellings": dict[str, str],
    "visible_words": list[str],
    "term_weights": dict[str, float],
    "calls": list[tuple[int, Call]],
    "filters": list[str],
    "unfiltered": dict[str, Any],
}
SUMMED = ("answer", "claims", "evidence")  # of a result: what must be as it was


@cache
def kind_of(name: str) -> TypeAdapter[Any]:
    """Return how a value that was asked for by this name is written and read."""
    if name in FOUND:
        return TypeAdapter(FOUND[name])
    return TypeAdapter(get_type_hints(getattr(Reasoner, name))["return"])


@dataclass
class Reading:
    """Hold one value that a node read, with what the reading left in the node's ledger."""

    name: str
    digest: str
    value: Any = None
    error: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class NodeReadings:
    """Hold what one visit of a node read, in its order; `clock` in seconds since the base."""

    clock: list[float] = field(default_factory=list)
    read: list[Reading] = field(default_factory=list)


def visit_name(counts: Counter[str], node: str, state: State) -> str:
    """Return the name of a visit: nodes side by side differ by their operation."""
    operation = state.get("operation")
    name = node if operation is None else f"{node}:{operation.out}"
    counts[name] += 1
    return f"{name}#{counts[name]}"


def digest_of(name: str, arguments: Iterable[Any]) -> str:
    """Return what tells one thing that is asked from another; descriptions of tools are none."""
    text = json.dumps([name, *map(_plain, arguments)], sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any argument
    if isinstance(value, Evidence):
        return [value.chunk_id, zlib.crc32(value.text.encode("utf-8", "replace")), value.grades]
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value if not isinstance(one, ToolSpec)]
    return value


class Recorder:
    """Keep what one run reads while it goes on."""

    def __init__(self) -> None:
        self.base: float | None = None
        self.seed: State | None = None  # what the run began with, or went on with after a reply
        self._counts: Counter[str] = Counter()
        self._visits: dict[str, NodeReadings] = {}
        self._lock = threading.Lock()

    def context(self, context: Context) -> Context:
        """Return the context of a run that is recorded."""

        def within(given: Context, node: str, state: State) -> Context:
            with self._lock:
                if self.base is None:
                    self.base = float(int(given.clock()))  # whole, so that sums are exact
                if self.seed is None and node != "clarify":
                    self.seed = state
                visit = self._visits[visit_name(self._counts, node, state)] = NodeReadings()
            return _recorded(given, visit, self.base)

        return replace(context, within=within)

    def encoded(
        self,
        context: Context,
        state: Mapping[str, Any],
        result: Mapping[str, Any],
        where: Sequence[str],
        of_session: int,
    ) -> dict[str, Any]:
        """Return the record of a run that has ended in this state, as its catalogue keeps it.

        `of_session` counts the warnings that are not the run's own; they come first.
        """
        if self.seed is None or self.base is None or "usage" not in state:  # broken off
            return {}
        found: dict[str, Evidence] = {one.chunk_id: one for one in state.get("evidence") or []}
        seed: dict[str, Any] = {name: value for name, value in self.seed.items() if value}
        if "started" in seed:
            seed["started"] = seed["started"] - self.base
        kind, data = state_serializer().dumps_typed(seed)
        body = {
            "sum": _sum(result),
            "program": program_version(),
            "auth": context.auth.model_dump(mode="json"),
            "settings": _chosen(context.settings),
            "budget": context.budget.model_dump(),
            "given": context.given.model_dump(mode="json") if context.given else None,
            "clarify": context.may_clarify,
            "memory": [context.noted, context.recalls],
            "where": list(where),
            "warnings": [of_session, len(result["warnings"])],
            "seed": [kind, base64.b64encode(data).decode()],
            "keys": {name: one.document_key for name, one in found.items()},
            "visits": {
                name: [one.clock, [_written(read, found) for read in one.read]]
                for name, one in self._visits.items()
            },
        }
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"))
        return {
            "format": FORMAT,
            # Its words may be those of any document, which `forget` has to know.
            "history": len(seed.get("messages") or []) > 1,
            "data": base64.b64encode(packed).decode(),
        }


def _recorded(context: Context, visit: NodeReadings, base: float) -> Context:
    clock = context.clock

    def read_clock() -> float:
        visit.clock.append(round(clock() - base, 6))
        return base + visit.clock[-1]

    def intercept(name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
        ledger = current_ledger()
        calls, degraded, notes = len(ledger.calls), len(ledger.degraded), len(ledger.notes)
        reading = Reading(name, digest_of(name, arguments))
        try:
            reading.value = make()
            return reading.value
        except CallerError as error:
            reading.error = str(error)
            raise
        finally:
            reading.calls = ledger.calls[calls:]
            reading.degraded, reading.notes = ledger.degraded[degraded:], ledger.notes[notes:]
            visit.read.append(reading)

    return replace(intercepted(context, intercept), clock=read_clock)


def _chosen(settings: Settings) -> dict[str, Any]:
    """Return the settings that somebody gave, without secrets and paths."""
    given = {name: settings.value(name) for name in sorted(settings.given() - SECRETS - PATHS)}
    return cast(dict[str, Any], to_jsonable_python(given))


def _written(one: Reading, found: Mapping[str, Evidence]) -> list[Any]:
    """Return one reading as JSON; what stays empty at its end is left out."""
    left = [[call.model_dump(mode="json") for call in one.calls], one.degraded, one.notes]
    value: Any = None
    if one.error:
        left.append(one.error)
    elif one.name == "run":
        value = {**vars(one.value), "evidence": _references(one.value.evidence, found)}
        value["stages"] = [stage.model_dump() for stage in one.value.stages]
    elif one.name == "filter":
        value = [_references(one.value[0], found), one.value[1]]
    elif one.name == "specs":  # fields have values of documents, which the calls are made of
        value = [_bare(spec) for spec in one.value]
    else:
        value = kind_of(one.name).dump_python(one.value, mode="json")
    while left and not left[-1]:
        left.pop()
    return [one.name, one.digest, value, *left]


def _bare(spec: ToolSpec) -> dict[str, Any]:
    names = dict.fromkeys(spec.arguments.get("properties", {}), True)
    return {"name": spec.name, "base": spec.base, "arguments": {"properties": names}}


def _references(items: Sequence[Evidence], found: Mapping[str, Evidence]) -> list[Any]:
    """Return each passage as its id, with the fields in which it differs from what was found."""
    made = []
    for item in items:
        kept = vars(found[item.chunk_id])
        fields = {name for name, value in vars(item).items() if value != kept[name]}
        made.append([item.chunk_id, item.model_dump(mode="json", include=fields)])
    return made


@dataclass
class Recording:
    """Hold what a run read, as its record has it."""

    program: str
    auth: AuthContext
    settings: Settings
    budget: Budget
    given: PlanFile | None
    clarify: bool
    noted: tuple[str, ...] | None
    recalls: bool
    where: list[str]
    warnings: list[int]  # of the session, and all with which the run ended
    seed: dict[str, Any]
    visits: dict[str, NodeReadings]


def decoded(run: RunRecord) -> Recording:
    """Return the recording of a run; raises CallerError or OperatorError where there is none."""
    _check(run)
    try:
        return _decoded(run)
    except (LookupError, TypeError, ValueError, zlib.error) as error:
        raise OperatorError(
            "the record of this run cannot be read by this Carrel",
            value=f"{run.run_id} ({type(error).__name__})",
            hint="ask again; `carrel trace` shows this one",
        ) from error


def _decoded(run: RunRecord) -> Recording:
    packed = base64.b64decode(run.recording["data"])
    body = json.loads(zlib.decompress(packed))
    if body["sum"] != _sum(run.result):
        raise OperatorError(
            "the answer or the evidence of this run was changed after it ended",
            value=run.run_id,
            hint="restore a backup, or ask again",
        )
    kept = {one.chunk_id: one for one in run.evidence}
    found = {
        name: one.model_copy(update={NOT_STORED: body["keys"][name]}) for name, one in kept.items()
    }
    kind, data = body["seed"]
    noted, recalls = body.get("memory", [None, False])  # of runs before there was one
    return Recording(
        program=body["program"],
        auth=AuthContext.model_validate(body["auth"]),
        settings=Settings(**body["settings"]),
        budget=Budget(**body["budget"]),
        given=PlanFile.model_validate(body["given"]) if body["given"] else None,
        clarify=body["clarify"],
        noted=tuple(noted) if isinstance(noted, list) else None,
        recalls=recalls,
        where=body["where"],
        warnings=body["warnings"],
        seed=state_serializer().loads_typed((kind, base64.b64decode(data))),
        visits={
            name: NodeReadings(clock, [_read(one, found) for one in read])
            for name, (clock, read) in body["visits"].items()
        },
    )


def _check(run: RunRecord) -> None:
    """Raise CallerError where a run cannot be carried out again, and say why."""
    name = {"value": run.run_id}
    if run.result.get("stop_reason") == StopReason.cancelled:
        raise CallerError("a run that was broken off has no end to replay", **name)
    if "withheld" in run.result:
        rule = "this run found documents that are gone or closed to you"
        raise CallerError(rule, **name, hint="ask again")
    if "erased" in run.recording:
        rule = "the record of this run was erased with a document or a note that was deleted"
        raise CallerError(rule, **name, hint="ask again")
    if run.recording.get("format") != FORMAT:
        rule = "this run was kept without the record that a replay needs, by an earlier Carrel"
        raise CallerError(rule, **name, hint="ask again; `carrel trace` shows this one")


def _read(kept: Sequence[Any], found: Mapping[str, Evidence]) -> Reading:
    name, digest, value, *left = kept
    empty: list[Any] = [[], [], [], ""]
    calls, degraded, notes, error = [*left, *empty[len(left) :]]
    if error:
        value = None
    elif name == "run":
        evidence = _resolved(value["evidence"], found)
        value = TypeAdapter(ToolResult).validate_python({**value, "evidence": evidence})
    elif name == "filter":
        value = _resolved(value[0], found), value[1]
    elif name == "specs":
        value = [ToolSpec(**one, purpose="") for one in value]
    else:
        value = kind_of(name).validate_python(value)
    made = [ModelCall.model_validate(one) for one in calls]
    return Reading(name, digest, value, error, made, degraded, notes)


def _resolved(kept: Sequence[Any], found: Mapping[str, Evidence]) -> list[Evidence]:
    return [Evidence.model_validate({**vars(found[name]), **fields}) for name, fields in kept]


def _sum(result: Mapping[str, Any]) -> str:
    """Return the check sum of what a run answered and rests on."""
    text = json.dumps([result.get(name) for name in SUMMED], ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
