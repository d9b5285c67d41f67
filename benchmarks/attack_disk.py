"""Attack a data directory through its disk, and print a table of what was tried and what broke.

python -m benchmarks.attack_disk [--parts nth ulimit …] [--quick] [--work FOLDER] [--seed 7].
Parts: `nth` (each n-th write, sync, cut, rename or removal of a command fails; needs gcc),
`ulimit` (no file may grow beyond a size), `backup` (backups that were tampered with), `served` (a
full disk under a running server; mounting one takes root). Everything is made up, and the same for
a seed. Ends with 1 when anything broke.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attack_disk_child import Tally, preloaded, with_shim

PARTS = ("nth", "ulimit", "backup", "served")


def tallies(part: str, work: Path, given: argparse.Namespace) -> Iterator[Tally]:
    """Run one part."""
    names = set(given.only)
    if part in ("nth", "ulimit"):
        from benchmarks.attack_disk_faults import largest_files, nth_writes, prepared

        if not given.quick:
            preloaded(work / "modules")
        ground = prepared(work / "ground")
        if part == "nth":
            yield from nth_writes(ground, given.stride, given.others, names)
        else:
            step = 60_000 if given.quick else 12_000
            yield from largest_files(ground, [0, 1, 100, *range(4096, 330_000, step)], names)
    if part == "backup":
        from benchmarks.attack_disk_backup import tampered
        from benchmarks.attack_disk_faults import prepared

        preloaded(work / "modules")
        draw = random.Random(given.seed)
        times = 40 if given.quick else 1000
        yield from tampered(work / "tampering", prepared(work / "ground"), draw, times)
    if part == "served":
        from benchmarks.attack_disk_served import filled

        yield from filled(work, 2 if given.quick else 12)


def main() -> int:
    """Run the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="*", default=[], help="operations of nth and ulimit")
    parser.add_argument("--stride", type=int, default=1, help="of the writes that fail")
    parser.add_argument("--others", type=int, default=4, help="times that for other kinds of fault")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument("--work", type=Path, help="a folder for the directories, best in memory")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    if "nth" in given.parts:
        with_shim()
    memory = Path("/dev/shm")
    work = Path(tempfile.mkdtemp(dir=given.work or (memory if memory.is_dir() else None)))
    rows: list[Tally] = []
    try:
        for part in given.parts:
            began = time.monotonic()
            for tally in tallies(part, work / part, given):
                rows.append(tally)
                print(tally.row(), flush=True)
            print(f"{part}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("\n| attack | n | broken | |\n|---|--:|--:|---|")
    print("\n".join(tally.row() for tally in rows))
    tried, broken = sum(one.tried for one in rows), sum(len(one.broken) for one in rows)
    print(f"\n{tried} cases, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
