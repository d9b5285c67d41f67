"""Find where documents say the same thing with another value: both are shown, none is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from core.language.passages import CODE_KIND, RECORD
from core.language.sentences import sentence_spans
from core.metadata import ROW
from core.notes import is_other
from core.recall import NOTE
from core.types import Citation, Claim, Conflict, Evidence, Plan, SubQuestion
from languages.language import is_spaced
from reasoning.claims.alignment import Alignment, align, same
from reasoning.claims.edits import contradict
from reasoning.claims.tokens import MONTH, NAME, NUMBER, UNIT, WORD, ClaimToken, claim_tokens
from reasoning.claims.words import claim_words

APART = (ROW, RECORD, CODE_KIND)  # each of which is about a thing of its own
USABLE = 2  # the grade of evidence that partly answers
# Of the content words of the longer of two sentences, but for the values. Chosen, not measured.
ALIKE = 0.75
LEAST = 3  # other content words that both have; fewer tell no subject; chosen
WITHIN = 4  # tokens between the first and the last that differ: one value, not two; chosen
VALUES = (NUMBER, MONTH, NAME)
ROUNDED, YEARS = 0.02, (1000, 2100)  # chosen
FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
LEADS = re.compile(r"\.\.|[…:|—–：]")
DENIAL = frozenset({"negation"})
WORDS = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]{2,}")  # Chinese by its characters


def find_conflicts(
    claims: Sequence[Claim], plan: Plan, evidence: Sequence[Evidence]
) -> tuple[list[Claim], list[Conflict]]:
    """Return what other documents say against claims, as further claims, and which contradict.

    A conflict names claims by their place among the given ones and the further ones behind them.
    """
    items = {item.evidence_id: item for item in evidence}
    questions = {one.id: one for one in plan.questions if one.wants not in ("list", "topic")}
    stated = list(claims)
    found: list[Conflict] = []
    for place, claim in enumerate(claims):
        first = claim.citations[0]
        item = items.get(first.evidence_id)
        question = questions.get(claim.question_id)
        if item is None or question is None or item.kind in APART:
            continue
        if any(place in one.claims for one in found):
            continue
        places: list[int] = []
        for start, end in sentence_spans(first.quote):
            for cited in _others(first.quote[start:end], item, question, evidence):
                known = [at for at, one in enumerate(stated) if _cites(one, cited)]
                places.append(known[0] if known else len(stated))
                if not known:
                    text = " ".join(cited.quote.split())
                    stated.append(Claim(text=text, citations=[cited], question_id=question.id))
        if places:
            found.append(Conflict(question_id=question.id, claims=[place, *places]))
    return stated[len(claims) :], found


def _cites(claim: Claim, cited: Citation) -> bool:
    return any(
        one.chunk_id == cited.chunk_id and one.start <= cited.start and cited.end <= one.end
        for one in claim.citations
    )


def _others(
    sentence: str, item: Evidence, question: SubQuestion, evidence: Sequence[Evidence]
) -> Iterator[Citation]:
    """Yield the first sentence of each other document that gives another value."""
    language = item.language
    bare = _bare(sentence)
    seen = {item.document_key}
    for other in differing(item, evidence):
        if other.grades.get(question.id, 0) >= USABLE:
            seen.add(other.document_key)
            yield other.cited(0, len(other.text))
    asked = [
        one for one in claim_tokens(f"{question.text} {question.query}", language) if one.is_content
    ]
    if question.wants == "yesno":  # "Is it 30 metres?": the value that it names is what it asks
        asked = [one for one in asked if one.role not in VALUES]
    named = [one for one in asked if _has_word(one, sentence, item)]
    for other in evidence:
        graded = other.grades.get(question.id, 0) >= USABLE and other.language == language
        if other.document_key in seen or not graded or other.kind in APART:
            continue
        for start, end in sentence_spans(other.text):
            text = other.text[start:end]
            words = _bare(text)
            if 2 * len(bare & words) < max(len(bare), len(words)):
                continue  # cheaper than to align it
            lacking = [one for one in named if not _has_word(one, text, other)]
            # A word of the sentence that the other lacks may be what the other denies.
            subject = [one for one in lacking if not _says(one, sentence, language)]
            if (not lacking and is_other_value(sentence, text, language, asked)) or (
                not subject and is_denied(sentence, text, language)
            ):
                seen.add(other.document_key)
                yield other.cited(start, end)
                break


def differing(note: Evidence, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the notes that give another value of the subject of one."""
    subject, value = note.metadata.get("subject"), str(note.metadata.get("value", ""))
    return [
        one
        for one in evidence
        if one.kind == note.kind == NOTE
        and subject == one.metadata.get("subject") != ""
        and is_other(value, str(one.metadata.get("value", "")))
    ]


@lru_cache(maxsize=4096)
def _bare(text: str) -> frozenset[str]:
    return frozenset(WORDS.findall(text.casefold()))


def _has_word(word: ClaimToken, text: str, item: Evidence) -> bool:
    """Tell whether a sentence, its heading or its title has a word of the question."""
    return any(_says(word, part, item.language) for part in (text, item.section, item.title))


def _says(word: ClaimToken, text: str, language: str) -> bool:
    return any(same(word, one) for one in claim_tokens(text, language))


def is_other_value(left: str, right: str, language: str, asked: Sequence[ClaimToken] = ()) -> bool:
    """Tell whether two sentences differ in one number, date or name alone.

    A value that the question itself names is no answer to it.
    """
    aligned = align(claim_tokens(left, language), claim_tokens(right, language))
    ours, theirs = aligned.claim, aligned.text
    known = {**aligned.matched, **aligned.moved}
    rows = [row for row in range(len(ours)) if row not in known and ours[row].is_content]
    free = set(range(len(theirs))) - set(known.values())
    places = sorted(at for at in free if theirs[at].is_content)
    values = VALUES if is_spaced(language) else (*VALUES, WORD)  # no capitals tell names
    mine = [row for row in rows if ours[row].role in values]
    other = [at for at in places if theirs[at].role in values]
    pairs = [
        (ours[row], theirs[at])
        for row, at in aligned.exchanged.items()
        if row in mine and at in other and (ours[row].role == NAME) == (theirs[at].role == NAME)
    ]
    if not pairs or mine[-1] - mine[0] > WITHIN or other[-1] - other[0] > WITHIN:
        return False
    if any(
        one.role == UNIT for one in (*(ours[row] for row in rows), *(theirs[at] for at in places))
    ):
        return False  # 14 days are two weeks
    if any(
        ours[row].role == theirs[at].role == WORD and row in rows and row not in mine
        for row, at in aligned.exchanged.items()
    ):
        return False  # another subject
    if any(same(word, value) for word in asked for pair in pairs for value in pair):
        return False
    if all(_is_rounded(*pair) for pair in pairs) or _is_dateline(aligned, mine[-1]):
        return False
    kept = sum(ours[row].is_content for row in aligned.matched)
    rest = max(len(rows) - len(mine), len(places) - len(other))
    return kept >= LEAST and kept >= ALIKE * (kept + rest)


def is_denied(left: str, right: str, language: str) -> bool:
    """Tell whether two sentences say the same but for a denial or a word and its opposite."""
    words = claim_words(language)
    aligned = align(claim_tokens(left, language), claim_tokens(right, language))
    partner = {**aligned.moved, **aligned.matched}
    ours = [one for row, one in enumerate(aligned.claim) if row not in partner]
    theirs = [one for at, one in enumerate(aligned.text) if at not in partner.values()]
    denials = [one for one in (*ours, *theirs) if one.has(DENIAL)]
    rest = [[one for one in side if one.is_content] for side in (ours, theirs)]
    opposite = all(len(side) == 1 for side in rest) and contradict(rest[0][0], rest[1][0], words)
    kept = sum(aligned.claim[row].is_content for row in partner)
    if kept < LEAST - 1 or not (opposite or not any(rest)):
        return False
    return (len(denials) + opposite) % 2 == 1


def _is_dateline(aligned: Alignment, last: int) -> bool:
    """Tell whether what differs is a date that is put before a report: "Sep 20, 2019 — …"."""
    return any(LEADS.search(one.before) for one in aligned.claim[last + 1 : WITHIN + 1])


def _is_rounded(one: ClaimToken, other: ClaimToken) -> bool:
    """Tell whether one of two numbers is the other in fewer digits; years are never rounded."""
    values = [
        float(token.text.replace(",", "")) for token in (one, other) if FIGURE.fullmatch(token.text)
    ]
    if len(values) < 2 or all(YEARS[0] <= value <= YEARS[1] for value in values):
        return False
    low, high = sorted(values)
    return (
        high - low <= ROUNDED * high and len({len(f"{value:g}".strip("0")) for value in values}) > 1
    )
