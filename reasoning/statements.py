"""What of a user's turn is worth a note: what they state of themselves, their group and things.

A small network tells which sentences are (`reasoning.worth`); the kinds of `notes.yaml` of a
language say what a statement is about, so that a later one supersedes it. Questions, orders to a
program and what repeats an answer are never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core.language.analysis import content_terms, terms
from core.language.changes import begins_correction, marks_change, without_changes
from core.language.detect import detect_language
from core.language.orders import gives_orders
from core.language.sentences import sentence_spans
from core.notes import DENIED, NO, WORDS, YES, NoteDraft, TurnSource
from languages.language import FALLBACK, find_language, known_languages
from reasoning.rules.lexicon import lexicon
from reasoning.worth import Worth

LEAST, MOST = 2, 400  # terms, characters of a sentence that is kept; chosen, not measured
PASTED = 20  # sentences from which a turn is a pasted text; chosen, not measured
# Log odds from which a sentence is worth a note, one of a known kind, and one that its writer asks
# to remember (`benchmarks/memory_talks.py`).
WORTHY, KNOWN, WANTED = 0.5, -1.5, -0.5
SHORT = 40  # characters of a sentence whose language is not surely known; chosen, not measured
REPEATED = 0.8  # part of a sentence's content words that an answer has; chosen, not measured
IMPORTANCE = {True: 0.7, False: 0.5}  # of what has a subject; chosen, not measured
QUESTION = re.compile(r"[?？][\W_]*$")
ENDED = re.compile(r"[.!…。！][\W_]*$")
# Capitals, codes, quotes.
NAMED = re.compile(r"\w\W+[^\W\d_a-zа-яёіїєґ\u3400-\u9fff]|[\d_]|[\"`«“《]")
DIGIT = re.compile(r"\d")
PART = re.compile(r"(?<!\?P)<([A-Z]+)>")


class StatementKind(NamedTuple):
    """Hold one kind of statement: what it is about, and whether a later one replaces it."""

    tag: str
    find: re.Pattern[str]
    subject: str
    value: str
    replaces: bool


class Statement(NamedTuple):
    """Hold what one statement is about, as a `NoteDraft` has it."""

    tag: str
    subject: str = ""
    value: str = ""
    replaces: bool = False


class StatementWords:
    """Hold the patterns of one language, which `notes.yaml` of its folder describes."""

    def __init__(self, language: str) -> None:
        """Read and compile them."""
        self.language = language
        raw = find_language(language).read("notes")
        self._parts: dict[str, str] = raw["parts"]
        self.speaker, self.dated = self._compiled(raw["speaker"]), self._compiled(raw["dated"])
        self.lead, self.wanted = self._compiled(raw["lead"]), self._compiled(raw["wanted"])
        self.seeks, self.needs = self._joined(raw["seeks"]), self._compiled(raw["needs"])
        spaced = find_language(language).spaced
        self._says = self._compiled(r"<I>(?:'\w+)? \w" if spaced else r"^<AGAIN><I>\w")
        self.keeping = self._compiled(raw["keeping"])
        self.forgetting = self._compiled(raw["forgetting"])
        self.denied, self.hedged = self._compiled(raw["denied"]), self._compiled(raw["hedged"])
        self.others, self.asks = self._compiled(raw["others"]), self._compiled(raw["asks"])
        self.splits, self.breaks = self._compiled(raw["splits"]), self._compiled(raw["breaks"])
        self.whole, self.refuted = self._compiled(raw["whole"]), self._compiled("<REFUTED>")
        self._remarks = {term for one in raw["remarks"] for term in terms(one, language)}
        self.kinds = [self._kind(one) for one in raw["kinds"]]
        self._single = [one.split() for one in raw["single"]]

    def _joined(self, patterns: Sequence[str]) -> re.Pattern[str]:
        return self._compiled("|".join(f"(?:{one})" for one in patterns))

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        """Compile a pattern in which <NAME> stands for one of the file's parts."""
        while PART.search(pattern):
            pattern = PART.sub(lambda match: self._parts[match[1]], pattern)
        return re.compile(pattern, re.IGNORECASE)

    def _kind(self, raw: dict[str, Any]) -> StatementKind:
        given = {name: raw.get(name, "") for name in ("tag", "subject", "value")}
        return StatementKind(
            **given, find=self._compiled(raw["find"]), replaces=raw.get("replaces", False)
        )

    def has_one(self, attribute: str) -> bool:
        """Tell whether one has only one of an attribute, by its last words or its first."""
        text = attribute.casefold()
        if not find_language(self.language).spaced:
            return any(text.endswith("".join(one)) for one in self._single)
        words = text.split()
        return any(one in (words[-len(one) :], words[: len(one)]) for one in self._single)

    def clauses(self, sentence: str) -> list[str]:
        """Return the parts of a sentence that each speak of the speaker."""
        lead = self.lead.match(sentence)
        stated = sentence[lead.end() :] if lead else sentence
        if self.hedged.search(stated):
            return [stated.strip()]  # what doubts one part may doubt all
        agreed = self.whole.search(stated)
        cut = agreed.start() if agreed else len(stated)
        *parts, last = self.splits.split(stated[:cut])
        return [one.strip() for one in (*parts, f"{last}{stated[cut:]}") if one.strip()]

    def affirmed(self, clause: str) -> str:
        """Return what a clause says without what denies it."""
        if find_language(self.language).spaced:
            return " ".join(self.denied.sub(" ", clause).split())
        return self.denied.sub("", clause)

    def only_remarks(self, text: str) -> bool:
        """Tell whether a text speaks of the conversation alone: "I pressed the wrong button"."""
        own = set(content_terms(text, self.language))
        return bool(own) and own <= self._remarks

    def only_says(self, sentence: str) -> bool:
        """Tell whether a sentence looks for nothing: it ends as one, or its speaker is its subject.

        One that names something may be about the documents.
        """
        asks = QUESTION.search(sentence) or lexicon(self.language).starts("question", sentence)
        if not asks and self.only_remarks(sentence):
            return True
        if any(one.search(sentence) for one in (QUESTION, self.seeks, self.needs)):
            return False
        if self._says.search(sentence):
            return True
        named = NAMED.search(sentence) and not self.hedged.search(sentence)
        return ENDED.search(sentence) is not None and not named


@lru_cache(maxsize=8)
def statement_words(language: str) -> StatementWords:
    """Return the patterns of a language, or those of the fallback."""
    known = known_languages().get(language)
    return StatementWords(language if known and known.read("notes") else FALLBACK)


def is_certain(text: str, language: str) -> bool:
    """Tell whether a text states what it says: it neither denies nor doubts it."""
    words, plain = statement_words(language), text.replace("’", "'")
    return not (words.denied.search(plain) or words.hedged.search(plain))


def is_hedged(text: str, language: str) -> bool:
    """Tell whether a text doubts or only reports what it says."""
    return statement_words(language).hedged.search(text.replace("’", "'")) is not None


def affirmed(text: str, language: str) -> str:
    """Return what a text says without what denies it."""
    return statement_words(language).affirmed(text.replace("’", "'"))


def stated_and_denied(text: str, language: str) -> tuple[str, str]:
    """Return the clauses that a text states, and those that it denies without their denial."""
    words = statement_words(language)
    plain = text.replace("’", "'")
    clauses = [plain] if words.refuted.search(plain) else words.breaks.split(plain)
    denied = [one for one in clauses if words.denied.search(one)]
    stated = [one for one in clauses if one not in denied]
    return "\n".join(stated), "\n".join(map(words.affirmed, denied))


def stated_values(text: str, language: str) -> dict[str, tuple[int, int]]:
    """Return where a text gives the value of each subject that it speaks of."""
    words, plain = statement_words(language), text.replace("’", "'")
    found: dict[str, tuple[int, int]] = {}
    for kind in words.kinds:
        match = kind.find.search(plain) if "value" in kind.find.groupindex else None
        if match is None or kind.value or match["value"] is None:
            continue
        groups = {name: _key(words, part or "") for name, part in match.groupdict().items()}
        value = words.breaks.split(match["value"], maxsplit=1)[0].rstrip()
        value = value[: next((end for _, end in sentence_spans(value)), 0)]
        if not without_changes(value, language).strip(" .!"):
            continue  # "was changed" gives no value
        found.setdefault(kind.subject.format(**groups), (match.start("value"), len(value)))
    return {name: (start, start + length) for name, (start, length) in found.items() if length}


def other_person(text: str, language: str) -> frozenset[str]:
    """Return the words of whom a text speaks where that is not its speaker."""
    words, plain = statement_words(language), text.replace("’", "'")
    found, own = words.others.search(plain), words.speaker.search(plain)
    if found is None or (own is not None and own.start() < found.start()):
        return frozenset()
    named = " ".join(filter(None, found.groups()))
    return frozenset(content_terms(named, language))


def is_question(text: str, language: str) -> bool:
    """Tell whether a text asks something."""
    words = statement_words(language)
    return _question_start(words, text.replace("’", "'")) < len(text)


def only_states(text: str, language: str) -> bool:
    """Tell whether a text of no length to be pasted states something: no order, question, doubt."""
    words = statement_words(language)
    return _stated_part(words, text) == text.replace("’", "'") and not is_hedged(text, language)


def gives_time(text: str, language: str) -> bool:
    """Tell whether a text has a date, a time or a number."""
    return bool(DIGIT.search(text) or statement_words(language).dated.search(text))


def names_day(text: str, language: str) -> bool:
    """Tell whether a text has a day or a month, whatever else has a number."""
    return statement_words(language).dated.search(text) is not None


def find_statements(
    text: str, source: TurnSource, worth: Worth, *, observed_at: str = ""
) -> list[NoteDraft]:
    """Return notes of what a turn states; `source` names it, and each note quotes its own words.

    `worth` gives the log odds that sentences are worth a note.
    """
    spans = [text[start:end].strip() for start, end in sentence_spans(text)]
    if len(spans) > PASTED:
        return []
    whole, found = detect_language(text), []
    stated = [(one, statement_words(_language(one, whole))) for one in spans]
    stated = [(one, words) for one, words in stated if _stated_part(words, one)]
    odds = worth([_worded(words, one) for one, words in stated]) if stated else []
    for (sentence, words), own in zip(stated, odds, strict=True):
        for start, end, form in _statements(words, sentence, own):
            quote = sentence[start:end]
            found.append(
                NoteDraft(
                    content=quote,
                    provenance=source.model_copy(update={"quote": quote}),
                    context=" ".join(one for one in spans if one != sentence)[:MOST],
                    tags=[form.tag],
                    language=words.language,
                    subject=form.subject,
                    value=form.value,
                    replaces=form.replaces,
                    importance=IMPORTANCE[not form.subject.startswith(WORDS)],
                    observed_at=observed_at,
                )
            )
    return found


def _language(sentence: str, whole: str) -> str:
    """Return the language of a sentence, of a short one that of the whole turn."""
    own, known = detect_language(sentence), known_languages()
    return own if own in known and (whole not in known or len(sentence) > SHORT) else whole


def _question_start(words: StatementWords, sentence: str) -> int:
    """Return where the question of a sentence begins, its end where it asks nothing."""
    wanted = words.wanted.match(sentence)  # "Remember, …" asks nothing
    asks = words.asks.search(sentence, wanted.end() if wanted else 0)
    if asks is not None and content_terms(sentence[asks.end() :], words.language):
        return 0 if words.hedged.search(sentence, 0, asks.start()) else asks.start()
    return 0 if QUESTION.search(sentence) else len(sentence)


def question_beside(text: str, statements: Sequence[str]) -> str:
    """Return what a turn asks beside its statements, "" where it asks nothing."""
    asked: list[str] = []
    whole = detect_language(text)
    for start, end in sentence_spans(text):
        sentence = text[start:end].strip()
        words = statement_words(_language(sentence, whole))
        own = [one for one in statements if one in sentence]
        if own:
            plain = sentence.replace("’", "'")
            begins = words.asks.search(plain, _question_start(words, plain))
            sentence = sentence[begins.end() :] if begins else ""
        asks = lexicon(words.language)
        leads = any(asks.starts(name, sentence) for name in ("question", "auxiliary", "telling"))
        if sentence and (own or leads or QUESTION.search(sentence)):
            asked.append(sentence)
    return " ".join(asked)


def only_remarks(text: str) -> bool:
    """Tell whether a text is small talk, such as of the conversation, and names nothing."""
    words = statement_words(detect_language(text))
    return words.only_remarks(text)


def is_remark(text: str) -> bool:
    """Tell whether a turn only says something, such as small talk, and looks for nothing."""
    whole = detect_language(text)
    spans = [text[start:end].strip() for start, end in sentence_spans(text)]
    if not spans or len(spans) > PASTED or gives_orders(text, 0, len(text)):
        return False
    for sentence in spans:
        words, plain = statement_words(_language(sentence, whole)), sentence.replace("’", "'")
        if not words.only_says(plain) or _question_start(words, plain) < len(plain):
            return False
    return True


def _stated_part(words: StatementWords, sentence: str) -> str:
    """Return a sentence up to what it asks, "" where it states nothing or gives orders."""
    plain = sentence.replace("’", "'")  # of the same length
    ordered = gives_orders(plain, 0, len(plain)) or words.forgetting.search(plain)
    if ordered or len(plain) > MOST:
        return ""
    plain = plain[: _question_start(words, plain)]
    return plain if len(terms(plain, words.language)) >= LEAST else ""


def _worded(words: StatementWords, sentence: str) -> str:
    """Return what a sentence states without what asks to remember it."""
    plain = _stated_part(words, sentence)
    wanted = words.wanted.match(plain)
    return plain[wanted.end() :] if wanted else plain


def _statements(
    words: StatementWords, sentence: str, odds: float
) -> Iterator[tuple[int, int, Statement]]:
    """Yield the span and the form of each statement of a sentence that is worth keeping."""
    plain = _stated_part(words, sentence)
    wanted, lead = words.wanted.match(plain), words.lead.match(plain)
    before = lead[0] if lead else ""
    refutes, language = words.refuted.search(before), words.language
    corrects = marks_change(before, language) or begins_correction(before, language)
    shift = wanted.end() if wanted else 0
    clauses = words.clauses(plain[shift:])
    if sum(_is_known(_form(words, one)) for one in clauses) < len(clauses):
        clauses = [plain[shift or len(before) :].strip()]  # it is no row of statements
    for clause in clauses:
        start = plain.index(clause)
        end = start + len(clause)
        first = start == len(before)
        start = 0 if first and (corrects or refutes) else start
        stated = plain[:end] if refutes and first else clause
        form = _form(words, stated)
        known, doubted = form is not None, words.hedged.search(clause) is not None
        if form is None and not wanted and doubted:
            continue
        if odds > (KNOWN if known else WANTED if wanted else WORTHY):
            form = _compared(words, stated, form or Statement("fact"))
            yield start, end, form._replace(replaces=form.replaces or (corrects and not start))


def _is_known(form: Statement | None) -> bool:
    return form is not None and bool(form.subject)


def _form(words: StatementWords, clause: str) -> Statement | None:
    """Return what a clause says, a denial as that of what it denies."""
    if words.hedged.search(clause):
        form = _first(words, clause)
        return form and Statement(form.tag)
    plain = words.affirmed(clause)
    if plain == clause:
        return _first(words, clause)
    form, denied = _first(words, clause), _first(words, plain)
    if form and form.subject and not words.denied.search(words.breaks.split(clause, maxsplit=1)[0]):
        return form  # "in Oslo, not in Rome" denies another value
    if denied is None or (form is not None and form.value == NO):
        return form
    if not denied.subject:
        return denied  # compared by the words of what it denies
    value = NO if denied.value == YES else f"{DENIED}{denied.value}"
    return denied._replace(value=value)


def _first(words: StatementWords, clause: str) -> Statement | None:
    return next(filter(None, (_read(words, kind, clause) for kind in words.kinds)), None)


def _compared(words: StatementWords, clause: str, form: Statement) -> Statement:
    """Return a statement of no subject with its words for one, and the numbers it gives.

    Where it gives none its value is whether it denies the words.
    """
    denies, plain = words.denied.search(clause) is not None, words.affirmed(clause)
    own = content_terms(without_changes(plain, words.language) if denies else plain, words.language)
    if form.subject or not own:
        return form
    given = [one for one in own if DIGIT.search(one)]
    subject = f"{WORDS}{form.tag}|{' '.join(one for one in own if one not in given)}"
    value = f"{DENIED * denies}{' '.join(given)}" if given else NO if denies else YES
    return form._replace(subject=subject, value=value, replaces=True)


def _read(words: StatementWords, kind: StatementKind, clause: str) -> Statement | None:
    """Return what a clause says as a statement of a kind, None where it is not of that form.

    Values of an attribute that one may have several of are compared where they are dates, numbers
    or names.
    """
    match = kind.find.search(clause)
    if match is None:
        return None
    texts = {name: text or "" for name, text in match.groupdict().items()}
    groups = {name: _key(words, text) for name, text in texts.items()}
    subject, value = kind.subject.format(**groups), kind.value or groups.get("value", "")
    if "attribute" not in texts:
        return Statement(kind.tag, subject, value, kind.replaces)
    replaces = words.has_one(texts["attribute"])
    comparable = replaces or DIGIT.search(texts["value"]) or texts["value"][:1].isupper()
    if texts.get("verb") or not comparable:
        return Statement(kind.tag)
    return Statement(kind.tag, subject, value, replaces)


def _key(words: StatementWords, text: str) -> str:
    """Return a group of a match by its words, as far as its clause goes."""
    return " ".join(terms(words.breaks.split(text, maxsplit=1)[0], words.language))


def repeats_answer(draft: NoteDraft, answers: Sequence[str]) -> bool:
    """Tell whether an answer says most of the words of a statement that denies nothing."""
    own = set(content_terms(draft.content, draft.language))
    if not own or not is_certain(draft.content, draft.language):
        return False
    return any(len(own & set(terms(one, draft.language))) >= REPEATED * len(own) for one in answers)


def asks_to_keep(text: str) -> bool:
    """Tell whether a turn asks to remember the answer before it, and says nothing else."""
    return statement_words(detect_language(text)).keeping.fullmatch(text.strip()) is not None


def asks_to_forget(text: str) -> bool:
    """Tell whether a turn asks to forget something that was stated."""
    language = detect_language(text)
    words = statement_words(language)
    found = words.forgetting.search(text.strip().replace("’", "'")) is not None
    return found and not is_question(text, language)
