"""What nodes read from the state: the operation in work, its questions, what they found."""

from __future__ import annotations

from collections.abc import Sequence

from core.operations import ENTITY, AnyOperation, FilledQuery, MapRetrieve, Register, Retrieve
from core.recall import NOTE, RecallState
from core.types import Evidence, Finding, Plan, SubQuestion
from graph.state import State
from reasoning.planning.compiler import SEARCHES, operation_named
from reasoning.planning.slots import (
    asks_each,
    bound,
    bound_plan,
    branch_id,
    filled,
    plain_query,
    uses,
)

Search = Retrieve | MapRetrieve
ENOUGH_GRADE = 2
# The mark of a message that replies to a clarifying question: the question that it completes.
STANDS_FOR = "stands_for"
# The mark of a reply to a turn that asks nothing, which no later question goes on from.
NOTED = "noted"


def operation_of(state: State) -> AnyOperation:
    """Return the operation that a node carries out: the one sent to it, or the wave's only one."""
    sent = state.get("operation")
    return sent if sent is not None else wave_of(state)[0]


def wave_of(state: State) -> list[AnyOperation]:
    """Return the operations in work."""
    return [operation_named(state["operations"], out) for out in state["wave"]]


def searches_of(state: State) -> list[Search]:
    """Return the searches among the operations in work."""
    return [one for one in wave_of(state) if isinstance(one, SEARCHES)]


def register(state: State, out: str) -> Register | None:
    """Return what an operation has written, None when it has not run."""
    return (state.get("registers") or {}).get(out)


def queries_of(state: State, operation: Search) -> list[FilledQuery]:
    """Return what a search asks, one query for each value or entity; empty when none is known."""
    question = state["plan"].question(operation.question)
    chosen = (state.get("chosen") or {}).get(question.id)
    if isinstance(operation, MapRetrieve):
        known = register(state, operation.entities)
        named = known.entities[: operation.fan_out] if known else []
        asked = chosen[0] if chosen else plain_query(question)
        return [
            asked.model_copy(update={"query": filled(operation.template, {ENTITY: name})})
            for name in named
        ]
    if isinstance(operation.query, str):
        return [plain_query(question).model_copy(update={"query": operation.query})]
    stored = register(state, operation.query.ref)
    return stored.queries if stored else []


def branches_of(state: State, operation: Search) -> list[SubQuestion]:
    """Return the questions that a search's evidence is judged by, one for each query.

    Those of a question that is asked of every value have ids of their own. A hop completes what
    answers already, so its evidence is judged by what the hop looks for; where nothing answers
    yet, by the whole question.
    """
    question = state["plan"].question(operation.question)
    queries = queries_of(state, operation)
    if isinstance(operation, MapRetrieve):
        completes = best_grade(state, question.id) >= ENOUGH_GRADE
        name = answer_ids(state, question.id)[0]
        return [
            bound(question, query.model_copy(update={"text": query.query}), name)
            if completes
            else bound(question, query, name)
            for query in queries
        ]
    each = asks_each(state["plan"], question)
    return [
        bound(question, query, branch_id(question.id, place) if each else "")
        for place, query in enumerate(queries)
    ]


def asked_plan(state: State) -> Plan:
    """Return the plan with the values that its answers rest on."""
    return bound_plan(state["plan"], state.get("chosen") or {})


def answer_ids(state: State, question_id: str) -> list[str]:
    """Return the ids under which the evidence of a question is graded."""
    plan = state["plan"]
    ways = (state.get("chosen") or {}).get(question_id) or []
    if not ways or not asks_each(plan, plan.question(question_id)):
        return [question_id]
    return [branch_id(question_id, place) for place in range(len(ways))]


def best_grade(state: State, question_id: str) -> int:
    """Return the best grade of a question's evidence, over all values it was asked of."""
    names = answer_ids(state, question_id)
    found = state.get("evidence") or []
    return max((item.grades.get(name, 0) for item in found for name in names), default=0)


def orphans(state: State) -> set[str]:
    """Return the ids of the questions that wait for one whose answer was not found."""
    lost: set[str] = set()
    for question in state["plan"].questions:
        if any(dep in lost or best_grade(state, dep) < ENOUGH_GRADE for dep in question.deps):
            lost |= {question.id, *answer_ids(state, question.id)}
    return lost


def describe_question(state: State, question: SubQuestion) -> str:
    """Return a question as a reader sees it: with its value, or as it was asked."""
    made = {question.id, question.id.rpartition(".")[0]}
    invented = any(one.id in made and uses(one) for one in state["plan"].questions)
    return state["query"].question if invented else question.text


def collect_settled(state: State) -> dict[str, Finding]:
    """Return the values of slots that the evidence of a question downstream has confirmed."""
    values: dict[str, Finding] = {}
    for question_id, ways in (state.get("chosen") or {}).items():
        if len(ways) == 1 and best_grade(state, question_id) >= ENOUGH_GRADE:
            values |= ways[0].values
    return values


def find_evidence(state: State, chunk_ids: Sequence[str]) -> list[Evidence]:
    """Return the evidence of these chunks, in their order."""
    known = {item.chunk_id: item for item in state.get("evidence") or []}
    return [known[name] for name in chunk_ids if name in known]


def recall_of(state: State) -> RecallState:
    """Return what the memory agent knows."""
    recall = state.get("recall")
    if recall is None:
        raise TypeError("memory is not asked")
    return recall


def notes_of(state: State) -> list[Evidence]:
    """Return the notes that came back so far."""
    return [one for one in state.get("evidence") or [] if one.kind == NOTE]
