"""Write an answer from whole sentences of the evidence, each cited to its characters."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import Settings
from core.types import Citation, Claim, Draft, Evidence, Plan, SubQuestion, Understanding
from reasoning.rules.completing import completing
from reasoning.rules.plan import wants_value
from reasoning.rules.relevance import Relevance, evidence_languages
from reasoning.rules.sentences import RECORD_LABEL, Sentence, heading_fit, subject_fit
from reasoning.rules.wanted import Wanted

KIND_BONUS = 0.12
LANGUAGE_BONUS = 0.15
GRADE_BONUS = 0.05
HEADING_BONUS = 0.15
# A sentence about another thing of the same kind; worse when the question calls it by name.
SUBJECT_PENALTY, NAMED_PENALTY = 0.2, 0.4
QUESTION_PENALTY = 0.25
FRAGMENT_PENALTY = 0.15
FRAGMENT_CHARACTERS = 12
SENTENCE_MARKS = (".", "!", "…", "。", "！", ":", "：", ";", "；")
CLOSING = "\"'”’»)]）】」』*_`"
SECOND_SHARE = 0.8
SAME_SHARE = 0.7
ITEM_SHARE = 0.75
VECTOR_SCORE = "vector"


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
) -> list[tuple[float, Sentence]]:
    """Return the sentences of graded evidence by how well they answer, best first."""
    wanted = relevance.wanted(question, evidence_languages(evidence))
    scored = [
        (_worth(sentence, wanted, question), sentence)
        for sentence in relevance.sentences(wanted, evidence)
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].evidence.chunk_id, pair[1].start))


def _worth(sentence: Sentence, wanted: Wanted, question: SubQuestion) -> float:
    worth = sentence.score
    text = sentence.text
    valued = wants_value(wanted.wants)
    if valued:
        worth += KIND_BONUS if sentence.has_kind else -KIND_BONUS
    if sentence.evidence.language == wanted.language:
        worth += LANGUAGE_BONUS
    penalty = NAMED_PENALTY if wanted.entity_terms else SUBJECT_PENALTY
    worth -= penalty * (1 - subject_fit(wanted, sentence))
    worth += HEADING_BONUS * heading_fit(wanted, sentence.evidence)
    worth += GRADE_BONUS * sentence.evidence.grades.get(question.id, 0)
    if text.rstrip().endswith(("?", "？")):
        worth -= QUESTION_PENALTY
    if not is_sentence(text) and not (valued and sentence.has_kind and RECORD_LABEL.match(text)):
        worth -= FRAGMENT_PENALTY
    return worth


def is_sentence(text: str) -> bool:
    """Tell whether a text reads as a sentence, and not as a heading, a label or a table row."""
    stripped = text.rstrip().rstrip(CLOSING)
    return len(stripped) >= FRAGMENT_CHARACTERS and stripped.endswith(SENTENCE_MARKS)


def _sentences(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
    said: set[tuple[str, int]],
) -> list[Claim]:
    """Return the best sentences; one already said is said again only when nothing else answers."""
    wanted = relevance.wanted(question, evidence_languages(evidence))
    ranked = ranked_sentences(question, evidence, relevance)
    new = [pair for pair in ranked if (pair[1].evidence.chunk_id, pair[1].start) not in said]
    if ranked and (not new or new[0][0] < SECOND_SHARE * ranked[0][0]):
        new = ranked
    chosen = [sentence for _, sentence in new[:1]]
    while chosen and len(chosen) < settings.claims_per_question:
        following = completing(chosen, new, wanted) or _alike(chosen, new, wanted)
        if following is None:
            break
        chosen.append(following)
    return [_claim(sentence, question) for sentence in chosen]


def _alike(
    chosen: Sequence[Sentence], ranked: Sequence[tuple[float, Sentence]], wanted: Wanted
) -> Sentence | None:
    """Return the next sentence nearly as good as the first, and not about another thing."""
    least, subject = SECOND_SHARE * ranked[0][0], subject_fit(wanted, chosen[0])
    for worth, sentence in ranked:
        if worth < least:
            return None
        if _adds(sentence, chosen) and subject_fit(wanted, sentence) >= subject:
            return sentence
    return None


def _adds(sentence: Sentence, chosen: Sequence[Sentence]) -> bool:
    """Tell whether a sentence covers words of the question that the chosen ones do not."""
    covered = frozenset().union(*(other.matched for other in chosen))
    if not sentence.matched - covered:
        return False
    return all(_overlap(sentence.text, other.text) < SAME_SHARE for other in chosen)


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
    sentences: dict[str, tuple[float, Sentence]] = {}
    for worth, sentence in ranked_sentences(question, evidence, relevance):
        sentences.setdefault(sentence.evidence.document_key, (worth, sentence))
    passages: dict[str, float] = {}
    for item in evidence:
        meaning = max(0.0, item.scores.get(VECTOR_SCORE, 0.0))
        passages[item.document_key] = max(meaning, passages.get(item.document_key, 0.0))
    ranked = sorted(
        ((worth + passages[key], sentence) for key, (worth, sentence) in sentences.items()),
        key=lambda pair: (-pair[0], pair[1].evidence.chunk_id),
    )
    kept = [sentence for worth, sentence in ranked if worth >= ITEM_SHARE * ranked[0][0]]
    return [_claim(sentence, question) for sentence in kept[: settings.list_items]]


def _claim(sentence: Sentence, question: SubQuestion) -> Claim:
    item = sentence.evidence
    citation = Citation(
        evidence_id=item.evidence_id,
        document_id=item.document_id,
        source=item.source,
        chunk_id=item.chunk_id,
        start=sentence.start,
        end=sentence.end,
        quote=sentence.text,
    )
    return Claim(
        text=" ".join(sentence.text.split()), citations=[citation], question_id=question.id
    )
