"""Earlier turns, condensed by code to what a question may be understood with."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.tokens import estimate_tokens
from core.settings import Settings
from reasoning.llm.data import as_data
from reasoning.types import Turn

QUESTION_CHARS, ANSWER_CHARS = 400, 300


def condensed(history: Sequence[Turn], settings: Settings) -> list[str]:
    """Return turns newest first, within answering.history_turns and llm.history_tokens.

    The newest keep their answers, cut; once one does not fit, older turns are questions only.
    """
    left = settings.llm.history_tokens
    lines: list[str] = []
    answers = True
    recent = (
        list(history)[-settings.answering.history_turns :]
        if settings.answering.history_turns
        else []
    )
    for turn in reversed(recent):
        question = f"Q: {_cut(turn.question, QUESTION_CHARS)}"
        full = f"{question}\nA: {_cut(turn.answer, ANSWER_CHARS)}"
        answers = answers and estimate_tokens(full) <= left
        line = full if answers and turn.answer.strip() else question
        left -= estimate_tokens(line)
        if left < 0:
            break
        lines.append(line)
    return lines


def _cut(text: str, limit: int) -> str:
    shown = " ".join(as_data(text).split())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
