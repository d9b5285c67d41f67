"""The embedded model of English, loaded once, and a reasoner of rules over evidence by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from builders import weights_for

from app.session import open_embedder
from core.cache import local_cache
from core.settings import Settings
from core.types import Evidence
from models.embeddings import CachedEmbedder, Embedder
from reasoning.rules.reasoner import RulesReasoner


@pytest.fixture(scope="session")
def minilm() -> Embedder:
    return CachedEmbedder(
        open_embedder(Settings(embedder="embedded-en")), local_cache("embeddings", 4096)
    )


@pytest.fixture(scope="session")
def rules(minilm: Embedder) -> Callable[..., RulesReasoner]:
    """Make the reasoner of a collection that holds `evidence` alone."""

    def make(evidence: Sequence[Evidence] = (), **values: object) -> RulesReasoner:
        return RulesReasoner(Settings(**values), weights_for(evidence), minilm)

    return make
