"""Train what tells which sentences are worth a note, and which note answers a question.

python scripts/train_memory.py worth   # writes reasoning/worth.npz
python scripts/train_memory.py answers  # prints the weights of reasoning/rules/note_grades.py

`worth` reads `scripts/statements/LANGUAGE.tsv`, lines of 1 or 0, a tab and a sentence, and
`answers` the statements and questions of `benchmarks/memory_talks.jsonl`. Each first reports every
language as one that was left out of training has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.settings import load_settings
from core.types import Evidence, SubQuestion
from models.embeddings import Embedder
from models.loading import open_embedder
from models.vectors import Vectors
from reasoning.rules.note_grades import note_features
from reasoning.worth import FILE, SCALE

ROOT = Path(__file__).parents[1]
NETWORKS, HIDDEN, EPOCHS = 3, 128, 25
LANGUAGES = ("en", "ru", "uk", "zh")
Network = tuple[Any, ...]


def read_lines(language: str) -> tuple[list[str], list[int]]:
    """Return the sentences of a language, and 1 for those worth a note."""
    text = (ROOT / "scripts" / "statements" / f"{language}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t", 1) for line in text.splitlines()]
    return [row[1] for row in rows], [int(row[0]) for row in rows]


def fit(vectors: Vectors, labels: Vectors) -> list[Network]:
    """Return the weights of networks of one hidden layer, each from another start."""
    given = torch.tensor(vectors, dtype=torch.float32)
    wanted = torch.tensor(labels * 0.96 + 0.02, dtype=torch.float32)
    found = []
    for seed in range(NETWORKS):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(
            torch.nn.Dropout(0.1),
            torch.nn.Linear(given.shape[1], HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.6),
            torch.nn.Linear(HIDDEN, 1),
        )
        steps = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.1)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(given)).split(64):
                steps.zero_grad()
                odds = net(given[batch])[:, 0]
                torch.nn.functional.binary_cross_entropy_with_logits(odds, wanted[batch]).backward()
                steps.step()
        first, last = net[1], net[4]
        parts = (first.weight.T, first.bias, last.weight[0], last.bias)
        found.append(tuple(one.detach().numpy() for one in parts))
    return found


def joined(networks: list[Network]) -> dict[str, Vectors]:
    """Return networks side by side as one, whose log odds are the mean of theirs."""
    first, bias, last, end = zip(*networks, strict=True)
    return {
        "first": np.concatenate(first, 1).astype(np.float16),
        "first_bias": np.concatenate(bias).astype(np.float16),
        "last": (np.concatenate(last) / len(networks)).astype(np.float16),
        "last_bias": np.mean(end, 0).astype(np.float16),
    }


def odds_of(weights: dict[str, Vectors], vectors: Vectors) -> Vectors:
    """Return the log odds of scaled vectors."""
    hidden = np.maximum(vectors @ weights["first"] + weights["first_bias"], 0)
    odds: Vectors = hidden @ weights["last"] + weights["last_bias"]
    return odds


def train_worth(embedder: Embedder) -> None:
    """Report each language left out, and write the weights fitted on all."""
    vectors, labels, owner = [], [], []
    for language in LANGUAGES:
        sentences, kept = read_lines(language)
        vectors.append(embedder.embed_documents(sentences))
        labels += kept
        owner += [language] * len(kept)
    given, wanted, own = np.concatenate(vectors), np.array(labels), np.array(owner)
    mean = given.mean(0)
    scaled = (given - mean) * SCALE
    for language in LANGUAGES:
        out = own == language
        odds = odds_of(joined(fit(scaled[~out], wanted[~out])), scaled[out])
        truth = wanted[out]
        for least in (0.0, 0.5, 1.0, 1.5):
            kept, junk = (odds[truth == one] > least for one in (1, 0))
            print(f"{language} left out, above {least}: kept {kept.mean():.3f}, "
                  f"junk {junk.mean():.3f}")  # fmt: skip
    np.savez(FILE, mean=mean.astype(np.float16), **joined(fit(scaled, wanted)))


def train_answers(embedder: Embedder) -> None:
    """Report each language left out, and print the weights fitted on all."""
    lines = (ROOT / "benchmarks" / "memory_talks.jsonl").read_text(encoding="utf-8").splitlines()
    talks = [json.loads(line) for line in lines]
    random = np.random.default_rng(0)
    rows: list[tuple[str, Vectors, Vectors]] = []
    for language in LANGUAGES:
        own = [one for one in talks if one["language"] == language]
        asked = [one for one in own if one["kind"] in ("keep", "yesno") and len(one["turns"]) == 1]
        notes = [note(one["turns"][0], language, str(place)) for place, one in enumerate(asked)]
        for place, one in enumerate(asked):
            question = SubQuestion(id="q", text=one["ask"], query=one["ask"], language=language)
            for gold in (True, True, False):
                others = [at for at in random.permutation(len(asked)) if at != place]
                kept = [place] * gold + others[: int(random.integers(1, 12))]
                found = note_features(question, [notes[at] for at in kept], embedder)
                rows.append((language, found, np.array([at == place for at in kept])))
        for one in own:
            if one["kind"] == "two":  # of like things, the first of which is asked about
                question = SubQuestion(id="q", text=one["ask"], query=one["ask"], language=language)
                like = [note(text, language, text) for text in one["turns"]]
                truth = np.array([True, False])
                rows += 3 * [(language, note_features(question, like, embedder), truth)]
            if one["kind"] == "absent":  # near ones that do not answer
                question = SubQuestion(id="q", text=one["ask"], query=one["ask"], language=language)
                near = [note(text, language, text) for text in one["turns"]]
                found = note_features(question, near, embedder)
                rows.append((language, found, np.zeros(len(near), dtype=bool)))
    for out in (*LANGUAGES, ""):
        used = [row for row in rows if row[0] != out]
        weights = logistic(
            np.concatenate([row[1] for row in used]), np.concatenate([row[2] for row in used])
        )
        print(out or "all", weights.round(2).tolist())
        for least in (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5):
            right, wrong, absent = [], [], []
            for language, found, truth in rows:
                if language == out or not out:
                    odds = found @ weights[:-1] + weights[-1]
                    best, above = int(odds.argmax()), odds.max() > least
                    if truth.any():
                        right.append(above and truth[best])
                        wrong.append(above and not truth[best])
                    else:
                        absent.append(above)
            print(f"  above {least}: right {np.mean(right):.3f}, wrong {np.mean(wrong):.3f}, "
                  f"answered without {np.mean(absent):.3f}")  # fmt: skip


def logistic(given: Vectors, wanted: Vectors) -> Vectors:
    """Return weights and, last, the constant of a logistic regression."""
    rows = torch.tensor(np.hstack([given, np.ones((len(given), 1))]), dtype=torch.float64)
    truth = torch.tensor(wanted, dtype=torch.float64)
    weights = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
    steps = torch.optim.LBFGS([weights], max_iter=500)

    def loss() -> torch.Tensor:
        steps.zero_grad()
        odds = rows @ weights
        found = torch.nn.functional.binary_cross_entropy_with_logits(odds, truth)
        found = found + 1e-4 * (weights[:-1] ** 2).sum()
        found.backward()
        return found

    steps.step(loss)
    result: Vectors = weights.detach().numpy()
    return result


def note(text: str, language: str, name: str) -> Evidence:
    """Return a statement as the evidence that a note of it is."""
    return Evidence(
        evidence_id=name, chunk_id=name, document_id=name, document_key=name, source="",
        title="", section="", text=text, kind="note", language=language,
    )  # fmt: skip


if __name__ == "__main__":
    opened = open_embedder(load_settings()[0])
    {"worth": train_worth, "answers": train_answers}[sys.argv[1]](opened)
