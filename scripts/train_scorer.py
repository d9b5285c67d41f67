"""Train what scores sentences as answers, on questions whose answers are known.

python scripts/train_scorer.py collect DATA OUT [--embedder NAME] [SET …]
python scripts/train_scorer.py train OUT WEIGHTS [meaning | reading | words …]

`collect` asks the questions of data sets in the BEIR layout over their own corpora (and of other
sets over them: nothing answers those), and keeps the features of every sentence that the search
finds. `train` fits a small network by sets, reports each set as the ones left out of training
have it, and writes the weights fitted on all. Of sets whose articles the reader was trained on,
DATA must hold the questions about the others only (`benchmarks.answer_sets.is_left_out`).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from train_reader import LABELLED

from app.session import Session
from core.language.detect import detect_language
from core.settings import Settings, load_settings
from evals.corpus import AUTH, COLLECTION, build_corpus, build_documents, open_corpus
from evals.dataset import JudgedQuery, read_dataset, read_queries
from models.embeddings import Reads
from reasoning.rules.answering.features import FEATURES, features
from reasoning.rules.answering.relevance import (
    MEANING,
    READER,
    READING,
    WORDS,
    Relevance,
    read_sentences,
    scorer,
)
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

# Set, questions at most, and the set whose questions nothing in it answers.
SETS = (
    ("squad2", 900, "hotpotqa_small"),
    ("xquad_en", 350, "hotpotqa_small"),
    ("xquad_ru", 350, "rubq_ru"),
    ("xquad_zh", 350, "cmrc2018_zh"),
    ("cmrc2018_zh", 400, "xquad_zh"),
    ("tydi_ru", 400, "rubq_ru"),
    ("clapnq", 400, "hotpotqa_small"),
    *((f"{LABELLED}{language}", 1500, "hotpotqa_small") for language in ("en", "ru", "uk", "zh")),
)
# The questions of one set over the parallel passages of another, whose ids they share; and
# questions in that language that nothing there answers.
CROSS = (
    ("xquad_ru", "xquad_en", "rubq_ru"),
    ("xquad_zh", "xquad_en", "cmrc2018_zh"),
    ("xquad_en", "xquad_ru", "hotpotqa_small"),
)
FOREIGN = 100
CROSSED = 150
HITS = 6
LEAST_PART = 12  # letters and digits
UNANSWERABLE = "unanswerable"
# Collections of documents, each with a file of questions that names the lines which answer.
COLLECTIONS, DOCUMENTS = Path(__file__).with_name("collections"), "documents_"


def normal(text: str) -> str:
    """Return a text for comparing: folded, without marks and articles."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return "".join(c for c in text if c.isalnum())


def is_part(sentence: str, answer: str) -> bool:
    """Tell whether a sentence is a part of an answer that is a longer one."""
    return len(sentence) >= LEAST_PART and sentence in answer


def collect(data: Path, out: Path, embedder: str, only: list[str]) -> None:
    """Write one file of features for each set."""
    out.mkdir(parents=True, exist_ok=True)
    settings, _ = load_settings({"reasoner": "rules", "embedder": embedder})
    draw = random.Random(7)
    for name, most, foreign in SETS:
        if not (data / name).is_dir() or (only and name not in only):
            continue
        dataset = read_dataset(data / name, allow_missing=True, judged_only=False)
        asked = [(q, name) for q in dataset.queries if q.answers or q.type == UNANSWERABLE]
        asked = draw.sample(asked, min(most, len(asked)))
        others = [(q, "foreign") for q in read_queries(data / foreign)]
        asked += draw.sample(others, min(FOREIGN, len(others)))
        for source, over, nothing in CROSS:
            if over == name:
                parallel = read_dataset(data / source, allow_missing=True).queries
                known = {q.query_id: q for q in dataset.queries}
                pairs = [
                    (replace(known[q.query_id], text=q.text), f"{source}>{name}")
                    for q in parallel
                    if q.query_id in known
                ]
                asked += draw.sample(pairs, min(CROSSED, len(pairs)))
                none = [(q, "foreign across") for q in read_queries(data / nothing)]
                asked += draw.sample(none, min(FOREIGN, len(none)))
        corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
        kept = []
        with open_corpus(corpus.settings) as session:
            for number, (query, group) in enumerate(asked):
                row = one_question(session, query, group)
                if row is not None:
                    kept.append(row)
                if number % 200 == 0:
                    sys.stderr.write(f"{name} {number}/{len(asked)}\n")
        write(out, name, kept)
    for path in sorted(COLLECTIONS.glob("*.jsonl")):
        name = f"{DOCUMENTS}{path.stem}"
        if not only or name in only:
            write(out, name, list(documents_of(path, settings)))


def documents_of(path: Path, settings: Settings) -> Iterator[dict[str, Any]]:
    """Ask the questions of a collection of documents over them."""
    corpus = build_documents([path.with_suffix("")], settings, lambda *_: None, None)
    with open_corpus(corpus.settings) as session:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            one = json.loads(line)
            kind = "extractive" if one["gold"] else UNANSWERABLE
            query = JudgedQuery(str(number), one["q"], type=kind, answers=tuple(one["gold"]))
            row = one_question(session, query, f"{DOCUMENTS}{detect_language(query.text)}")
            if row is not None:
                yield row


def write(out: Path, name: str, kept: list[dict[str, Any]]) -> None:
    """Write the features of one set."""
    np.savez_compressed(
        out / f"{name}.npz",
        x=np.concatenate([one["x"] for one in kept]).astype(np.float16),
        y=np.concatenate([one["y"] for one in kept]),
        n=np.array([len(one["y"]) for one in kept]),
        meta=json.dumps([one["meta"] for one in kept], ensure_ascii=False),
    )


def one_question(session: Session, query: JudgedQuery, group: str) -> dict[str, Any] | None:
    """Search for one question and return the features of all sentences found, with labels."""
    collection = session.catalogue.visible_collection(AUTH, COLLECTION)
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
    relevance = Relevance(index.embedder, tools.term_weights(), tools.sentence_vectors)
    wanted = relevance.wanted(question, evidence)
    sentences, x = features(wanted, evidence, relevance.likeness(wanted, evidence))
    if isinstance(index.embedder, Reads) and sentences:
        odds = scorer(MEANING).odds(x).tolist()
        read = read_sentences(index.embedder, wanted.text, sentences, odds)
        x = np.hstack([x, np.array([[one.odds] for one in read], dtype=np.float32)])
    texts = [one.evidence.text[one.start : one.end] for one in sentences]
    golds = [normal(a) for a in query.answers if normal(a)]
    y = [
        float(
            any(g in normal(text) or is_part(normal(text), g) for g in golds)
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


# Unanswerable and foreign questions weigh together as much as this share of the answerable ones.
NULL_SHARE = 0.6
# The sets have no code; and without those of labelled passages no lists, release notes or
# definitions, and few sentences about another thing of the same kind, which documentation is full
# of; so these are added to what is learned.
CODED = {"coded": 1.0, "code": -2.5}
CAUTION = 0.5  # log odds by which an answer must be likelier than it is right, for it may mislead
ADDED = {
    "subject": 1.5,
    "listed": 2.5,
    **CODED,
    "formed": 0.7,
    "defines": 0.7,
    "caused": 1.0,
}
NOTHING = ("unanswerable", "foreign", "foreign across")
# Features of meaning, which say nothing without an embedder.
MEANT = ("similarity", "behind", "passage", "foreign", "foreign_similarity")
NAMES = (*FEATURES, READER)
Group = tuple[Any, Any, dict[str, Any]]


def groups_of(path: Path, kind: str) -> list[Group]:
    """Read the questions of one set: features, labels and what is known of each."""
    kept = np.load(path)
    x, y, meta = kept["x"].astype(np.float64), kept["y"], json.loads(str(kept["meta"]))
    words = kind == WORDS
    if kind != READING:
        x = x[:, : len(FEATURES)]
    if words:
        x[:, [FEATURES.index(name) for name in MEANT]] = 0
    ends = np.cumsum(kept["n"])
    cut = zip(ends - kept["n"], ends, meta, strict=True)
    groups = [(x[a:b], y[a:b], one) for a, b, one in cut]
    if path.stem.startswith(
        (LABELLED, DOCUMENTS)
    ):  # each sentence is labelled: what was not found is not there
        groups = [
            (x, y, one if y.any() else {**one, "group": UNANSWERABLE}) for x, y, one in groups
        ]
    # Words alone say nothing across languages.
    return [one for one in groups if not (words and is_across(one[2]["group"]))]


def is_across(group: str) -> bool:
    """Tell whether the questions of a group are in another language than the documents."""
    return ">" in group or group.endswith("across")


def echoed(groups: list[Group], seed: int = 3) -> list[Group]:
    """Add to every other question a sentence that repeats it and says nothing new.

    Prose has few of them, real documents many: headings, questions, greetings, announcements.
    """
    draw = random.Random(seed)
    found = []
    for x, y, meta in groups:
        if not y.any() or draw.random() < 0.5:
            found.append((x, y, meta))
            continue
        # The reader's odds, which come last, are taken to be fooled by it.
        row = dict(zip(NAMES, x[int(np.argmax(y))].tolist(), strict=False))
        said = draw.uniform(0.8, 1.0)
        row |= {"here": said, "near": 0.0, "heading": 0.0, "chunk": 1 - said, "valued_near": 0.0}
        row |= {"echo": draw.uniform(0.7, 1.0), "news": draw.uniform(0.0, 0.3)}
        row |= {"lacking": row["lacking"] + row["valued"], "valued": 0.0, "first": 1.0}
        row |= {"similarity": row["similarity"] + 0.01, "behind": 0.0, "defines": 0.0}
        row[draw.choice(["asks", "announces", "unfinished"])] = 1.0
        row["short"] = float(draw.random() < 0.3)
        found.append((np.vstack([x, list(row.values())]), np.append(y, 0), meta))
    return found


def fit(groups: list[Group], ridge: float = 2e-3) -> tuple[Any, float]:
    """Fit a conditional logit with a null option; returns weights and bias for raw features."""
    usable = [g for g in echoed(groups) if g[1].any() or g[2]["group"] in NOTHING]
    x = np.concatenate([g[0] for g in usable])
    y = np.concatenate([g[1] for g in usable]) > 0
    counts = np.array([len(g[1]) for g in usable])
    starts = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(usable)), counts)
    answered = np.array([bool(g[1].any()) for g in usable])
    sizes: dict[str, int] = {}
    for g in usable:
        sizes[g[2]["group"]] = sizes.get(g[2]["group"], 0) + 1
    weight = np.array([1 / sizes[g[2]["group"]] for g in usable])
    weight[~answered] *= NULL_SHARE * weight[answered].sum() / max(weight[~answered].sum(), 1e-9)
    weight /= weight.sum()
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    z = np.hstack([(x - mean) / deviation, np.ones((len(x), 1))])
    theta = np.zeros(z.shape[1])
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, 501):  # Adam (Kingma and Ba 2015) on the full set
        e = np.exp(np.clip(z @ theta, -30, 30))
        total = 1 + np.add.reduceat(e, starts)
        gold = np.add.reduceat(e * y, starts)
        share = e / total[owner]
        want = np.where(y & answered[owner], e / np.maximum(gold[owner], 1e-12), 0.0)
        slope = z.T @ ((share - want) * weight[owner])
        slope[:-1] += ridge * theta[:-1]
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        theta -= 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    weights = theta[:-1] / deviation
    return weights, float(theta[-1] - weights @ mean)


def measure(groups: list[Group], weights: Any, bias: float) -> dict[str, Any]:
    """Return, by group, whether the best sentence is right, and what the gate lets through.

    Of groups that nothing answers also how often the best sentence of an answerable question of
    the set scores higher (`auc`), and how many of these are right at a gate for half (`right`).
    """
    from sklearn.metrics import roc_auc_score

    rows: dict[str, list[tuple[bool, bool, float]]] = {}
    for x, y, meta in groups:
        odds = np.clip(x @ weights + bias, -30, 30)
        best = np.argsort(-odds)[:2]
        score = float(1 / (1 + np.exp(-odds[best[0]])))
        rows.setdefault(meta["group"], []).append((y[best[0]] > 0, y[best].any(), score))
    columns = {
        name: [np.array(one) for one in zip(*kept, strict=True)] for name, kept in rows.items()
    }
    own = [one for name, one in columns.items() if name not in NOTHING and not is_across(name)]
    firsts, _, scores = (np.concatenate(one) for one in zip(*own, strict=True))
    report: dict[str, Any] = {}
    for name, (first, two, score) in columns.items():
        report[name] = {"n": len(first), "first": first.mean(), "two": two.mean()}
        if name in NOTHING:
            labels = [1] * len(scores) + [0] * len(score)
            report[name]["auc"] = roc_auc_score(labels, np.concatenate([scores, score]))
            report[name]["right"] = (firsts & (scores >= np.median(score))).mean()
        for limit in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5):
            passed = score >= limit
            report[name][f"{limit}"] = (passed.mean(), (two & passed).mean())
    return report


def train(folder: Path, target: Path, kinds: list[str]) -> None:
    """Report each set as the weights of the others judge it; write those of all."""
    import yaml

    rows: dict[str, dict[str, float]] = yaml.safe_load(target.read_text(encoding="utf-8"))
    for name in kinds:
        sets = {path.stem: groups_of(path, name) for path in sorted(folder.glob("*.npz"))}
        for left in sets:
            # The three xquad sets hold the same questions, and one hand wrote the collections, so
            # they are left out together.
            same = {one for one in sets if one[:5] == left[:5]}
            others = [g for key, kept in sets.items() if key not in same for g in kept]
            for group, row in measure(sets[left], *fit(others or sets[left])).items():
                gates = "  ".join(
                    f"{gate}:{one[0]:.2f}/{one[1]:.2f}"
                    for gate, one in row.items()
                    if gate[0] == "0"
                )
                parted = ("auc", "right")
                nothing = "".join(f" {one} {row[one]:.3f}" for one in parted if one in row)
                sys.stdout.write(
                    f"{name[:8]} without {left}: {group} n={row['n']} first {row['first']:.3f}"
                    f" two {row['two']:.3f}{nothing} passed/right at {gates}\n"
                )
        weights, bias = fit([g for kept in sets.values() for g in kept])
        found = dict(zip(NAMES, weights.tolist(), strict=False)) | {"bias": bias}
        for feature, more in (CODED if name == READING else ADDED).items():
            found[feature] += more
        # Of the subject it is its mean in the sets.
        found["bias"] -= CAUTION if name == READING else ADDED["subject"] * 0.6
        rows[name] = {key: round(value, 4) for key, value in found.items()}
    written = yaml.safe_dump(rows, sort_keys=False)
    target.write_text(f"# Written by scripts/train_scorer.py.\n{written}", encoding="utf-8")


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
    else:
        train(given.source, given.target, given.sets or [MEANING, READING, WORDS])


if __name__ == "__main__":
    main()
