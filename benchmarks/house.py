"""Measure the source itself: python -m benchmarks.house [--frames].

Prints, as Markdown, files and lines, imports inside functions, modules that one other module
imports, settings, class names used twice, large folders and words of documentation. `--frames` asks
a question over one small document and counts the own frames between `main` and a posting list: of
the thread that looks there, and of the main thread, which waits for it in LangGraph.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    *("core", "display", "models", "stores", "ingest", "retrievers", "tools", "reasoning", "nodes"),
    *("graph", "app", "evals", "serve", "cli"),
)
MOST_MODULES = 25  # of a folder


def source_files() -> list[Path]:
    """Return the modules of the product."""
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def lines_of(paths: list[Path]) -> int:
    """Count lines."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """Return the own modules that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & known


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module that stand in no other."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try):
            yield from functions(node)


def late_imports(tree: ast.AST) -> int:
    """Count the import statements inside functions."""
    inside = (node for function in functions(tree) for node in ast.walk(function))
    return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in inside)


def figures() -> dict[str, str]:
    """Return what the table shows."""
    from core.settings import FIELDS

    paths = source_files()
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    known = {module_name(path) for path in paths}
    importers = Counter(
        name for path, tree in trees.items() for name in imported(tree, known) - {module_name(path)}
    )
    modules = {module_name(path) for path in paths if path.name != "__init__.py"}
    classes = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    folders = Counter(path.parent for path in paths if path.name != "__init__.py")
    large = [f"{folder.relative_to(ROOT)} {n}" for folder, n in folders.items() if n > MOST_MODULES]
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for tree in trees.values()
        for node in functions(tree)
    ]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    single = sum(importers[name] == 1 for name in modules)
    return {
        "source files": f"{len(paths)}",
        "source lines": f"{lines_of(paths):,}",
        "test lines": f"{lines_of(list((ROOT / 'tests').rglob('*.py'))):,}",
        "imports inside functions": f"{sum(map(late_imports, trees.values()))}",
        "modules with one importer": f"{single / len(modules):.0%} ({single})",
        "settings": f"{len(FIELDS)}",
        "class names used twice": ", ".join(n for n, count in classes.items() if count > 1) or "0",
        "functions over 55 lines": f"{sum(length > 55 for length in lengths)}",
        f"folders with over {MOST_MODULES} modules": ", ".join(large) or "0",
        "words of documentation": f"{words:,}",
        "lines of the README": f"{lines_of([ROOT / 'README.md'])}",
    }


def own_frames() -> list[str]:
    """Ask a question and return the own frames above the first use of a posting list."""
    from cli.app import main
    from stores.segments.postings import Postings

    found: list[str] = []
    add = Postings.add

    def watched(self: Postings, *given: object, **named: object) -> object:
        waiting = sys._current_frames()[threading.main_thread().ident or 0]
        stacks = [traceback.extract_stack()]
        if threading.current_thread() is not threading.main_thread():
            stacks.insert(0, traceback.extract_stack(waiting))
        here = [
            f"{Path(frame.filename).relative_to(ROOT)}: {frame.name}"
            for frame in itertools.chain(*stacks)
            if any(frame.filename.startswith(f"{ROOT / room}/") for room in ROOMS)
        ]
        if any(one.startswith("nodes/") for one in here):  # opening a directory searches, too
            found[:] = here
        return add(self, *given, **named)  # type: ignore[arg-type]

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "a.md"
        text.write_text("# Harbour\n\nThe harbour hall was built in 1907.\n", encoding="utf-8")
        for words in (
            ["ingest", str(text)],
            ["ask", "When was the harbour hall built?"],
        ):
            Postings.add = watched  # type: ignore[method-assign,assignment]
            sys.argv = ["carrel", *words, "--data", str(Path(folder) / "data")]
            found.clear()
            try:
                main()
            except SystemExit as ended:
                if ended.code:
                    raise
            finally:
                Postings.add = add  # type: ignore[method-assign]
    return found


def main_house() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", action="store_true", help="count frames by a real question")
    given = parser.parse_args()
    rows = figures()
    frames = own_frames() if given.frames else []
    if frames:
        rows["own frames from main to a posting list"] = str(len(frames))
    print("| what | now |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in rows.items()))
    print("\n".join(["", *frames]) if frames else "")


if __name__ == "__main__":
    main_house()
