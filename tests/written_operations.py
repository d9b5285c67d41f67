"""Operations as tests write them: one a line, as a trace shows them."""

from __future__ import annotations

import ast
from typing import Any

from core.operations import TEXTS, AnyOperation, Reference, operation_adapter


def parse(text: str) -> list[AnyOperation]:
    """Read the lines of a text as Python reads them; a bare name is a register."""
    return [_operation(line) for line in text.split("\n") if line.strip()]


def _operation(line: str) -> AnyOperation:
    (made,) = ast.parse(line.strip()).body
    assert isinstance(made, ast.Assign) and isinstance(made.value, ast.Call)
    (out,), called = made.targets, made.value.func
    assert isinstance(out, ast.Name) and isinstance(called, ast.Name)
    values: dict[str, Any] = {word.arg or "": _value(word.value) for word in made.value.keywords}
    for field in TEXTS & values.keys():
        values[field] = _value(_given(made.value, field), refers=True)
    return operation_adapter.validate_python({"op": called.id, "out": out.id, **values})


def _given(call: ast.Call, field: str) -> ast.expr:
    return next(word.value for word in call.keywords if word.arg == field)


def _value(node: ast.expr, *, refers: bool = False) -> Any:  # noqa: ANN401 - of any field
    if isinstance(node, ast.Name):
        return Reference(ref=node.id) if refers else node.id
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_value(k): _value(v) for k, v in zip(node.keys, node.values, strict=True) if k}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # JSON escapes a character beyond U+FFFF as two halves.
        return node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    return ast.literal_eval(node)
