"""When to ask back, what, and what a reply means: by rules, whoever else decides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from core.errors import shorten
from core.language.analysis import analyze, content_terms
from core.language.detect import detect_language
from core.types import Clarification, Evidence
from languages.language import find_language, known_languages
from reasoning.rules.answering.summaries import asked_summary
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.topic import WORD, content_runs, entities
from reasoning.statements import only_remarks
from reasoning.types import Turn

OPTIONS = 4  # documents that a clarifying question offers at most; chosen, not measured
OPTION_CHARS = 80  # longest title that a clarifying question offers; chosen, not measured

RELATED = 1  # the grade of what is about the question but does not answer it
LONE = 1  # content words of a question that says nothing but what is asked of "it"
TAG = re.compile(r"</?[A-Za-z!][^<>]*>")


def unclear(question: str, history: Sequence[Turn]) -> Clarification | None:
    """Ask what a question is about when neither it nor an earlier one names anything.

    It names nothing when it holds no name and at most the one word that says what is asked of a
    pronoun or demonstrative ("who maintains it?"), or no word at all beside a question word. What
    all is about can always be said.
    """
    if _asks_of_all(question):
        return None
    if not _names_nothing(question) or not all(_names_nothing(turn.question) for turn in history):
        return None
    words = lexicon(detect_language(question))
    word = _reference(question, words)
    if word:
        return Clarification(question=words.message("ask_reference").format(word=word))
    return Clarification(question=words.message("ask_topic"))


def _asks_of_all(question: str) -> bool:
    return asked_summary(question, detect_language(question)) is not None


def _names_nothing(question: str) -> bool:
    words = lexicon(detect_language(question))
    later = [match.group() for match in WORD.finditer(question)][1:]
    if entities(question, words) or any(word[0].isupper() and word != "I" for word in later):
        return False  # even a common word is a name when it is written as one
    runs = " ".join(content_runs(question, words))
    left = set(content_terms(runs, words.language)) if runs else set()
    return not left or (len(left) <= LONE and bool(_reference(question, words)))


def _reference(question: str, words: Lexicon) -> str:
    """Return the first word that refers to something earlier, "" for none.

    Words are compared whole, since a Chinese one may be part of another.
    """
    known = words.any_of("reference")
    tokens = (question[token.start : token.end] for token in analyze(question, words.language))
    return next((token.lower() for token in tokens if token.casefold() in known), "")


def not_found(question: str, evidence: Sequence[Evidence]) -> Clarification | None:
    """Offer documents that are related to a question which none answers, best graded first.

    Related is what was graded so, or has a word of the question in its title. A title that only
    repeats the question is no offer; without any there is nothing to ask.
    """
    words = lexicon(detect_language(question))
    asked = set(content_terms(question))
    ranked: list[tuple[int, int, str]] = []
    for item in evidence:
        title = plain_text(item.title or item.source)
        named = set(content_terms(title))
        if named - asked and (item.best_grade >= RELATED or named & asked):
            ranked.append((-item.best_grade, -len(named & asked), title))
    ranked.sort(key=lambda one: one[:2])
    options: dict[str, str] = {}
    for _, _, title in ranked:
        options.setdefault(title.casefold(), title)
    if not options:
        return None
    text = f"{words.message('refusal')} {words.message('ask_related')}"
    offered = list(options.values())[:OPTIONS]
    return Clarification(question=text, options=offered)


def plain_text(text: str) -> str:
    """Return a text of a document as one short line without tags."""
    return shorten(TAG.sub(" ", text), OPTION_CHARS)


def chosen(reply: str, asked: Clarification) -> str:
    """Return the option that a reply names by its number, from 1, or the reply itself."""
    text = " ".join(reply.split())
    number = text.strip("#.()[] ")
    if number.isdecimal() and len(number) < 10 and 1 <= int(number) <= len(asked.options):
        return asked.options[int(number) - 1]
    return text


def is_reply(reply: str, asked: Clarification) -> bool:
    """Tell whether a text replies to a clarifying question, and asks nothing of its own."""
    language = detect_language(reply)
    if chosen(reply, asked) in asked.options:
        return True
    words = lexicon(language)
    asks = reply.rstrip().endswith(("?", "？")) or words.is_question(reply)
    talks = answer_greeting(reply, language) or only_remarks(reply)
    return not ((asks and not _names_nothing(reply)) or talks)


def answer_greeting(text: str, language: str) -> str:
    """Return what is said to who only greets, thanks or leaves, "" to any other."""
    own = [language] if language in known_languages() else []
    plain = text.replace("’", "'")
    for name in (*own, *known_languages()):
        found = _greetings(name, plain)
        if reply := next((one.reply for one in found[::-1] if not one.weak), ""):
            return reply
        if reply := next((one.reply for one in found if one.reply), ""):
            return reply
    return ""


class Greeting(NamedTuple):
    """Hold what is said to a greeting; "" to words that only stand beside one."""

    find: re.Pattern[str]
    reply: str
    weak: bool


def _greetings(language: str, text: str) -> list[Greeting]:
    """Return the greetings that a text is made of, none where it says anything else."""
    found: list[Greeting] = []
    start = 0
    while word := WORD.search(text, start):
        fits = [(one.find.match(text, word.start()), one) for one in _known_greetings(language)]
        ends = [(match.end(), one) for match, one in fits if match]
        if not ends:
            return []
        start, best = max(ends, key=lambda pair: pair[0])
        found.append(best)
    return found


@cache
def _known_greetings(language: str) -> list[Greeting]:
    known = find_language(language)
    bound = r"(?!\w)" if known.spaced else ""
    return [
        Greeting(
            re.compile(f"(?:{one['find']}){bound}", re.IGNORECASE),
            one.get("reply", ""),
            one.get("weak", "reply" not in one),
        )
        for one in known.messages["greetings"]
    ]


def declined(reply: str, question: str) -> bool:
    """Tell whether a reply says that nothing offered was meant, in its language or the question's.

    A reply that says more than that is an answer.
    """
    words = " ".join(WORD.findall(reply)).casefold()
    languages = {detect_language(reply), detect_language(question)}
    return any(words in lexicon(one).any_of("none_of_these") for one in languages)


def joined(question: str, reply: str, asked: Clarification) -> str:
    """Return the question that a reply completes, or the reply where it is one of its own."""
    words = lexicon(detect_language(reply))
    asks = reply.rstrip().endswith(("?", "？")) or words.is_question(reply)
    names = _asks_of_all(reply) or (asks and not _names_nothing(reply))
    if reply not in asked.options and names:
        return reply
    about = reply.rstrip(" .。")
    return (
        lexicon(detect_language(question)).message("joined").format(question=question, reply=about)
    )


def clarification_text(asked: Clarification) -> str:
    """Return a clarifying question as a reader gets it where there is nothing but text."""
    lines = [f"{number}. {option}" for number, option in enumerate(asked.options, start=1)]
    return "\n".join([asked.question, *lines])
