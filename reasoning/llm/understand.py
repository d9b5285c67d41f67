"""Understand a question: the model proposes, words and cosine keep it from asking another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from core.language.analysis import analyze, content_terms, terms
from core.language.detect import detect_language
from core.language.scan import estimate_tokens
from core.settings import Settings
from core.types import Intent, Part, QuestionKind, Understanding
from models.chat.types import ChatReply, ChatRequest
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.prompts import as_data
from reasoning.llm.replies import (
    Reply,
    Schema,
    Unfit,
    items,
    one_of,
    other_language,
    parsed,
    record,
    text,
)
from reasoning.question_words import kept_share
from reasoning.rules.lexicon import lexicon
from reasoning.rules.topic import entities
from reasoning.types import Turn, recent

QUESTION_CHARS, ANSWER_CHARS = 400, 300  # chosen, not measured


def condensed(history: Sequence[Turn], settings: Settings) -> list[str]:
    """Return turns newest first, within answering.history_turns and llm.history_tokens.

    The newest keep their answers, cut; once one does not fit, older turns are questions only.
    """
    left = settings.llm.history_tokens
    lines: list[str] = []
    answers = True
    for turn in reversed(recent(history, settings)):
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


WANTS = ["text", "person", "date", "number", "place", "yesno"]
# How sure a kind is that the rules agree with, and one that they contradict: models are surer of
# themselves than they are right, so their own word on it is not asked for.
AGREED, CONTRADICTED = 0.9, 0.5  # chosen, not measured
KINDS, INTENTS = ["plain", "multi"], ["fact", "recommend"]


class AskedPart(Reply):
    """Hold one part as the model gives it."""

    text: str
    wants: Literal["text", "person", "date", "number", "place", "yesno"]


class Understood(Reply):
    """Hold the model's reply."""

    standalone: str
    kind: Literal["plain", "multi"]
    intent: Intent
    parts: list[AskedPart]


def schema(most: int) -> Schema:
    """Return the JSON schema of a reply with at most `most` parts."""
    part = record(text=text(), wants=one_of(WANTS))
    return record(
        standalone=text(), kind=one_of(KINDS), intent=one_of(INTENTS), parts=items(part, 1, most)
    )


def understanding_of(
    question: str,
    history: Sequence[Turn],
    decider: Decider,
    kind_by_rules: Callable[[str], QuestionKind],
) -> Ask[str, Understanding]:
    """Return what to ask about a question and the turns before it."""

    def make(turns: Sequence[str]) -> ChatRequest:
        prompt = decider.prompts.text(
            "understand",
            history="\n".join(reversed(turns)) or "(none)",
            question=as_data(question),
            limit=str(decider.settings.answering.max_sub_questions),
        )
        return decider.request(prompt, schema(decider.settings.answering.max_sub_questions))

    def read(answer: ChatReply, turns: Sequence[str]) -> Understanding:
        reply = parsed(answer.text, Understood)
        alone = " ".join(reply.standalone.split())
        asked = [(" ".join(part.text.split()), part.wants) for part in reply.parts]
        parts = [part for part, _ in asked]
        _require_faithful(alone, parts, question, "\n".join(turns), decider)
        if len(asked) == 1 or reply.intent == "recommend":
            asked = [(alone, asked[0][1])]
        nested = len(asked) == 1 and reply.kind == "multi" and reply.intent != "recommend"
        kind: QuestionKind = "multi" if nested or len(asked) > 1 else "plain"
        seen = f"{len(asked)} {'parts' if len(asked) > 1 else 'part'}"
        language = detect_language(question)
        return Understanding(
            question=alone,
            kind=kind,
            confidence=AGREED if kind == kind_by_rules(alone) else CONTRADICTED,
            reason=f"the model sees {seen}{' with several steps' if nested else ''}",
            language=language,
            intent=reply.intent,
            entities=entities(alone, lexicon(language)),
            required_fields=[wanted for _, wanted in asked],
            parts=[Part(text=part) for part, _ in asked],
        )

    turns = condensed(history, decider.settings)
    return Ask("understand", make, ReplyReader(read), turns)


def _require_faithful(
    alone: str, parts: Sequence[str], question: str, history: str, decider: Decider
) -> None:
    """Raise Unfit unless a reply still asks what was asked; `history` is what was said before."""
    limits, language = decider.settings.answering, detect_language(question)
    typed = set(terms(question, language))
    added = set(terms(history, language)) - typed

    def require(rule: str, original: str, proposed: str) -> None:
        """Compare by words kept, or by meaning where the words that history adds are left out."""
        kept, own = kept_share(original, proposed, language), proposed
        if added:
            words = (t for t in analyze(proposed, language) if t.term not in added)
            own = " ".join(proposed[t.start : t.end] for t in words)
        decider.require_kept(rule, kept, original, own, language)

    if not alone or len(alone) > limits.max_question_chars:
        raise Unfit("standalone must hold one question")
    if other_language(alone, language) and not other_language(question, language):
        raise Unfit("standalone must be in the language of the question")
    require("standalone must keep the words of the question", question, alone)
    words = content_terms(alone, language)
    known = sum(1 for word in words if word in typed | added) / max(1, len(words))
    if known < limits.drift_similarity:
        raise Unfit("standalone may add only words of the history")
    if not 1 <= len(parts) <= limits.max_sub_questions or not all(parts):
        raise Unfit(f"parts must hold 1 to {limits.max_sub_questions} questions")
    if len(set(parts)) < len(parts):
        raise Unfit("no two parts may ask the same")
    for part in parts:
        require(f"the part '{part}' asks something else", part, alone)
    require("the parts together must ask the whole question", alone, " ".join(parts))
