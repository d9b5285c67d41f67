"""The numbers that a chart of Office draws, as they were saved with it."""

from __future__ import annotations

from typing import Any

from ingest.loaders.xml_tree import attribute, child, children, descendants, words

# Elements of lxml and of the standard library.
Element = Any


def chart_rows(root: Element) -> list[list[str]]:
    """Return a row per category or point of a chart of any kind, its title first."""
    title = "".join(e.text or "" for e in _all(child(root, "chart", "title"), "t"))
    rows = [[title]] if title.strip() else []
    for plot in root.iter():
        if series := list(children(plot, "ser")):
            rows += _plot_rows(series)
    return rows


def _plot_rows(series: list[Element]) -> list[list[str]]:
    names = [" ".join(_points(child(one, "tx")).values()) for one in series]
    values = [_points(_first(one, "val", "yVal")) for one in series]
    labels = _points(_first(series[0], "cat", "xVal"))
    places = sorted({at for found in [labels, *values] for at in found})
    cells = ([labels.get(at, str(at + 1)), *(v.get(at, "") for v in values)] for at in places)
    return [["", *names], *cells]


def _first(series: Element, *names: str) -> Element | None:
    return next((found for name in names if (found := child(series, name)) is not None), None)


def _all(holder: Element | None, name: str) -> list[Element]:
    return [] if holder is None else list(descendants(holder, name))


def _points(holder: Element | None) -> dict[int, str]:
    """Return the saved values of a reference by their place; a literal one has place 0."""
    literal = child(holder, "v")
    found = {} if literal is None else {0: literal.text or ""}
    is_date = any(_names_date(words(e)) for e in _all(holder, "formatCode"))
    for point in _all(holder, "pt"):
        at, value = attribute(point, "idx"), child(point, "v")
        if value is not None and at.isdecimal():
            said = _shown(value.text or "", is_date=is_date)
            # Of several levels of categories the innermost comes first.
            found[int(at)] = f"{said} {found[int(at)]}" if int(at) in found else said
    return found


def _names_date(code: str) -> bool:
    from openpyxl.styles.numbers import is_date_format  # type: ignore[import-untyped]

    return bool(is_date_format(code))


def _shown(text: str, *, is_date: bool) -> str:
    from openpyxl.utils.datetime import from_excel  # type: ignore[import-untyped]

    try:
        number = float(text)
        if is_date:
            return str(from_excel(number)).removesuffix(" 00:00:00")
        return f"{number:g}" if "." in text or "E" in text else text
    except (ValueError, OverflowError, TypeError):
        return text
