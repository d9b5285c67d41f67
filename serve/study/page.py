"""The page of a study: ten figures of bars, collections beside one another, and the advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from display.html import COLOURS, Markup, element, escaped, joined, table
from display.runs import view_page
from ingest.quality.texts import Spread
from serve.study.study import MODULES, SEGMENT, THIN, WHOLE, Study

NOTHING = "–"
PERCENT, DECIMAL = "{:.1%}", "{:,.1f}"
TYPES = 12  # that a figure shows, the most frequent first
STYLE = """
.carrel-view figure { margin: 2rem 0; }
.carrel-view figcaption { margin-bottom: .5em; }
.carrel-view .swatch { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 1em; }
.carrel-view .swatch:first-child { margin-left: 0; }
.carrel-view .rows { display: grid; grid-template-columns: minmax(5.5rem, max-content) 1fr;
  gap: .3em .8em; font-size: .9em; }
.carrel-view .rows > .label { text-align: right; overflow-wrap: anywhere; max-width: 13rem; }
.carrel-view .rows > .axis { opacity: .7; border-bottom: 1px solid rgba(128, 128, 128, .4); }
.carrel-view .value { display: flex; align-items: center; gap: .5em; line-height: 1.35; }
.carrel-view .value > span:first-child { min-width: 2px; height: .75em; border-radius: 2px; }
.carrel-view .value > span:last-child { font-variant-numeric: tabular-nums; white-space: nowrap; }
.carrel-view code { overflow-wrap: anywhere; }
"""
WIDEST = 78  # per cent of a row's width that the longest bar takes: its number stands behind it

Values = Sequence[float | None]  # of one row, a value per collection


class Figure(NamedTuple):
    """Hold a figure: what its rows are, what its bars measure, and how a value is written."""

    title: str
    rows: str
    measure: str
    values: Mapping[str, Values]
    note: str = ""
    written: str = "{:,.0f}"


def study_page(studies: Sequence[Study]) -> str:
    """Return the page; it needs no other file."""
    title = f"Corpus report: {', '.join(one.collection for one in studies)}"
    names = [one.collection for one in studies]
    return view_page(
        title,
        element("style", {}, Markup(STYLE)),
        element("h1", {}, escaped(title)),
        _key_figures(studies),
        element("h2", {}, escaped("Advice")),
        *map(_advice, studies),
        element("h2", {}, escaped("Figures")),
        *(_drawn(number, one, names) for number, one in enumerate(figures(studies), start=1)),
    )


def figures(studies: Sequence[Study]) -> list[Figure]:
    """Return the ten figures, in the order of the study that they are taken from."""

    def rows(read: Callable[[Study], Mapping[str, float]], most: int = TYPES) -> dict[str, Values]:
        found = [read(one) for one in studies]
        best = {key: max(one.get(key, 0) for one in found) for part in found for key in part}
        keys = list(best) if len(best) <= most else sorted(best, key=lambda key: -best[key])
        return {key: [one.get(key) for one in found] for key in keys[:most]}

    def each(read: Callable[[Study], object]) -> str:
        if len(studies) == 1:
            return f"{read(studies[0])}."
        return f"{'; '.join(f'{one.collection} {read(one)}' for one in studies)}."

    def histogram(title: str, what: str, measure: str, name: str, note: str = "") -> Figure:
        spreads: list[Spread] = [getattr(one, name) for one in studies]
        values = {one.collection: spread for one, spread in zip(studies, spreads, strict=True)}
        note += each(lambda one: _spread(values[one.collection]))
        return Figure(title, what, f"share of the {measure}", _histogram(spreads), note, PERCENT)

    sections = each(lambda one: ", ".join(f"{k} {v.section:,}" for k, v in one.types.items()))
    return [
        Figure(
            "Documents by type", "type", "documents",
            rows(lambda one: {kind: found.documents for kind, found in one.types.items()}),
        ),
        histogram("Sizes of documents", "characters", "documents", "sizes"),
        Figure(
            "Length by type", "type", "median, thousands of characters",
            rows(lambda one: {kind: found.median / 1000 for kind, found in one.types.items()}),
            f"{WHOLE:.0%} of the sections have at most so many characters: {sections}", DECIMAL,
        ),
        Figure(
            "Richness of vocabulary", "counted over", "different words per word of prose",
            {
                f"{SEGMENT:,} words": [one.richness_1000 for one in studies],
                "all words": [one.richness for one in studies],
            },
            "Without function words. Over all words it falls with the size of a collection;"
            f" over {SEGMENT:,} words collections compare.", PERCENT,
        ),
        Figure(
            "Depth of modules", "dots in the name", "modules",
            rows(lambda one: {str(depth): count for depth, count in one.module_depth.items()}),
            "Modules are those that an index declares or code imports.",
        ),
        histogram(
            "Density of references", "others named", "documents", "references",
            "Other documents that a document names, by titles of several words or names of an API"
            " that they explain. ",
        ),
        Figure(
            "Code and text", "what", "share of the characters",
            rows(lambda one: {"code": one.code_share, "text": 1 - one.code_share}),
            written=PERCENT,
        ),
        Figure(
            "Readability", "index", "mean over the documents",
            {
                "Flesch reading ease": [one.flesch for one in studies],
                "Gunning fog": [one.fog for one in studies],
            },
            "Ease: 60 is plain, below 30 is for experts. Fog: years of school that a reader needs."
            f" Documents in languages with a formula: {each(lambda one: one.readable)}", DECIMAL,
        ),
        Figure(
            "Modules that most documents name", "module", "documents",
            rows(lambda one: one.modules, MODULES),
            f"Named by at most {THIN} documents: {each(lambda one: len(one.thin_modules))}",
        ),
        histogram("Length of sentences", "words", "sentences", "sentences"),
    ]  # fmt: skip


def _histogram(spreads: Sequence[Spread]) -> dict[str, Values]:
    """Return the bars of spreads over the same steps, as shares, up to the last that has any."""
    bars = max(spreads, key=lambda one: len(one.bars)).bars
    filled = [place for one in spreads for place, bar in enumerate(one.bars) if bar[2]]
    found: dict[str, Values] = {}
    for place, (start, end, _) in enumerate(bars[: max(filled, default=-1) + 1]):
        name = f"{start:,}" if end == start + 1 else f"{start:,}–{end - 1:,}"
        name = f"{start:,} or more" if place == len(bars) - 1 else name
        found[name] = [one.bars[place][2] / one.count if one.count else None for one in spreads]
    return found


def _spread(one: Spread) -> str:
    return f"median {one.median:,}, mean {one.mean:,.1f}, most {one.most:,}"


def _drawn(number: int, figure: Figure, names: Sequence[str]) -> Markup:
    """Draw a figure as rows of bars, each with its number behind it."""
    given = [value for row in figure.values.values() for value in row if value is not None]
    most = max(map(abs, given), default=0) or 1

    def bar(place: int, value: float | None) -> Markup:
        text = NOTHING if value is None else figure.written.format(value)
        style = f"width: {WIDEST * max(0.0, value or 0.0) / most:.1f}%; {_colour(place)}"
        parts = element("span", {"style": style}), element("span", {}, escaped(text))
        return element("div", {"class": "value", "title": f"{names[place]}: {text}"}, *parts)

    head = (("label axis", figure.rows), ("axis", figure.measure))
    cells = [element("div", {"class": name}, escaped(text)) for name, text in head]
    for label, values in figure.values.items():
        cells.append(element("div", {"class": "label"}, escaped(label)))
        cells.append(element("div", {}, *map(bar, range(len(names)), values)))
    legend = [
        joined(element("span", {"class": "swatch", "style": _colour(n)}), escaped(f"{name} "))
        for n, name in enumerate(names)
    ]
    title = element("strong", {}, escaped(f"{number}. {figure.title}"))
    caption = element("figcaption", {}, title, element("div", {}, escaped(figure.note)))
    shown = [element("p", {"class": "legend"}, *legend)] if len(names) > 1 else []
    shown.append(element("div", {"class": "rows"}, *cells) if given else escaped("Nothing."))
    return element("figure", {}, caption, *shown)


def _colour(place: int) -> str:
    return f"background: {COLOURS[place % len(COLOURS)]}"


def _key_figures(studies: Sequence[Study]) -> Markup:
    numbers = ["documents", "passages", "words"]
    rows = []
    for one in studies:
        counts = [f"{getattr(one, name):,}" for name in numbers]
        spoken = ", ".join(f"{code} {n:,}" for code, n in one.languages.items())
        rows.append([*map(escaped, (one.collection, one.profile, *counts, spoken))])
    return table(["collection", "profile", *numbers, "languages"], rows, set(numbers), labels=1)


def _advice(one: Study) -> Markup:
    shown = []
    for part in one.advice:
        setting = element("code", {}, escaped(f"{part.setting}: {part.now} → {part.advised}"))
        shown.append(element("li", {}, setting, element("div", {}, escaped(part.why))))
    command = element("code", {}, escaped(f"carrel report {one.collection} --apply"))
    note = joined(command, escaped(" applies it; chunks change with the next ingest."))
    none = escaped("The settings are those that its figures advise.")
    title = element("h3", {}, escaped(one.collection))
    return joined(title, element("ul", {}, *shown), element("p", {}, note if shown else none))
