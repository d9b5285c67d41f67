"""Measure a server under many users at once.

python -m benchmarks.load DATASET [--users 100] [--minutes 10] [--think 10] [--flood 20]
[--stub-model] [--set NAME=VALUE]... [--json OUT]

DATASET is a folder in the BEIR layout; its passages are served and its questions asked, drawn at
random with repetition. Each user has a key, sends a request, reads the answer, thinks between half
and one and a half times --think seconds and goes on: half of the requests are searches, a quarter
questions, a quarter streamed questions. With --flood a last user joins for the last third and asks
so many questions at once without a pause; the others' times before and with it are compared.
The users run on the same machine in another process and take their share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import platform
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load_server import Server, served
from benchmarks.load_users import SHED, Done, Load, flooder, user
from benchmarks.stub_model import stub_model
from core.settings import load_settings
from evals.corpus import build_corpus
from evals.dataset import read_dataset

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


SAMPLE_SECONDS = 5


def say(text: str) -> None:
    """Say on stderr what is being done."""
    sys.stderr.write(f"{text}\n")


def prepared(dataset_folder: Path, folder: Path) -> tuple[Path, list[str]]:
    """Return a data directory with the passages, a copy of its own, and the questions."""
    dataset = read_dataset(dataset_folder, allow_missing=True, judged_only=False)
    settings, _ = load_settings({})
    corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
    data = folder / "data"
    shutil.copytree(corpus.settings.data, data, ignore=shutil.ignore_patterns("owner.lock"))
    return data, [query.text for query in dataset.queries]


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments, with those that every load has."""
    parser.add_argument("--stub-model", action="store_true", help="let a stub of a model decide")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def tell(figures: dict[str, Any], path: Path | None) -> None:
    """Print the figures as one JSON object, and write them to a file where one is named."""
    text = json.dumps(figures, indent=1) + "\n"
    if path:
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


async def watch(server: Server, load: Load, until: float) -> None:
    """Sample the server's memory until the time is over."""
    while load.now < until:
        server.sample(load.now)
        await asyncio.sleep(SAMPLE_SECONDS)


async def run(server: Server, load: Load, given: argparse.Namespace) -> None:
    """Let the users work."""
    until = given.minutes * 60
    people = [user(load, number, server.keys[number], until) for number in range(given.users)]

    async def flood() -> None:
        if given.flood:
            await asyncio.sleep(until * 2 / 3)
            await flooder(load, given.users, server.keys[given.users], given.flood, until)

    await asyncio.gather(*people, flood(), watch(server, load, until))


def measure(given: argparse.Namespace, extra: Sequence[str]) -> dict[str, Any]:
    """Serve, load, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        say("ingesting")
        data, questions = prepared(given.dataset, Path(folder))
        with served(data, given.users + 1, [*extra, *given.set]) as server:
            say(f"ready after {server.ready_seconds:.1f} s; {given.users} users")
            before = server.metrics()
            load = Load(server.url, questions, given.think)
            asyncio.run(run(server, load, given))
            return report(server, load, before, server.metrics(), given)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--think", type=float, default=10, help="mean seconds between requests")
    parser.add_argument("--flood", type=int, default=0, help="questions at once of one more user")
    given = parsed(parser)
    with stub_model() if given.stub_model else contextlib.nullcontext([]) as extra:
        figures = measure(given, extra or ["reasoner=rules"])
    tell(figures, given.json)


if __name__ == "__main__":
    main()
