"""The memory agent's next action, as a model chooses it."""

from __future__ import annotations

from collections.abc import Sequence

from core.recall import ACTIONS, FINAL_ANSWER, READ_MEMORY, RecallState
from core.types import Call, Evidence
from models.chat.types import ChatReply, ChatRequest
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.prompts import as_data, evidence_data, one_line
from reasoning.llm.replies import Reply, Unfit, items, number, one_of, parsed, record, text
from reasoning.rules.recall import AT_ONCE, reading


class ChosenAction(Reply):
    """Hold the model's action: a search text, or the numbers of notes to read."""

    action: str
    query: str
    notes: list[int]


def action_of(
    state: RecallState, notes: Sequence[Evidence], decider: Decider
) -> Ask[Evidence, Call]:
    """Return what to ask for the next action; candidates come first, then what was read."""
    known = {one.evidence_id: one for one in notes}
    found = [known[name] for name in state.candidates if name in known][:AT_ONCE]

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        read = [str(place) for place, one in enumerate(shown, 1) if one.evidence_id in state.read]
        prompt = decider.prompts.text(
            "recall",
            notes=evidence_data(shown) or "(none was found yet)",
            read=", ".join(read) or "none",
            earlier="\n".join(f"- {_shown(call)}" for call in state.trajectory) or "- none",
            question=as_data(state.question),
        )
        places = items(number(1, max(1, len(shown))), 0, AT_ONCE)
        return decider.request(prompt, record(action=one_of(ACTIONS), query=text(), notes=places))

    def read(answer: ChatReply, shown: Sequence[Evidence]) -> Call:
        reply = parsed(answer.text, ChosenAction)
        call = _call(state, reply, shown)
        if call in state.trajectory:
            raise Unfit("this action was taken before; take another one")
        return call

    return Ask("recall", make, ReplyReader(read), found)


def _call(state: RecallState, reply: ChosenAction, shown: Sequence[Evidence]) -> Call:
    if reply.action not in ACTIONS:
        raise Unfit(f"action must be one of {', '.join(ACTIONS)}")
    if reply.action == FINAL_ANSWER:
        return Call(tool=FINAL_ANSWER)
    if reply.action == READ_MEMORY:
        names = [shown[n - 1].evidence_id for n in reply.notes if 1 <= n <= len(shown)]
        if not names:
            raise Unfit("notes must name the numbers of notes that were found")
        return reading(state, list(dict.fromkeys(names)))
    query = " ".join(reply.query.split())
    if not query:
        raise Unfit("query must hold a few words to search for")
    return Call(tool=reply.action, arguments={"query": query})


def _shown(call: Call) -> str:
    return one_line(f"{call.tool} {call.arguments.get('query', '')}")
