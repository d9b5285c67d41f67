"""The page of a study: ten figures of bars, collections beside one another, and the advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from display.html import COLOURS, Markup, element, escaped, joined, table
from display.runs import view_page
from evals.study import MODULES, SEGMENT, THIN, WHOLE, Study, TypeStudy
from evals.study_advice import Advice
from ingest.quality.texts import Spread

NOTHING = "–"
TYPES = 12  # that a figure shows, the most frequent first
STYLE = """
.carrel-view figure { margin: 2rem 0; }
.carrel-view figcaption { margin-bottom: .5em; }
.carrel-view .legend span { margin-right: 1.2em; white-space: nowrap; }
.carrel-view .swatch { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
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
    written: Callable[[float], str] = "{:,.0f}".format


def study_page(studies: Sequence[Study], advice: Mapping[str, Sequence[Advice]]) -> str:
    """Return the page; it needs no other file. `advice` is by collection."""
    title = f"Corpus report: {', '.join(one.collection for one in studies)}"
    names = [one.collection for one in studies]
    return view_page(
        title,
        element("style", {}, Markup(STYLE)),
        element("h1", {}, escaped(title)),
        _key_figures(studies),
        element("h2", {}, escaped("Advice")),
        *(_advice(one, advice.get(one.collection, ())) for one in studies),
        element("h2", {}, escaped("Figures")),
        *(_drawn(number, one, names) for number, one in enumerate(figures(studies), start=1)),
    )


def figures(studies: Sequence[Study]) -> list[Figure]:
    """Return the ten figures, in the order of the study that they are taken from."""
    thousands = "{:,.1f}".format
    return [
        Figure(
            "Documents by type", "type", "documents",
            _by_key(studies, lambda one: {k: v.documents for k, v in _types(one).items()}),
        ),
        Figure(
            "Sizes of documents", "characters", "share of the documents",
            _histogram([one.sizes for one in studies]), _spread(studies, "sizes"), "{:.1%}".format,
        ),
        Figure(
            "Length by type", "type", "median, thousands of characters",
            _by_key(studies, lambda one: {k: v.median / 1000 for k, v in _types(one).items()}),
            f"{WHOLE:.0%} of the sections have at most so many characters: "
            + _each(studies, _section_lengths),
            thousands,
        ),
        Figure(
            "Richness of vocabulary", "counted over", "different words per word of prose",
            {
                f"{SEGMENT:,} words": [one.vocabulary.richness_1000 for one in studies],
                "all words": [one.vocabulary.richness for one in studies],
            },
            "Function words are left out. Over all words it falls with the size of a collection;"
            f" over stretches of {SEGMENT:,} words collections compare.",
            "{:.1%}".format,
        ),
        Figure(
            "Depth of modules", "dots in the name", "modules",
            _by_key(studies, lambda one: {str(k): v for k, v in one.module_depth.items()}),
            "Modules are those that an index declares or code imports.",
        ),
        Figure(
            "Density of references", "others named", "share of the documents",
            _histogram([one.references for one in studies]),
            "Other documents that a document names, by their titles of several words or by names"
            f" of an API that they explain. {_spread(studies, 'references')}",
            "{:.1%}".format,
        ),
        Figure(
            "Code and text", "what", "share of the characters",
            {
                "code": [one.code_share for one in studies],
                "text": [1 - one.code_share for one in studies],
            },
            f"Characters of code per character of text: {_each(studies, _code_ratio)}",
            "{:.1%}".format,
        ),
        Figure(
            "Readability", "index", "mean over the documents",
            {
                "Flesch reading ease": [one.readability.flesch for one in studies],
                "Gunning fog": [one.readability.fog for one in studies],
            },
            "Ease: 60 is plain, below 30 is for experts. Fog: years of school that a reader needs."
            " Only languages with a formula count: "
            + _each(studies, lambda one: f"{one.readability.documents} documents"),
            thousands,
        ),
        Figure(
            f"Modules that most documents name (up to {MODULES})", "module", "documents",
            _by_key(studies, lambda one: one.modules, MODULES),
            f"Named by at most {THIN} documents: "
            + _each(studies, lambda one: f"{len(one.thin_modules)} modules"),
        ),
        Figure(
            "Length of sentences", "words", "share of the sentences",
            _histogram([one.sentences for one in studies]),
            _spread(studies, "sentences"), "{:.1%}".format,
        ),
    ]  # fmt: skip


def _section_lengths(one: Study) -> str:
    return ", ".join(f"{kind} {found.section:,}" for kind, found in _types(one).items())


def _code_ratio(one: Study) -> str:
    return f"{one.code_characters / max(1, one.text_characters):.2f}"


def _types(one: Study) -> dict[str, TypeStudy]:
    return dict(list(one.types.items())[:TYPES])


def _by_key(
    studies: Sequence[Study], read: Callable[[Study], Mapping[str, float]], most: int = 0
) -> dict[str, Values]:
    """Return a row for each key of any collection; those of the largest values where cut."""
    found = [read(one) for one in studies]
    keys = list(dict.fromkeys(key for one in found for key in one))
    if most:
        keys.sort(key=lambda key: -max(one.get(key, 0) for one in found))
    return {key: [one.get(key) for one in found] for key in keys[: most or None]}


def _histogram(spreads: Sequence[Spread]) -> dict[str, Values]:
    """Return the bars of spreads over the same steps, as shares, up to the last that has any."""
    longest = max(spreads, key=lambda one: len(one.bars)).bars
    last = max(
        (place for one in spreads for place, bar in enumerate(one.bars) if bar[2]), default=-1
    )
    rows: dict[str, Values] = {}
    for place, (start, end, _) in enumerate(longest[: last + 1]):
        name = f"{start:,}" if end == start + 1 else f"{start:,}–{end - 1:,}"
        name = f"{start:,} or more" if place == len(longest) - 1 else name
        rows[name] = [one.bars[place][2] / one.count if one.count else None for one in spreads]
    return rows


def _spread(studies: Sequence[Study], name: str) -> str:
    def written(one: Study) -> str:
        spread: Spread = getattr(one, name)
        return f"median {spread.median:,}, mean {spread.mean:,.1f}, most {spread.most:,}"

    return _each(studies, written)


def _each(studies: Sequence[Study], read: Callable[[Study], str]) -> str:
    named = (f"{one.collection} {read(one)}" for one in studies)
    return f"{'; '.join(named if len(studies) > 1 else map(read, studies))}."


def _drawn(number: int, figure: Figure, names: Sequence[str]) -> Markup:
    """Draw a figure as rows of bars, each with its number behind it."""
    given = [value for row in figure.values.values() for value in row if value is not None]
    most = max(map(abs, given), default=0) or 1
    head = (("label axis", figure.rows), ("axis", figure.measure))
    cells = [element("div", {"class": name}, escaped(text)) for name, text in head]
    for label, values in figure.values.items():
        bars = [
            _bar(name, place, value, most, figure.written)
            for place, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        cells += [element("div", {"class": "label"}, escaped(label)), element("div", {}, *bars)]
    title = element("strong", {}, escaped(f"{number}. {figure.title}"))
    parts = [element("figcaption", {}, title, element("div", {}, escaped(figure.note)))]
    if len(names) > 1:
        parts.append(element("p", {"class": "legend"}, *map(_legend, range(len(names)), names)))
    rows = element("div", {"class": "rows"}, *cells)
    parts.append(rows if given else element("p", {}, escaped("There is nothing to show.")))
    return element("figure", {}, *parts)


def _bar(
    name: str, place: int, value: float | None, most: float, written: Callable[[float], str]
) -> Markup:
    text = NOTHING if value is None else written(value)
    width = WIDEST * max(0.0, value or 0.0) / most
    style = f"width: {width:.1f}%; background: {COLOURS[place % len(COLOURS)]}"
    filled = element("span", {"style": style})
    shown = element("span", {}, escaped(text))
    return element("div", {"class": "value", "title": f"{name}: {text}"}, filled, shown)


def _legend(place: int, name: str) -> Markup:
    style = f"background: {COLOURS[place % len(COLOURS)]}"
    swatch = element("span", {"class": "swatch", "style": style})
    return element("span", {}, joined(swatch, escaped(name)))


def _key_figures(studies: Sequence[Study]) -> Markup:
    titles = ["collection", "profile", "documents", "passages", "words", "languages"]
    rows = [
        [
            escaped(one.collection),
            escaped(one.profile),
            *(escaped(f"{n:,}") for n in (one.documents, one.passages, one.vocabulary.words)),
            escaped(", ".join(f"{code} {n:,}" for code, n in one.languages.items())),
        ]
        for one in studies
    ]
    return table(titles, rows, {"documents", "passages", "words"}, labels=1)


def _advice(one: Study, advice: Sequence[Advice]) -> Markup:
    title = element("h3", {}, escaped(one.collection))
    if not advice:
        text = "The settings are those that its figures advise."
        return joined(title, element("p", {}, escaped(text)))
    shown = [
        element(
            "li",
            {},
            element("code", {}, escaped(f"{a.setting}: {a.now} → {a.advised}")),
            element("div", {}, escaped(a.why)),
        )
        for a in advice
    ]
    command = element("code", {}, escaped(f"carrel report {one.collection} --apply"))
    note = escaped(" applies it; chunks change with the next ingest.")
    return joined(title, element("ul", {}, *shown), element("p", {}, command, note))
