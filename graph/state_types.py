"""What a stored state may hold: a checkpoint can name no other type."""

from __future__ import annotations

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from core.budget import Usage
from core.operations import OPERATIONS
from core.registers import FilledQuery, Register
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

STATE_TYPES: tuple[type, ...] = (
    *(Answer, Draft, Evidence, Plan, Step, StopReason, Understanding, Usage),
    *(Call, Clarification, FilledQuery, Register),
    *list[type](OPERATIONS.values()),
)


def state_serializer() -> JsonPlusSerializer:
    """Return what writes and reads states, and makes nothing but these types of what it reads."""
    return JsonPlusSerializer(allowed_msgpack_modules=STATE_TYPES)
