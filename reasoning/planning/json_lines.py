"""JSON whose objects know the line they begin on, so that an error can name it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from core.errors import CallerError

FILE_DEPTH = 16  # how deep lists and objects of a plan file may be nested

MOST_DIGITS = 18
# A string that never ends is taken to the end of the text, so that no text is scanned twice.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|(?P<begins>[\[{])|(?P<ends>[\]}])|(?P<constant>-?(?:NaN|Infinity))'
    r"|(?P<real>-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))|(?P<whole>-?\d+)",
    re.DOTALL,
)


class Located(dict[str, Any]):
    """Hold a JSON object and its line, counted from 1."""

    line: int = 1


class LineError(CallerError):
    """Report what is wrong on one line of a file."""

    def __init__(self, line: int, rule: str, hint: str = "") -> None:
        """Begin with the line."""
        super().__init__(f"line {line}: {rule}", hint=hint)
        self.line = line


def read_json(text: str, depth: int) -> Any:  # noqa: ANN401 - whatever the text holds
    """Parse JSON nested at most `depth` deep; objects are Located. Raises LineError."""
    lines = iter(_lines_of_objects(text, depth))

    def located(pairs: list[tuple[str, Any]]) -> Located:
        found = Located()
        found.line = next(lines)
        for name, value in pairs:
            if name in found:
                rule = f"the key {json.dumps(name[:64])} stands twice in one object"
                raise LineError(found.line, rule)
            found[name] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=located)
    except json.JSONDecodeError as error:
        rule = f"this is no JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
        raise LineError(error.lineno, rule) from None


def _lines_of_objects(text: str, depth: int) -> list[int]:
    """Return the lines on which objects begin, in the order in which they end.

    Raises LineError where the text is nested too deep or a number is none that can be kept.
    """
    line, counted = 1, 0
    begun: list[int] = []
    ended: list[int] = []
    for token in _TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        kind, said, counted = token.lastgroup, token.group(), token.start()
        if kind == "begins":
            begun.append(line)
            if len(begun) > depth:
                rule = f"lists and objects are nested at most {depth} deep"
                raise LineError(line, rule)
        elif kind == "ends" and begun:
            start = begun.pop()
            ended += [start] if said == "}" else []
        elif kind == "constant":
            raise LineError(line, f"{said} is no number of JSON")
        elif kind == "whole" and len(said) > MOST_DIGITS:
            raise LineError(line, f"a number has at most {MOST_DIGITS} digits, not {len(said)}")
        elif kind == "real" and math.isinf(float(said)):
            raise LineError(line, "a number is finite")
    return ended
