"""What a planner knows of a tool: enough to choose it, nothing that could widen its rights."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from core.types import FieldInfo, FrozenModel, RecordTable


class ToolSpec(FrozenModel):
    """Describe one small tool.

    `base` names the general tool behind a renamed one; `purpose` is one sentence, `not_for` are
    counter-examples, `examples` are questions it serves; `arguments` is the JSON schema of its
    arguments and `fields` are the record fields it can query, as this caller may see them, `tables`
    the files of those records; `others` counts the documents beside them that are no records.
    """

    name: str
    base: str
    purpose: str
    not_for: list[str] = Field(default_factory=list)
    examples: list[str] = Field(default_factory=list)
    arguments: dict[str, Any] = Field(default_factory=dict)
    fields: list[FieldInfo] = Field(default_factory=list)
    tables: list[RecordTable] = Field(default_factory=list)
    others: int = 0
    scoped: bool = False
