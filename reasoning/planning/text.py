"""Operations as text, one a line: `h1 = RETRIEVE(question="q1", query="…", tools=[], top_k=10)`.

A text stands in double quotes with JSON's escapes, so whatever it says stays one string; a bare
name is a register. Lines that are empty are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from core.errors import CallerError, shorten
from core.operations import (
    OPERATIONS,
    TEXTS,
    AnyOperation,
    Operation,
    Reference,
    operation_adapter,
)
from reasoning.planning.schema_errors import schema_error

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,30})?([eE][-+]?\d{1,3})?")
_STRINGS = json.JSONDecoder()
_SPACE = re.compile(r"[ \t]*")
_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")


def render(operations: Sequence[AnyOperation]) -> str:
    """Return the operations as text that `parse` reads back as they were."""
    return "\n".join(render_operation(operation) for operation in operations)


def render_operation(operation: AnyOperation) -> str:
    """Return one operation on one line."""
    given = [
        f"{field}={_shown(getattr(operation, field), field in operation.READS.keys() - TEXTS)}"
        for field in type(operation).model_fields
        if field not in ("op", "out")
    ]
    return f"{operation.out} = {operation.op}({', '.join(given)})"


def parse(text: str) -> list[AnyOperation]:
    """Read operations; raises a CallerError that names the line and what is wrong with it.

    Only the form is checked here: `checked_operations` checks the list.
    """
    return [
        parse_operation(line, number)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]


def parse_operation(line: str, number: int = 1) -> AnyOperation:
    """Read one line."""
    reader = _Reader(line.strip(), number)
    out = reader.name("a register")
    reader.take("=")
    op = reader.name("an operation")
    if op not in OPERATIONS:
        raise reader.wrong(f"there is no operation {op}; operations: {', '.join(OPERATIONS)}")
    values = {"op": op, "out": out, **reader.arguments(OPERATIONS[op])}
    try:
        return operation_adapter.validate_python(values, strict=True)
    except ValidationError as error:
        raise reader.wrong(schema_error(error)) from None


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


class _Reader:
    """Read one line from left to right."""

    def __init__(self, line: str, number: int) -> None:
        self._line = line
        self._number = number
        self._place = 0

    def wrong(self, rule: str) -> CallerError:
        """Return the error that names this line."""
        return CallerError(f"line {self._number}: {rule}")

    def arguments(self, kind: type[Operation]) -> dict[str, Any]:
        """Read `(name=value, …)` to the end of the line."""
        found: dict[str, Any] = {}
        self.take("(")
        while not self._at(")"):
            if found:
                self.take(",")
            name = self.name("an argument")
            if name in found:
                raise self.wrong(f"{name} is given twice")
            self.take("=")
            found[name] = self._value(name in TEXTS and name in kind.READS)
        self.take(")")
        if self._place < len(self._line):
            raise self._expected("the end of the line")
        return found

    def name(self, what: str) -> str:
        """Read a bare name."""
        return self._matched(_NAME, what)

    def take(self, mark: str) -> None:
        """Read one mark and the blanks after it."""
        if not self._at(mark):
            raise self._expected(f"'{mark}'")
        self._move(self._place + len(mark))

    def _at(self, mark: str) -> bool:
        return self._line.startswith(mark, self._place)

    def _value(self, refers: bool) -> Any:  # noqa: ANN401 - whatever a field holds
        """Read a text, number, register, list or object; `refers` makes a register a reference."""
        if self._at('"'):
            return self._text()
        if self._at("["):
            return self._items("[", "]", self._item)
        if self._at("{"):
            return self._object()
        if _NUMBER.match(self._line, self._place):
            return json.loads(self._matched(_NUMBER, "a number"))
        name = self.name("a value")
        return Reference(ref=name) if refers else name

    def _object(self) -> dict[str, Any]:
        pairs = self._items("{", "}", self._pair)
        found = dict(pairs)
        if len(found) < len(pairs):
            raise self.wrong("a name stands twice in { }")
        return found

    def _items(self, opening: str, closing: str, one: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        self.take(opening)
        while not self._at(closing):
            if found:
                self.take(",")
            found.append(one())
        self.take(closing)
        return found

    def _pair(self) -> tuple[str, str]:
        name = self._text()
        self.take(":")
        return name, self.name("a register")

    def _item(self) -> str:
        return self._text() if self._at('"') else self.name("a text or a register")

    def _text(self) -> str:
        if not self._at('"'):
            raise self._expected("a text in double quotes")
        try:
            found, end = _STRINGS.raw_decode(self._line, self._place)
        except json.JSONDecodeError as error:
            raise self.wrong(f"{error.msg.lower()} (column {error.colno})") from None
        self._move(end)
        return str(found)

    def _matched(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self._line, self._place)
        if found is None:
            raise self._expected(what)
        self._move(found.end())
        return found[0]

    def _move(self, place: int) -> None:
        after = _SPACE.match(self._line, place)
        self._place = after.end() if after else place

    def _expected(self, what: str) -> CallerError:
        here = shorten(self._line[self._place :], 30) or "the end"
        return self.wrong(f"{what} should stand at column {self._place + 1}, not {here}")
