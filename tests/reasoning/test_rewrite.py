"""Rewrites: what is added, what is kept, what drifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from builders import asking, piece, weights_for

from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Call, SubQuestion
from reasoning.rules.classic import ClassicReasoner
from reasoning.rules.reasoner import RulesReasoner

Rules = Callable[..., RulesReasoner]


def spec(name: str, base: str = "search", *, scoped: bool = False) -> ToolSpec:
    return ToolSpec(name=name, base=base, purpose=f"Find things with {name}.", scoped=scoped)


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
def test_the_first_rewrite_keeps_the_names_and_adds_synonyms(
    language: str, text: str, kept: str, added: str, rules: Rules
) -> None:
    # Any similarity passes here: what is looked at is the proposal.
    made = rules(drift_similarity=0).rewrite(planned(text, language), [], TOOLS, 1)
    assert made is not None
    assert kept in made.query
    assert added in made.query
    assert [call.tool for call in made.calls] == ["search_guidelines"]
    assert all(call.arguments["extended"] for call in made.calls)
    assert all(call.arguments["query"] == made.query for call in made.calls)


def test_the_carried_topic_stays_in_the_query(rules: Rules) -> None:
    question = planned("who maintains it", about="Kepler pump")
    made = rules(drift_similarity=0).rewrite(question, [], TOOLS, 1)
    assert made is not None
    assert "Kepler pump" in made.query


def test_the_second_rewrite_learns_from_the_evidence_and_asks_all_general_tools(
    rules: Rules,
) -> None:
    evidence = [
        piece("The Kepler pump feeds the boiler; its gasket leaks gasket gasket."),
        piece("Gasket of the Kepler pump."),
        piece("Soup."),
    ]
    question = planned("Kepler pump repair instructions")
    made = rules(evidence, drift_similarity=0.3).rewrite(question, evidence, TOOLS, 2)
    assert made is not None
    assert made.query.startswith("Kepler pump repair instructions")
    assert len(made.query) > len("Kepler pump repair instructions")
    assert [call.tool for call in made.calls] == ["search", "read_document", "read_document"]
    read = [call.arguments["chunk_id"] for call in made.calls if call.tool == "read_document"]
    assert read == [item.chunk_id for item in evidence[:2]]


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
    assert reasoner.rewrite(planned("Who maintains the pump?"), [], TOOLS, 1) is None
    lenient = RulesReasoner(Settings(drift_similarity=0), weights_for([]), DriftingEmbedder())
    assert lenient.rewrite(planned("Who maintains the pump?"), [], TOOLS, 1) is not None


def test_a_drifting_addition_falls_back_to_the_words_of_the_question(rules: Rules) -> None:
    evidence = [piece("soup bread cakes canteen noon")]
    question = planned("Kepler pump")
    made = rules(evidence, drift_similarity=0.99).rewrite(question, evidence, TOOLS, 2)
    assert made is not None
    assert made.query == "Kepler pump"
    assert "drifted" in made.reason


@pytest.mark.parametrize("attempt", [1, 2])
def test_similarity_is_reported_and_above_the_limit(attempt: int, rules: Rules) -> None:
    made = rules().rewrite(planned("What is the maximum dose of morphine?"), [], TOOLS, attempt)
    assert made is not None
    assert Settings().drift_similarity <= made.similarity <= 1.001


def test_a_rewrite_is_the_same_every_time(rules: Rules) -> None:
    question = planned("What is the maximum dose of morphine?")
    evidence = [piece("Morphine is locked away."), piece("The dose is written on a card.")]
    first, second = (rules(evidence).rewrite(question, evidence, TOOLS, 2) for _ in range(2))
    assert first == second


def test_the_classic_pipeline_never_rewrites() -> None:
    reasoner = ClassicReasoner(Settings(), weights_for([]), None)
    assert reasoner.rewrite(planned("Who maintains the pump?"), [], TOOLS, 1) is None
