"""Write an answer from whole sentences of the evidence, each cited to its characters."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Literal

from core.language.cues import cues
from core.settings import Settings
from core.types import Citation, Claim, Draft, Evidence, Plan, SubQuestion, Understanding
from reasoning.rules.completing import completing
from reasoning.rules.context import in_context, keeps_lines
from reasoning.rules.lexicon import lexicon
from reasoning.rules.relevance import VECTOR_SCORE, Relevance, evidence_languages
from reasoning.rules.sentences import Sentence
from reasoning.rules.wanted import Wanted

# A second sentence is said where the first is not sure and leaves out words of the question, and
# where its own odds reach this share: right answers .78 with one sentence, .84 so (means of four
# sets, a second one in 24 of 100 answers).
SECOND_SHARE, SURE, WHOLE = 0.4, 0.6, 0.8
SAID_SHARE = 0.3
VERDICT_WORDS = 0.75  # of the question's words, by rarity: with fewer it may speak of another thing
SAME_SHARE = 0.7
ITEM_SHARE = 0.75


def answer(
    understanding: Understanding,
    plan: Plan,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
) -> Draft:
    """Return claims for every sub-question that has evidence; name the others as missing."""
    claims: list[Claim] = []
    missing: list[str] = []
    said: set[tuple[str, int]] = set()
    for question in plan.questions:
        usable = [item for item in evidence if item.grades.get(question.id, 0) >= 2]
        if question.wants == "list":
            found = _items(question, usable, relevance, settings)
        else:
            found = _sentences(question, usable, relevance, settings, said)
        if found:
            claims += found
            said |= {(c.chunk_id, c.start) for claim in found for c in claim.citations}
        else:
            missing.append(question.text)
    return Draft(claims=claims, missing=missing)


def ranked_sentences(
    question: SubQuestion, evidence: Sequence[Evidence], relevance: Relevance
) -> list[Sentence]:
    """Return the sentences of graded evidence, the likeliest answer first."""
    wanted = relevance.wanted(question, evidence_languages(evidence))
    return relevance.sentences(wanted, evidence)


def _sentences(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
    said: set[tuple[str, int]],
) -> list[Claim]:
    """Return the likeliest sentences; one already said is said again only when nothing else is."""
    wanted = relevance.wanted(question, evidence_languages(evidence))
    ranked = [one for one in relevance.sentences(wanted, evidence) if one.is_answer]
    new = [one for one in ranked if (one.evidence.chunk_id, one.start) not in said]
    if ranked and (not new or new[0].score < SAID_SHARE * ranked[0].score):
        new = ranked
    chosen, confidence = new[:1], _confidence(new)
    while chosen and len(chosen) < settings.claims_per_question:
        following = completing(chosen, new, wanted) or _alike(chosen, new, sure=confidence >= SURE)
        if following is None:
            break
        chosen.append(following)
    claims = _claims(chosen, question, confidence)
    if chosen and wanted.wants == "yesno":
        claims[0] = claims[0].model_copy(update={"verdict": _verdict(chosen[0], wanted)})
    return claims


def _verdict(sentence: Sentence, wanted: Wanted) -> Literal["yes", "no", ""]:
    """Return what a sentence that says nearly all of a question says to it.

    Of two things compared the words alone do not tell which is which.
    """
    asked = lexicon(wanted.language)
    if sentence.lexical < VERDICT_WORDS or asked.found("comparing", wanted.text):
        return ""
    said = lexicon(sentence.evidence.language).found("negation", sentence.text)
    return "yes" if said == asked.found("negation", wanted.text) else "no"


def _confidence(ranked: Sequence[Sentence]) -> float:
    """Return the probability of the first sentence among all and "nothing answers" (logit)."""
    total = 1 + sum(exp(one.odds) for one in ranked)
    return exp(ranked[0].odds) / total if ranked else 0.0


def _alike(
    chosen: Sequence[Sentence], ranked: Sequence[Sentence], *, sure: bool
) -> Sentence | None:
    """Return the next sentence nearly as likely as the first that says something else."""
    whole = chosen[0].has_kind and chosen[0].said >= WHOLE
    if sure or whole:
        return None
    least = SECOND_SHARE * exp(ranked[0].odds)
    for sentence in ranked:
        if exp(sentence.odds) < least:
            return None
        torn = sentence.text[:1].islower()  # the end of a sentence that began elsewhere
        if (
            sentence not in chosen
            and not torn
            and all(_overlap(sentence.text, other.text) < SAME_SHARE for other in chosen)
        ):
            return sentence
    return None


def _overlap(left: str, right: str) -> float:
    first, second = set(left.casefold().split()), set(right.casefold().split())
    return len(first & second) / max(1, min(len(first), len(second)))


def _items(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
) -> list[Claim]:
    """Return one sentence of each document, best documents first.

    A document is as good as its best sentence and its best passage as a whole; one much worse than
    the best is left out, since a short list that fits beats a long one that does not.
    """
    sentences: dict[str, Sentence] = {}
    for sentence in ranked_sentences(question, evidence, relevance):
        sentences.setdefault(sentence.evidence.document_key, sentence)
    passages: dict[str, float] = {}
    for item in evidence:
        meaning = max(0.0, item.scores.get(VECTOR_SCORE, 0.0))
        passages[item.document_key] = max(meaning, passages.get(item.document_key, 0.0))
    ranked = sorted(
        ((one.score + passages[key], one) for key, one in sentences.items()),
        key=lambda pair: -pair[0],
    )
    kept = [sentence for worth, sentence in ranked if worth >= ITEM_SHARE * ranked[0][0]]
    return [_claim(one, one.start, one.end, question) for one in kept[: settings.list_items]]


def _claims(chosen: Sequence[Sentence], question: SubQuestion, confidence: float) -> list[Claim]:
    """Return the claims of sentences with what each needs; none is said within another."""
    code = cues(question.language).found("code", question.text)
    claims: list[Claim] = []
    for sentence in chosen:
        start, end = in_context(sentence, code=code)
        said = [c for claim in claims for c in claim.citations if c.chunk_id == sentence.chunk_id]
        start = max([start, *(c.end for c in said if c.start <= start < c.end)])
        if not any(c.start <= sentence.start < c.end for c in said):
            claims.append(_claim(sentence, start, end, question, confidence))
    return claims


def _claim(
    sentence: Sentence,
    start: int,
    end: int,
    question: SubQuestion,
    confidence: float | None = None,
) -> Claim:
    item = sentence.evidence
    quote = item.text[start:end]
    citation = Citation(
        evidence_id=item.evidence_id,
        document_id=item.document_id,
        source=item.source,
        chunk_id=item.chunk_id,
        start=start,
        end=end,
        quote=quote,
    )
    text = quote if keeps_lines(quote) else " ".join(quote.split())
    return Claim(text=text, citations=[citation], question_id=question.id, confidence=confidence)
