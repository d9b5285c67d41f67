"""Plan, grade and answer a question over records: a query, what it counted, what it lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.record_names import ANY_FIELD, HELD, ROW, humanise
from core.tool_spec import ToolSpec
from core.types import Citation, Claim, Evidence, Grade, Plan, SubQuestion, Understanding
from reasoning.rules.record_questions import record_call

ANSWERS, OFF_TOPIC = 3, 0
LONGEST_SHOWN = 120  # characters of a field that is shown beside the title


def with_records(plan: Plan, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
    """Return the plan of a question over records, any other as it is.

    Words that any field may have are searched for as well, just as planned, in case none has.
    """
    language = understanding.language
    call = record_call(understanding.question, language, tools)
    if call is None:
        return plan
    guesses = any(one["op"] == "has" for one in call.arguments["where"])
    if guesses and len(plan.questions) > 1:
        return plan
    planned = plan.questions[0].calls if guesses else []
    question = SubQuestion(
        id="q1",
        text=understanding.question,
        query=understanding.question,
        language=language,
        wants=plan.questions[0].wants if guesses else "list",
        calls=[call, *planned],
    )
    return Plan(questions=[question])


def record_grades(evidence: Sequence[Evidence]) -> list[Grade]:
    """Grade what a record query found, and nothing beside it; empty where there was none."""
    rows = [item for item in evidence if item.kind == ROW]
    held = {key for row in rows for key in (row.chunk_id, *row.metadata.get(HELD, ()))}
    return [
        Grade(evidence_id=item.evidence_id, grade=ANSWERS, reason="the record query found it")
        if item.chunk_id in held
        else Grade(evidence_id=item.evidence_id, grade=OFF_TOPIC, reason="beside the record query")
        for item in evidence
        if rows
    ]


def record_claims(plan: Plan, evidence: Sequence[Evidence]) -> tuple[list[Claim], Plan]:
    """Return what record queries answer, and the plan of the questions that are left."""
    claims: list[Claim] = []
    left = []
    by_chunk = {item.chunk_id: item for item in evidence}
    for question in plan.questions:
        row = next(
            (one for one in evidence if one.kind == ROW and one.grades.get(question.id)), None
        )
        if row is None:
            left.append(question)
            continue
        show = [name for call in question.calls for name in call.arguments.get("show", ())]
        show += [
            one["field"] for call in question.calls for one in call.arguments.get("where", ())
            if one["field"] not in (ANY_FIELD, *show)
        ]  # fmt: skip
        held = [by_chunk[key] for key in row.metadata.get(HELD, ()) if key in by_chunk]
        claims.append(_claim(row.text, row, [(0, len(row.text))], question))
        claims += [_listed(item, show, question) for item in held]
    return claims, plan.model_copy(update={"questions": left})


def _listed(item: Evidence, show: Sequence[str], question: SubQuestion) -> Claim:
    """Name a record by its title, with the fields asked for, each cited to where it stands."""
    title = _span(item.text, item.title) or _first_line(item.text)
    spans = [title]
    shown = []
    for name in dict.fromkeys(show):
        line = re.search(rf"^{re.escape(humanise(name))}: (.+)$", item.text, re.MULTILINE)
        if line and line.span(1) != title and len(line.group()) <= LONGEST_SHOWN:
            spans.append(line.span())
            shown.append(line.group())
    text = item.text[slice(*title)]
    return _claim(f"{text} — {'; '.join(shown)}" if shown else text, item, spans, question)


def _span(text: str, title: str) -> tuple[int, int] | None:
    start = text.find(title) if title else -1
    return (start, start + len(title)) if start >= 0 else None


def _first_line(text: str) -> tuple[int, int]:
    return 0, len(text.split("\n", 1)[0].rstrip()) or len(text)


def _claim(
    text: str, item: Evidence, spans: Sequence[tuple[int, int]], question: SubQuestion
) -> Claim:
    citations = [
        Citation(
            evidence_id=item.evidence_id,
            document_id=item.document_id,
            source=item.source,
            chunk_id=item.chunk_id,
            start=start,
            end=end,
            quote=item.text[start:end],
        )
        for start, end in spans
    ]
    return Claim(text=text, citations=citations, question_id=question.id)
