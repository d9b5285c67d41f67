"""Docstrings of Python source: modules, classes, functions; nothing of it is executed."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from textwrap import indent
from typing import NamedTuple

from core.errors import DocumentError
from ingest.loaders.names import version_note
from ingest.loaders.outline import Outline
from ingest.loaders.text.structured_text import add_restructured_text
from ingest.types import ParsedDocument

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MARGIN = " " * 4
# NumPy's and Google's ways to head and to list parameters: both become "Name:" and items.
_UNDERLINED = re.compile(r"^([A-Z][\w ]+)\n-{3,}[ \t]*$", re.M)
_LABEL = re.compile(r"[A-Z][\w ]+:$|\.\. \w")
_LISTED = re.compile(
    r"(?:Other |Keyword )?(?:Arg(?:ument)?|Parameter|Attribute|Return|Yield|Raise)s:"
)
_ITEM = re.compile(r"\*{0,2}\w[\w.]*(?:, \*{0,2}\w+)*\s*(?:\([^()]*\))?\s*(?::|$)")
_TYPED = re.compile(r"^([\w*]+(?:, [\w*]+)*) : (.+)$")


class _Definition(NamedTuple):
    """Hold what is documented: its full name, kind, signature, docstring and line from 1."""

    name: str
    kind: str
    signature: str
    text: str
    line: int
    notice: str | None


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a module: each public name with its signature and docstring.

    Yields none for a module without docstrings. Raises DocumentError for what is no Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f" (line {line})" if line else ""
        raise DocumentError(f"this is no source of a Python 3 module{place}") from None
    module = _module_name(relative)
    found = [one for one in _definitions(tree, module) if one.text or one.notice is not None]
    if not found:
        return
    outline = Outline()
    outline.heading(1, module)
    for one in found:
        notice = "" if one.notice is None else version_note("deprecated", "", one.notice)
        outline.names.mark(one.name, type=one.kind, anchor=f"L{one.line}", deprecated=notice)
        if one.kind == "module":
            add_restructured_text(outline, _normalised(one.text))
        else:
            body = indent(_normalised(one.text), _MARGIN)
            add_restructured_text(
                outline, f".. {one.kind}:: {one.name}{one.signature}\n\n{body}", module=module
            )
    blocks, described = outline.finish(), outline.names.metadata()
    yield ParsedDocument.of_file(relative, "python", blocks, described, module)


def _module_name(relative: str) -> str:
    parts = [*PurePosixPath(relative).with_suffix("").parts]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts[parts.index("src") + 1 :] if "src" in parts[:-1] else parts)


def _definitions(
    node: ast.Module | ast.ClassDef | _Function, name: str, kind: str = "module"
) -> Iterator[_Definition]:
    """Yield a definition and the public ones in it, in their order in the file."""
    text = ast.get_docstring(node) or ""
    line = 1 if isinstance(node, ast.Module) else node.lineno
    yield _Definition(name, kind, _signature(node, kind), text, line, _notice(node))
    if isinstance(node, _Function):
        return
    for below in node.body:
        if isinstance(below, ast.ClassDef | _Function) and not below.name.startswith("_"):
            is_class = isinstance(below, ast.ClassDef)
            inner = "class" if is_class else "function" if kind == "module" else "method"
            yield from _definitions(below, f"{name}.{below.name}", inner)


def _signature(node: ast.Module | ast.ClassDef | _Function, kind: str) -> str:
    """Return "(x, y=1) -> int"; of a class what its __init__ takes; "" where it takes nothing."""
    if isinstance(node, ast.ClassDef):
        made = (one for one in node.body if isinstance(one, _Function) and one.name == "__init__")
        init = next(made, None)
        return "" if init is None else _signature(init, "method").removesuffix(" -> None")
    if isinstance(node, ast.Module):
        return ""
    taken = _Bare().visit(node.args)
    decorated = {ast.unparse(one) for one in node.decorator_list}
    if kind == "method" and "staticmethod" not in decorated:
        first = taken.posonlyargs or taken.args
        del first[:1]
    if decorated & {"property", "cached_property", "functools.cached_property"}:
        return ""
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(taken)}){returned}"


class _Bare(ast.NodeTransformer):
    """Take the type out of Annotated: what stands beside it are notes, often paragraphs."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # noqa: N802 - ast's name
        named = ast.unparse(node.value).rpartition(".")[2] == "Annotated"
        whole = node.slice.elts[0] if named and isinstance(node.slice, ast.Tuple) else node
        return self.generic_visit(whole)


def _notice(node: ast.Module | ast.ClassDef | _Function) -> str | None:
    """Return what a decorator says of a deprecation, None where none stands."""
    for one in getattr(node, "decorator_list", []):
        called = one.func if isinstance(one, ast.Call) else one
        if ast.unparse(called).rpartition(".")[2] == "deprecated":
            given = one.args[0] if isinstance(one, ast.Call) and one.args else None
            return str(given.value) if isinstance(given, ast.Constant) else ""
    return None


def _normalised(text: str) -> str:
    """Write the parameters of a docstring as a list under a label, as HTML pages show them."""
    text = _UNDERLINED.sub(r"\1:", inspect.cleandoc(text))
    lines: list[str] = []
    depth: int | None = None  # of the items of the list that a label opened; -1 before the first
    for line in text.split("\n"):
        bare, margin = line.strip(), len(line) - len(line.lstrip())
        if _LABEL.match(line):
            depth = -1 if _LISTED.fullmatch(line) else None
            lines += ["", line, *([""] if depth is None and line.endswith(":") else [])]
        elif depth is None or (bare and margin < depth):
            depth = None
            lines.append(line)
        elif bare and (depth == -1 or (margin == depth and _ITEM.match(bare))):
            depth = margin
            lines.append("- " + _TYPED.sub(r"\1 (\2):", bare))
        elif bare:
            gap = " " if ":" in lines[-1] else ": "
            lines[-1] = f"{lines[-1]}{gap}{bare}"
    return "\n".join(lines)
