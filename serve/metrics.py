"""Counts and times of one server, in the format of Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from serve.pool import FairPool
from serve.runner import SessionRunner

LAG_SECONDS = 0.25
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Count requests and watch the pools and the event loop; nothing in it names a caller."""

    def __init__(self, runner: SessionRunner) -> None:
        """Begin at zero."""
        self._registry = CollectorRegistry()
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
            for name, pool in (("ask", runner.asks), ("search", runner.searches)):
                gauge.labels(name).set_function(_load(pool, place))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; `route` is the pattern of its path."""
        known = method if method in METHODS else "OTHER"  # a label must not grow without end
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self._registry)

    async def watch_loop(self) -> None:
        """Measure the lag of the event loop until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_SECONDS)
            self._lag.observe(max(0.0, time.perf_counter() - before - LAG_SECONDS))


def _load(pool: FairPool, place: int) -> Callable[[], float]:
    return lambda: float(pool.load[place])
