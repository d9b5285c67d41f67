"""Measure what a chat model adds: the rules alone, one call with whole passages, and Carrel.

python -m benchmarks.qwen [SET …] [--limit 20] --keep FOLDER [--modes rules,single,carrel] [--name
1.5b]: asks questions drawn by --seed from public sets over their own corpora, with the model that
is served at llm_url. What FOLDER holds already is not asked again, so that a run can be broken off
and go on; the tables are those of all that it holds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.answer_judge import judged_row, printed, verdict_row
from benchmarks.answer_sets import (
    ANSWERABLE,
    FOREIGN,
    TYPED,
    UNANSWERABLE,
    Question,
    read_set,
    read_typed,
)
from benchmarks.answer_tables import Row, share, table
from benchmarks.answers import BESIDE, DATA
from cli.options import flags_from
from core.errors import CarrelError
from core.language.analysis import content_terms
from core.language.detect import UNDETERMINED, detect_language
from core.settings import load_settings
from evals.answers import AnswerOutcome, ask_one
from evals.corpus import open_corpus
from evals.summary import percentile
from graph.context import PipelineName

SETS = (
    *("squad2", "xquad_ru", "xquad_zh", "hotpotqa_small", "musique_small", "rgb_en"),
    *("rgb_en_noise", "typed_jax", "typed_fastapi_en", "typed_fastapi_zh"),
)
OWN = "typed_"  # our own questions over documentation
MODES: dict[str, tuple[str, PipelineName]] = {
    "rules": ("rules", "auto"),
    "single": ("llm", "single"),
    "carrel": ("llm", "auto"),
}
ENDED = re.compile(r"[.!?…。！？:：)）\]】\"”»`]$")


def measured_row(question: Question, asked: AnswerOutcome) -> Row:
    """Judge an answer, and say what it took: tokens, calls, decisions left to the rules."""
    calls = [call for step in asked.trail for call in step.calls]
    return _judged(question, asked) | {
        "readable": is_readable(question, printed(asked)) if not asked.refused else None,
        "calls": len(calls),
        "tokens": sum(call.prompt_tokens + call.completion_tokens for call in calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "cached_tokens": sum(call.cached_tokens for call in calls),
        "first_ms": calls[-1].first_ms if calls else None,
        "degraded": asked.spent("degraded"),
        "replies": [call.reply for call in calls],
    }


def _judged(question: Question, asked: AnswerOutcome) -> Row:
    """Judge by the gold answer of a set, or by the rule of a typed question."""
    if question.kind != TYPED:
        return judged_row(question, asked)
    row = verdict_row(question, asked)
    kind = UNANSWERABLE if question.rule.get("refuse") else ANSWERABLE
    return row | {"kind": kind, "printed": row["right"]}


def is_readable(question: Question, text: str) -> bool:
    """Tell whether an answer is whole, in the language of the question and names its subject."""
    said = detect_language(text)
    shared = set(content_terms(text, question.language)) & set(
        content_terms(question.query.text, question.language)
    )
    right = said in (question.language, UNDETERMINED)
    return bool(ENDED.search(text.strip())) and right and bool(shared)


def ask_all(given: argparse.Namespace) -> None:
    """Ask what has not been asked yet."""
    for name in given.sets or SETS:
        for mode in given.modes.split(","):
            kept = (
                given.keep / f"{name}__{mode if mode == 'rules' else f'{mode}_{given.name}'}.jsonl"
            )
            known = {row["id"] for row in _read(kept)}
            for row in _rows(name, mode, given, known):
                kept.parent.mkdir(parents=True, exist_ok=True)
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _rows(name: str, mode: str, given: argparse.Namespace, known: set[str]) -> Iterator[Row]:
    reasoner, pipeline = MODES[mode]
    flags = {"reasoner": reasoner, "cache": given.corpora}
    settings, _ = load_settings(flags | flags_from(None, given.set))
    made = settings.cache.expanduser() / "answers"
    if name.startswith(OWN):
        typed = read_typed(given.data, made, None, given.limit)
        found = next(one for one in typed if one.name == name.removeprefix(OWN))
    else:
        found = read_set(name, given.data, made, given.limit, given.seed)
    asked = [one for one in found.questions if one.kind != FOREIGN]
    asked = [one for one in asked if one.query.query_id not in known]
    if not asked:
        return
    sys.stderr.write(f"{name}, {mode}: {len(asked)} questions\n")
    corpus = found.build(settings)
    with open_corpus(corpus.settings) as session:
        ask_one(session, asked[-1].query, pipeline)  # loads what is loaded late
        for question in asked:
            row = measured_row(question, ask_one(session, question.query, pipeline))
            yield {"set": name} | row


def _read(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tables(folder: Path) -> str:
    """Return one line for each set and mode."""
    head = [
        *("set", "by", "right", "wrong though cited", "refused", "unanswerable answered"),
        *("readable", "calls", "tokens", "cached", "p50 s"),
    ]
    lines = []
    for path in sorted(folder.glob("*__*.jsonl")):
        name, _, mode = path.stem.partition("__")
        lines.append([name, mode, *_figures(_read(path))])
    return table(head, lines)


def _figures(rows: Sequence[Row]) -> list[str]:
    own = [row for row in rows if row["kind"] == ANSWERABLE]
    judged = [row for row in own if row["printed"] is not None]
    called = [row for row in rows if row["calls"]]
    read = sum(row["prompt_tokens"] for row in called)

    def mean(name: str) -> str:
        return f"{sum(row[name] for row in called) / len(called):.1f}" if called else "–"

    times: list[Any] = [row["ms"] / 1000 for row in rows if row["ms"] is not None]
    return [
        share(row["printed"] for row in judged),
        share(row["answered"] and not row["printed"] for row in judged),
        share(not row["answered"] for row in own),
        share(row["answered"] for row in rows if row["kind"] == UNANSWERABLE),
        share(row["readable"] for row in rows),
        mean("calls"),
        mean("tokens"),
        f"{sum(row['cached_tokens'] for row in called) / read:.2f}" if read else "–",
        f"{percentile(times, 0.5):.1f}" if times else "–",
    ]


def main() -> None:
    """Ask, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--modes", default=",".join(MODES), help="which of rules, single, carrel")
    parser.add_argument("--name", default="model", help="the model, as the tables name it")
    parser.add_argument("--limit", type=int, default=20, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get(DATA, BESIDE)))
    parser.add_argument("--corpora", type=Path, metavar="FOLDER", help="keep the corpora here")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="change a setting")
    given = parser.parse_args()
    try:
        ask_all(given)
    except CarrelError as error:
        parser.error(str(error))
    sys.stdout.write(tables(given.keep) + "\n")


if __name__ == "__main__":
    main()
