"""Operations as text, one a line: `h1 = RETRIEVE(question="q1", query="…", tools=[], top_k=10)`.

A text stands in double quotes with JSON's escapes, so whatever it says stays one string; a bare
name is a register.
"""

from __future__ import annotations

import json
import re
from typing import Any

from core.operations import TEXTS, AnyOperation, Reference

_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")


def render_operation(operation: AnyOperation) -> str:
    """Return one operation on one line."""
    given = [
        f"{field}={_shown(getattr(operation, field), field in operation.READS.keys() - TEXTS)}"
        for field in type(operation).model_fields
        if field not in ("op", "out")
    ]
    return f"{operation.out} = {operation.op}({', '.join(given)})"


def quoted(text: str) -> str:
    """Return a JSON string of visible characters; all others, of any script, are escaped."""
    shown = json.dumps(text, ensure_ascii=False)
    return _BEYOND_ASCII.sub(
        lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], shown
    )


def _shown(value: Any, bare: bool) -> str:  # noqa: ANN401 - whatever a field holds
    if isinstance(value, Reference):
        return value.ref
    if isinstance(value, str):
        return value if bare else quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_shown(item, bare) for item in value)}]"
    if isinstance(value, dict):
        items = (f"{quoted(name)}: {_shown(item, bare)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    return json.dumps(value)
