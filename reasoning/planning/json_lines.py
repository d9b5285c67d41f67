"""JSON whose objects know the line they begin on, so that an error can name it."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import decoder, scanner
from typing import Any

from core.errors import CallerError

MOST_DIGITS = 18


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
    try:
        return _Decoder(text, depth).decode(text)
    except json.JSONDecodeError as error:
        rule = f"this is no JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
        raise LineError(error.lineno, rule) from None
    except ValueError as error:  # a number that stands alone
        raise LineError(1, str(error)) from None


class _Decoder(json.JSONDecoder):
    """Decode with the scanner written in Python, whose parts can be replaced."""

    def __init__(self, text: str, depth: int) -> None:
        super().__init__(
            object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_constant
        )
        self._text = text
        self._most = depth
        self._depth = 0
        self._line, self._counted = 1, 0
        self.parse_object = self._located(decoder.JSONObject)  # type: ignore[attr-defined]
        self.parse_array = self._located(decoder.JSONArray)  # type: ignore[attr-defined]
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _line_at(self, place: int) -> int:
        """Return the line of a place; places come in ascending order."""
        self._line += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._line

    def _located(self, parse: Callable[..., tuple[Any, int]]) -> Callable[..., tuple[Any, int]]:
        def located(s_and_end: tuple[str, int], *rest: Any) -> tuple[Any, int]:  # noqa: ANN401
            line = self._line_at(s_and_end[1])
            self._depth += 1
            if self._depth > self._most:
                rule = f"lists and objects are nested at most {self._most} deep (plan_file_depth)"
                raise LineError(line, rule)
            try:
                found, end = parse(s_and_end, *rest)
            except (json.JSONDecodeError, LineError):
                raise
            except ValueError as error:
                raise LineError(line, str(error)) from None
            self._depth -= 1
            if isinstance(found, Located):
                found.line = line
            return found, end

        return located


def _object(pairs: list[tuple[str, Any]]) -> Located:
    found = Located()
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {json.dumps(name[:64])} stands twice in one object")
        found[name] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has at most {MOST_DIGITS} digits, not {len(digits)}")
    return int(digits)


def _real(digits: str) -> float:
    found = float(digits)
    if found in (float("inf"), float("-inf")):
        raise ValueError("a number is finite")
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
