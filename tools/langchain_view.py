"""Every tool as a LangChain StructuredTool, bound to one verified caller."""

from __future__ import annotations

import time
from typing import Any

from langchain_core.tools import StructuredTool

from core.auth import AuthContext
from core.types import ToolSpec
from tools.toolbox import Toolbox


def structured_tools(
    toolbox: Toolbox, auth: AuthContext, *, seconds: float
) -> list[StructuredTool]:
    """Return all tools for agents and notebooks; each call has `seconds` from when it starts.

    The caller's rights are fixed here: no argument of a call can change them.
    """

    def view(spec: ToolSpec) -> StructuredTool:
        def run(**arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - checked by the tool
            result = toolbox.run(spec.name, arguments, auth, time.monotonic() + seconds)
            return [item.model_dump(exclude={"document_key"}) for item in result.evidence]

        return StructuredTool.from_function(
            func=run, name=spec.name, description=description(spec), args_schema=spec.arguments
        )

    return [view(spec) for spec in toolbox.specs(auth)]


def description(spec: ToolSpec) -> str:
    """Return what a model reads: the purpose and the counter-examples."""
    if not spec.not_for:
        return spec.purpose
    return f"{spec.purpose} Not for: {'; '.join(spec.not_for)}."
