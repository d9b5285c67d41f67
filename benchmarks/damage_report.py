"""Print a table of cases of damage: how many of each kind of file came to which end."""

from __future__ import annotations

import collections
from typing import Any

BAD = ("SILENT", "DIED", "TRACEBACK", "ACCEPTED")


def report(cases: list[dict[str, Any]], planned: int) -> int:
    """Print the table; return 1 when a case is bad, else 0."""
    if not cases:
        print("no case was run")
        return 0
    words = sorted({case["verdict"] for case in cases})
    print(f"\n{'files':38}{'n':>5}" + "".join(f"{word:>16}" for word in words))
    groups = collections.defaultdict(list)
    for case in cases:
        groups[f"{_kind(case['file'])} ({case['settings']})"].append(case["verdict"])
    groups["all"] = [case["verdict"] for case in cases]
    for group, verdicts in groups.items():
        counts = "".join(f"{verdicts.count(word):>16}" for word in words)
        print(f"{group:38}{len(verdicts):>5}{counts}")
    seconds = sorted(case["seconds"] for case in cases)
    print(f"a case took {seconds[len(seconds) // 2]} s, the slowest {seconds[-1]} s")
    print(f"{len(cases)} of {planned} cases were run")
    return 1 if any(case["verdict"] in BAD for case in cases) else 0


def _kind(relative: str) -> str:
    """Name a file: Chroma's SQLite file apart from its vectors', segments together."""
    parts = relative.split("/")
    if parts[0] == "chroma":
        return "chroma.sqlite3" if len(parts) == 2 else "chroma vectors"
    return parts[0]
