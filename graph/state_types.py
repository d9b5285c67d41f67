"""What a stored state may hold: a checkpoint can name no other type."""

from __future__ import annotations

import zlib
from typing import Any

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

MARK = "+crc32:"
STATE_TYPES: tuple[type, ...] = (
    *(Answer, Draft, Evidence, Plan, Step, StopReason, Understanding, Usage),
    *(Call, Clarification, FilledQuery, Register),
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
        kind, _, told = named.partition(MARK)
        if told != f"{_sum(kind, value):08x}":
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
