"""Follow a growing JSON reply and hand on each claim as soon as it is whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from reasoning.llm.replies import clean, writable

BEGIN = re.compile(r'"claims"\s*:\s*\[')
BETWEEN = re.compile(r"[\s,]*")
_decoder = json.JSONDecoder()


class ClaimScanner:
    """Find the objects of the list "claims" in text that comes piece by piece."""

    def __init__(
        self, on_object: Callable[[dict[str, Any]], None], on_text: Callable[[str], None]
    ) -> None:
        """Call `on_object` with each whole object, `on_text` with new text of the running one."""
        self._on_object = on_object
        self._on_text = on_text
        self._buffer = ""
        self._place = -1  # where the next object begins; below 0: the list has not begun
        self._said = 0  # characters of the running claim's text that were handed on
        self.objects = 0

    @property
    def heard(self) -> bool:
        """Tell whether anything came yet."""
        return bool(self._buffer)

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self._buffer += clean(piece)
        if self._place < 0:
            begin = BEGIN.search(self._buffer)
            if begin is None:
                return
            self._place = begin.end()
        while self._next():
            pass

    def _next(self) -> bool:
        """Take one whole object; tell the text of one that is not whole yet."""
        start = BETWEEN.match(self._buffer, self._place)
        place = start.end() if start else self._place
        if self._buffer[place : place + 1] != "{":
            return False
        try:
            found, end = _decoder.raw_decode(self._buffer, place)
        except (ValueError, RecursionError):
            self._say(self._running(place))
            return False
        found = writable(found)
        self._say(found)
        self._place, self._said = end, 0
        self.objects += 1
        self._on_object(found)
        return True

    def _running(self, place: int) -> dict[str, Any]:
        try:
            found = from_json(self._buffer[place:], allow_partial="trailing-strings")
        except ValueError:
            return {}
        return writable(found) if isinstance(found, dict) else {}

    def _say(self, claim: dict[str, Any]) -> None:
        text = claim.get("text")
        if isinstance(text, str) and len(text) > self._said:
            before = " " if self._said == 0 and self.objects else ""
            self._on_text(before + text[self._said :])
            self._said = len(text)
