"""What a question must be before anything is loaded or opened for it."""

from __future__ import annotations

from core.errors import CallerError
from core.settings import Settings


def checked_question(question: str, settings: Settings) -> str:
    """Return the question without surrounding space, or say what is wrong with it."""
    text = question.encode("utf-8", "replace").decode("utf-8").strip().replace("\x00", "")
    if not any(character.isalnum() for character in text):
        raise CallerError(
            "a question needs at least one word",
            value=question,
            hint="ask something about your documents",
        )
    if len(text) > settings.max_question_chars:
        raise CallerError(
            f"a question has at most {settings.max_question_chars} characters (max_question_chars)",
            value=f"{len(text)} characters",
            hint="ask a shorter question, or ingest the text as a document",
        )
    return text
