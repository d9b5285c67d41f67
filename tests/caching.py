"""A value of a cache, made once."""

from __future__ import annotations

from collections.abc import Callable

from core.cache import Cache


def once(
    cache: Cache, key: str, make: Callable[[], bytes | None], deadline: float | None = None
) -> bytes | None:
    """Return what is remembered, or what `make` makes."""
    with cache.claim(key, deadline) as claim:
        if claim.value is None:
            claim.value = make()
    return claim.value
