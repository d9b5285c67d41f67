"""Train what tells which sentences are worth a note, and which note answers or gives way.

python scripts/train_memory.py worth   # writes reasoning/worth.npz
python scripts/train_memory.py answers  # prints the weights of reasoning/rules/note_grades.py
python scripts/train_memory.py changes  # writes reasoning/changes.npz, prints for corrections.py

`worth` reads `scripts/statements/LANGUAGE.tsv`, lines of 1 or 0, a tab and a sentence, and
`beside.tsv`: a language, a group, and one of its statements, none of which takes the place of
another; `answers` the statements and questions of `benchmarks/memory_talks.jsonl`, and `asked.tsv`:
a language, a group of `beside.tsv`, a question and the place of the statement in it that answers, 0
for none; `changes` the corrections and small talk of the talks, `beside.tsv` and `changes.tsv`: a
language, an earlier and a later statement, and 1 where the later takes its place. Each first
reports every language as one that was left out of training has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.language.changes import begins_correction, marks_change
from core.notes import Note, NoteDraft, TurnSource
from core.settings import load_settings
from core.types import Evidence, SubQuestion
from models.embeddings import Embedder
from models.loading import open_embedder
from models.vectors import Vectors
from reasoning.corrections import pair_features
from reasoning.rules.note_grades import note_features
from reasoning.worth import CHANGES, FILE, SCALE

ROOT = Path(__file__).parents[1]
NETWORKS, HIDDEN, EPOCHS = 3, 128, 25
LANGUAGES = ("en", "ru", "uk", "zh")
MOST = 12  # notes that are read at once
Network = tuple[Any, ...]


def read_lines(language: str) -> tuple[list[str], list[int]]:
    """Return the sentences of a language, and 1 for those worth a note."""
    text = (ROOT / "scripts" / "statements" / f"{language}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t", 1) for line in text.splitlines()]
    beside = [text for own, _, group in read_beside() if own == language for text in group]
    return [row[1] for row in rows] + beside, [int(row[0]) for row in rows] + len(beside) * [1]


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
    talks, random = read_talks(), np.random.default_rng(0)
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
        rows += asked_rows(language, embedder, random)
        for one in (row for row in own if row["kind"] in ("two", "absent")):
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
    report_left_out(rows)


def asked_rows(
    language: str, embedder: Embedder, random: np.random.Generator
) -> list[tuple[str, Vectors, Vectors]]:
    """Return rows of questions about things of which much is known, with and without the answer."""
    groups = {group: own for spoken, group, own in read_beside() if spoken == language}
    rows: list[tuple[str, Vectors, Vectors]] = []
    for spoken, group, text, place in read_table("asked.tsv"):
        if spoken != language:
            continue
        question = SubQuestion(id="q", text=text, query=text, language=language)
        gold = groups[group][int(place) - 1] if int(place) else ""
        others = [one for name, own in groups.items() if name != group for one in own]
        for known in (True, False) if gold else (True,):
            kept = [one for one in groups[group] if known or one != gold]
            more = random.permutation(len(others))[: max(0, MOST - len(kept))]
            kept += [others[at] for at in more]
            found = note_features(question, [note(one, language, one) for one in kept], embedder)
            rows.append((language, found, np.array([one == gold for one in kept])))
    return rows


def report_left_out(rows: list[tuple[str, Vectors, Vectors]]) -> None:
    """Print the weights without each language and with all, and how often the best row is right."""
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


def read_pairs() -> list[tuple[str, str, str, bool]]:
    """Return languages, earlier and later statements, and whether the later takes its place."""
    pairs = [(row[0], row[1], row[2], row[3] == "1") for row in read_table("changes.tsv")]
    for one in read_talks():
        if one["kind"] in ("correction", "two"):
            turns = one["turns"]
            pairs.append((one["language"], turns[0], turns[-1], one["kind"] == "correction"))
    return pairs


def read_beside() -> list[tuple[str, str, list[str]]]:
    """Return languages, groups and their statements, near each other, which all hold."""
    found: dict[tuple[str, str], list[str]] = {}
    for language, group, statement in read_table("beside.tsv"):
        found.setdefault((language, group), []).append(statement)
    return [(language, group, statements) for (language, group), statements in found.items()]


def read_table(name: str) -> list[list[str]]:
    """Return the rows of a table of statements."""
    text = (ROOT / "scripts" / "statements" / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()]


def read_talks() -> list[dict[str, Any]]:
    """Return the talks on which memory was built."""
    lines = (ROOT / "benchmarks" / "memory_talks.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def fit_changes(pairs: list[tuple[str, str, str, bool]], embedder: Embedder) -> None:
    """Write what tells sentences that say of a change: words of change teach it those alike."""
    sentences: list[str] = []
    labels: list[bool] = []
    for language in LANGUAGES:
        found = [text for text, kept in zip(*read_lines(language), strict=True) if kept]
        sentences += found
        labels += [
            marks_change(one, language, surely=True) or begins_correction(one, language)
            for one in found
        ]
    for _, earlier, later, replaces in pairs:
        sentences += [earlier, *(3 if replaces else 1) * [later]]
        labels += [False, *(3 if replaces else 1) * [replaces]]
    vectors = embedder.embed_documents(sentences)
    mean = vectors.mean(0)
    weights = logistic((vectors - mean) * SCALE, np.array(labels, dtype=float), decay=1e-3)
    np.savez(CHANGES, mean=mean.astype(np.float16), weights=weights[:-1].astype(np.float16),
             constant=weights[-1])  # fmt: skip


def train_changes(embedder: Embedder) -> None:
    """Report each language left out, and print the weights fitted on all."""
    pairs, random = read_pairs(), np.random.default_rng(0)
    fit_changes(pairs, embedder)
    talks = [one for one in read_talks() if len(one["turns"]) == 1]
    rows: list[tuple[str, Vectors, Vectors]] = []
    for language in LANGUAGES:
        told = [one["turns"][0] for one in talks
                if one["language"] == language and one["kind"] in ("keep", "yesno")]  # fmt: skip
        junk = [one["turns"][0] for one in talks
                if one["language"] == language and one["kind"] == "junk"]  # fmt: skip
        own = [pair for pair in pairs if pair[0] == language]
        # What is stated or said after another thing replaces nothing.
        own += [(language, str(random.choice(told)), one, False) for one in (*told, *junk)]
        for _, earlier, later, replaces in own:
            for _ in range(3 if replaces else 2):
                beside = random.permutation(told)[: int(random.integers(0, 5))].tolist()
                notes = [kept_note(earlier, language, "0")]
                notes += [kept_note(one, language, one) for one in beside if one != later]
                begins = replaces and begins_correction(later, language)
                last = "0" if begins or random.random() < 0.5 else ""
                draft = NoteDraft(content=later, provenance=of_turn(later), language=language)
                found = pair_features(draft, notes, last, embedder)
                truth = np.array([replaces and one.note_id == "0" for one in notes])
                rows.append((language, found, truth))
    for language, _, statements in read_beside():
        for later in statements:
            notes = [kept_note(one, language, one) for one in statements if one != later]
            draft = NoteDraft(content=later, provenance=of_turn(later), language=language)
            last = notes[int(random.integers(len(notes)))].note_id
            found = pair_features(draft, notes, last, embedder)
            rows.append((language, found, np.zeros(len(notes), dtype=bool)))
    report_left_out(rows)


def kept_note(text: str, language: str, name: str) -> Note:
    """Return a statement as the note that is kept of it."""
    day = "2026-01-01T00:00:00+00:00"
    return Note(content=text, provenance=of_turn(text), language=language, note_id=name,
                tenant="t", owner="o", created_at=day, changed_at=day)  # fmt: skip


def of_turn(text: str) -> TurnSource:
    """Return that a text is what a turn states."""
    return TurnSource(conversation="c", run_id="r", quote=text)


def logistic(given: Vectors, wanted: Vectors, decay: float = 1e-4) -> Vectors:
    """Return weights and, last, the constant of a logistic regression."""
    rows = torch.tensor(np.hstack([given, np.ones((len(given), 1))]), dtype=torch.float64)
    truth = torch.tensor(wanted, dtype=torch.float64)
    weights = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
    steps = torch.optim.LBFGS([weights], max_iter=500)

    def loss() -> torch.Tensor:
        steps.zero_grad()
        odds = rows @ weights
        found = torch.nn.functional.binary_cross_entropy_with_logits(odds, truth)
        found = found + decay * (weights[:-1] ** 2).sum()
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
    {"worth": train_worth, "answers": train_answers, "changes": train_changes}[sys.argv[1]](opened)
