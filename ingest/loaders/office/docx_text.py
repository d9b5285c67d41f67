"""The words of DOCX elements: what stands on paper, without what was deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders.outline import (
    add_brackets,
    picture_text,
    table_text,
    write_above,
    write_below,
    write_superscript,
)
from ingest.loaders.web.xml_tree import attribute, child, children, local_name, parse_xml, value_of

if TYPE_CHECKING:
    from docx.document import Document


_MAX_DEPTH_DOCX_MATH = 40  # a bound against hostile nesting; chosen, not measured


def linear(element: Element | None, depth: int = 0) -> str:
    """Return the text of an OMML element, with "^" for superscripts and "_" for subscripts."""
    if element is None or depth > _MAX_DEPTH_DOCX_MATH:
        return ""
    return "".join(_element_text(part, depth + 1) for part in element)


def _element_text(element: Element, depth: int) -> str:
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    parts = {p: linear(child(element, p), depth) for p in ("e", "sub", "sup", "num", "den", "deg")}
    base, below, above = parts["e"], parts["sub"], parts["sup"]
    if name == "f":
        return f"{add_brackets(parts['num'])}/{add_brackets(parts['den'])}"
    if name in ("sSup", "sSub", "sSubSup"):
        return f"{base}{write_below(below)}{write_above(above)}"
    if name == "sPre":
        return f"{write_below(below)}{write_above(above)}{base}"
    if name == "rad":
        degree = parts["deg"].strip()
        return (
            f"{'√' if degree in ('', '2') else write_superscript(degree) + '√'}{add_brackets(base)}"
        )
    if name == "nary":
        return f"{_sign(element, 'chr', '∫')}{write_below(below)}{write_above(above)} {base}"
    if name in ("limLow", "limUpp"):
        limit = linear(child(element, "lim"), depth)
        return f"{base}{write_below(limit) if name == 'limLow' else write_above(limit)} "
    if name == "func":
        return f"{linear(child(element, 'fName'), depth)} {base}"
    return _rows(element, name, depth)


def _rows(element: Element, name: str, depth: int) -> str:
    if name == "d":
        inner = _sign(element, "sepChr", "|").join(linear(e, depth) for e in children(element, "e"))
        return f"{_sign(element, 'begChr', '(')}{inner}{_sign(element, 'endChr', ')')}"
    if name == "m":
        rows = (", ".join(linear(e, depth) for e in children(row, "e")) for row in element)
        return f"[{'; '.join(row for row in rows if row)}]"
    if name == "eqArr":
        return "; ".join(linear(e, depth) for e in children(element, "e"))
    return linear(element, depth)


def _sign(element: Element, name: str, default: str) -> str:
    properties = next((p for p in element if local_name(p).endswith("Pr")), None)
    found = child(properties, name)
    return default if found is None else attribute(found, "val")


# Elements of lxml, which has no types.
Element = Any
# Content controls and marks of changes stand around paragraphs as well as in them.
CONTAINERS = frozenset(("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"))
_UNSEEN = frozenset(("del", "moveFrom", "Fallback", "txbxContent", "pPr", "rPr", "sdtPr", "tbl"))
_GREEK = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\xa3\xb3\xb9\xb1\xb4\xb8\xae\xb0\xa5\xbb",
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤≥≠±×÷→°∞≈",
        strict=True,
    )
)
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
_NOTE_KINDS = ("footnote", "endnote")
_CONTENTS = "table of contents"
_MAX_DEPTH = 20  # a bound against hostile nesting; chosen, not measured


def text_of(element: Element) -> str:
    """Return the text of a paragraph, also in links, fields, content controls and insertions."""
    return "".join(_pieces(element))


def _pieces(element: Element) -> Iterator[str]:
    waiting = [iter(element)]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
            continue
        name = local_name(part)
        if name == "t":
            yield part.text or ""
        elif name == "oMath":
            yield linear(part)
        elif name == "r" and _is_raised(part):
            yield write_superscript("".join(_pieces(part)))
        elif name == "sym":
            yield _symbol(part)
        elif name == "docPr":
            yield picture_text(attribute(part, "descr"))
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name and name not in _UNSEEN:
            waiting.append(iter(part))


def _is_raised(run: Element) -> bool:
    return value_of(run, "rPr", "vertAlign") == "superscript"


def _symbol(element: Element) -> str:
    """Return a letter of the Symbol font as Greek; other signs of symbol fonts have no text."""
    code = attribute(element, "char").lower().removeprefix("f0")
    try:
        letter = chr(int(code, 16))
    except (ValueError, OverflowError):
        return ""
    return _GREEK.get(letter, "") if attribute(element, "font") == "Symbol" else ""


def text_boxes(element: Element) -> Iterator[Element]:
    """Yield the text boxes in a paragraph; the copy for old versions of Word is passed over."""
    waiting = [iter(element)]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
        elif (name := local_name(part)) == "txbxContent":
            yield part
        elif name != "Fallback":
            waiting.append(iter(part))


def is_contents(element: Element) -> bool:
    """Tell whether a content control holds the table of contents, which repeats the headings."""
    if local_name(element) != "sdt":
        return False
    galleries = (part for part in element.iter() if local_name(part) == "docPartGallery")
    return any(attribute(part, "val").lower() == _CONTENTS for part in galleries)


def rows_of(
    table: Element, read_text: Callable[[Element], str] = text_of, depth: int = 0
) -> list[list[str]]:
    """Return the cells of a table; `read_text` gives the text of a paragraph.

    A cell over several columns appears once, one over several rows in each of them.
    """
    rows: list[list[str]] = []
    above: dict[int, str] = {}
    for row in _all(table, "tr"):
        before = sum(_number(part, "gridBefore") for part in row if local_name(part) == "trPr")
        cells, column = [""] * before, before
        for cell in _all(row, "tc"):
            properties = [part for part in cell if local_name(part) == "tcPr"]
            merged = [p for part in properties for p in part if local_name(p) == "vMerge"]
            if merged and attribute(merged[0], "val") != "restart":
                cells.append(above.get(column, ""))
            else:
                cells.append(_cell(cell, read_text, depth))
                above[column] = cells[-1]
            column += max(1, sum(_number(part, "gridSpan") for part in properties))
        rows.append(cells)
    return rows


def _all(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, also those in content controls and insertions."""
    for part in element:
        if local_name(part) == name:
            yield part
        elif local_name(part) in CONTAINERS:
            yield from _all(part, name)


def _number(element: Element, name: str) -> int:
    value = next((attribute(part, "val") for part in element if local_name(part) == name), "")
    return min(int(value), 100) if value.isdigit() else 0


def _cell(cell: Element, read_text: Callable[[Element], str], depth: int) -> str:
    parts = [read_text(paragraph) for paragraph in _all(cell, "p")]
    if depth < _MAX_DEPTH:
        parts += [table_text(rows_of(inner, read_text, depth + 1)) for inner in _all(cell, "tbl")]
    return "; ".join(part for part in parts if part.strip())


def part_of(document: Document, kind: str) -> Element | None:
    """Return the root of the styles or the numbering, or None where it is missing or damaged."""
    named = (one for one in document.part.rels.values() if one.reltype.endswith(f"/{kind}"))
    return _root(next((one for one in named if not one.is_external), None))


def _root(relation: Any) -> Element | None:  # noqa: ANN401 (a relation of python-docx, or none)
    if relation is None or relation.is_external:
        return None
    try:
        return parse_xml(relation.target_part.blob)
    except (DocumentError, KeyError, ValueError):
        return None


def notes(document: Document) -> dict[str, str]:
    """Return the texts of foot- and endnotes by kind and number; damaged ones are left out."""
    found: dict[str, str] = {}
    for relation in document.part.rels.values():
        kind = relation.reltype.rsplit("/", 1)[-1].removesuffix("s")
        if kind not in _NOTE_KINDS or (root := _root(relation)) is None:
            continue
        for note in root:
            # The lines that part notes from the text are notes of another type.
            if local_name(note) == kind and not attribute(note, "type"):
                text = " ".join(" ".join(text_of(part) for part in note).split())
                found[f"{kind} {attribute(note, 'id')}"] = text
    return {name: text for name, text in found.items() if text}


def note_names(element: Element, known: Mapping[str, str]) -> Iterable[str]:
    """Yield the names of the notes that a paragraph refers to."""
    for part in element.iter() if known else ():
        kind = local_name(part).removesuffix("Reference")
        if kind in _NOTE_KINDS and (name := f"{kind} {attribute(part, 'id')}") in known:
            yield name


def charts(element: Element, document: Document) -> Iterator[Element]:
    """Yield the roots of the charts in a paragraph; damaged ones are left out."""
    for part in element.iter(_CHART):
        if (root := _root(document.part.rels.get(attribute(part, "id")))) is not None:
            yield root
