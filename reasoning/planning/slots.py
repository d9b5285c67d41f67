"""Slots in a text: `{name}` stands for a value; `{{` and `}}` stand for braces."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.types import Plan

SLOT_NAME = re.compile(r"[^\W\d]\w{0,63}")
_PIECE = re.compile(r"\{\{|\}\}|\{([^\W\d]\w{0,63})\}")


def slots_in(text: str) -> list[str]:
    """Return the names of the slots a text uses, each once, in order."""
    return list(dict.fromkeys(name for name in _PIECE.findall(text) if name))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of slots; a value is never read for slots itself.

    A slot without a value stays as it is written.
    """

    def put(piece: re.Match[str]) -> str:
        name = piece[1]
        if name is None:
            return piece[0][0]
        return values.get(name, piece[0])

    return _PIECE.sub(put, text)


def escaped(text: str) -> str:
    """Return the text such that `filled` gives it back and no slot is seen in it."""
    return text.replace("{", "{{").replace("}", "}}")


def literal(plan: Plan) -> Plan:
    """Return a plan without slots whose braces, typed by the person who asked, are only braces."""
    questions = [
        question.model_copy(
            update={"text": escaped(question.text), "query": escaped(question.query)}
        )
        for question in plan.questions
    ]
    return Plan(questions=questions)
