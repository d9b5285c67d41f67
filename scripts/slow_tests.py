"""Write tests/slow.txt, the tests that `make test` leaves out, from the times of a whole run.

python scripts/slow_tests.py OUTPUT [--most 0.8]: OUTPUT is what `pytest -q --durations=0` printed.
Listed is each test function that took longer in all its cases; properties are not, since the quick
tier tries them on fewer examples.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+tests/(\S+?\.py)::(\w+)")
HEAD = "# Tests that `make test` leaves out (`make test-all` has them): scripts/slow_tests.py\n"


def properties(path: Path) -> set[str]:
    """Return the test functions of a file that hypothesis gives examples to."""
    functions = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {
        node.name
        for node in functions
        if isinstance(node, ast.FunctionDef) and "@given" in ast.unparse(node)
    }


def main() -> None:
    """Read the times and write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--most", type=float, default=0.8, help="seconds of a test that stays")
    given = parser.parse_args()
    times: Counter[tuple[str, str]] = Counter()
    for line in given.output.read_text(encoding="utf-8").splitlines():
        if found := LINE.match(line):
            times[found[2], found[3]] += float(found[1])
    slow = [test for test, seconds in times.items() if seconds > given.most]
    listed = sorted(
        f"{path}::{name}" for path, name in slow if name not in properties(TESTS / path)
    )
    (TESTS / "slow.txt").write_text(HEAD + "\n".join([*listed, ""]), encoding="utf-8")
    rest = sum(seconds for test, seconds in times.items() if test not in set(slow))
    print(
        f"{len(listed)} tests are slow; the others take {rest:.0f} of {sum(times.values()):.0f} s"
    )


if __name__ == "__main__":
    main()
