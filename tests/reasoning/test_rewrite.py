"""Rewrites: what is added, what is kept, what drifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from builders import asking, graded, piece, weights_for

from core.settings import Settings
from core.types import Call, SubQuestion, ToolSpec
from reasoning.rules.reasoner import ClassicReasoner, RulesReasoner

Rules = Callable[..., RulesReasoner]


def spec(name: str, base: str = "search", *, scoped: bool = False) -> ToolSpec:
    return ToolSpec(name=name, base=base, purpose=f"Find things with {name}.", scoped=scoped)


FOUND = [graded(piece("The dose is in the leaflet."), 1)]
TOOLS = [
    spec("search_guidelines", scoped=True),
    spec("search_reports", scoped=True),
    spec("search"),
    spec("search_vector", "search_vector"),
    spec("search_text", "search_text"),
    spec("query_records", "query_records"),
    spec("read_document", "read_document"),
]


def planned(text: str, language: str = "en", about: str = "") -> SubQuestion:
    calls = [Call(tool="search_guidelines", arguments={"query": text, "language": language})]
    return asking(text, language, about=about, calls=calls)


@pytest.mark.parametrize(
    ("language", "text", "kept", "added"),
    [
        ("en", "Who maintains the Kepler pump?", "Kepler pump", "owner"),
        ("en", "What is the maximum dose of XR9?", "XR9", "limit"),
        ("ru", "Какова максимальная доза препарата Альфа?", "Альфа", "предел"),
        ("uk", "Яка максимальна доза препарату Альфа?", "Альфа", "межа"),
        ("zh", "XR9 的最大剂量是多少？", "XR9", "上限"),
    ],
)
def test_a_rewrite_keeps_the_names_and_adds_synonyms(
    language: str, text: str, kept: str, added: str, rules: Rules
) -> None:
    # Any similarity passes here: what is looked at is the proposal.
    made = rules(drift_similarity=0).rewrite(planned(text, language), FOUND, TOOLS)
    assert made is not None
    assert kept in made.query
    assert added in made.query
    # Another source may say what the one that was chosen does not.
    assert [call.tool for call in made.calls] == ["search_guidelines", "search"]
    assert all(call.arguments["extended"] for call in made.calls)
    assert all(call.arguments["query"] == made.query for call in made.calls)


def test_the_carried_topic_stays_in_the_query(rules: Rules) -> None:
    question = planned("who maintains it", about="Kepler pump")
    made = rules(drift_similarity=0).rewrite(question, [], TOOLS)
    assert made is not None
    assert "Kepler pump" in made.query


class DriftingEmbedder:
    """Find no text similar to another."""

    dimension = 64
    model_id = "drifting"
    languages = None

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def similarity(self, cosine: float, *languages: str) -> float:
        return cosine

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        place = self._seen.setdefault(text, len(self._seen) % self.dimension)
        return np.eye(self.dimension, dtype=np.float32)[place]


def test_a_rewrite_that_drifts_is_thrown_away() -> None:
    reasoner = RulesReasoner(Settings(), weights_for([]), DriftingEmbedder())
    assert reasoner.rewrite(planned("Who maintains the pump?"), [], TOOLS) is None
    lenient = RulesReasoner(Settings(drift_similarity=0), weights_for([]), DriftingEmbedder())
    assert lenient.rewrite(planned("Who maintains the pump?"), [], TOOLS) is not None


def test_similarity_is_reported_and_above_the_limit(rules: Rules) -> None:
    made = rules().rewrite(planned("What is the maximum dose of morphine?"), [], TOOLS)
    assert made is not None
    assert Settings().drift_similarity <= made.similarity <= 1.001


def test_the_classic_pipeline_never_rewrites() -> None:
    reasoner = ClassicReasoner(Settings(), weights_for([]), None)
    assert reasoner.rewrite(planned("Who maintains the pump?"), [], TOOLS) is None
