"""Measure answers and refusals by set and language, without a language model.

python -m benchmarks.answers [SET …] [--limit 40]: asks questions drawn from public sets over their
own corpora and, of another set, over a corpus that cannot answer them; --typed asks questions of
our own that a rule judges. Corpora are ingested once below --corpora (CARREL_CACHE) and found there
by the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.answer_judge import judged_row, verdict_row
from benchmarks.answer_sets import SETS, TYPED, QuestionSet, read_set, read_typed
from benchmarks.answer_tables import evidence_table, risk_table, set_table, typed_table
from cli.options import flags_from
from core.errors import CarrelError
from core.settings import Settings, load_settings
from evals.answers import ask_one
from evals.corpus import open_corpus

DATA = "CARREL_EVAL_DATA"
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def ask_set(found: QuestionSet, settings: Settings, warm_up: int = 2) -> list[dict[str, Any]]:
    """Ask every question of a set and return what came of each."""
    corpus = found.build(settings)
    rows = []
    with open_corpus(corpus.settings) as session:
        for question in found.questions[-warm_up:]:
            ask_one(session, question.query, "auto")
        for question in found.questions:
            asked = ask_one(session, question.query, "auto")
            judge = verdict_row if question.kind == TYPED else judged_row
            rows.append({"set": found.name} | judge(question, asked))
    return rows


def measure(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Ask all that was asked for; keep the rows of a set as soon as it is done."""
    flags = flags_from(None, given.set) | {"cache": given.corpora}
    settings, _ = load_settings({"reasoner": "rules"} | flags)
    made = settings.cache.expanduser() / "answers"
    if given.typed:
        sets = read_typed(given.data, made, given.split, given.limit)
        sets = [one for one in sets if not given.sets or one.name in given.sets]
    else:
        names = given.sets or SETS
        sets = [read_set(name, given.data, made, given.limit, given.seed) for name in names]
    rows = []
    for found in sets:
        sys.stderr.write(f"{found.name}: {len(found.questions)} questions\n")
        rows += (new := ask_set(found, settings))
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in new)
            kept = given.keep / f"{'typed_' * given.typed}{found.name}.jsonl"
            kept.write_text(lines, encoding="utf-8")
    return rows


def tables(rows: Sequence[dict[str, Any]], *, typed: bool, evidence: bool) -> list[str]:
    """Return the tables of a run as Markdown."""
    if typed:
        return [typed_table(rows, key) for key in ("type", "language", "set")]
    found = [set_table(rows), risk_table(rows)]
    return [*found, evidence_table(rows)] if evidence else found


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--typed", action="store_true", help="ask the typed questions")
    parser.add_argument("--split", choices=("dev", "test"), help="half of the typed questions")
    parser.add_argument("--limit", type=int, help="questions of each kind (40) or corpus (all)")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--evidence", action="store_true", help="say where the gold answer stood")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as one list")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the rows of each set")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get(DATA, BESIDE)))
    parser.add_argument("--corpora", type=Path, metavar="FOLDER", help="keep the corpora here")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="change a setting")
    given = parser.parse_args()
    given.limit = given.limit or (10_000 if given.typed else 40)
    if not given.data.is_dir():
        parser.error(f"there is no data folder {given.data}; name it with --data or {DATA}")
    try:
        rows = measure(given)
    except CarrelError as error:
        parser.error(str(error))
    if given.json:
        given.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    for table in tables(rows, typed=given.typed, evidence=given.evidence):
        sys.stdout.write(table + "\n\n")


if __name__ == "__main__":
    main()
