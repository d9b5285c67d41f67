"""Remember the results of searches for a while, so that a caller who asks again is served at once.

A result belongs to everything that decides it: the verified caller, the collection with its
profile, the index version, the settings, the models, and the call. Whatever of it differs leads
elsewhere, so an ingest, a deletion or a change of rights leaves old results behind at once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import TypeAdapter

from core.auth import AuthContext
from core.cache.cache import Cache
from retrievers.types import Index
from tools.types import ToolResult

_RESULTS = TypeAdapter(ToolResult)


class SharedResults:
    """Share the results of one index's searches between runs of the same caller."""

    def __init__(self, cache: Cache, index: Index, model: str = "") -> None:
        """Keep results in `cache`; `model` is the chat model that may write passages."""
        self._cache = cache
        self._decides = deciding(index, model)

    def result(
        self,
        call: tuple[AuthContext, int, str, dict[str, Any]],
        deadline: float,
        make: Callable[[], ToolResult],
    ) -> ToolResult:
        """Return what `make` returns, or returned for this call (caller, version, tool, arguments).

        A result that is partial, late or misses rows is not remembered.
        """
        if not self._cache.enabled:
            return make()
        auth, index_version, tool, arguments = call
        key = self._cache.key(
            caller=auth.describe(),
            version=index_version,
            tool=tool,
            arguments=arguments,
            decides=self._decides,
        )
        made: list[ToolResult] = []

        def once() -> bytes | None:
            made.append(make())
            whole = not made[0].partial and not made[0].hidden and time.monotonic() < deadline
            return _RESULTS.dump_json(made[0]) if whole else None

        held = self._cache.once(key, once, deadline)
        if made:
            return made[0]
        if held is None:  # another thread's result was not whole
            return make()
        result = _RESULTS.validate_json(held)
        result.remembered, result.stages = True, []
        return result


def deciding(index: Index, model: str) -> dict[str, Any]:
    """Return everything but caller, call and index version that decides what a search finds."""
    reranker, second = index.reranker, index.second
    return {
        "program": _program(),
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


@lru_cache(maxsize=1)
def _program() -> str:
    try:
        return version("carrel")
    except PackageNotFoundError:  # run from a checkout
        return ""
