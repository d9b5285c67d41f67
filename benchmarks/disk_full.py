"""Fill the disk under an ingest, ask on, free the space, and see that nothing was torn.

python -m benchmarks.disk_full [--sizes 20] [--corpus PATH …] [--questions 6]. Each size is a disk
of its own (a tmpfs, which takes root): the corpus is ingested until it is full, the same documents
are asked while it is, then the rest of the room is given and the ingest is run again. Bars: no
process dies or shows a traceback, reads go on wherever something was kept, and after the space is
freed what was kept is whole in every index within 60 s, and the next ingest brings the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.damage import questions_of
from benchmarks.damage_child import Seen, asked, examined, forked, preload, with_modules

LIMIT_S = 300.0
RECOVERED_S = 60.0
BASE: dict[str, Any] = {"reasoner": "rules", "segment_min_rows": 50, "min_free_mb": 0}
ROOM_MB = 512


@contextmanager
def disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a disk of this size."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    subprocess.run(command, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def grow(folder: Path) -> None:
    """Give the disk all the room it needs."""
    command = ["mount", "-o", f"remount,size={ROOM_MB}m", str(folder)]
    subprocess.run(command, check=True)


def ingested(folder: Path, corpus: list[Path]) -> dict[str, Any]:
    """Ingest the corpus; the error of a full disk is what is looked for."""
    from cli.options import opened
    from core.settings import load_settings
    from ingest.pipeline import Pipeline

    settings = load_settings({"data": folder, **BASE})[0]
    with opened(settings, create=True, needs_embedder=True) as session:
        target = session.store.intake.open_collection("default", "main", None)
        assert session.embedder is not None  # needs_embedder says so
        summary = Pipeline(session.store, session.embedder, settings, target).run(corpus)
    return {"results": [summary.documents, summary.chunks]}


def drained(folder: Path) -> dict[str, Any]:
    """Open the directory and bring the derived indexes up to what is kept."""
    from cli.options import opened
    from core.settings import load_settings

    settings = load_settings({"data": folder, **BASE})[0]
    with opened(settings) as session:
        catalogue, search = session.store.catalogue, session.store.search
        problems = search.problems(catalogue.collections())
        return {"problems": problems + session.warnings}


def case(kilobytes: int, corpus: list[Path], questions: list[str], whole: Seen) -> dict[str, Any]:
    """Return what happened on a disk of this size."""
    with tempfile.TemporaryDirectory() as work, disk(Path(work) / "disk", kilobytes) as place:
        data = place / "data"
        first = forked(lambda: ingested(data, corpus), LIMIT_S)
        reads = forked(lambda: asked(data, questions, BASE), LIMIT_S)
        grow(place)
        began = time.monotonic()
        recovered = forked(lambda: drained(data), LIMIT_S)
        recovery = time.monotonic() - began
        second = forked(lambda: ingested(data, corpus), LIMIT_S)
        doctor = forked(lambda: examined(data, BASE), LIMIT_S)
        after = forked(lambda: asked(data, questions, BASE), LIMIT_S)
    every = (first, reads, recovered, second, doctor, after)
    return {
        "kb": kilobytes,
        "ingest": first.error or "whole",
        "reads": reads.error or "answered",
        "recovery_s": round(recovery, 1),
        "recovered": recovered.error or recovered.problems,
        "again": second.error or "whole",
        "doctor": doctor.error or doctor.problems,
        "same": after.results == whole.results,
        "bad": [
            one.end or one.error for one in every if one.end or one.error.startswith("TRACEBACK")
        ],
    }


def well(found: dict[str, Any]) -> bool:
    """Tell whether a case meets the bars."""
    whole = not found["bad"] and found["again"] == "whole" and not found["doctor"]
    kept = found["reads"] == "answered" or "no data here yet" in found["reads"]
    kept = kept or "collection must exist" in found["reads"] or "disk" in found["reads"]
    return bool(whole and kept and found["same"] and found["recovery_s"] <= RECOVERED_S)


def main() -> int:
    """Run all sizes between almost nothing and enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--corpus", type=Path, nargs="+", default=[Path("docs"), Path("examples")])
    parser.add_argument("--questions", type=int, default=6)
    given = parser.parse_args()
    if os.geteuid():
        sys.exit("mounting a disk takes root")
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "data"
        made = forked(lambda: with_modules(lambda: ingested(data, given.corpus)), LIMIT_S)
        if made.error or made.end:
            sys.exit(f"the corpus could not be ingested: {made.error or made.end}")
        preload(made.problems)
        questions = questions_of(data, given.questions, 1)
        whole = forked(lambda: asked(data, questions, BASE), LIMIT_S)
        size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) // 1024
    steps = [64 + n * 2 * size // given.sizes for n in range(given.sizes)]
    print(f"the directory takes {size} kB; sizes {steps[0]} to {steps[-1]} kB", flush=True)
    cases = []
    for kilobytes in steps:
        found = case(kilobytes, given.corpus, questions, whole)
        cases.append(found)
        print(json.dumps({"well": well(found), **found}), flush=True)
    missed = [found for found in cases if not well(found)]
    slowest = max(found["recovery_s"] for found in cases)
    print(f"\n{len(cases)} sizes, {len(missed)} miss a bar; slowest recovery {slowest} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
