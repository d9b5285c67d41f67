"""Try out what a server really does: whether it keeps to a schema, whether its model thinks."""

from __future__ import annotations

import json
import secrets
from typing import Any

from models.chat.faults import LOOK
from models.chat.server_page import Page, Server
from models.chat.types import ModelTimeout, ModelUnavailable, Structured, Thinking
from models.chat.wire_formats import response_format

TRIALS = 2  # of each form
SHORT, LONG = 16, 64  # tokens of a reply
NO_ANSWER = (0, 429, 502, 503, 504)  # too slow, too busy, still loading
PLAIN = "Write one short sentence about the weather. Plain prose only: no JSON, no braces."
OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
ON: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}}


class Trials:
    """Ask a server for short replies; `finished` turns false when it was too slow for one."""

    def __init__(self, server: Server, model: str, thinking_tokens: int) -> None:
        self._server = server
        self._model = model
        self._thinking_tokens = thinking_tokens
        self.finished = True

    def thinking(self) -> tuple[Thinking, bool]:
        """Return when the model thinks, and whether the server takes the switch for it.

        Raises ModelTimeout or ModelUnavailable when not even the first reply comes: a run would
        wait in vain.
        """
        first = self._ask(SHORT)
        if first.status == 0:
            self._server.late()
        if not self.finished:
            rule = f"the model server at {self._server.url} is not ready"
            raise ModelUnavailable(rule, value=f"HTTP {first.status}", hint=LOOK)
        by_itself = self._thinks(first)
        off = self._ask(SHORT, OFF)
        if off.status != 200:
            return ("always" if by_itself else "none"), False
        if by_itself:
            return ("always" if self._thinks(off) else "switch"), True
        return ("switch" if self._thinks(self._ask(SHORT, ON)) else "none"), True

    def structured(self, thinking: Thinking, switches: bool) -> Structured:
        """Return the first form in which the server keeps to a schema against its prompt."""
        tokens = LONG + (self._thinking_tokens if thinking == "always" else 0)
        forms: tuple[Structured, ...] = ("json_schema", "json_object")
        for form in forms:
            if all(self._keeps(form, tokens, OFF if switches else {}) for _ in range(TRIALS)):
                return form
        return "none"

    def _keeps(self, form: Structured, tokens: int, switch: dict[str, Any]) -> bool:
        nonce = secrets.token_hex(4)
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": [nonce]}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        message = _message(self._ask(tokens, {**switch, **response_format(form, schema)}))
        try:
            kept: bool = json.loads(message.get("content") or "") == {"answer": nonce}
        except (TypeError, ValueError, RecursionError):
            return False
        return kept

    def _thinks(self, page: Page) -> bool:
        message = _message(page)
        thought = message.get("reasoning_content") or message.get("reasoning")
        return bool(thought) or "<think>" in str(message.get("content"))

    def _ask(self, tokens: int, extra: dict[str, Any] | None = None) -> Page:
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": PLAIN}],
            "max_tokens": tokens,
            "temperature": 0,
            "stream": False,
            **(extra or {}),
        }
        if not self.finished:
            return Page(0, None)
        try:
            page = self._server.read(f"{self._server.url}/chat/completions", body)
        except (ModelTimeout, ModelUnavailable):
            page = Page(0, None)
        self.finished = page.status not in NO_ANSWER
        return page


def _message(page: Page) -> dict[str, Any]:
    try:
        message = page.fields["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        return {}
    return message if isinstance(message, dict) else {}
