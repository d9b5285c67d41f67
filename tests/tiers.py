"""The two tiers of the tests: `make test` is quick, `make test-all` runs everything.

`QUICK` is set by `make test` (CARREL_TESTS=quick): properties are tried on fewer examples, the
tests of slow.txt are left out, and PostgreSQL is tried in the catalogue's contract suite alone.
"""

from __future__ import annotations

import os
from pathlib import Path

QUICK = os.environ.get("CARREL_TESTS") == "quick"
MOST_EXAMPLES = 15  # of a property, in the quick tier
SLOW = Path(__file__).with_name("slow.txt")


def examples(count: int, quick: int = MOST_EXAMPLES) -> int:
    """Return how many examples of a property to try, of `count` in the whole run.

    `quick` is less where one example takes a large part of a second.
    """
    return min(count, quick) if QUICK else count


def slow_tests() -> frozenset[str]:
    """Return the tests that the quick tier leaves out, as FILE::FUNCTION below tests/."""
    lines = SLOW.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
