"""What of a user's turn is worth a note: statements about the speaker or their group.

A sentence is kept when it fits a kind of `notes.yaml` of its language, or speaks of the speaker
with a time, a number or a name in it. Questions, requests, thanks, orders to a program and what
repeats an answer are never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core.language.analysis import content_terms, terms
from core.language.detect import detect_language
from core.language.entities import capitalised_names
from core.language.sentences import sentence_spans
from core.notes import NoteDraft, TurnSource
from languages.language import FALLBACK, find_language, known_languages
from reasoning.rules.lexicon import orders

LEAST, MOST = 2, 400  # terms, characters of a sentence that is kept; chosen, not measured
LEAST_ANCHORED = 5  # terms of one that fits no kind; chosen, not measured
SHORT = 40  # characters of a sentence whose language is not surely known; chosen, not measured
REPEATED = 0.8  # part of a sentence's content words that an answer has; chosen, not measured
IMPORTANCE = {True: 0.7, False: 0.5}  # of what has a subject; chosen, not measured
FLAGS = re.IGNORECASE
DIGIT = re.compile(r"\d")


class Kind(NamedTuple):
    """Hold one form of statements: what it is about, and whether a later one replaces it."""

    tag: str
    find: re.Pattern[str]
    subject: str
    value: str
    replaces: bool


class StatementWords:
    """Hold the patterns of one language, which `notes.yaml` of its folder describes."""

    def __init__(self, language: str) -> None:
        """Read and compile them."""
        self.language = language
        raw = find_language(language).read("notes")
        self.question_mark = find_language(language).question_mark
        self.speaker, self.dated = _joined([raw["speaker"]]), _joined([raw["dated"]])
        self.chatter, self.wanted = _joined(raw["chatter"]), _joined(raw["wanted"])
        self.keeping = _joined([raw["keeping"]])
        self.splits, self.breaks = _joined([raw["splits"]]), _joined([raw["breaks"]])
        self.kinds = [_kind(one) for one in raw["kinds"]]
        self._single = [one.split() for one in raw["single"]]

    def has_one(self, attribute: str) -> bool:
        """Tell whether one has only one of an attribute, by its last words or its first."""
        words = attribute.casefold().split()
        return any(one in (words[-len(one) :], words[: len(one)]) for one in self._single)

    def clauses(self, sentence: str) -> list[str]:
        """Return the parts of a sentence that each speak of the speaker."""
        return [one.strip() for one in self.splits.split(sentence) if one.strip()]

    def is_anchored(self, clause: str) -> bool:
        """Tell whether a clause speaks of the speaker with a time, a number or a name in it."""
        spoken = self.speaker.search(clause) is not None
        if not spoken or len(terms(clause, self.language)) < LEAST_ANCHORED:
            return False
        names = capitalised_names(clause, self.language)
        return bool(self.dated.search(clause) or DIGIT.search(clause)) or any(names)


@lru_cache(maxsize=8)
def statement_words(language: str) -> StatementWords:
    """Return the patterns of a language, or those of the fallback."""
    known = known_languages().get(language)
    return StatementWords(language if known and known.read("notes") else FALLBACK)


def find_statements(text: str, source: TurnSource, *, observed_at: str = "") -> list[NoteDraft]:
    """Return notes of what a turn states; `source` names it, and each note quotes its own words."""
    spans = [text[start:end].strip() for start, end in sentence_spans(text)]
    whole, found = detect_language(text), []
    for sentence in spans:
        words = statement_words(_language(sentence, whole))
        context = " ".join(one for one in spans if one != sentence)[:MOST]
        for draft in _statements(words, sentence):
            quoted = source.model_copy(update={"quote": draft.content})
            more = {"provenance": quoted, "context": context, "observed_at": observed_at}
            found.append(draft.model_copy(update=more))
    return found


def _language(sentence: str, whole: str) -> str:
    """Return the language of a sentence, of a short one that of the whole turn."""
    own, known = detect_language(sentence), known_languages()
    return own if own in known and (whole not in known or len(sentence) > SHORT) else whole


def _statements(words: StatementWords, sentence: str) -> Iterator[NoteDraft]:
    """Yield a draft for each clause of a sentence that is worth keeping, without its source."""
    if sentence.endswith(("?", words.question_mark)) or orders().search(sentence):
        return
    wanted = words.wanted.match(sentence)
    for clause in [sentence[wanted.end() :]] if wanted else words.clauses(sentence):
        long = LEAST <= len(terms(clause, words.language)) and len(clause) <= MOST
        if not long or (wanted is None and words.chatter.search(clause)):
            continue
        made = next(filter(None, (_read(words, kind, clause) for kind in words.kinds)), None)
        if made is not None:
            yield made
        elif wanted is not None or words.is_anchored(clause):
            yield _draft(words, clause, "fact")


def _read(words: StatementWords, kind: Kind, clause: str) -> NoteDraft | None:
    """Return a clause as a note of a kind, None where it is not of that form."""
    match = kind.find.search(clause)
    if match is None:
        return None
    groups = {name: _key(words, text or "") for name, text in match.groupdict().items()}
    value = kind.value or groups.get("value", "")
    attribute = match.groupdict().get("attribute")
    if attribute is None:
        subject = kind.subject.format(**groups)
        return _draft(words, clause, kind.tag, subject, value, replaces=kind.replaces)
    replaces = words.has_one(attribute)
    comparable = replaces or DIGIT.search(match["value"]) or match["value"][:1].isupper()
    subject = kind.subject.format(**groups) if comparable else ""
    return _draft(words, clause, kind.tag, subject, value, replaces=replaces)


def _key(words: StatementWords, text: str) -> str:
    """Return a group of a match by its words, as far as its clause goes."""
    return " ".join(terms(words.breaks.split(text, maxsplit=1)[0], words.language))


def _draft(
    words: StatementWords,
    content: str,
    tag: str,
    subject: str = "",
    value: str = "",
    *,
    replaces: bool = False,
) -> NoteDraft:
    nowhere = TurnSource(conversation="-", run_id="-", quote=content)
    return NoteDraft(
        content=content,
        provenance=nowhere,
        tags=[tag],
        language=words.language,
        subject=subject,
        value=value,
        replaces=replaces,
        importance=IMPORTANCE[bool(subject)],
    )


def repeats_answer(draft: NoteDraft, answers: Sequence[str]) -> bool:
    """Tell whether an answer says most of the words of a statement."""
    own = set(content_terms(draft.content, draft.language))
    return any(
        len(own & set(terms(one, draft.language))) >= REPEATED * len(own) for one in answers if own
    )


def asks_to_keep(text: str) -> bool:
    """Tell whether a turn asks to remember the answer before it, and says nothing else."""
    return statement_words(detect_language(text)).keeping.fullmatch(text.strip()) is not None


def _joined(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns), FLAGS)


def _kind(raw: dict[str, Any]) -> Kind:
    return Kind(
        raw["tag"],
        re.compile(raw["find"], FLAGS),
        raw.get("subject", ""),
        raw.get("value", ""),
        raw.get("replaces", False),
    )
