"""What the styles of a page hide from its readers: the CSS cascade, as far as it hides text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import tinycss2
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from ingest.loaders.visibility import BLACK, WHITE, Colour, colour_of, is_legible

Weight = tuple[bool, bool, tuple[int, int, int]]  # important, inline, specificity
Declared = dict[str, tuple[Weight, str]]

_SCREEN = {"width": 1280.0, "height": 800.0}  # CSS pixels of a usual screen; chosen, not measured
_FAR = 900.0  # pixels beyond an edge: no part of a page reaches back from there; chosen
_BEYOND = 5000.0  # pixels to the right or below, where no reader scrolls to; chosen
_HINTS = {"hidden": "display", "color": "color", "text": "color", "bgcolor": "background-color"}
_HINT: Weight = (False, False, (-1, 0, 0))  # of these attributes, which any rule overrules
_UNITS = {
    **{"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945},
    **{"vw": 12.8, "vh": 8.0, "vmin": 8.0, "vmax": 12.8, "%": 12.8},
}
_LENGTH = re.compile(r"(-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)([a-z]+|%)?(?![\w(.%])")
_SIZES = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0}
_NAMES = frozenset(
    "display visibility content-visibility opacity filter font-size color clip clip-path scale "
    "transform translate position left top right bottom inset text-indent margin margin-left "
    "margin-top width max-width height max-height overflow overflow-x overflow-y text-shadow "
    "background-color background-image background-clip -webkit-background-clip "
    "-webkit-text-fill-color".split()
)
# Values that browsers know; a declaration with another one counts for nothing.
_KNOWN = {
    "display": r"(?:none|(?:inline|block|flex|grid|table|flow|run-in|ruby|list-item|contents)\b.*)",
    "visibility": r"visible|hidden|collapse",
    "opacity": r"[\d.]+%?|calc\(.*",
    "position": r"static|relative|absolute|fixed|sticky",
    "font-size": r"[\d.].*|[a-z-]*(?:small|medium|large|smaller|larger)|(?:calc|clamp|min|max)\(.*",
}
_ANY = re.compile(r"inherit|initial|unset|revert(?:-layer)?|.*var\(.*", re.S)
_CUT = re.compile(
    r"inset\(\s*(?:(?:[5-9]\d|\d{3,})(?:\.\d+)?%|\d{4,}px)|(?:circle|ellipse)\(\s*0(?![.\d])"
    r"|polygon\((?:\s*0[a-z%]*\s+0[a-z%]*\s*,?)+\)"
)
_FLAT = re.compile(
    r"scale(?:3d|[xy])?\(\s*(?:0?\.0\d*|0+)%?\s*[,)]|scale(?:3d)?\([^,)]*,\s*(?:0?\.0\d*|0+)\s*[,)]"
    r"|matrix\(\s*0\s*,\s*0\s*,\s*0\s*,\s*0|rotate[xy]\(\s*-?90deg"
)
_SPECIFIC = (
    r"#[\w-]+",
    r"\.[\w-]+|\[[^\]]*\]|(?<!:):(?!is|not|where|has)[\w-]+",
    r"(?<![\w.#:-])[a-z][\w-]*",
)


class Looks(NamedTuple):
    """Hold what decides whether the text of an element is seen; None is what is not known."""

    ink: Colour | None = BLACK
    paper: Colour | None = WHITE
    size: float = 16.0  # pixels
    opacity: float = 1.0
    shown: bool = True
    variables: dict[str, str] = {}

    @property
    def legible(self) -> bool:
        """Tell whether a reader sees a text that looks like this."""
        ink = self.ink and self.ink._replace(alpha=self.ink.alpha * self.opacity)
        return self.shown and is_legible(ink, self.paper, self.size * 3 / 4)


def remove_unseen(tree: LexborHTMLParser, *, styled_elsewhere: bool = False) -> int:
    """Take out of a page what its readers do not see; return how many pieces had words.

    Styles of other files are unknown: where there are any, what has a class may have any paper.
    """
    page = Cascade(tree, styled_elsewhere=styled_elsewhere)
    found = list(page.unseen())
    pieces = sum(bool(re.search(r"\w", node.text(deep=True) or "")) for node in found)
    for node in found:
        node.decompose()
    return pieces


class Cascade:
    """Know the styles of one page, and find what they hide."""

    def __init__(self, tree: LexborHTMLParser, *, styled_elsewhere: bool) -> None:
        """Gather what is declared for each element; the last of equal weight counts."""
        self._root = tree.css_first("html") or tree.root
        self._declared: dict[int, Declared] = {}
        self._rem = 16.0
        linked = tree.css_first("link[rel~=stylesheet]")
        self._elsewhere = styled_elsewhere or linked is not None
        for attribute, name in _HINTS.items():
            for node in tree.css(f"[{attribute}]"):
                given = node.attributes[attribute] or ""
                bare = re.fullmatch(r"[0-9a-fA-F]{6}", given)  # as browsers take it there
                value = "none" if name == "display" else f"#{given}" if bare else given
                self._declare(node, [(name, value, _HINT)])
        for style in tree.css("style"):
            medium = style.attributes.get("media") or ""
            if _applies(medium) and all(up.tag != "noscript" for up in above(style)):
                text = re.sub(r"<!--|-->", "", style.text(deep=True))
                self._add_rules(tree, tinycss2.parse_stylesheet(text, True, True))
        for node in tree.css("[style]"):
            declared = tinycss2.parse_blocks_contents(node.attributes["style"] or "", True, True)
            self._declare(node, list(_expanded(declared, (0, 0, 0), inline=True)))

    def unseen(self) -> Iterator[LexborNode]:
        """Yield the outermost elements that nobody sees, and the texts of others."""
        waiting = [(self._root, Looks())]
        while waiting:
            parent, around = waiting.pop()
            if parent is None:
                continue
            for node in parent.iter(include_text=True):
                if node.tag == "-text":
                    if not around.legible and (node.text_content or "").strip():
                        yield node
                elif node.tag and node.tag[0].isalpha() and node.tag != "head":
                    looks = self._looks_of(node, around)
                    if looks is None:
                        yield node
                    else:
                        waiting.append((node, looks))

    def _add_rules(self, tree: LexborHTMLParser, rules: list[Any]) -> None:
        for rule in rules:
            keyword = getattr(rule, "lower_at_keyword", "")
            if rule.type == "qualified-rule":
                declared = tinycss2.parse_blocks_contents(rule.content, True, True)
                for selector in _selectors(rule.prelude):
                    found = list(_expanded(declared, _specificity(selector)))
                    try:
                        nodes = tree.css(selector) if found else []
                    except SelectolaxError:  # of a pseudo-element, or none that browsers know
                        continue
                    for node in nodes:
                        self._declare(node, found)
            elif keyword == "import":
                self._elsewhere = True
            elif keyword in ("media", "supports", "layer") and rule.content:
                if keyword != "media" or _applies(tinycss2.serialize(rule.prelude)):
                    self._add_rules(tree, tinycss2.parse_rule_list(rule.content, True, True))

    def _declare(self, node: LexborNode, declared: list[tuple[str, str, Weight]]) -> None:
        known = self._declared.setdefault(node.mem_id, {})
        for name, value, weight in declared:
            if name not in known or known[name][0] <= weight:
                known[name] = (weight, value)

    def _looks_of(self, node: LexborNode, around: Looks) -> Looks | None:
        """Return what an element looks like within its parent, None for one that is not seen."""
        attributes, is_page = node.attributes, node.tag in ("html", "body")
        if attributes.get("aria-hidden") == "true":
            return None
        declared = self._declared.get(node.mem_id, {})
        if self._elsewhere and not is_page and not {"class", "id"}.isdisjoint(attributes):
            around = around._replace(paper=None)
        if not declared:
            return around
        own = {name: value for name, (_, value) in declared.items() if name[:2] == "--"}
        variables = {**around.variables, **own} if own else around.variables
        style = {name: _resolved(value, variables) for name, (_, value) in declared.items()}
        # A script shows a page that is hidden as a whole.
        if not is_page and _is_away(style, self._rem) and not _has_twin(node):
            return None
        size = _size(style.get("font-size", ""), around.size, self._rem)
        if node.tag == "html":
            self._rem = size or self._rem
        visibility = style.get("visibility", "inherit")
        shown = (
            around.shown if visibility == "inherit" else visibility not in ("hidden", "collapse")
        )
        looks = Looks(
            _ink(style, around), _paper(style, around), size,
            around.opacity * _opacity(style), shown, variables,
        )  # fmt: skip
        if is_page:
            looks = looks._replace(opacity=1.0, shown=True)
            return looks if looks.legible else looks._replace(paper=None)
        return looks


def above(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements around one, the nearest first."""
    up = node.parent
    while up is not None:
        yield up
        up = up.parent


def _applies(media: str) -> bool:
    return not media.strip() or any(map(_is_met, media.lower().split(",")))


def _is_met(query: str) -> bool:
    if re.match(r"\s*(?:not|print|speech|aural|tv)\b", query):
        return False
    for name, value in re.findall(r"\(\s*([\w-]+)\s*(?::\s*([^)]*))?\)", query):
        bound, _, side = name.partition("-")
        length = _pixels(value, 16.0)
        if bound not in ("min", "max") or side not in _SCREEN or length is None:
            return False
        if (length > _SCREEN[side]) if bound == "min" else (length < _SCREEN[side]):
            return False
    return True


def _selectors(prelude: list[Any]) -> Iterator[str]:
    begin = 0
    for place, token in enumerate([*prelude, None]):
        if token is None or (token.type == "literal" and token.value == ","):
            yield tinycss2.serialize(prelude[begin:place]).strip()
            begin = place + 1


def _specificity(selector: str) -> tuple[int, int, int]:
    ids, classes, tags = (len(re.findall(one, selector, re.I)) for one in _SPECIFIC)
    return ids, classes, tags


def _expanded(
    declared: list[Any], specificity: tuple[int, int, int], *, inline: bool = False
) -> Iterator[tuple[str, str, Weight]]:
    """Yield the declarations that may hide text, those of shorthands by their long names."""
    for one in declared:
        if one.type != "declaration":
            continue
        value, name = tinycss2.serialize(one.value).strip(), one.lower_name
        weight: Weight = (one.important, inline, specificity)
        if name == "background":
            yield "background-color", value, weight
            yield "background-image", value if re.search(r"url\(|gradient\(", value) else "", weight
        elif name == "font" and (found := re.search(r"(?:^|\s)([\d.]+[a-z%]*)(?=[\s/])", value)):
            yield "font-size", found[1], weight
        elif (name in _NAMES and _is_known(name, value.lower())) or name[:2] == "--":
            yield name, value, weight


def _is_known(name: str, value: str) -> bool:
    if _ANY.fullmatch(value):
        return True
    if name == "color":
        return value == "currentcolor" or colour_of(value) is not None
    return re.fullmatch(_KNOWN.get(name, ".*"), value, re.S) is not None


def _resolved(value: str, variables: dict[str, str]) -> str:
    """Return a value in lower case, with the values of its variables."""
    for _ in range(8):  # of variables within variables; chosen, not measured
        if "var(" not in value:
            break
        value = re.sub(
            r"var\(\s*(--[\w-]+)\s*(?:,([^()]*(?:\([^()]*\))?[^()]*))?\)",
            lambda hit: variables.get(hit[1], hit[2] or ""), value,
        )  # fmt: skip
    return value.strip().lower()


def _pixels(value: str, em: float, rem: float = 16.0) -> float | None:
    """Return the first length of a value, None where there is none that is known."""
    found = _LENGTH.search(value)
    if found is None or (not found[2] and float(found[1])):
        return None
    own = {"em": em, "rem": rem, "ex": em / 2, "ch": em / 2}
    factor = own.get(found[2] or "px", _UNITS.get(found[2] or "px"))
    return None if factor is None else float(found[1]) * factor


def _size(value: str, around: float, rem: float) -> float:
    if value.endswith("%") and (found := _LENGTH.match(value)):
        return around * float(found[1]) / 100
    length = (
        None if value.startswith(("calc", "clamp", "min", "max")) else _pixels(value, around, rem)
    )
    return _SIZES.get(value, around if length is None else length)


def _is_away(style: dict[str, str], rem: float) -> bool:
    """Tell whether an element is not drawn, cut away, or far from what is read."""
    cut = any(style.get(f"overflow{end}", "visible") != "visible" for end in ("", "-x", "-y"))
    moved = style.get("position", "static") != "static"
    lengths = {
        name: [one for part in style[name].split() if (one := _pixels(part, 16.0, rem)) is not None]
        for name in style
        if name in ("text-indent", "margin", "margin-left", "margin-top", "translate")
        or (moved and name in ("left", "top", "right", "bottom", "inset"))
    }
    for shift in re.findall(r"translate(?:3d|x|y)?\(([^)]*)", style.get("transform", "")):
        lengths.setdefault("transform", []).extend(
            one for part in shift.split(",") if (one := _pixels(part, 16.0, rem)) is not None
        )
    boxes = [_pixels(style[name], 16.0) for name in
             ("width", "max-width", "height", "max-height") if name in style]  # fmt: skip
    rect = re.match(r"rect\(([^)]*)", style.get("clip", ""))
    edges = [_pixels(one, 16.0) for one in re.split(r"[\s,]+", rect[1].strip())] if rect else []
    return (
        style.get("display") == "none"
        or style.get("content-visibility") == "hidden"
        or bool(_CUT.search(style.get("clip-path", "")))
        or bool(_FLAT.search(f"{style.get('transform', '')} scale({style.get('scale', '1')})"))
        or (cut and any(box is not None and box <= 1 for box in boxes))
        or (cut and any(one >= _SCREEN["width"] for one in lengths.get("text-indent", [])))
        or any(one <= -_FAR or one >= _BEYOND for found in lengths.values() for one in found)
        or (len(edges) == 4 and moved and None not in edges and len(set(edges)) == 1)
    )


def _has_twin(node: LexborNode) -> bool:
    """Tell whether an element is the formula behind a drawing that readers see in its place."""
    twin = node.next
    return (
        twin is not None
        and twin.attributes.get("aria-hidden") == "true"
        and node.css_first("math") is not None
    )


def _opacity(style: dict[str, str]) -> float:
    values = [style.get("opacity", "1"), *re.findall(r"opacity\(([^)]*)", style.get("filter", ""))]
    shares = [re.fullmatch(r"\s*([\d.]+|\.\d+)(%?)\s*", value) for value in values]
    product = 1.0
    for one in shares:
        product *= min(1.0, float(one[1]) / (100 if one[2] else 1)) if one else 1.0
    return product


def _ink(style: dict[str, str], around: Looks) -> Colour | None:
    """Return the colour of letters; those that a background or a shadow draws have none."""
    clip = style.get("background-clip", style.get("-webkit-background-clip", ""))
    if clip == "text" or style.get("text-shadow", "none") != "none":
        return None
    value = style.get("-webkit-text-fill-color", style.get("color", "inherit"))
    return around.ink if value in ("inherit", "currentcolor", "unset") else colour_of(value)


def _paper(style: dict[str, str], around: Looks) -> Colour | None:
    if style.get("background-image", "") not in ("", "none"):
        return None
    value = style.get("background-color")
    if value is None:
        return around.paper
    written = re.findall(r"[\w-]+\([^()]*\)|[#\w.%-]+", value)
    found = next(filter(None, map(colour_of, written)), None)
    if found is None or found.alpha == 0:
        return around.paper
    return found.over(around.paper) if around.paper else found if found.alpha == 1 else None
