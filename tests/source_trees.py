"""The syntax trees of the rooms, each parsed once, for what is checked of the source itself."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file."""
    found = tuple(ast.walk(parsed(path)))
    gc.freeze()  # they stay, and going through them again slows all tests that follow
    return found


@cache
def files(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return all modules that a file imports anywhere, `from a import b` as "a" and "a.b"."""
    return tuple(imported(path, nodes(path)))


def imported(path: Path, among: Iterator[ast.AST] | tuple[ast.AST, ...]) -> Iterator[str]:
    """Yield the modules that some nodes of a file import."""
    for node in among:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
