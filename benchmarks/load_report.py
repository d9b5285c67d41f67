"""Figures of a load test."""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.load_server import Server
from benchmarks.load_users import SHED, Done, Load

WARM_SHARE = 0.2  # of the time; memory is compared from then on
LAG = "carrel_loop_lag_seconds_bucket"
ASKS = ("chat", "stream")


def report(
    server: Server,
    load: Load,
    before: dict[str, float],
    after: dict[str, float],
    given: argparse.Namespace,
) -> dict[str, Any]:
    """Return the figures of a load as JSON; times in milliseconds."""
    people = [one for one in load.done if one.user < given.users]
    total = given.minutes * 60
    figures: dict[str, Any] = {
        "machine": f"{platform.machine()}, {platform.python_version()}",
        "users": given.users,
        "minutes": given.minutes,
        "think_seconds": given.think,
        "settings": given.set,
        "stub_model": given.stub_model,
        "ready_seconds": round(server.ready_seconds, 2),
        "requests": len(people),
        "per_second": round(len(people) / total, 2),
        "status": dict(Counter(str(one.status) for one in people)),
        "outcomes": dict(Counter(one.outcome for one in people if one.outcome)),
        "shed": _share(people, lambda one: one.status in SHED),
        "errors": sum(1 for one in people if one.status != 200 and one.status not in SHED),
        "search": _times([one for one in people if one.action == "search"]),
        "ask": _times([one for one in people if one.action in ASKS]),
        "first_event": _quantiles([one.first_ms for one in people if one.first_ms]),
        "loop_lag_p99_ms_at_most": _lag(before, after, 0.99),
        "memory": _memory(server, total),
    }
    if given.flood:
        figures["flood"] = _flood(load.done, given.users, total * 2 / 3)
    return figures


def _times(done: Sequence[Done]) -> dict[str, Any]:
    return _quantiles([one.ms for one in done if one.status == 200])


def _quantiles(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"n": 0}
    found = np.percentile(values, [50, 95, 99])
    names = ("p50", "p95", "p99")
    rounded = {name: round(float(value), 1) for name, value in zip(names, found, strict=True)}
    return {"n": len(values), **rounded, "max": round(max(values), 1)}


def _share(done: Sequence[Done], counts: Any) -> float:  # noqa: ANN401  # a predicate
    return round(sum(1 for one in done if counts(one)) / max(1, len(done)), 4)


def _lag(before: dict[str, float], after: dict[str, float], share: float) -> float | None:
    """Return the upper edge of the bucket in which the quantile lies, in milliseconds."""
    found = sorted(
        (float(name.split('"')[1].replace("+Inf", "inf")), count - before.get(name, 0))
        for name, count in after.items()
        if name.startswith(LAG)
    )
    total = found[-1][1] if found else 0
    return next((edge * 1000 for edge, count in found if count >= share * total), None)


def _memory(server: Server, total: float) -> dict[str, Any]:
    warm = [one for one in server.samples if one[0] >= WARM_SHARE * total]
    if len(warm) < 2:
        return {}
    third = max(1, len(warm) // 10)
    first = float(np.mean([one[1] for one in warm[:third]]))
    last = float(np.mean([one[1] for one in warm[-third:]]))
    return {
        "start_mb": round(server.samples[0][1] / 1e6),
        "warm_mb": round(first / 1e6),
        "end_mb": round(last / 1e6),
        "growth": round(last / first - 1, 4),
        "files": [warm[0][2], warm[-1][2]],
    }


def _flood(done: Sequence[Done], users: int, since: float) -> dict[str, Any]:
    people = [one for one in done if one.user < users]
    theirs = [one for one in done if one.user >= users]
    figures: dict[str, Any] = {"flooder": dict(Counter(str(one.status) for one in theirs))}
    for name, actions in (("search", ("search",)), ("ask", ASKS)):
        chosen = [one for one in people if one.action in actions]
        calm = _times([one for one in chosen if since / 2 <= one.at < since])
        flooded = _times([one for one in chosen if one.at >= since])
        figures[name] = {"before": calm, "with": flooded}
        if calm["n"] and flooded["n"]:
            figures[name]["ratio_p50"] = round(flooded["p50"] / calm["p50"], 2)
            figures[name]["ratio_p95"] = round(flooded["p95"] / calm["p95"], 2)
    return figures
