"""Scores of short answers from memory, as LoCoMo's own evaluation and A-MEM's compute them.

Maharana et al. 2024 (task_eval/evaluation.py): F1 over Porter stems of normalised words, of the
best part for each part of a multi-hop answer, and for adversarial questions whether the answer is
that nothing is mentioned. BLEU-1 and ROUGE are those of nltk and rouge-score (Xu et al. 2025).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

NOT_MENTIONED = "Not mentioned"
REFUSING = ("not mentioned", "no information available")
METRICS = ("em", "f1", "bleu1", "rouge2", "rougeL")
MULTI_HOP, OPEN_DOMAIN = "multi-hop", "open-domain"
ARTICLES = re.compile(r"\b(a|an|the|and)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def scores(answer: str, gold: str, category: str) -> dict[str, float]:
    """Return the metrics of one answer, 0..1; a `gold` of "" is that nothing is mentioned."""
    if not gold:
        refused = float(any(one in answer.casefold() for one in REFUSING))
        return dict.fromkeys(METRICS, refused)
    gold = gold.partition(";")[0].strip() if category == OPEN_DOMAIN else gold
    found = _rouge().score(gold, answer)
    return {
        "em": float(set(normalised(answer).split()) == set(normalised(gold).split())),
        "f1": _parts_f1(answer, gold) if category == MULTI_HOP else word_f1(answer, gold),
        "bleu1": _bleu1(answer, gold),
        "rouge2": float(found["rouge2"].fmeasure),
        "rougeL": float(found["rougeL"].fmeasure),
    }


def normalised(text: str) -> str:
    """Return a text in small letters without punctuation and articles."""
    bare = text.replace(",", "").lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


def word_f1(answer: str, gold: str) -> float:
    """Return the F1 of the stems that two texts share."""
    ours, theirs = (Counter(map(_stem, normalised(one).split())) for one in (answer, gold))
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total()) if shared else 0.0


def _parts_f1(answer: str, gold: str) -> float:
    """Return the mean over the parts of a gold answer of the best F1 of a part of the answer."""
    ours, theirs = answer.split(","), gold.split(",")
    return sum(max(word_f1(one, part) for one in ours) for part in theirs) / len(theirs)


def _bleu1(answer: str, gold: str) -> float:
    tools = _nltk()
    ours, theirs = answer.lower().split(), gold.lower().split()
    smooth = tools.SmoothingFunction().method1
    given = {"weights": (1, 0, 0, 0), "smoothing_function": smooth}
    return float(tools.sentence_bleu([theirs], ours, **given)) if ours else 0.0


@cache
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


@cache
def _stemmer() -> Any:  # noqa: ANN401 - nltk's own
    return import_module("nltk.stem.porter").PorterStemmer()


@cache
def _nltk() -> Any:  # noqa: ANN401 - nltk's own
    return import_module("nltk.translate.bleu_score")


@cache
def _rouge() -> Any:  # noqa: ANN401 - rouge-score's own
    scorer = import_module("rouge_score.rouge_scorer")
    return scorer.RougeScorer(["rouge2", "rougeL"], use_stemmer=True)
