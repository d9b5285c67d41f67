"""What a question must be before anything is loaded or opened for it."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import CallerError
from core.settings import Settings


def replace_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON can name and no file takes, by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def checked_question(question: str, settings: Settings) -> str:
    """Return the question without surrounding space, or say what is wrong with it."""
    text = replace_surrogates(question).strip().replace("\x00", "")
    if not any(character.isalnum() for character in text):
        raise CallerError(
            "a question needs at least one word",
            value=question,
            hint="ask something about your documents",
        )
    most = settings.answering.max_question_chars
    if len(text) > most:
        raise CallerError(
            f"a question has at most {most} characters (answering.max_question_chars)",
            value=f"{len(text)} characters",
            hint="ask a shorter question, or ingest the text as a document",
        )
    return text


SEPARATOR = ","


def joined_names(collections: Iterable[str]) -> str:
    """Return names, of which some may be joined already, as one text, each once."""
    return SEPARATOR.join(names_of(SEPARATOR.join(collections)))


def names_of(collection: str) -> list[str]:
    """Return the names in one text, each once, in their order; an empty one is kept."""
    return list(dict.fromkeys(name.strip() for name in collection.split(SEPARATOR)))
