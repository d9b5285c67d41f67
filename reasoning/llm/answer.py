"""Answer one sub-question: claims, cited to characters as soon as each is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from core.language.cues import cues
from core.ledger import current_ledger
from core.types import Citation, Claim, Evidence, SubQuestion
from models.chat.types import ChatReply, ChatRequest
from models.embeddings import Embedder
from reasoning.llm.citing import cite
from reasoning.llm.claims import ClaimScanner
from reasoning.llm.data import answer_style, as_data, evidence_data
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.replies import Reply, Unfit, checked, loaded, other_language
from reasoning.llm.schemas import Schema, items, number, record, text
from reasoning.rules.context import in_context, keeps_lines
from reasoning.rules.grade import CHECKED_KINDS
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values import NUMBER, forms, has_kind, without_numbers
from reasoning.rules.wanted import asked_kind

CLAIM_CHARS = 1000
MOST_SOURCES = 4
# "[2]" after a sentence is the model's own mark; Carrel sets its marks itself.
MARKS = re.compile(r"(?:\s+|(?<=[.。!?！？]))[\[【]\d+(?:\s*,\s*\d+)*[\]】](?=[\s.。!?！？]*$)")
LANGUAGE_REPAIRS = 1


class WrittenClaim(Reply):
    """Hold one claim as the model gives it."""

    text: str
    sources: list[int]


def claims_of(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    decider: Decider,
    embedder: Embedder | None,
) -> Ask[Evidence, list[Claim]]:
    """Return what to ask for the claims that answer a sub-question, from its best evidence."""
    settings = decider.settings
    listed = question.wants == "list"
    limit = settings.list_items if listed else settings.claims_per_question

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        prompt = decider.prompts.text(
            "answer",
            style=answer_style(decider.prompts, question.language),
            evidence=evidence_data(shown),
            question=as_data(f"{question.text} {question.about}".strip()),
            limit=str(limit),
        )
        return decider.request(
            prompt,
            _schema(len(shown), limit),
            settings.llm_answer_tokens,
            thinking=settings.llm_thinking,
        )

    ranked = sorted(evidence, key=lambda item: -item.grades.get(question.id, 0))
    return Ask("answer", make, ClaimReader(question, limit, embedder), ranked)


def _schema(sources: int, most: int) -> Schema:
    claim = record(text=text(), sources=items(number(1, sources), 1, min(sources, MOST_SOURCES)))
    return record(claims=items(claim, 0, most))


class ClaimReader(ReplyReader[Evidence, list[Claim]]):
    """Read claims as they are written; a reply that breaks off keeps those that were whole."""

    def __init__(self, question: SubQuestion, limit: int, embedder: Embedder | None) -> None:
        """Take at most `limit` claims for the question."""
        self._question = question
        self._limit = limit
        self._embedder = embedder
        self.begin(())

    def begin(self, items: Sequence[Evidence]) -> None:
        """Expect a new reply to a prompt that showed these pieces of evidence."""
        self._shown = items
        self._claims: list[Claim] = []
        self._wrong: list[Unfit] = []
        self._scanner = ClaimScanner(self._take, self._say)

    def hear(self, piece: str) -> None:
        """Take a piece of the reply."""
        self._scanner.feed(piece)

    def kept(self) -> list[Claim] | None:
        """Return the good claims so far, None for none."""
        return self._claims or None

    def read(self, reply: ChatReply) -> list[Claim]:
        """Return the good claims, none when the model says that nothing answers; raises Unfit."""
        if not self._scanner.heard:
            self._scanner.feed(reply.text)
        if self._claims:
            return self._claims
        if self._wrong:
            raise self._wrong[0]
        claims = loaded(reply.text).get("claims")
        if claims != []:
            raise Unfit("claims must be a list of objects with text and sources")
        return []

    def _say(self, piece: str) -> None:
        ledger = current_ledger()
        if ledger.on_text is not None and len(self._claims) < self._limit:
            ledger.on_text(piece)

    def _take(self, found: dict[str, Any]) -> None:
        if len(self._claims) >= self._limit:
            return
        try:
            claim = self._claim(checked(found, WrittenClaim))
        except Unfit as error:
            self._wrong.append(error)
            return
        if any(claim.text == other.text for other in self._claims):
            return
        self._claims.append(claim)
        ledger = current_ledger()
        if ledger.on_claim is not None:
            ledger.on_claim(claim)

    def _claim(self, written: WrittenClaim) -> Claim:
        said = MARKS.sub("", " ".join(written.text.split())).strip()
        if not any(map(str.isalnum, said)) or len(said) > CLAIM_CHARS:
            raise Unfit("the text of a claim must be one short sentence")
        known = [n for n in dict.fromkeys(written.sources) if 1 <= n <= len(self._shown)]
        if not known:
            raise Unfit(f"a claim must name its sources, 1 to {len(self._shown)}")
        if other_language(said, self._question.language):
            raise Unfit("a claim must be in the language of the question", LANGUAGE_REPAIRS)
        self._check_kind(said)
        cited = [cite(said, self._shown[n - 1], self._embedder) for n in known]
        # A source that shares nothing with a claim that another supports was named in vain.
        telling = [citation for citation, overlap in cited if overlap]
        citations = telling or [citation for citation, _ in cited]
        whole = self._complete(citations[0])
        if whole is not None:
            rest = whole.quote[citations[0].end - citations[0].start :]
            said, citations = f"{said}{rest}", [whole, *citations[1:]]
        return Claim(text=said, citations=citations, question_id=self._question.id)

    def _check_kind(self, said: str) -> None:
        """Raise Unfit for a first claim without the number, date or form of value asked for."""
        if self._claims:
            return
        words = lexicon(self._question.language)
        _, kind, form = asked_kind(self._question, words)
        if form and not forms()[form].kind:  # a model may say "at most" in its own words
            form = ""
        held = without_numbers(said, frozenset(NUMBER.findall(self._question.text)))
        if (form or kind in CHECKED_KINDS) and not has_kind(kind, held, words, form=form):
            raise Unfit(f"a claim must say the {form or kind} that is asked for")

    def _complete(self, citation: Citation) -> Citation | None:
        """Return a citation with the list or the code that its sentence announces, if it does."""
        item = next(one for one in self._shown if one.evidence_id == citation.evidence_id)
        code = cues(self._question.language).found("code", self._question.text)
        _, end = in_context(item, citation.start, citation.end, code=code)
        quote = item.text[citation.start : end]
        if end == citation.end or not keeps_lines(quote):
            return None
        return citation.model_copy(update={"end": end, "quote": quote})
