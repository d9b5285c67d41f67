"""Figures of the caches, read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.cache.caches import Caches


class CacheFigures(Collector):
    """Show the counts that caches keep themselves."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        """Yield hits, misses and entries by cache, and how Redis is when there is one."""
        hits = CounterMetricFamily("carrel_cache_hits", "Values remembered.", labels=["cache"])
        misses = CounterMetricFamily("carrel_cache_misses", "Values made.", labels=["cache"])
        entries = GaugeMetricFamily(
            "carrel_cache_entries", "Values in this process's memory.", labels=["cache"]
        )
        for cache in self._caches:
            hits.add_metric([cache.name], cache.hits)
            misses.add_metric([cache.name], cache.misses)
            entries.add_metric([cache.name], cache.entries)
        yield from (hits, misses, entries)
        redis = self._caches.redis
        if redis is not None:
            up = "Redis is not left alone."
            yield GaugeMetricFamily("carrel_cache_redis_up", up, value=int(redis.up))
            failed = "Requests that Redis failed."
            yield CounterMetricFamily("carrel_cache_redis_failures", failed, value=redis.failures)
            forged = "Values in Redis that were not sealed here."
            yield CounterMetricFamily("carrel_cache_redis_forged", forged, value=redis.forged)

    def figures(self) -> dict[str, Any]:
        """Return the same as JSON, with the rate of hits."""
        return {
            cache.name: {
                "hits": cache.hits,
                "misses": cache.misses,
                "rate": _rate(cache.hits, cache.misses),
                "entries": cache.entries,
            }
            for cache in self._caches
        }


def _rate(hits: int, misses: int) -> float | None:
    return round(hits / (hits + misses), 4) if hits + misses else None
