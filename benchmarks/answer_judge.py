"""Judge one answer: against the gold answer of a public set, or by the rule of a typed question."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.answer_sets import ANSWERABLE, Question
from core.language.sentences import sentence_spans
from evals.answers import AnswerOutcome, any_gold_cited, contains_answer, folded, judged_answers

NEAR = 2  # sentences on each side of the cited one
PRINTED, REFUSED, NEAR_CITED, CITED_CHUNK, OTHER_CHUNK, NOT_RETRIEVED = PLACES = (
    *("printed", "refused though retrieved", "wrong: within ±2 sentences of the cited"),
    *("wrong: rest of the cited chunk", "wrong: other retrieved chunk", "not retrieved"),
)
_MARK = re.compile(r"\s?\[\d+\]")
_NOT_FOUND = re.compile(r"^(?:Not found|Не найдено|Не знайдено|未找到|没有找到)\b.*", re.MULTILINE)
VERDICTS = {
    "yes": ("yes", "да", "так", "是", "是的", "可以", "能", "会", "对", "有", "支持"),
    "no": ("no", "нет", "ні", "否", "不", "不是", "不能", "不会", "不可以", "没有", "不支持"),
}


def printed(asked: AnswerOutcome) -> str:
    """Return what a reader sees of an answer, without marks of citations; "" for a refusal."""
    text = "" if asked.refused else str(asked.result.get("answer", ""))
    return _NOT_FOUND.sub("", _MARK.sub("", text)).strip()


def confidence(asked: AnswerOutcome) -> float:
    """Return the answer's confidence, or without one the best grade of what it cites (0..3)."""
    claims = asked.result.get("claims", [])
    told = [one.get("confidence") for one in (asked.result, *claims)]
    if (values := [value for value in told if isinstance(value, int | float)])[:1]:
        return float(values[0] if asked.result.get("confidence") is not None else max(values))
    cited = {one["evidence_id"] for claim in claims for one in claim["citations"]}
    grades = (
        grade
        for item in asked.result.get("evidence", [])
        if item["evidence_id"] in cited
        for grade in item["grades"].values()
    )
    return float(max(grades, default=0))


def judged_row(question: Question, asked: AnswerOutcome) -> dict[str, Any]:
    """Judge an answer by the gold answer; `printed` is None where containment cannot tell."""
    gold = judged_answers(question.query.answers)
    found = contains_answer(gold, [printed(asked)]) if gold and not asked.refused else False
    judged = question.kind == ANSWERABLE and bool(gold)
    return _row(question, asked) | {
        "gold": list(question.query.answers),
        "printed": found if judged else None,
        "gold_cited": any_gold_cited(asked),
        "place": _place(gold, asked, found=found) if judged else None,
        "oracle": _retrieved(gold, asked) if judged else None,
    }


def verdict_row(question: Question, asked: AnswerOutcome) -> dict[str, Any]:
    """Judge the answer to a typed question; `why` names the first rule that it breaks."""
    why = broken_rule(question.rule, printed(asked), refused=asked.refused)
    rule = {key: question.rule[key] for key in RULES if key in question.rule}
    return _row(question, asked) | {"gold": rule, "right": not why, "why": why}


RULES = ("refuse", "verdict", "answer_any", "total", "must_not", "sentences")


def broken_rule(rule: dict[str, Any], text: str, *, refused: bool) -> str:
    """Return the rule that an answer breaks, "" for a right one.

    `answer_any` lists alternatives, each a string or a list of strings that must all be there.
    """
    if rule.get("refuse") or refused:
        return "" if rule.get("refuse") and refused else "refused" if refused else "answered"
    if verdict := rule.get("verdict"):
        first = folded(re.split(r"[\s:,.;，。：；—–!]", text, maxsplit=1)[0])
        if first not in VERDICTS[verdict]:
            return "verdict"
    ways = [[way] if isinstance(way, str) else way for way in rule.get("answer_any", [])]
    if ways and not any(all(contains_answer([part], [text]) for part in way) for way in ways):
        return "answer_any"
    if "total" in rule and not contains_answer([str(rule["total"])], [text]):
        return "total"
    if any(contains_answer([wrong], [text]) for wrong in rule.get("must_not", [])):
        return "must_not"
    if "sentences" in rule and len(sentence_spans(text)) > rule["sentences"]:
        return "sentences"
    return ""


def _row(question: Question, asked: AnswerOutcome) -> dict[str, Any]:
    claims = asked.result.get("claims", [])
    return {
        "id": question.query.query_id,
        "type": question.query.type,
        "language": question.language,
        "kind": question.kind,
        "question": question.query.text,
        "answered": not asked.refused,
        "answer": asked.result.get("answer", ""),
        "cited": [one["quote"] for claim in claims for one in claim["citations"]],
        "confidence": confidence(asked),
        "stop_reason": asked.stop_reason,
        "ms": None if asked.ms is None else round(asked.ms, 1),
    }


def _retrieved(gold: list[str], asked: AnswerOutcome) -> bool:
    """Tell whether a sentence of the evidence holds the gold answer, of a gold document if any."""
    relevant = asked.query.relevant
    return any(
        contains_answer(gold, _sentences(item["text"]))
        for item in asked.result.get("evidence", [])
        if not relevant or item["document_id"] in relevant
    )


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _place(gold: list[str], asked: AnswerOutcome, *, found: bool) -> str:
    if found:
        return PRINTED
    if not _retrieved(gold, asked):
        return NOT_RETRIEVED
    if asked.refused:
        return REFUSED
    texts = {item["evidence_id"]: item["text"] for item in asked.result["evidence"]}
    near: list[str] = []
    whole: list[str] = []
    for claim in asked.result.get("claims", []):
        for one in claim["citations"]:
            text = texts.get(one["evidence_id"], "")
            spans = sentence_spans(text)
            touched = [n for n, (a, b) in enumerate(spans) if a < one["end"] and b > one["start"]]
            if touched:
                around = spans[max(0, touched[0] - NEAR) : touched[-1] + NEAR + 1]
                near.append(text[around[0][0] : around[-1][1]])
            whole.append(text)
    if contains_answer(gold, near):
        return NEAR_CITED
    return CITED_CHUNK if contains_answer(gold, whole) else OTHER_CHUNK
