"""Answer in one call: excerpts in, plain sentences out, each cited as soon as it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.budget import current_ledger
from core.language.analysis import content_terms, terms
from core.language.cues import cues
from core.language.passages import TABLE, spans_of
from core.language.scan import estimate_tokens
from core.language.sentences import record_spans, sentence_spans
from core.types import Citation, Claim, Evidence, SubQuestion, Understanding
from models.chat.types import ChatReply, ChatRequest, Message
from models.embeddings import Embedder, serves
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.prompts import as_data, evidence_data, language_name
from reasoning.llm.replies import UNWRITABLE, other_language
from reasoning.rules.answering.blocks import in_context, keeps_lines
from reasoning.rules.answering.relevance import Sentence
from reasoning.rules.answering.wanted import asked_kind
from reasoning.rules.grade import CHECKED_KINDS
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.forms import NUMBER, forms, has_kind, without_numbers
from reasoning.verification import difference

Span = tuple[int, int]
LONGEST_RUN = 3  # sentences; chosen, not measured
LEAST_OVERLAP = 0.3  # of words, below which no run is compared; chosen, not measured


def cite(claim: str, item: Evidence, embedder: Embedder | None = None) -> tuple[Citation, float]:
    """Return the shortest run of 1 to 3 sentences that supports a claim, and its overlap 0..1.

    When none does, the run that shares most words; where no word is shared, as across languages,
    the sentence of the nearest meaning between its neighbours, else the first run.
    """
    located = record_spans if item.kind == "record" else sentence_spans
    spans = located(item.text) or [(0, len(item.text))]
    runs = _runs(claim, item, spans)
    good = (
        ((start, end), overlap)
        for (start, end), overlap in runs
        if overlap >= LEAST_OVERLAP and not difference(claim, item.text[start:end])
    )
    span, shared = next(good, None) or max(runs, key=lambda run: run[1])
    return item.cited(*(span if shared else _nearest(claim, item, spans, embedder))), shared


def _runs(claim: str, item: Evidence, spans: Sequence[Span]) -> list[tuple[Span, float]]:
    """Return all runs, each with the share of the claim's words in it.

    Short ones come first, each length in the order of the text.
    """
    wanted = set(content_terms(claim, item.language))
    found = [wanted & set(terms(item.text[start:end], item.language)) for start, end in spans]
    runs = []
    for size in range(1, min(LONGEST_RUN, len(spans)) + 1):
        for first in range(len(spans) - size + 1):
            shared = frozenset().union(*found[first : first + size])
            overlap = len(shared) / len(wanted) if wanted else 0.0
            runs.append(((spans[first][0], spans[first + size - 1][1]), overlap))
    return runs


def _nearest(
    claim: str, item: Evidence, spans: Sequence[tuple[int, int]], embedder: Embedder | None
) -> tuple[int, int]:
    place = 0
    if serves(embedder, item.language):
        texts = [item.text[start:end] for start, end in spans]
        vectors = embedder.embed_documents([claim, *texts])
        place = int((vectors[1:] @ vectors[0]).argmax())
    first = min(max(0, place - 1), max(0, len(spans) - LONGEST_RUN))
    return spans[first][0], spans[min(len(spans), first + LONGEST_RUN) - 1][1]


GAP = " … "  # between parts of a chunk


class Excerpt(NamedTuple):
    """Hold the parts of one piece of evidence that are shown, in the order of its text."""

    item: Evidence
    spans: tuple[Span, ...]

    @property
    def shown(self) -> Evidence:
        """Return the evidence with these parts alone."""
        text = GAP.join(self.item.text[start:end].strip() for start, end in self.spans)
        return self.item.model_copy(update={"text": text})

    def joined(self, other: Excerpt) -> Excerpt:
        """Return a passage that shows what either shows."""
        return Excerpt(self.item, _joined(self.item, {*self.spans, *other.spans}))


def excerpts_of(ranked: Sequence[Sentence], tokens: int) -> list[Excerpt]:
    """Return passages of at most about `tokens` tokens that hold the first of ranked sentences.

    A sentence brings what it needs and its neighbours. The first is always there, and at least a
    part of it is shown whatever its length.
    """
    shown: dict[str, tuple[Evidence, set[Span]]] = {}
    spent = 0
    for sentence in ranked:
        item = sentence.evidence
        spans = shown.get(item.chunk_id, (item, set()))[1]
        added = [one for one in _around(sentence) if one not in spans]
        cost = sum(estimate_tokens(item.text[start:end]) for start, end in added)
        if shown and spent + cost > tokens:
            own = (sentence.start, sentence.end)
            added = [own] if own in added else []
            cost = sum(estimate_tokens(item.text[start:end]) for start, end in added)
            if spent + cost > tokens:
                continue
        shown[item.chunk_id] = (item, spans | set(added))
        spent += cost
    return [Excerpt(item, _joined(item, spans)) for item, spans in shown.values()]


def _around(sentence: Sentence) -> list[Span]:
    """Return the sentences of a chunk that are shown with one."""
    item = sentence.evidence
    spans = spans_of(item.text, item.kind)
    first, last = in_context(item, sentence.start, sentence.end, code=True, items=True)
    inside = [place for place, (start, end) in enumerate(spans) if start < last and end > first]
    if not inside:  # a field of a record within its line
        return [(sentence.start, sentence.end)]
    beside = list(spans[max(0, inside[0] - 1) : inside[-1] + 2])
    return [spans[0], *beside[spans[0] == beside[0] :]] if item.kind == TABLE else beside


def _joined(item: Evidence, spans: set[Span]) -> tuple[Span, ...]:
    """Join what stands side by side."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and not item.text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif not joined or end > joined[-1][1]:
            joined.append((start, end))
    return tuple(joined)


CLAIM_CHARS = 1000  # chosen, not measured
HEARD_CHARS = 20_000  # of a reply that is read while it is written; chosen, not measured
ENDS = re.compile(r"[.!?…。！？\n\]】]")
NOT_FOUND = re.compile(r"\W*not[\s_-]*found\b", re.IGNORECASE)
NULL, FIRST_OF_NULL = "NOT FOUND", "NOT"  # as it is asked for, and its first token
_NUMBERS = r"[\[【]\s*\d+(?:\s*[,，、;]\s*\d+)*\s*[\]】]"
MARKS = re.compile(rf"\s*{_NUMBERS}")
# Marks behind the end of a sentence are put before it, so that they stay with their sentence.
BEHIND = re.compile(rf"([.!?…。！？]+)((?:\s*{_NUMBERS})+)")
OPEN_MARK = re.compile(r"[\[【][^\]】]*\Z")  # the rest of it has not been written yet
REPEATED = re.compile(r"(\b\w.{2,60}?)(?:\W+\1){2}")  # the same words three times in a row
BULLET = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")


class Written(NamedTuple):
    """Hold what a model makes of a question: claims, or that nothing answers (`not_found`).

    `null` is how likely it held that nothing does (0..1), None where the server does not tell.
    """

    claims: list[Claim]
    null: float | None = None
    not_found: bool = False


def answer_of(
    understanding: Understanding,
    questions: Sequence[SubQuestion],
    passages: Sequence[Excerpt],
    decider: Decider,
    confidence: Callable[[Claim], float | None] = lambda claim: None,
    *,
    tells: bool = True,
) -> Ask[Excerpt, Written | None]:
    """Return what to ask for the sentences that answer a whole question, from its passages.

    A sentence with a `confidence` is heard as soon as it is written, and those after it, if the
    reader `tells`: where other parts are answered otherwise, their sentences may come first.
    """
    settings, prompts = decider.settings, decider.prompts

    def make(shown: Sequence[Excerpt]) -> ChatRequest:
        asked = as_data(understanding.question)
        if len(questions) == 1 and questions[0].about:
            asked = as_data(f"{questions[0].text} {questions[0].about}")
        prompt = prompts.text(
            "answer",
            evidence=evidence_data([one.shown for one in shown]),
            question=asked,
            language=language_name(understanding.language),
        )
        static = prompts.dialogue("answer_system")
        return ChatRequest(
            (*static, Message("user", prompt)),
            min(settings.llm.answer_tokens, max(1, decider.chat.capabilities.context // 2)),
            thinking=settings.llm.thinking,
            alternatives=True,
            static=len(static),
        )

    reader = AnswerReader(understanding, questions, decider, confidence, tells=tells)
    return Ask("answer", make, reader, list(passages), repairs=0)


class AnswerReader(ReplyReader[Excerpt, Written | None]):
    """Read sentences as they are written; a reply that breaks off keeps its complete ones."""

    def __init__(
        self,
        understanding: Understanding,
        questions: Sequence[SubQuestion],
        decider: Decider,
        confidence: Callable[[Claim], float | None],
        *,
        tells: bool,
    ) -> None:
        """Take some sentences for each of these parts of a question."""
        self._understanding = understanding
        self._questions = questions
        each = decider.settings.answering.claims_per_question
        self._limit = each * max(1, len(questions))
        self._embedder = decider.embedder
        self._confidence = confidence
        self._tells = tells
        self.begin(())

    def begin(self, items: Sequence[Excerpt]) -> None:
        """Expect a new reply to a prompt that showed these passages."""
        self._shown = [passage.item for passage in items]
        self._claims: list[Claim] = []
        self._heard = ""
        self._shown_chars = 0  # characters
        self._taken = 0  # sentences
        self._sure: set[str] = set()  # parts whose sentences the rules have found, too

    def hear(self, piece: str) -> None:
        """Take a piece of the reply."""
        self._heard += piece
        if len(self._heard) > HEARD_CHARS:
            return  # no answer; it is read once more when it is whole
        if NOT_FOUND.match(self._heard) or NULL.startswith(self._heard.strip().upper()):
            return
        ledger = current_ledger()
        if ledger.on_text is not None:
            ledger.on_text(self._heard[self._shown_chars :])
        self._shown_chars = len(self._heard)
        if ENDS.search(piece):  # else no sentence has ended
            self._take(finished=False)

    def kept(self) -> Written | None:
        """Return the good sentences so far, None for none."""
        return Written(self._claims) if self._claims else None

    def read(self, reply: ChatReply) -> Written:
        """Return what a finished reply says; nothing where it says that nothing answers."""
        null = reply.alternatives.get(FIRST_OF_NULL, 0.0) if reply.alternatives else None
        self._heard = reply.text
        if NOT_FOUND.match(reply.text):
            return Written([], null, not_found=True)
        self._take(finished=reply.finish == "stop")
        return Written(self._claims, null)

    def _take(self, *, finished: bool) -> None:
        """Take the sentences that have ended: all, or those that another one has followed."""
        text = BEHIND.sub(r"\2\1", UNWRITABLE.sub(" ", self._heard))
        if not finished:
            text = OPEN_MARK.sub("", text)
        spans = sentence_spans(text)
        ended = spans if finished else spans[:-1]
        for start, end in ended[self._taken :]:
            self._taken += 1
            claim = self._claim(text[start:end])
            if claim is None or len(self._claims) == self._limit:
                continue
            sure = self._confidence(claim)
            self._claims.append(claim.model_copy(update={"confidence": sure}))
            ledger = current_ledger()
            self._sure |= {claim.question_id} if sure is not None else set()
            tells = self._tells and claim.question_id in self._sure
            if ledger.on_claim is not None and tells:
                ledger.on_claim(self._claims[-1])

    def _claim(self, sentence: str) -> Claim | None:
        """Return the claim of a sentence; None for one that says nothing or nothing asked for."""
        numbers = [int(n[:9]) for mark in MARKS.findall(sentence) for n in re.findall(r"\d+", mark)]
        text = BULLET.sub("", " ".join(MARKS.sub("", sentence).replace("**", "").split()))
        known = [self._shown[n - 1] for n in dict.fromkeys(numbers) if 1 <= n <= len(self._shown)]
        nothing = not any(map(str.isalnum, text))
        if nothing or len(text) > CLAIM_CHARS or not self._shown:  # no room for any passage
            return None
        if NOT_FOUND.match(text) or REPEATED.search(text) or self._repeats(text):
            return None
        if other_language(text, self._understanding.language) or self._lacks_kind(text):
            return None
        cited = self._cited(text, known)
        extended = self._complete(cited[0])
        if extended is not None:
            rest = extended.quote[cited[0].end - cited[0].start :]
            text, cited = f"{text}{rest}", [extended, *cited[1:]]
        return Claim(text=text, citations=cited, question_id=self._part(text, cited))

    def _repeats(self, text: str) -> bool:
        """Tell whether an earlier sentence has all words of this one."""
        language = self._understanding.language
        words = set(content_terms(text, language))
        return any(
            text == one.text or (words and words <= set(content_terms(one.text, language)))
            for one in self._claims
        )

    def _cited(self, text: str, named: Sequence[Evidence]) -> list[Citation]:
        """Return the spans of named sources that support a sentence; without one, the best of all.

        A source that shares nothing with a sentence that another supports was named in vain.
        """
        found = [cite(text, item, self._embedder) for item in named or self._shown]
        if not named:
            return [max(found, key=lambda one: one[1])[0]]
        return [one for one, overlap in found if overlap] or [one for one, _ in found]

    def _part(self, text: str, cited: Sequence[Citation]) -> str:
        """Return the part of the question that a sentence is about, the last of several alike."""
        by_id = {item.evidence_id: item for item in self._shown}
        words = set(content_terms(text, self._understanding.language))

        def fit(question: SubQuestion) -> tuple[bool, int]:
            grades = [by_id[one.evidence_id].grades.get(question.id, 0) for one in cited]
            asked = set(content_terms(question.text, question.language))
            return max(grades) > 1, len(words & asked)

        return max(reversed(self._questions), key=fit).id

    def _lacks_kind(self, text: str) -> bool:
        """Tell whether a first sentence lacks the number, date or form of value asked for."""
        if self._claims or len(self._questions) > 1:
            return False
        question = self._questions[0]
        words = lexicon(question.language)
        _, kind, form = asked_kind(question, words)
        if form and not forms()[form].kind:  # a model may say "at most" in its own words
            form = ""
        own = without_numbers(text, frozenset(NUMBER.findall(question.text)))
        checked = bool(form) or kind in CHECKED_KINDS
        return checked and not has_kind(kind, own, words, form=form)

    def _complete(self, citation: Citation) -> Citation | None:
        """Return a citation with the list or the code that its sentence announces, if it does."""
        item = next(one for one in self._shown if one.evidence_id == citation.evidence_id)
        code = cues(self._understanding.language).found("code", self._understanding.question)
        _, end = in_context(item, citation.start, citation.end, code=code)
        quote = item.text[citation.start : end]
        if end == citation.end or not keeps_lines(quote):
            return None
        return citation.model_copy(update={"end": end, "quote": quote})
