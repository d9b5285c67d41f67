"""Time the parts of the full check of a data directory, in a process of its own.

python -m benchmarks.scale_checks FOLDER prints one JSON object: seconds and processor seconds of
each part, children's with them.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.settings import load_settings
from models.loading import open_embedder
from stores.integrity.checks import dead_but_alive, fulltext_findings, structure_problems
from stores.sqlite.sums import find_damage
from stores.store import Store, parts


def busy() -> float:
    """Return the processor seconds of this process and its ended children."""
    both = [resource.getrusage(one) for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds on the clock and of the processors."""
    began, used = time.perf_counter(), busy()
    work()
    return time.perf_counter() - began, busy() - used


def main() -> None:
    """Open the directory and time each part."""
    settings, _ = load_settings({"data": Path(sys.argv[1]), "reasoner": "rules"})
    model = open_embedder(settings).model_id
    began, used = time.perf_counter(), busy()
    store = Store(settings, model)
    found = {"opening": (time.perf_counter() - began, busy() - used)}
    with store:
        reader, collections = parts(store).database.read(), store.catalogue.collections()
        checks: dict[str, Callable[[], Any]] = {
            "seal, sums read": lambda: list(map(parts(store).seal._crc, parts(store).seal._kept)),
            "structure": lambda: structure_problems(reader),
            "row sums": lambda: find_damage(reader),
            "full text": lambda: [
                fulltext_findings(parts(store).database, c.id) for c in collections
            ],
            "segments": lambda: (store.search.problems(collections), dead_but_alive(reader)),
            "self-check": store.maintenance.check_sample,
            "self-check again": store.maintenance.check_sample,
        }
        for name, work in checks.items():
            found[name] = measured(work)
        found["state"] = (0.0, 0.0) if parts(store).sealed.state == "equal" else (1.0, 0.0)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
