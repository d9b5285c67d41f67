"""A conversation that the server keeps, for OpenAI clients that ask for one by a header."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header

from core.auth import AuthContext
from core.types import Clarification
from reasoning.clarifying import clarification_text
from serve.openai_requests import MODEL
from serve.openai_sources import escaped
from serve.types import Question

CONVERSATION_HEADER = "X-Carrel-Conversation"
NEW = "new"
Begin = Callable[[AuthContext, str], str]
ConversationHeader = Annotated[
    str | None,
    Header(
        alias=CONVERSATION_HEADER,
        pattern=r"^[0-9A-Za-z_-]{1,64}$",
        description='Id of a conversation of the caller, or "new"; the response names it. Then the'
        " last message alone is read, and the answer may be a clarifying question.",
    ),
]


def continued(question: Question, model: str, conversation: str) -> Question:
    """Return the question as the next one of a conversation, which has its own history.

    The plain model asks the conversation's collection; one that names another is refused there.
    """
    collection = "" if model == MODEL else question.collection
    return replace(
        question, collection=collection, history=(), conversation=conversation, clarify=True
    )


def told(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose answer is what it asks back, if it does, with harmless Markdown."""
    asks: Mapping[str, Any] | None = result.get("clarification")
    if asks is None:
        return result
    options = [escaped(option) for option in asks["options"]]
    text = clarification_text(Clarification(question=escaped(asks["question"]), options=options))
    return {**result, "answer": text}
