"""How often the rules find the value of a slot: gold steps of questions, gold passages as evidence.

python -m benchmarks.slot_values FOLDER [--show N]: FOLDER has the BEIR layout, and each query's
metadata a `decomposition` (question and answer of each step, "#1" for the first answer), or else
an `answer`. A step's evidence is the gold passage that holds its answer. A value is right when it
equals an accepted answer without case, marks and articles, or one holds the other and is at most
twice as long. Prints one JSON object: steps, share right first, share right among three.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

from app.session import open_embedder
from benchmarks.beir import folded, gold_documents, read_rows
from core.cache import local_cache
from core.language.analysis import terms
from core.settings import Settings
from core.types import Evidence, Finding, SubQuestion, TermWeights
from models.embeddings import CachedEmbedder
from reasoning.rules.lexicon import lexicon
from reasoning.rules.reasoner import RulesReasoner
from reasoning.rules.values.value_spans import wanted_noun

ARTICLE = re.compile(r"\b(?:the|a|an)\b", re.IGNORECASE)
RELATION = re.compile(r"^(?P<subject>.+?) >> (?P<relation>.+)$")


def weights_of(rows: list[dict[str, Any]]) -> TermWeights:
    """Weigh terms by their document frequency in the corpus."""
    uses: dict[str, int] = {}
    for row in rows:
        for term in set(terms(f"{row['title']} {row['text']}")):
            uses[term] = uses.get(term, 0) + 1
    return lambda wanted: {t: log(1 + len(rows) / (1 + uses.get(t, 0))) for t in wanted}


def right(finding: Finding, accepted: list[str]) -> bool:
    """Tell whether a value is an accepted answer."""
    said = folded(ARTICLE.sub(" ", finding.value))
    for answer in accepted:
        gold = folded(ARTICLE.sub(" ", answer))
        short, long = sorted((said, gold), key=len)
        if gold and short and short in long and len(long) <= 2 * len(short):
            return True
    return False


def steps_of(row: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield each single question of a row with its accepted answers."""
    decomposition = row["metadata"].get("decomposition")
    if not decomposition:
        answer = row["metadata"].get("answer")
        yield row["text"], answer if isinstance(answer, list) else [str(answer)]
        return
    for step in decomposition:
        text = step["question"]
        for number, earlier in enumerate(decomposition, start=1):
            text = text.replace(f"#{number}", str(earlier["answer"]))
        relation = RELATION.match(text)
        if relation:
            text = f"What is the {relation['relation']} of {relation['subject']}?"
        yield text, [str(step["answer"])]


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0)
    given = parser.parse_args()
    corpus = read_rows(given.folder, "corpus")
    by_id = {row["_id"]: row for row in corpus}
    gold = gold_documents(given.folder)
    embedder = CachedEmbedder(open_embedder(Settings()), local_cache("embeddings", 4096))
    rules = RulesReasoner(Settings(), weights_of(corpus), embedder)
    counts = {"steps": 0, "first": 0, "three": 0, "no_value": 0}
    for row in read_rows(given.folder, "queries"):
        for text, accepted in steps_of(row):
            held = [
                by_id[name]
                for name in sorted(gold.get(row["_id"], ()))
                if any(folded(one) in folded(by_id[name]["text"]) for one in accepted)
            ]
            if not held or accepted[0].casefold() in ("yes", "no", "none"):
                continue
            wanted = set(terms(text))
            best = max(held, key=lambda r: len(wanted & set(terms(r["title"] + " " + r["text"]))))
            found = _found(rules, text, best)
            counts["steps"] += 1
            counts["no_value"] += not found
            counts["first"] += any(right(one, accepted) for one in found[:1])
            three = any(right(one, accepted) for one in found[:3])
            counts["three"] += three
            if given.show and not three:
                given.show -= 1
                print(text, "=>", accepted, "|", [one.value for one in found[:4]])
                print("      ", best["title"], "|", best["text"][:300])
    steps = max(1, counts["steps"])
    print(
        json.dumps(
            {
                "folder": given.folder.name,
                "steps": counts["steps"],
                "right_first": round(counts["first"] / steps, 3),
                "right_among_three": round(counts["three"] / steps, 3),
                "no_value": round(counts["no_value"] / steps, 3),
            }
        )
    )


def _found(rules: RulesReasoner, text: str, row: dict[str, Any]) -> list[Finding]:
    words = lexicon("en")
    wants = words.answer_kind(text)
    question = SubQuestion(id="q1", text=text, query=text, language="en", wants=wants)
    _, kind = wanted_noun(question, words)
    question = question.model_copy(update={"wants": kind})
    item = Evidence(
        evidence_id="e1",
        chunk_id=row["_id"],
        document_id=row["_id"],
        document_key=row["_id"],
        source=row["_id"],
        title=row["title"],
        text=row["text"],
        language="en",
        grades={"q1": 3},
    )
    return rules.extract(question, [item])


if __name__ == "__main__":
    main()
