"""What a person reads: the answer with its marks, or the refusal, in the question's language."""

from __future__ import annotations

from collections.abc import Sequence

from core.citations import citation_marks, numbered_sources
from core.record_names import ROW
from core.types import Claim, Evidence, Plan, StopReason, Understanding
from reasoning.rules.lexicon import lexicon

CLASSIC_TOOL = "search_classic"
WHY = {
    "en": {
        StopReason.no_relevant_evidence: "no passage is relevant enough",
        StopReason.unsupported_answer: "no sentence passed the check against its source",
        StopReason.max_steps: "the limit of steps was reached",
        StopReason.max_tool_calls: "the limit of tool calls was reached",
        StopReason.max_tokens: "the limit of tokens was reached",
        StopReason.timeout: "the time limit was reached",
    },
    "ru": {
        StopReason.no_relevant_evidence: "нет достаточно близких фрагментов",
        StopReason.unsupported_answer: "ни одно предложение не прошло проверку по источнику",
        StopReason.max_steps: "исчерпан предел шагов",
        StopReason.max_tool_calls: "исчерпан предел вызовов инструментов",
        StopReason.max_tokens: "исчерпан предел токенов",
        StopReason.timeout: "истекло отведённое время",
    },
    "uk": {
        StopReason.no_relevant_evidence: "немає достатньо близьких фрагментів",
        StopReason.unsupported_answer: "жодне речення не пройшло перевірку за джерелом",
        StopReason.max_steps: "вичерпано межу кроків",
        StopReason.max_tool_calls: "вичерпано межу викликів інструментів",
        StopReason.max_tokens: "вичерпано межу токенів",
        StopReason.timeout: "вичерпано відведений час",
    },
    "zh": {
        StopReason.no_relevant_evidence: "没有足够相关的段落",
        StopReason.unsupported_answer: "没有句子通过来源核对",
        StopReason.max_steps: "已达到步数上限",
        StopReason.max_tool_calls: "已达到工具调用上限",
        StopReason.max_tokens: "已达到 token 上限",
        StopReason.timeout: "已超时",
    },
}


def render_answer(
    query: Understanding,
    plan: Plan,
    claims: Sequence[Claim],
    missing: Sequence[str],
    evidence: Sequence[Evidence],
) -> str:
    """Join the claims with their marks: a line for a plain answer, a block for each part.

    The classic pipeline's answer ends with the document it elected and how much of it was read.
    """
    words = lexicon(query.language)
    lines = [render_claims(plan, claims, evidence)] if claims else []
    if missing:
        asked = {claim.question_id for claim in claims}
        found = "; ".join(_named(one.text) for one in plan.questions if one.id in asked)
        what = "; ".join(_named(text) for text in missing)
        lines.append(words.message("partial").format(found=found, what=what))
    if claims and evidence and all(item.tool == CLASSIC_TOOL for item in evidence):
        named = words.message("elected").format(
            title=evidence[0].work.get("title") or evidence[0].title, count=len(evidence)
        )
        lines.append(named)
    return "\n".join(lines)


def render_claims(plan: Plan, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> str:
    """Return the claims with their marks; one more claim of the last part only adds text."""
    numbers = numbered_sources(claims)
    by_chunk = {item.chunk_id: item for item in evidence}
    lines: list[str] = []
    for question in plan.questions:
        own = [claim for claim in claims if claim.question_id == question.id]
        if not own:
            continue
        if len(plan.questions) > 1:
            lines.append(f"{question.text.strip()}")
        counted = [claim for claim in own if _kind(claim, by_chunk) == ROW]
        if counted or question.wants == "list":
            lines += [_marked(claim, numbers) for claim in counted]
            lines += [
                f"{place}. {_work(claim, by_chunk)}{_marked(claim, numbers)}"
                for place, claim in enumerate((c for c in own if c not in counted), start=1)
            ]
        else:
            text = " ".join(_marked(claim, numbers) for claim in own)
            if own[0].verdict:
                said = lexicon(question.language).message(f"verdict_{own[0].verdict}")
                text = f"{said} {text}"
            lines.append(f"  {text}" if len(plan.questions) > 1 else text)
    return "\n".join(lines)


def render_refusal(
    query: Understanding, plan: Plan | None, tools: Sequence[str], why: StopReason
) -> str:
    """Say honestly that nothing answers, what was looked for, where, and why it ended."""
    words = lexicon(query.language)
    reasons = WHY[words.language]
    looked_for = [question.query for question in plan.questions] if plan else [query.question]
    lines = [words.message("refusal")]
    lines.append(
        words.message("searched").format(
            where=", ".join(dict.fromkeys(tools)) or "–", what="; ".join(looked_for)
        )
    )
    lines.append(
        words.message("stopped").format(
            why=reasons.get(why, reasons[StopReason.no_relevant_evidence])
        )
    )
    return "\n".join(lines)


def _named(text: str) -> str:
    """Return a question as a name in a list: without the mark it ends with."""
    return text.strip().rstrip("?？.。 ")


def _marked(claim: Claim, numbers: dict[str, int]) -> str:
    return f"{claim.text} {citation_marks(claim, numbers)}"


def _kind(claim: Claim, evidence: dict[str, Evidence]) -> str:
    item = evidence.get(claim.citations[0].chunk_id)
    return item.kind if item else ""


def _work(claim: Claim, evidence: dict[str, Evidence]) -> str:
    """Name the work an item comes from: title, authors and year are the source's own metadata.

    A claim that begins with the title names it already.
    """
    item = evidence.get(claim.citations[0].chunk_id)
    if item is None or not item.title or claim.text.startswith(item.title):
        return ""
    work = item.work
    authors = work.get("authors")
    by = ", ".join(str(a) for a in authors) if isinstance(authors, list) else str(authors or "")
    year = work.get("year")
    details = ", ".join(str(part) for part in (by, year) if part)
    title = work.get("title") or item.title
    return f"{title} ({details}): " if details else f"{title}: "
