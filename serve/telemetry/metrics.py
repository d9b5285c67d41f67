"""Counts and times of one server, for Prometheus and as JSON."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.cache import Caches
from serve.runs.pool import FairPool
from serve.runs.runner import SessionRunner
from serve.telemetry.run_figures import Recent, RunFigures, describe_times


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
        found = {}
        for cache in self._caches:
            asked = cache.hits + cache.misses
            found[cache.name] = {
                "hits": cache.hits,
                "misses": cache.misses,
                "rate": round(cache.hits / asked, 4) if asked else None,
                "entries": cache.entries,
            }
        return found


SAMPLES = 1000  # latest requests, or steps, that percentiles are of; chosen, not measured

LAG_SECONDS = 0.25  # between two looks at the event loop; chosen, not measured
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MISTAKES = 500  # this status and those above are the server's
MEMORY = "process_resident_memory_bytes"


class Metrics:
    """Count requests and runs, watch pools, caches and the event loop; nothing names a caller."""

    def __init__(self, runner: SessionRunner, caches: Caches | None = None) -> None:
        self._began = time.monotonic()
        self._registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._routes: dict[str, Recent] = {}
        self._mistakes: dict[str, int] = {}
        self._lags = Recent(SAMPLES)
        self._pools = {"ask": runner.asks, "search": runner.searches}
        self._requests = Counter(
            "carrel_requests", "Requests.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "carrel_request_seconds", "Seconds of a request.", ["route"], registry=self._registry
        )
        self._lag = Histogram(
            "carrel_loop_lag_seconds",
            "How late the event loop came back.",
            registry=self._registry,
            buckets=LAG_BUCKETS,
        )
        for place, what in enumerate(("running", "waiting")):
            gauge = Gauge(f"carrel_{what}", f"Work {what}.", ["pool"], registry=self._registry)
            for name, pool in self._pools.items():
                gauge.labels(name).set_function(_load(pool, place))
        Gauge(
            "carrel_degraded",
            "1 while the data directory is known to be damaged.",
            registry=self._registry,
        ).set_function(lambda: float(bool(runner.condition.warnings())))
        self.runs = RunFigures(self._registry, SAMPLES)
        self._caches = CacheFigures(caches) if caches is not None else None
        if self._caches is not None:
            self._registry.register(self._caches)
        ProcessCollector(registry=self._registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; `route` is the pattern of its path."""
        known = method if method in METHODS else "OTHER"  # a label must not grow without end
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        with self._lock:
            self._routes.setdefault(route, Recent(SAMPLES)).add(seconds * 1000)
            failed = status >= MISTAKES
            self._mistakes[route] = self._mistakes.get(route, 0) + failed

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self._registry)

    def figures(self) -> dict[str, Any]:
        """Return the figures for an admin, as JSON; times are of the latest requests and runs."""
        with self._lock:
            requests = {
                route: {**describe_times(recent), "errors": self._mistakes[route]}
                for route, recent in sorted(self._routes.items())
            }
            lag = self._lags.percentiles((50, 99))
        memory = self._registry.get_sample_value(MEMORY)  # None where there is no /proc
        return {
            "uptime_seconds": round(time.monotonic() - self._began, 1),
            "requests": requests,
            "pools": {
                name: dict(zip(("running", "waiting"), pool.load, strict=True))
                for name, pool in self._pools.items()
            },
            "loop_lag_ms": {"p50": lag[50], "p99": lag[99]},
            "caches": self._caches.figures() if self._caches is not None else {},
            **self.runs.figures(),
            "rss_bytes": None if memory is None else int(memory),
        }

    async def watch_loop(self) -> None:
        """Measure the lag of the event loop until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_SECONDS)
            late = max(0.0, time.perf_counter() - before - LAG_SECONDS)
            self._lag.observe(late)
            with self._lock:
                self._lags.add(late * 1000)


def _load(pool: FairPool, place: int) -> Callable[[], float]:
    return lambda: float(pool.load[place])
