"""The state of a run."""

from __future__ import annotations

import operator
import zlib
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from core.budget import Usage
from core.operations import OPERATIONS, AnyOperation, FilledQuery, Register
from core.recall import RecallState
from core.trace import Step
from core.types import (
    Answer,
    Call,
    Clarification,
    Draft,
    Evidence,
    Plan,
    StopReason,
    Understanding,
)

MARK = "+crc32:"
STATE_TYPES: tuple[type, ...] = (
    *(Answer, Draft, Evidence, Plan, Step, StopReason, Understanding, Usage),
    *(Call, Clarification, FilledQuery, RecallState, Register),
    *list[type](OPERATIONS.values()),
)


class SummedSerializer(JsonPlusSerializer):
    """Write values with a check sum beside their type; raise ValueError for other bytes."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:  # noqa: ANN401 - as LangGraph has it
        """Return the type with the CRC-32 of both, and the bytes."""
        kind, data = super().dumps_typed(obj)
        return f"{kind}{MARK}{_sum(kind, data):08x}", data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ANN401 - as LangGraph has it
        """Return the value; raises ValueError when it is not what was written."""
        named, value = data
        kind, _, checksum = named.partition(MARK)
        if checksum != f"{_sum(kind, value):08x}":
            raise ValueError("a stored state is not what was written")
        try:
            return super().loads_typed((kind, value))
        except NotImplementedError:
            raise ValueError("a stored state is of no known type") from None


def _sum(kind: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(kind.encode("utf-8", "replace")))


def state_serializer() -> JsonPlusSerializer:
    """Return what writes and reads states, and makes nothing but these types of what it reads."""
    return SummedSerializer(allowed_msgpack_modules=STATE_TYPES)


Outcome = Literal["enough", "weak", "next", "never", "unclear"]
Path = Literal["plain", "planned"]


def merge_evidence(left: list[Evidence], right: list[Evidence]) -> list[Evidence]:
    """Merge by chunk id: the better score stays, grades add up, first found comes first."""
    merged = {item.chunk_id: item for item in left}
    for item in right:
        earlier = merged.get(item.chunk_id)
        if earlier is None:
            merged[item.chunk_id] = item
            continue
        grades = dict(earlier.grades)
        for question_id, grade in item.grades.items():
            grades[question_id] = max(grade, grades.get(question_id, 0))
        best = item if item.score > earlier.score else earlier
        update = {"grades": grades, "readings": {**earlier.readings, **item.readings}}
        merged[item.chunk_id] = best.model_copy(update=update)
    return list(merged.values())


MAX_DRAFTS = 2  # of one run: what verification rejects is written once more


class InputState(TypedDict, total=False):
    """What a caller gives: a question, or chat messages whose last one asks it."""

    messages: Annotated[list[AnyMessage], add_messages]
    question: str


class OutputState(TypedDict, total=False):
    """What a caller gets."""

    messages: Annotated[list[AnyMessage], add_messages]
    answer: Answer
    usage: Usage
    trail: list[Step]
    evidence: list[Evidence]


class State(TypedDict, total=False):
    """All that a run knows; every key is written by the node named beside it."""

    # Chat history, for chat UIs and Studio (input; generate and refuse add the reply).
    messages: Annotated[list[AnyMessage], add_messages]
    # The stand-alone question (input; understand completes it from the history).
    question: str
    # Time the run began, by the context's clock (understand).
    started: float
    # What is known of the question: kind, language, entities, parts (understand).
    query: Understanding
    # How the question was sent on: straight to its search, or to the planner (understand).
    path: Path
    # The question as it is put to memory, and what its agent knows (understand, stop_condition,
    # choose_action, the tools of memory, final_answer); None where memory is not asked.
    recall: RecallState | None
    # What is said to a turn that asks nothing, "" where it asks (understand).
    reply: str
    # The sub-questions with their tools (understand for a plain question, plan).
    plan: Plan
    # What the plan compiles to (understand for a plain question, plan); stop_condition extends it.
    operations: list[AnyOperation]
    # Registers that the operations in work write (understand, plan); stop_condition keeps the weak.
    wave: list[str]
    # The one operation of a node that runs beside others; never stored, see routes.sent.
    operation: AnyOperation
    # What operations have written, by register (retrieve, grade_documents, extract,
    # compose_query, merge_hits; stop_condition undoes values). What runs side by side writes apart.
    registers: Annotated[dict[str, Register], operator.or_]
    # Registers of the operations that are over (stop_condition).
    done: list[str]
    # The filled queries that each question's answer rests on (grade_documents).
    chosen: dict[str, list[FilledQuery]]
    # Calls of accepted rewrites by the register of their search (rewrite).
    rewritten: dict[str, list[Call]]
    # Everything found, merged by chunk id (retrieve, grade_documents).
    evidence: Annotated[list[Evidence], merge_evidence]
    # Times that values of a slot were undone, and that the plan was extended (stop_condition).
    backtracks: int
    replans: int
    # Share of its words that a question's evidence covered when its plan was extended, by
    # question (stop_condition).
    covered: dict[str, float]
    # Times the answer was written (generate).
    drafts: int
    # Claims that verification threw out (verify).
    unsupported: list[str]
    # What the run has spent (every node).
    usage: Annotated[Usage, Usage.plus]
    # One step per decision and per tool call (every node).
    trail: Annotated[list[Step], operator.add]
    # Things a reader of the answer should know (retrieve, stop_condition, verify).
    warnings: Annotated[list[str], operator.add]
    # What the stop condition decided, or a reply means, read by their routes (stop_condition,
    # clarify).
    outcome: Outcome
    # Why the search ended (stop_condition, verify).
    stop_reason: StopReason
    # What to ask back before going on (understand, stop_condition), None once there is a reply.
    clarification: Clarification | None
    # Times that the question was asked back (clarify).
    clarified: int
    # The answer before it is verified (generate).
    draft: Draft | None
    # The verified answer or the refusal (verify, refuse).
    answer: Answer


Update = dict[str, Any]
Graph = CompiledStateGraph[State, Any, InputState, OutputState]
