"""The scorer of sentences: its numbers fit its features, and bad ones are told in one line."""

from __future__ import annotations

import numpy as np
import pytest
from builders import asking, piece

from core.errors import OperatorError
from reasoning.rules.answering.features import FEATURES, features
from reasoning.rules.answering.relevance import (
    BIAS,
    MEANING,
    MOST_ODDS,
    READING,
    WORDS,
    Scorer,
    scorer,
)
from reasoning.rules.answering.wanted import analyse
from reasoning.rules.reasoner import RulesReasoner


@pytest.mark.parametrize(("kind", "read"), [(MEANING, 0), (READING, 1), (WORDS, 0)])
def test_the_installed_numbers_fit_the_features(kind: str, read: int) -> None:
    odds = scorer(kind).odds(np.zeros((2, len(FEATURES) + read), dtype=np.float32))
    assert odds.shape == (2,)
    assert (abs(odds) <= MOST_ODDS).all()


def test_numbers_of_other_features_are_refused_by_name() -> None:
    weights = dict.fromkeys([*FEATURES, BIAS], 0.0)
    del weights["echo"]
    with pytest.raises(OperatorError, match="echo"):
        Scorer(weights)


def test_a_sentence_that_says_more_of_the_question_has_better_features() -> None:
    item = piece("The dose is 20 mg. The canteen serves soup.")
    wanted = analyse(
        asking("What is the dose?"), frozenset({"en"}), lambda t: dict.fromkeys(t, 1.0), None
    )
    likeness = [np.zeros(3, dtype=np.float32)]
    found, rows = features(wanted, [item], likeness)
    assert [item.text[one.start : one.end] for one in found] == [
        "The dose is 20 mg.",
        "The canteen serves soup.",
    ]
    here = FEATURES.index("here")
    assert rows[0, here] == 1.0
    assert rows[1, here] == 0.0


def test_stored_vectors_are_read_and_nothing_is_embedded_again() -> None:
    """Sentences whose vectors the index keeps cost no run of the model."""

    class Counting:
        model_id = "counting@1"
        dimension = 2
        languages = None
        documents = 0

        def similarity(self, cosine: float, *languages: str) -> float:
            return max(0.0, cosine)

        def embed_documents(self, texts: list[str]) -> np.ndarray:
            self.documents += len(texts)
            return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))

        def embed_query(self, text: str) -> np.ndarray:
            return np.array([1.0, 0.0], dtype=np.float32)

    from core.settings import Settings

    item = piece("The dose is 20 mg. The canteen serves soup.")
    stored = {item.chunk_id: np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)}
    embedder = Counting()
    reasoner = RulesReasoner(
        Settings(),
        lambda terms: dict.fromkeys(terms, 1.0),
        embedder,  # type: ignore[arg-type]
        lambda chunk_ids: {one: stored[one] for one in chunk_ids if one in stored},
    )
    reasoner.grade(asking("What is the dose?"), [item])
    assert embedder.documents == 0
    reasoner.grade(asking("What is the dose?"), [piece("Soup is served. The dose is 30 mg.")])
    assert embedder.documents == 2
