"""Remember the results of searches for a while, so that a caller who asks again is served at once.

A result belongs to everything that decides it: the verified caller, the collection with its
profile, the index version, the settings, the models, and the call. Whatever of it differs leads
elsewhere, so an ingest, a deletion or a change of rights leaves old results behind at once. A call
that is being answered in one thread is waited for in another.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from core.auth import AuthContext
from core.cache import Cache, local_cache
from core.distribution import program_version
from retrievers.types import Index
from tools.types import ToolResult

LONGEST_RUN = 86_400.0  # seconds; more than any budget allows

_RESULTS = TypeAdapter(ToolResult)


@dataclass
class ToolCall:
    """One call: with its result where that is remembered, else whoever made it puts it here."""

    result: ToolResult | None = None


class Results:
    """The remembered results of one index's searches; safe to share between threads."""

    def __init__(self, index: Index, cache: Cache | None = None, model: str = "") -> None:
        """Share `cache` with other runs; without one remember the latest of this run alone.

        `model` is the chat model that may write passages.
        """
        self._index = index
        self._model = model
        if cache is None or not cache.enabled:
            size = index.settings.retrieval.tool_cache
            cache = local_cache("results", max(1, size), LONGEST_RUN if size else 0.0)
        self._cache = cache

    @contextmanager
    def call(
        self, auth: AuthContext, tool: str, arguments: dict[str, Any], deadline: float
    ) -> Iterator[ToolCall]:
        """Look up one call; while it has no result, the holder makes it and puts it there.

        After `deadline` (of `time.monotonic()`), and for what no tool will accept, nothing is
        looked up. A result that is partial, late or misses rows is not remembered.
        """
        key = self._key(auth, tool, arguments) if time.monotonic() <= deadline else None
        if key is None:
            yield ToolCall()
            return
        with self._cache.claim(key, deadline) as claim:
            call = ToolCall()
            if claim.value is not None:
                call.result = _RESULTS.validate_json(claim.value)
                call.result.remembered, call.result.stages = True, []
                yield call
                return
            yield call
            made = call.result
            if made and not made.partial and not made.hidden and time.monotonic() < deadline:
                claim.value = _RESULTS.dump_json(made)

    def _key(self, auth: AuthContext, tool: str, arguments: dict[str, Any]) -> str | None:
        if not self._cache.enabled or not isinstance(auth, AuthContext):
            return None
        try:
            return self._cache.key(
                caller={**auth.describe(), "operator": auth.operator},
                version=self._index.catalogue.index_version(),
                tool=tool,
                arguments=arguments,
                decides=self._decides,
            )
        except (TypeError, ValueError):  # arguments that are no JSON: the tool says so
            return None

    @cached_property
    def _decides(self) -> dict[str, Any]:
        return deciding(self._index, self._model)


def deciding(index: Index, model: str) -> dict[str, Any]:
    """Return everything but caller, call and index version that decides what a search finds."""
    reranker, second = index.reranker, index.second
    return {
        "program": program_version(),
        "collection": [index.collection.tenant, index.collection.name, index.collection.id],
        "profile": _digest(index.collection.profile.model_dump_json()),
        "settings": _digest(index.settings.model_dump_json()),
        "embedder": index.embedder.model_id if index.embedder else None,
        "reranker": reranker.model_id if reranker else None,
        "second": second.model_id if second else None,
        "model": model,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
