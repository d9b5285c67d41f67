"""Find where documents say the same thing with another value: both are shown, none is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.language.analysis import content_terms
from core.language.orders import gives_orders
from core.language.passages import CODE_KIND, RECORD, TABLE
from core.language.sentences import sentence_spans
from core.language.table_rows import label_cells, write_cells
from core.metadata import REPLACED, ROW
from core.notes import WORDS, is_other
from core.recall import NOTE
from core.types import AnswerSpan, Citation, Claim, Conflict, Evidence, Plan, SubQuestion
from reasoning.contradictions import Asked, Assertion
from reasoning.statements import names_day

APART = (ROW, RECORD, CODE_KIND)  # each of which is about a thing of its own
USABLE = 2  # the grade of evidence that partly answers
MOST_CASES = 3  # shown beside an answer; chosen, not measured
MOST_OTHER = 2  # words of another value in a note that says else the same; chosen, not measured
LEAST_ODDS = -1.0  # of a value that is compared: below it mostly nothing answers (by hand)


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
        first = _stated_at(claim, items)
        item = items.get(first.evidence_id)
        question = questions.get(claim.question_id)
        if item is None or question is None or item.kind in APART:
            continue
        if any(place in one.claims for one in found):
            continue
        places: list[int] = []
        for cited in _others(first, item, question, evidence):
            known = [at for at, one in enumerate(stated) if _cites(one, cited)]
            places.append(known[0] if known else len(stated))
            if not known:
                stated.append(_quoted(items[cited.evidence_id], cited, question))
        if places:
            found.append(Conflict(question_id=question.id, claims=[place, *places]))
    return stated[len(claims) :], found


def _stated_at(claim: Claim, items: Mapping[str, Evidence]) -> Citation:
    """Return where a claim stands: of a row of a table behind the names of its columns."""
    first = claim.citations[0]
    item = items.get(first.evidence_id)
    return claim.citations[-1] if item is not None and item.kind == TABLE else first


def _cites(claim: Claim, cited: Citation) -> bool:
    return any(
        one.chunk_id == cited.chunk_id and one.start <= cited.start and cited.end <= one.end
        for one in claim.citations
    )


def find_cases(claims: Sequence[Claim], plan: Plan, evidence: Sequence[Evidence]) -> list[Claim]:
    """Return what documents say of other cases than a claim: of children, of adults."""
    items = {item.evidence_id: item for item in evidence}
    found: list[Claim] = []
    questions = {one.id: one for one in plan.questions}
    for claim in claims:
        item = items.get(claim.citations[0].evidence_id)
        question = questions.get(claim.question_id)
        alone = sum(one.question_id == claim.question_id for one in claims) == 1
        if question is None or item is None or item.kind in APART or not alone:
            continue
        asked, seen = Asked(question, item.language), {item.document_key}
        first = _stated_at(claim, items)
        for other, case in _cases_beside(asked, first, item, evidence):
            seen.add(other.document_key)
            found.append(_quoted(other, other.cited(case.start, case.end), question))
        for other, mine, theirs in _read_beside(first, item, question, evidence, seen):
            if mine is not None and theirs is not None and asked.is_other_case(mine, theirs):
                seen.add(other.document_key)
                found.append(_quoted(other, other.cited(theirs.start, theirs.end), question))
    return found


def _quoted(item: Evidence, cited: Citation, question: SubQuestion) -> Claim:
    """Return what is cited as a claim; a row of a table with the names of its columns."""
    lines = cited.quote.splitlines()
    row = label_cells(item.text.split("\n", 1)[0], lines[-1]) if item.kind == TABLE else []
    text = write_cells(row) if row else " ".join(cited.quote.split())
    return Claim(text=text, citations=[cited], question_id=question.id)


def _cases_beside(
    asked: Asked, first: Citation, item: Evidence, evidence: Sequence[Evidence]
) -> list[tuple[Evidence, Assertion]]:
    """Return the sentences that say the same of another case, of the same document first."""
    mine = _statements(item, first.start, first.end)
    if len(mine) != 1:
        return []
    found = [
        (other, theirs)
        for other in sorted(evidence, key=lambda one: one.document_key != item.document_key)
        if other.kind not in APART and other.language == item.language
        for theirs in _statements(other, 0, len(other.text))
        if asked.is_case_beside(mine[0], theirs)
    ]
    return found[:MOST_CASES]


def _read_beside(
    first: Citation,
    item: Evidence,
    question: SubQuestion,
    evidence: Sequence[Evidence],
    seen: set[str],
) -> Iterator[tuple[Evidence, Assertion | None, Assertion | None]]:
    """Yield other documents' evidence with what was read in a claim's and in theirs."""
    mine = _read(item, question)
    if mine is not None and not first.start <= mine.start < first.end:
        mine = None
    for other in evidence:
        if other.grades.get(question.id, 0) < USABLE or other.kind in APART:
            continue
        if other.document_key not in seen and other.language == item.language:
            yield other, mine, _read(other, question)


def _others(
    first: Citation, item: Evidence, question: SubQuestion, evidence: Sequence[Evidence]
) -> Iterator[Citation]:
    """Yield where each other document gives another value, once for each document."""
    seen = {item.document_key}
    evidence = [one for one in evidence if REPLACED not in one.metadata]
    usable = [one for one in evidence if one.grades.get(question.id, 0) >= USABLE]
    for other in differing(item, usable, question):
        seen.add(other.document_key)
        yield other.cited(0, len(other.text))
    asked = Asked(question, item.language)
    for other, mine, theirs in _read_beside(first, item, question, usable, seen):
        if mine is not None and theirs is not None and asked.contradict(mine, theirs):
            seen.add(other.document_key)
            yield other.cited(theirs.start, theirs.end)
    for other in evidence:  # what denies the answer need not seem one
        known = other.document_key in seen or other.kind in APART
        if not known and other.language == item.language:
            denial = _denial(asked, first, item, other)
            if denial is not None:
                seen.add(other.document_key)
                yield other.cited(denial.start, denial.end)


def _read(item: Evidence, question: SubQuestion) -> Assertion | None:
    """Return what a piece of evidence says to a question, None where that is not sure."""
    reading = item.readings.get(question.id)
    if reading is None or reading.odds < LEAST_ODDS:
        return None
    return Assertion(item, reading)


def _denial(asked: Asked, first: Citation, item: Evidence, other: Evidence) -> Assertion | None:
    """Return the sentence of another document that denies one which is cited, or revalues it."""
    for mine in _statements(item, first.start, first.end):
        for theirs in _statements(other, 0, len(other.text)):
            if asked.is_denied(mine, theirs) or asked.is_revalued(mine, theirs):
                return theirs
    return None


def _statements(item: Evidence, start: int, end: int) -> list[Assertion]:
    """Return the sentences of a stretch of evidence; an order to a program states nothing."""
    return [
        Assertion(item, AnswerSpan(start=start + first, end=start + last, value=None, odds=0.0))
        for first, last in sentence_spans(item.text[start:end])
        if not gives_orders(item.text, start + first, start + last)
    ]


def differing(
    note: Evidence, evidence: Sequence[Evidence], question: SubQuestion
) -> list[Evidence]:
    """Return the notes that give another value of what one says to a question."""
    return [
        one
        for one in evidence
        if one.kind == note.kind == NOTE
        # When a club meets says nothing of where it meets.
        and names_day(note.text, note.language) == names_day(one.text, one.language)
        and (_revalues(note, one) or _says_otherwise(note, one, question))
    ]


def _revalues(note: Evidence, other: Evidence) -> bool:
    subject, value = note.metadata.get("subject"), str(note.metadata.get("value", ""))
    same = subject == other.metadata.get("subject") != ""
    return same and is_other(value, str(other.metadata.get("value", "")))


def _says_otherwise(note: Evidence, other: Evidence, question: SubQuestion) -> bool:
    """Tell whether two notes say the same in all but a word or two that are not asked about."""
    subjects = [str(one.metadata.get("subject")) for one in (note, other)]
    if not (all(one.startswith(WORDS) for one in subjects) and note.language == other.language):
        return False
    own, others, asked = (
        set(content_terms(one.text, one.language)) for one in (note, other, question)
    )
    few = 0 < len(own - others) <= MOST_OTHER and 0 < len(others - own) <= MOST_OTHER
    # Of two words that differ one may be what is said, unless more are the same.
    few = few and (len(own ^ others) <= MOST_OTHER or len(own & others) > MOST_OTHER)
    return few and bool(asked & own & others) and asked.isdisjoint(own ^ others)
