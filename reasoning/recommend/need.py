"""Read what a need says must be so, as filters on the fields that a collection has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from core.errors import CallerError
from core.language.cues import stopwords
from core.language.detect import detect_language
from core.metadata import OWN
from core.types import FieldInfo, FrozenModel, ToolSpec
from languages.language import known_languages
from reasoning.recommend.roles import (
    CLASSES,
    FREE,
    LicenceClass,
    class_of_licence,
    cue,
    find_roles,
    is_denied,
    licences,
    maturity_of,
    tables,
    with_marks,
)
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.fields import theme_of
from reasoning.rules.records.numbers import read_numbers
from reasoning.rules.records.phrases import tables as phrase_tables
from reasoning.rules.records.schema import RecordReading, nearest, schema_of

_KINDS: dict[str, frozenset[LicenceClass]] = {
    "permissive": frozenset({"permissive"}),
    "copyleft": frozenset({"copyleft", "weak"}),
    "free": FREE,
    "closed": frozenset({"closed"}),
}
_NAME = re.compile(r" (?![Ll]icen)[A-Z][a-z]")  # "Apache Spark" is no licence
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class LicenceWish:
    """Hold the values of a field that a need allows, what it says, and where."""

    wanted: str
    values: list[str]
    spans: list[tuple[int, int]]


def read_licence(text: str, info: FieldInfo | None) -> LicenceWish | None:
    """Return what a need says of licences, None for nothing.

    Kinds must hold together unless "or" joins them; of licences that are named any will do. Raises
    CallerError where no licence can be all of it.
    """
    classes = [(match, name) for name in _KINDS for match in cue(name).finditer(text)]
    ways = re.IGNORECASE | re.ASCII  # no Chinese character is a part of a name
    named = [*re.finditer(licences()["named"], text, ways)]
    sure = bool(named) or cue("licence").search(text) is not None
    pattern = f"{licences()['named']}|{licences()['beside']}"
    named = [
        one
        for one in re.finditer(pattern, text, ways)
        if (sure or _is_under(text, one)) and not _NAME.match(text[one.end() :])
    ]
    if not classes and not named:
        return None
    denied = [match for match in named if is_denied(text, match.start())]
    asked = [match[0] for match in named if match not in denied]
    kinds = _allowed(text, classes)
    fitting = [one for one in asked if class_of_licence(one) in (*kinds, None)]
    if not kinds or (asked and not fitting):
        shown = ", ".join([*(match[0] for match, _ in classes), *asked])
        raise CallerError("a need must not contradict itself", value=shown,
                          hint="no licence is all of it; say which will do, with “or”")  # fmt: skip
    bound = bool(classes)
    values = [
        value
        for value in (info.examples if info else ())
        if (not bound or class_of_licence(value) in kinds)
        and (not asked or any(_is_named(value, one) for one in fitting))
        and not any(_is_named(value, match[0], denied=True) for match in denied)
    ]
    matches = sorted([*(match for match, _ in classes), *named], key=lambda one: one.start())
    spans = [with_marks(text, *one.span()) for one in [*matches, *cue("licence").finditer(text)]]
    wanted = [f"not {one[0]}" if is_denied(text, one.start()) else one[0] for one in matches]
    return LicenceWish(", ".join(wanted), values, spans)


def _is_under(text: str, match: re.Match[str]) -> bool:
    """Tell whether a name stands for a licence: "under BSD", and not "with Apache Spark"."""
    ends = re.match(r"\s*(?:$|[^\w\s])", text[match.end() :]) is not None
    return ends and cue("before_licence").search(text[: match.start()]) is not None


def _allowed(text: str, classes: Sequence[tuple[re.Match[str], str]]) -> set[LicenceClass]:
    """Return the classes that fit the kinds that a need names."""
    allowed = set(CLASSES)
    ordered = sorted(classes, key=lambda one: one[0].start())
    for place, (match, name) in enumerate(ordered):
        kinds = _KINDS[name]
        if is_denied(text, match.start()):
            allowed -= kinds
            continue
        between = text[ordered[place - 1][0].end() : match.start()] if place else ""
        allowed = allowed | kinds if cue("either").search(between) else allowed & kinds
    return allowed


def _is_named(value: str, name: str, *, denied: bool = False) -> bool:
    """Tell whether a value is the licence of a name, each of several; `denied` if any may be.

    Who does not want GPL does not want AGPL.
    """
    if not denied and class_of_licence(value) != class_of_licence(name):
        return False  # "FSL-1.1-MIT"
    plain = re.sub(r"v(?=\d)", " ", name.casefold())  # "GPLv3"
    words = [one for one in _TOKEN.findall(plain) if one not in ("license", "licence")]
    parts = re.split(r"\s+/\s+|\s+and\s+", value, flags=re.IGNORECASE)
    has = [all(_has(part.casefold(), word, denied) for word in words) for part in parts]
    return any(has) if denied else all(has)


def _has(value: str, word: str, within: bool) -> bool:
    if word[0].isdigit():
        number = word.removesuffix(".0")
        return re.search(rf"(?<![\d.]){re.escape(number)}(?:\.0)?(?!\d)", value) is not None
    if within:
        return word in value
    # "GPL-2.0+" and "GPLv3" are GPL, and AGPL is not, nor is MIT-0 the MIT licence.
    return re.search(rf"(?<![a-z]){re.escape(word)}(?:v\d|\b(?!-0\b)|(?=\d))", value) is not None


CONTRADICTION = "a need must not contradict itself"
MATURE = 0.6  # from here on a thing is mature: incubating, or 1,000 stars; chosen, not measured
REACH = 4  # phrases around a number that may belong to it; chosen, not measured
MAINTAINED = 0.5  # activity of a year ago: half of today's
_THOUSANDS = re.compile(r"\b(\d{1,6}(?:\.\d{1,3})?) ?[kK]\b")
_OR_MORE = re.compile(r"\b(\d+) ?\+(?=\s)")  # "1000+ stars"
_EDGES = r"(?<![A-Za-z0-9_+#.-]){}(?![A-Za-z0-9_+#])"


class Constraint(FrozenModel):
    """Hold what must be so: `filters` of documents, or the least or most of a factor, 0..1.

    `wanted` is what the need says; without a `field` nothing here can meet it.
    """

    wanted: str
    field: str | None = None
    filters: list[str] = []
    least: float | None = None
    most: float | None = None


@dataclass
class Need:
    """Hold a need as it was read; `theme` is what is left to search for."""

    text: str
    roles: dict[str, FieldInfo]
    constraints: dict[str, Constraint] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def theme(self) -> str:
        """Return the need without its constraints and the words that only wish."""
        kept = list(self.text)
        for start, end in self.spans:
            kept[start:end] = " " * (end - start)
        language, bare = detect_language(self.text), "".join(kept)
        bare = cue("varied").sub("", cue("little_known").sub("", bare))
        if "licence" not in self.roles and lexicon(language).found("recommend", bare):
            return theme_of(bare)  # what is wished for is a work
        bare = re.sub(r"\s+", " ", cue("wishes").sub("", bare))
        bare = re.sub(r"\s*([,;，；、])(?:\s*[,;，；、])*", r"\1", bare).strip(" ,;:.，；：、。")
        words = bare.split(" ")
        function = stopwords(language) | {"", "-"}
        while len(words) > 1 and words[-1].casefold().strip(",;") in function:
            words.pop()
        while len(words) > 1 and words[0].casefold() in function:
            words.pop(0)
        bare = " ".join(words).removeprefix("的").strip(" ,;:.")
        return bare if re.search(r"\w{2}|[\u3400-\u9fff]", bare) else self.text

    def has(self, name: str) -> bool:
        """Tell whether it has words of a list, such as "little_known" or "varied"."""
        return cue(name).search(self.text) is not None

    def add(self, name: str, constraint: Constraint, *spans: tuple[int, int]) -> None:
        """Add a constraint that stands at some places of the text."""
        self.constraints[name] = constraint
        self.spans += spans


def read_need(text: str, spec: ToolSpec) -> Need:
    """Read a need for documents with the fields of `spec`; raises CallerError if contradictory."""
    text = _THOUSANDS.sub(lambda match: f"{float(match[1]) * 1000:.0f}", text)
    text = _OR_MORE.sub(r">= \1", text)
    need = Need(text, find_roles(spec.fields))
    _read_languages(need)
    found = read_licence(text, need.roles.get("licence"))
    if found is not None:
        info = need.roles.get("licence")
        values = "|".join(found.values)
        filters = [f"{info.name}={values}"] if info and values else []
        name = info.name if info and filters else None
        need.add("licence", Constraint(wanted=found.wanted, field=name, filters=filters),
                 *found.spans)  # fmt: skip
    _read_platforms(need)
    _read_maturity(need)
    _read_degrees(need)
    _read_numbers(need, spec)
    return need


def _found(text: str, info: FieldInfo) -> list[tuple[int, int, str]]:
    """Return where a text names values of a field, the longest at each place."""
    names = {value: value for value in info.examples if value.casefold() != "unknown"}
    for value, others in tables()["aliases"].items():
        own = next((one for one in info.examples if one.casefold() == value.casefold()), None)
        names |= dict.fromkeys([value, *others], own) if own else {}
    taken: list[tuple[int, int, str]] = []
    for name in sorted(names, key=len, reverse=True):
        for match in re.finditer(_EDGES.format(re.escape(name)), text, re.IGNORECASE):
            start, end = match.span()
            if any(start < last and first < end for first, last, _ in taken):
                continue
            taken.append((start, end, str(names[name])))
    return sorted(taken)


def _nouns() -> str:
    return "|".join(map(re.escape, sorted(phrase_tables()["tables"]["project"], key=len)[::-1]))


def _mark(text: str, start: int, end: int, value: str) -> int:
    """Return how surely a name of a language says what a thing is written in: 0 not, 2 said so."""
    before, after = text[:start], text[end:]
    if cue("written_in").search(before):
        return 3
    if value in tables()["markup"]:
        return 0
    if value in tables()["ambiguous"] and text[start:end].islower():
        return 2 if cue("before_language").search(before) else 0
    noun = rf"^(?:[ -]|的)?(?:{_nouns()})s?\b"
    if re.search(noun, after, re.IGNORECASE) or cue("after_language").search(after):
        return 2
    if cue("before_language").search(before):
        return 2
    if value in tables()["ambiguous"]:
        return 2 if cue("before_system").search(before) else 0
    return 0 if cue("about_language").search(before) else 1


def _read_languages(need: Need) -> None:
    for code in known_languages():
        match = cue(f"spoken_{code}").search(need.text)
        if match:
            denied = is_denied(need.text, match.start())
            wanted = f"not {match[0]}" if denied else match[0]
            filters = [f"language{'!=' if denied else '='}{code}"]
            constraint = Constraint(wanted=wanted, field="language", filters=filters)
            need.add("text language", constraint, with_marks(need.text, *match.span()))
    info = need.roles.get("language")
    found = _found(need.text, info) if info else []
    marks = {one: _mark(need.text, *one) for one in found}
    for one, other in pairwise(found):  # "in Go or Rust"
        if cue("joins").fullmatch(need.text[one[1] : other[0]]):
            marks[one] = marks[other] = max(marks[one], marks[other])
    best = max(marks.values(), default=0)
    chosen = [one for one in found if marks[one] and marks[one] >= min(best, 2)]
    if chosen and info is not None:
        _add_values(need, "language", f"{OWN}{info.name.rsplit('.', 1)[-1]}", chosen)
    elif "text language" not in need.constraints:
        for match in re.finditer(r"[A-Z][\w+#]*", need.text):  # one that no document is in
            if cue("written_in").search(need.text[: match.start()]):
                need.add("language", Constraint(wanted=match[0]),
                         with_marks(need.text, *match.span()))  # fmt: skip


def _add_values(
    need: Need, name: str, field_name: str, chosen: Sequence[tuple[int, int, str]]
) -> None:
    """Ask for any of the values that are named, and for none of those that are denied."""
    denied = {one[2] for one in chosen if is_denied(need.text, one[0])}
    wanted = {one[2] for one in chosen if not is_denied(need.text, one[0])}
    if wanted & denied:
        raise CallerError(CONTRADICTION, value=f"{name}: {min(wanted & denied)}",
                          hint="it is both asked for and left out")  # fmt: skip
    filters = [f"{field_name}={'|'.join(sorted(wanted))}"] if wanted else [f"{field_name}=*"]
    filters += [f"{field_name}!={value}" for value in sorted(denied)]
    shown = [*sorted(wanted), *(f"not {value}" for value in sorted(denied))]
    constraint = Constraint(wanted=", ".join(shown), field=field_name, filters=filters)
    need.add(name, constraint, *(with_marks(need.text, one[0], one[1]) for one in chosen))


def _read_platforms(need: Need) -> None:
    info = need.roles.get("platform")
    if info is None:
        return
    taken = need.spans
    free = [one for one in _found(need.text, info)
            if not any(one[0] < end and start < one[1] for start, end in taken)]  # fmt: skip
    chosen = [one for one in free if _is_platform(need.text, *one)]
    if chosen:
        _add_values(need, "platform", info.name, chosen)
        return
    for system in tables()["systems"]:
        for match in re.finditer(_EDGES.format(re.escape(system)), need.text):
            if _is_platform(need.text, *match.span(), system):
                need.add("platform", Constraint(wanted=system),
                         with_marks(need.text, *match.span()))  # fmt: skip


def _is_platform(text: str, start: int, end: int, value: str) -> bool:
    before = text[:start]
    if cue("runs_on").search(before) or cue("before_platform").search(before):
        return True
    meant = re.match(r"\s*(?:$|[^\w\s])", text[end:]) is not None  # not "for Linux kernels"
    known = value in tables()["systems"] and cue("before_system").search(before) is not None
    return known and meant


def _read_maturity(need: Need) -> None:
    """Read the words for maturity, where anything here says how mature a document is."""
    info = need.roles.get("maturity")
    for start, end, value in _found(need.text, info) if info else ():
        assert info is not None
        near = rf"^[ -](?:\w+ )?(?:{_nouns()}|level|stage)s?\b"
        label = info.name.rsplit(".", 1)[-1].replace("_", " ")
        meant = re.search(near, need.text[end:], re.IGNORECASE) or label in need.text.casefold()
        if meant and maturity_of(value) is not None:
            _add_values(need, "maturity", info.name, [(start, end, value)])
            return
    known = next((need.roles[one] for one in ("maturity", "stars") if one in need.roles), None)
    mature, early = cue("mature").search(need.text), cue("experimental").search(need.text)
    if known is None or not (mature or early):
        return
    if mature and early:
        raise CallerError(CONTRADICTION, value=f"{mature[0]}, {early[0]}", hint="leave one out")
    least, most = (MATURE, None) if mature else (None, MATURE)
    match = mature or early
    assert match is not None
    constraint = Constraint(wanted=match[0], field=known.name, least=least, most=most)
    need.add("maturity", constraint, match.span())


def _read_degrees(need: Need) -> None:
    """Read the words for how active, well known and long a document is, by its own fields."""
    text, roles = need.text, need.roles
    updated = roles.get("updated")
    match = cue("maintained").search(text)
    if match and updated:
        constraint = Constraint(wanted=match[0], field=updated.name, least=MAINTAINED)
        need.add("activity", constraint, match.span())
    match = None if need.has("little_known") else cue("popular").search(text)
    for role, least in tables()["popular"].items() if match else ():
        if role in roles and match and "popularity" not in need.constraints:
            filters = [f"{roles[role].name}>={least}"]
            constraint = Constraint(wanted=match[0], field=roles[role].name, filters=filters)
            need.add("popularity", constraint, match.span())
    for name, op in (("short", "<="), ("long", ">=")):
        match = cue(name).search(text)
        if match and "pages" in roles:
            filters = [f"{roles['pages'].name}{op}{tables()['pages'][name]}"]
            constraint = Constraint(wanted=match[0], field=roles["pages"].name, filters=filters)
            need.add("length", constraint, match.span())


def _read_numbers(need: Need, spec: ToolSpec) -> None:
    """Read limits of numbers and dates whose field the need names: "more than 1000 stars"."""
    schema = schema_of(spec)
    reading = RecordReading(schema.scan(need.text), schema)
    read_numbers(reading)
    ranges: dict[str, list[tuple[str, float | str]]] = {}
    for place, one in zip(reading.places, reading.where, strict=True):
        near = [nearest(reading, place, ("field", "hint"), back=back) for back in (True, False)]
        named = any(p is not None for p in near)
        marks = any(reading.matches[p].is_a("order gt", "order lt") for p in reading.used)
        dated = one["field"] in schema.dates
        if not dated if one["op"] == "=" else not (named or marks or dated):
            continue
        behind = reading.matches[place + 1 : place + 2]  # "50 forks", whatever stands before
        fields = [m.name for phrase in behind for m in phrase.of("field") if schema.numeric(m.name)]
        name = fields[0] if fields else one["field"]
        limits = ranges.setdefault(name, [])
        limits.append((one["op"], one["value"]))
        places = [p for p in reading.used if abs(p - place) <= REACH]
        places += [place + 1] if fields else []
        spans = [(reading.matches[p].start, reading.matches[p].end) for p in places]
        filters = [f"{name}{op}{_number(value)}" for op, value in limits]
        wanted = need.text[min(s for s, _ in spans) : max(e for _, e in spans)]
        constraint = Constraint(wanted=wanted, field=name, filters=filters)
        label = name.rsplit(".", 1)[-1].replace("_", " ")
        need.add(label, constraint, *spans)
        _check_range(label, limits)


def _number(value: float | str) -> str:
    return f"{value:.15g}" if isinstance(value, float) else value


def _check_range(label: str, limits: Sequence[tuple[str, float | str]]) -> None:
    low = [value for op, value in limits if op.startswith(">")]
    high = [value for op, value in limits if op.startswith("<")]
    strict = any(len(op) == 1 for op, _ in limits)
    for least in low:
        for most in high:
            numbers = isinstance(least, float) and isinstance(most, float)
            if not numbers and not (isinstance(least, str) and isinstance(most, str)):
                continue
            if least > most or (least == most and strict):  # type: ignore[operator]
                shown = f"{label} {' and '.join(f'{op} {_number(v)}' for op, v in limits)}"
                raise CallerError(CONTRADICTION, value=shown, hint="nothing can be both")
