"""Seed faults in the source, one at a time, and count those that tests catch.

python scripts/mutation_sample.py [--faults 30] [--seed 18] [--jobs 2] [--output FILE.jsonl]

A fault is one change of one place: a comparison turned, `and` for `or`, a negation dropped, a
number off by one, a sum for a difference, a call left out. Places are drawn with the same chance
for each line of the product. A fault is tried in a copy of the tree with the quick tests of its
room, then with all quick tests, then with every test of its room; the first failure ends it.
Faults that live through all three are printed, to be read: some change nothing that can be seen.
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
MOST_SECONDS = 1200  # of one run of tests; an endless loop is caught by it


@dataclass(frozen=True)
class Fault:
    """Describe one change of one place."""

    path: str
    line: int
    before: str
    after: str
    text: str  # the changed module


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
            return ast.Pass()
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
        after = ast.unparse(ast.fix_missing_locations(changed))
        if isinstance(changed, ast.expr):
            after = f"({after})"
        whole = (encoded[:first] + after.encode() + encoded[last:]).decode()
        try:
            ast.parse(whole)
        except SyntaxError:  # inside a string of formats, whose places are not exact
            continue
        yield Fault(str(path.relative_to(ROOT)), node.lineno, before, after, whole)


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


def fails(folder: Path, tests: list[str], *, quick: bool) -> bool:
    """Say whether a run of tests fails, stopping at the first failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    if quick:
        command += ["-m", "not slow"]
        environment["CARREL_TESTS"] = "quick"
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def try_fault(fault: Fault) -> dict[str, object]:
    """Return what the tests say of a fault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        (folder / fault.path).write_text(fault.text, encoding="utf-8")
        room = Path(fault.path).parts[0]
        near = [f"tests/{room}"] if (folder / "tests" / room).is_dir() else ["tests"]
        caught = "no"
        if fails(folder, near, quick=True) or fails(folder, ["tests"], quick=True):
            caught = "test"
        elif fails(folder, near, quick=False):
            caught = "test-all"
    return {
        "path": fault.path,
        "line": fault.line,
        "before": fault.before,
        "after": fault.after,
        "caught": caught,
    }


def main() -> None:
    """Print a line for each fault, then the sums."""
    parser = argparse.ArgumentParser(description="Seed faults and count those that tests catch.")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(try_fault, draw(given.faults, given.seed)):
            found.append(row)
            print(json.dumps(row, ensure_ascii=False), flush=True)
            if given.output:
                with given.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    quick = sum(row["caught"] == "test" for row in found)
    rest = sum(row["caught"] == "test-all" for row in found)
    print(f"{quick} of {len(found)} caught by make test, {quick + rest} by make test-all")


if __name__ == "__main__":
    main()
