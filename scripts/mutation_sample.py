"""Seed faults in the source, one at a time, and count those that tests catch.

python scripts/mutation_sample.py [--faults 30] [--seed 18] [--jobs 2] [--output FILE.jsonl]

A fault is one change of one place: a comparison turned, `and` for `or`, a negation dropped, a
number off by one, a sum for a difference, a call left out. Places are drawn with the same chance
for each line of the product.

A test that never runs a place cannot catch a fault there, so the quick tier runs once without any
fault, in a copy of the tree whose drawn places write down which tests come by, in processes that a
test starts too. Then each fault is tried in a copy of its own with the tests that came by, those of
its room first, and what the quick tier leaves alive with all examples of those tests and with the
slow tests that come by. The first failure ends a fault; a test that fails without a fault is left
out. A place that runs at import is tried with the tests that import its module, then with those of
its room. Faults that live through all this are printed, to be read: some change nothing that can
be seen.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.house import source_files  # noqa: E402

SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
MOST_SECONDS = 900  # of the tests of one fault; an endless loop is caught by it
NO_TESTS = 5  # exit status of pytest where there was nothing to run
PASSERS_BY = """
import os
from pathlib import Path

FOLDER = Path(__file__).with_name("passers_by")
SEEN = set()


def note(place):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0].partition("[")[0]
    if (place, test) not in SEEN:
        SEEN.add((place, test))
        with (FOLDER / str(place)).open("a") as file:
            file.write(test + "\\n")
"""


@dataclass(frozen=True)
class Fault:
    """Describe one change of one place, given by its bytes."""

    path: str
    line: int
    first: int
    last: int
    before: str
    after: str

    def seeded(self, text: str) -> str:
        """Return the module with this fault."""
        return spliced(text, [(self.first, self.last, self.after)])


def spliced(text: str, changes: list[tuple[int, int, str]]) -> str:
    """Replace ranges of bytes, the last one first."""
    encoded = text.encode()
    for first, last, new in sorted(changes, reverse=True):
        encoded = encoded[:first] + new.encode() + encoded[last:]
    return encoded.decode()


def turn(node: ast.AST) -> ast.AST | None:
    """Return what stands for a node in a faulty module; None where it offers no fault."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=right) if type(op) in COMPARED:
            return ast.Compare(left, [COMPARED[type(op)]()], right)
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            return ast.BinOp(left, SIGNS[type(op)](), right)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
        case ast.Expr(value=ast.Call()):
            return ast.Constant(None)
        case _:
            return None


def faults_of(path: Path) -> Iterator[Fault]:
    """Yield every fault that a module offers."""
    text = path.read_text(encoding="utf-8")
    encoded = text.encode()
    starts = [0]
    for line in encoded.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        changed = turn(node)
        if changed is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = encoded[first:last].decode()
        after = f"({ast.unparse(ast.fix_missing_locations(changed))})"
        fault = Fault(str(path.relative_to(ROOT)), node.lineno, first, last, before, after)
        try:
            ast.parse(fault.seeded(text))
            ast.parse(spliced(text, watched(fault, 0)))
        except SyntaxError:  # a pattern, or inside a string of formats, whose places are not exact
            continue
        yield fault


def watched(fault: Fault, place: int) -> list[tuple[int, int, str]]:
    """Return what makes a place write down the test that comes by."""
    note = f"(__import__('passers_by').note({place}) or ("
    return [(fault.first, fault.first, note), (fault.last, fault.last, "))")]


def draw(count: int, seed: int) -> list[Fault]:
    """Draw faults, each line of the product with the same chance."""
    chance = random.Random(seed)
    paths = source_files()
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    drawn: list[Fault] = []
    while len(drawn) < count:
        path = chance.choices(paths, lines)[0]
        offered = list(faults_of(path))
        if offered:
            drawn.append(chance.choice(offered))
    return drawn


def copy_tree(folder: Path) -> None:
    """Copy the tracked files of the tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    for name in filter(None, names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def run_tests(folder: Path, given: list[str], *, quick: bool, most: int | None = None) -> str:
    """Run tests in a copy of the tree; return their summary, "" where all passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("CARREL_TESTS", None)
    if quick:
        command += ["-m", "not slow"]
        environment["CARREL_TESTS"] = "quick"
    try:
        done = subprocess.run(
            [*command, *given],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=most,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time is up"
    said = done.stdout + done.stderr
    if "ERROR: not found" in said:
        raise RuntimeError(said)
    return "" if done.returncode in {0, NO_TESTS} else said


class Sample:
    """Know which tests come by each place, and try the faults there."""

    def __init__(self, faults: list[Fault], folder: Path, jobs: int) -> None:
        """Copy the tree into `folder`, with places that write down who comes by."""
        self.faults = faults
        self._folder = folder
        self._jobs = jobs
        self._failing: set[str] = set()
        copy_tree(folder)
        (folder / "passers_by.py").write_text(PASSERS_BY, encoding="utf-8")
        (folder / "passers_by").mkdir()
        for path in {fault.path for fault in faults}:
            text = (ROOT / path).read_text(encoding="utf-8")
            changes = [
                change
                for place, fault in enumerate(faults)
                if fault.path == path
                for change in watched(fault, place)
            ]
            (folder / path).write_text(spliced(text, changes), encoding="utf-8")

    def watch(self, *given: str, quick: bool) -> None:
        """Run tests once without a fault."""
        spread = ["-n", str(self._jobs), "--dist", "loadfile"]
        said = run_tests(self._folder, [*spread, *given], quick=quick)
        for line in said.splitlines():
            kind, _, rest = line.partition(" ")
            if kind in {"FAILED", "ERROR"} and rest.startswith("tests/"):
                self._failing.add(rest.split(" - ")[0].partition("[")[0])

    def passers_by(self, place: int) -> list[str]:
        """Return the tests to try on a place, those of its room first."""
        fault = self.faults[place]
        room, stem = Path(fault.path).parts[0], Path(fault.path).stem
        noted = self._folder / "passers_by" / str(place)
        tests = set(noted.read_text(encoding="utf-8").splitlines()) if noted.exists() else set()
        if "" in tests:  # at import, or of a process that a fixture of the session started
            tests |= self._importers(fault.path) | {f"tests/{room}"}
        found = {test for test in tests - {""} if (ROOT / test.partition("::")[0]).exists()}
        return sorted(
            found - self._failing,
            key=lambda test: (stem not in test, not test.startswith(f"tests/{room}/"), test),
        )

    def _importers(self, path: str) -> set[str]:
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        files = (ROOT / "tests").rglob("test_*.py")
        return {str(one.relative_to(ROOT)) for one in files if name in one.read_text("utf-8")}

    def fails(self, place: int, *, quick: bool) -> bool:
        """Tell whether a test fails with this fault, stopping at the first."""
        fault, tests = self.faults[place], self.passers_by(place)
        if not tests:
            return False
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            copy_tree(folder)
            text = (ROOT / fault.path).read_text(encoding="utf-8")
            (folder / fault.path).write_text(fault.seeded(text), encoding="utf-8")
            skipped = [f"--deselect={test}" for test in sorted(self._failing)]
            given = ["-x", "-n", "0", *skipped, *tests]
            return bool(run_tests(folder, given, quick=quick, most=MOST_SECONDS))


def main() -> None:
    """Print a line for each fault, then the sums."""
    parser = argparse.ArgumentParser(description="Seed faults and count those that tests catch.")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    faults = draw(given.faults, given.seed)
    caught: dict[int, str] = {}
    places = range(len(faults))
    with (
        tempfile.TemporaryDirectory() as name,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        sample = Sample(faults, Path(name), given.jobs)

        def try_all(left: list[int], tier: str, *, quick: bool) -> None:
            results = pool.map(lambda place: sample.fails(place, quick=quick), left)
            for place, failed in zip(left, results, strict=True):
                if failed:
                    caught[place] = tier
                print(tier, "catches" if failed else "misses", faults[place].path, flush=True)

        began = time.monotonic()
        sample.watch("tests", quick=True)
        print(f"watched {time.monotonic() - began:.0f} s", flush=True)
        try_all(list(places), "test", quick=True)
        print(f"quick {time.monotonic() - began:.0f} s", flush=True)
        left = [place for place in places if place not in caught]
        if left:
            sample.watch("-m", "slow", "tests", quick=False)
            print(f"watched {time.monotonic() - began:.0f} s", flush=True)
            try_all(left, "test-all", quick=False)
        for place, fault in enumerate(faults):
            row = {
                "path": fault.path,
                "line": fault.line,
                "before": fault.before,
                "after": fault.after,
                "tests": len(sample.passers_by(place)),
                "caught": caught.get(place, "no"),
            }
            print(json.dumps(row, ensure_ascii=False), flush=True)
            if given.output:
                with given.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    quick = sum(tier == "test" for tier in caught.values())
    print(f"{quick} of {len(faults)} caught by make test, {len(caught)} by make test-all")


if __name__ == "__main__":
    main()
