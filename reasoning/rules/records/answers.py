"""Plan, grade and answer a question over records: a query, what it counted, what it lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.metadata import ANY_FIELD, LISTED_CHUNKS, ROW
from core.types import (
    Call,
    Claim,
    Evidence,
    Grade,
    Plan,
    SubQuestion,
    ToolSpec,
    Understanding,
)
from reasoning.planning.slots import filled, slots_in
from reasoning.rules.grade import ANSWERS, OFF_TOPIC
from reasoning.rules.records.fields import (
    RECORD_KINDS,
    AskedFields,
    asked_fields,
    counts_records,
    field_lines,
    is_name,
    records_of,
    theme_of,
)
from reasoning.rules.records.questions import RECORDS, record_calls
from reasoning.rules.records.schema import schema_of, stem_of

MOST_NAMED = 5  # records of one title; chosen, not measured
LONGEST_SHOWN = 120  # characters of a field that is shown beside the title; chosen, not measured


def with_records(
    plan: Plan, understanding: Understanding, tools: Sequence[ToolSpec], list_items: int
) -> Plan:
    """Return the plan of a question over records, any other as it is.

    A wish for something to read is one for up to `list_items` records about a theme; 0 where
    nothing tells what a theme means.

    Words that any field may have are searched for as well, just as planned, in case none has.
    """
    calls = record_calls(understanding.question, understanding.language, tools)
    where = [one for call in calls for one in call.arguments["where"]]
    text, language = understanding.question, understanding.language
    full = SubQuestion(id="q1", text=text, query=text, language=language, wants="list", calls=calls)
    if calls and all(one["op"] != "has" for one in where):
        return Plan(questions=[full])
    plan = plan.model_copy(update={"questions": [_of_one(one, tools) for one in plan.questions]})
    ordered = any("order_by" in call.arguments for call in calls)
    bare = not ordered and all(one["op"] == "has" for one in where)
    near = _near(understanding, tools, list_items) if bare else []
    if not near and (not calls or len(plan.questions) > 1):
        return plan
    first = plan.questions[0]
    update = {"calls": [*near, *calls, *first.calls], "wants": "list" if near else first.wants}
    return Plan(questions=[full.model_copy(update=update)])


def _near(understanding: Understanding, tools: Sequence[ToolSpec], list_items: int) -> list[Call]:
    """Return the call for the records about a theme, where it is asked for them and by no name."""
    theme = theme_of(understanding.question)
    if not list_items or is_name(theme) or understanding.intent != "recommend":
        return []
    arguments: dict[str, Any] = {"about": theme, "language": understanding.language}
    arguments |= {"limit": list_items, "show": ["author"]}
    searching = [one for one in tools if one.base == RECORDS and one.tables]
    return [Call(tool=one.name, arguments=arguments) for one in searching[:1]]


def _of_one(question: SubQuestion, tools: Sequence[ToolSpec]) -> SubQuestion:
    """Ask a part for the fields of the record that it names, before it is searched for.

    A slot is the name of a record that an earlier part finds.
    """
    searching = {one.name: schema_of(one) for one in tools if one.base == RECORDS}
    # What a record is called is asked for by no one who names it.
    own = {
        tool: {stem_of(name)[0] for name in schema.fields if not schema.names(name)}
        for tool, schema in searching.items()
    }
    slots = {f"“{slot}”": f"{{{slot}}}" for slot in slots_in(question.text)}
    text = filled(question.text, {slot[1:-1]: quoted for quoted, slot in slots.items()})
    asked = asked_fields(
        text, tuple(sorted({label for labels in own.values() for label in labels}))
    )
    named = slots.get(f"“{asked.name}”", "" if slots else asked.name) if asked else ""
    if asked is None or not named:
        return question
    tool = max(own, key=lambda one: len(own[one].intersection(asked.fields)), default="")
    if tool and not slots and searching[tool].is_within:
        return question  # the text of the document says it, row and all
    arguments = {"named": named, "language": question.language, "show": [*asked.fields[:8]]}
    calls = [Call(tool=tool, arguments=arguments)] if tool else []
    return question.model_copy(update={"calls": [*calls, *question.calls]})


def _of_records(
    question: SubQuestion, evidence: Sequence[Evidence]
) -> tuple[AskedFields | None, list[Evidence], list[Evidence]]:
    """Return what a part asks of a record, those that it names, and those that say it.

    The fields that only its plan knew are in the call of the plan.
    """
    labels = [one.arguments["show"] for one in question.calls if "named" in one.arguments]
    filtered = not labels and any("aggregate" in one.arguments for one in question.calls)
    waits = question.deps and not labels  # a plan of somebody else says nothing of its fields
    asked = None if waits or filtered else asked_fields(question.text, *map(tuple, labels[:1]))
    if asked is None:
        return None, [], []
    named = records_of(asked.name, question.text, evidence)
    language = question.language
    return asked, named, [one for one in named if field_lines(one.text, asked.fields, language)]


def record_grades(question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
    """Grade what a record query found, and nothing beside it; what is left is for other rules.

    A record that a question names speaks for itself alone: where it does not say what is asked for,
    no other one does. Only the text of a document may say more than its card.
    """
    asked, named, saying = _of_records(question, evidence)
    counts = counts_records(question.text)  # no single one says how many there are
    rows = [item for item in evidence if item.kind == ROW]
    # Of a list by theme and what was found by words, the words are the surer.
    counted = [row for row in rows if not row.query.startswith("about: ")]
    rows = counted or rows[:1]
    counting = [row for row in rows if counted or row.metadata[LISTED_CHUNKS]]
    answering = {key for row in counting for key in (row.chunk_id, *row.metadata[LISTED_CHUNKS])}
    if counts and counted:
        pass  # what the words of the question name is counted, too
    elif saying:
        rows, answering = named, {one.chunk_id for one in saying}
    elif named and all(one.ordinal == 0 for one in named):
        rows, answering = [], set()
    lacking = named or (asked and asked.clear) or counts
    return [
        Grade(evidence_id=item.evidence_id, grade=ANSWERS, reason="the record query found it")
        if item.chunk_id in answering
        else Grade(evidence_id=item.evidence_id, grade=OFF_TOPIC, reason="beside the record query")
        for item in evidence
        if rows or (lacking and item.kind in (*RECORD_KINDS, ROW))
    ]


def record_claims(plan: Plan, evidence: Sequence[Evidence]) -> tuple[list[Claim], Plan]:
    """Return what record queries answer, and the plan of the questions that are left."""
    claims: list[Claim] = []
    left = []
    by_chunk = {item.chunk_id: item for item in evidence}
    for question in plan.questions:
        graded = [one for one in evidence if one.grades.get(question.id)]
        asked, _, saying = _of_records(question, graded)
        rows = [one for one in graded if one.kind == ROW]
        if asked and saying and not (rows and counts_records(question.text)):
            claims += [_listed(item, asked.fields, question) for item in saying[:MOST_NAMED]]
            continue
        if not rows:
            left.append(question)
            continue
        # Where one table has what is asked for, that another one has none is beside it.
        rows = [one for one in rows if one.metadata[LISTED_CHUNKS]] or rows
        asking = [call.arguments for call in question.calls if "named" not in call.arguments]
        show = [name for one in asking for name in one.get("show", ())]
        show += [
            one["field"] for arguments in asking for one in arguments.get("where", ())
            if one["field"] not in (ANY_FIELD, *show)
        ]  # fmt: skip
        # A filter is exact; what is near a theme is not.
        sure = 1.0 if any("aggregate" in one for one in asking) else None
        found = [claim_of(row.text, row, [(0, len(row.text))], question) for row in rows]
        listed = [
            by_chunk[key] for row in rows for key in row.metadata[LISTED_CHUNKS] if key in by_chunk
        ]
        shown = _each_once(_listed(item, show, question) for item in listed)
        # One thing is the answer; of several it is said first how many there are.
        found = [*shown, *found] if sure and len(shown) == 1 else [*found, *shown]
        claims += [claim.model_copy(update={"confidence": sure}) for claim in found]
    return claims, plan.model_copy(update={"questions": left})


def _each_once(claims: Iterable[Claim]) -> list[Claim]:
    """Return claims, those of equal words as one with the citations of all: one table twice."""
    found: dict[str, Claim] = {}
    for claim in claims:
        known = found.get(claim.text)
        citations = [*(known.citations if known else []), *claim.citations]
        found[claim.text] = claim.model_copy(update={"citations": citations})
    return list(found.values())


def _listed(item: Evidence, show: Sequence[str], question: SubQuestion) -> Claim:
    """Name a record by its title, with the fields asked for, each cited to where it stands."""
    begin = max(item.text.find(item.title), 0) if item.title else 0
    named = item.title if item.title and item.title in item.text else item.text.split("\n", 1)[0]
    title = begin, begin + (len(named.rstrip()) or len(item.text))
    lines = [
        (start, end) for start, end in field_lines(item.text, show, question.language)
        if end != title[1] and end - start <= LONGEST_SHOWN
    ]  # fmt: skip
    spans = [title, *lines]
    shown = [item.text[start:end] for start, end in lines]
    text = item.text[slice(*title)]
    return claim_of(f"{text} — {'; '.join(shown)}" if shown else text, item, spans, question)


def claim_of(
    text: str, item: Evidence, spans: Sequence[tuple[int, int]], question: SubQuestion
) -> Claim:
    """Return a claim that rests on spans of one piece of evidence."""
    citations = [item.cited(start, end) for start, end in spans]
    return Claim(text=text, citations=citations, question_id=question.id)
