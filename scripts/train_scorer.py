"""Train what scores sentences as answers, on questions whose answers are known.

python scripts/train_scorer.py collect DATA OUT [--embedder NAME] [SET …]
python scripts/train_scorer.py train OUT WEIGHTS [--embedder NAME]

`collect` asks the questions of data sets in the BEIR layout over their own corpora (and of other
sets over them: nothing answers those), and keeps the features of every sentence that the search
finds. `train` fits a small network by sets, reports each set as the ones left out of training
have it, and writes the weights fitted on all.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from core.language.detect import detect_language
from core.settings import load_settings
from core.types import Evidence
from evals.corpus import AUTH, COLLECTION, build_corpus, open_corpus
from evals.dataset import JudgedQuery, read_dataset, read_queries
from graph.session import Session
from reasoning.rules.features import FEATURES, features, spans_of
from reasoning.rules.relevance import evidence_languages
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

# Set, questions at most, and the set whose questions nothing in it answers.
SETS = (
    ("squad2", 1000, "hotpotqa_small"),
    ("xquad_en", 564, "hotpotqa_small"),
    ("xquad_ru", 564, "rubq_ru"),
    ("xquad_zh", 564, "cmrc2018_zh"),
    ("cmrc2018_zh", 700, "xquad_zh"),
    ("dragonball", 176, "hotpotqa_small"),
)
# The questions of one set over the parallel passages of another, whose ids they share.
CROSS = (("xquad_ru", "xquad_en"), ("xquad_zh", "xquad_en"), ("xquad_en", "xquad_ru"))
FOREIGN = 150
CROSSED = 250
HITS = 6
UNANSWERABLE = "unanswerable"


def normal(text: str) -> str:
    """Return a text for comparing: folded, without marks and articles."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return "".join(c for c in text if c.isalnum())


def collect(data: Path, out: Path, embedder: str, only: list[str]) -> None:
    """Write one file of features for each set."""
    out.mkdir(parents=True, exist_ok=True)
    settings, _ = load_settings({"reasoner": "rules", "embedder": embedder})
    draw = random.Random(7)
    for name, most, foreign in SETS:
        if only and name not in only:
            continue
        dataset = read_dataset(data / name, allow_missing=True, judged_only=False)
        asked = [(q, name) for q in dataset.queries if q.answers or q.type == UNANSWERABLE]
        asked = draw.sample(asked, min(most, len(asked)))
        others = [(q, "foreign") for q in read_queries(data / foreign)]
        asked += draw.sample(others, min(FOREIGN, len(others)))
        for source, over in CROSS:
            if over == name:
                parallel = read_dataset(data / source, allow_missing=True).queries
                gold = {q.query_id: q.answers for q in dataset.queries}
                pairs = [(crossed(q, gold), f"{source}>{name}") for q in parallel]
                asked += draw.sample(pairs, CROSSED)
        corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
        kept = []
        with open_corpus(corpus.settings) as session:
            for number, (query, group) in enumerate(asked):
                row = one_question(session, query, group)
                if row is not None:
                    kept.append(row)
                if number % 200 == 0:
                    sys.stderr.write(f"{name} {number}/{len(asked)}\n")
        np.savez_compressed(
            out / f"{name}.npz",
            x=np.concatenate([one["x"] for one in kept]).astype(np.float16),
            y=np.concatenate([one["y"] for one in kept]),
            n=np.array([len(one["y"]) for one in kept]),
            meta=json.dumps([one["meta"] for one in kept], ensure_ascii=False),
        )


def crossed(query: JudgedQuery, gold: dict[str, tuple[str, ...]]) -> JudgedQuery:
    """Return a question with the answers that its translation has."""
    from dataclasses import replace

    return replace(query, answers=gold.get(query.query_id, ()))


def one_question(session: Session, query: JudgedQuery, group: str) -> dict[str, Any] | None:
    """Search for one question and return the features of all sentences found, with labels."""
    collection = session.store.catalogue.visible_collection(AUTH, COLLECTION)
    index = session.index(collection)
    tools = TOOLS.setdefault(id(session), Toolbox(index))
    reasoner = RulesReasoner(index.settings, tools.term_weights(), index.embedder)
    understanding = reasoner.understand(query.text, [])
    if len(understanding.parts) > 1:
        return None
    question = reasoner.plan(understanding, tools.specs(AUTH)).questions[0]
    found = tools.run("search", {"query": query.text, "limit": HITS}, AUTH, float("inf"))
    evidence = found.evidence[:HITS]
    if not evidence:
        return None
    assert index.embedder is not None
    wanted = reasoner._relevance.wanted(question, evidence_languages(evidence))
    vector = index.embedder.embed_query(query.text)
    sentences, x = features(wanted, evidence, likeness(tools, vector, evidence))
    texts = [one.evidence.text[one.start : one.end] for one in sentences]
    golds = [normal(a) for a in query.answers if normal(a)]
    y = [
        float(
            any(g in normal(text) for g in golds)
            and (not query.grades or one.evidence.document_id in query.relevant)
        )
        for one, text in zip(sentences, texts, strict=True)
    ]
    meta = {
        "id": query.query_id,
        "text": query.text,
        "group": "unanswerable" if query.type == UNANSWERABLE else group,
        "language": detect_language(query.text),
        "answers": list(query.answers),
        "wants": wanted.wants,
        "sentences": texts,
    }
    return {"x": x, "y": np.array(y, dtype=np.float32), "meta": meta}


TOOLS: dict[int, Toolbox] = {}


def likeness(tools: Toolbox, vector: Any, evidence: list[Evidence]) -> list[Any]:
    """Return the cosines of the sentences of evidence, and of each as a whole."""
    stored = tools.sentence_vectors([item.chunk_id for item in evidence])
    found = []
    for item in evidence:
        whole = item.scores.get("vector", 0.0)
        spans = spans_of(item.text, item.kind)
        rows = stored.get(item.chunk_id)
        if rows is not None and len(rows) == len(spans):
            cosines = rows @ vector
        else:
            cosines = np.full(len(spans), whole)
        found.append(np.append(cosines, whole).astype(np.float32))
    return found


def main() -> None:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["collect", "train"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--embedder", default="embedded")
    given = parser.parse_args()
    if given.what == "collect":
        collect(given.source, given.target, given.embedder, given.sets)


if __name__ == "__main__":
    main()
