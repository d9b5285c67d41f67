"""Read what a need says must be so, as filters on the fields that a collection has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from core.errors import CallerError
from core.language.cues import resource, stopwords
from core.language.detect import detect_language
from core.metadata import OWN
from core.types import FieldInfo, FrozenModel, ToolSpec
from languages.language import known_languages
from reasoning.recommend.audience import find_audience
from reasoning.recommend.licence import read_licence
from reasoning.recommend.roles import (
    cue,
    denied_of,
    find_roles,
    is_denied,
    maturity_of,
    tables,
    with_marks,
)
from reasoning.recommend.values import (
    EDGES,
    NamedValue,
    find_values,
    is_choice,
    joined,
)
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.fields import theme_of
from reasoning.rules.records.numbers import read_numbers
from reasoning.rules.records.phrases import is_common
from reasoning.rules.records.phrases import tables as phrase_tables
from reasoning.rules.records.schema import RecordReading, nearest, schema_of

CONTRADICTION = "a need must not contradict itself"
MATURE = 0.6  # from here on a thing is mature: incubating, or 1,000 stars; chosen, not measured
REACH = 4  # phrases around a number that may belong to it; chosen, not measured
MAINTAINED = 0.5  # activity of a year ago: half of today's
_THOUSANDS = re.compile(r"\b(\d{1,6}(?:\.\d{1,3})?) ?[kK]\b")
_OR_MORE = re.compile(r"\b(\d+) ?\+(?=\s)")  # "1000+ stars"
SMALL = "small"  # the cue for size
TEXT = "text"  # in place of a field: what a document says in its own words


class Constraint(FrozenModel):
    """Hold what must be so: `filters` of documents, or the least or most of a factor, 0..1.

    `wanted` is what the need says; without a `field` nothing here can meet it. With a `cue` one of
    `values` must be in the field, or, where a document has no such field, words of the cue in its
    text; with `denied` the field must have another value.
    """

    wanted: str
    field: str | None = None
    filters: list[str] = []
    least: float | None = None
    most: float | None = None
    cue: str = ""
    values: list[str] = []
    denied: bool = False


@dataclass
class Need:
    """Hold a need as it was read; `theme` is what is left to search for.

    `notes` say what of it no field here can say, and is searched for as words.
    """

    text: str
    roles: dict[str, FieldInfo]
    constraints: dict[str, Constraint] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def rest(self) -> str:
        """Return the text, as long as it is, with a mark for all that was read as a constraint."""
        kept = list(self.text)
        for start, end in self.spans:
            kept[start:end] = ";" * (end - start)
        return "".join(kept)

    @property
    def is_bare(self) -> bool:
        """Tell whether there is nothing to search for: "anything for Linux"."""
        bare = cue("anything").sub(" ", self._subject)
        bare = re.sub(EDGES.format(_nouns()), " ", bare, flags=re.IGNORECASE)
        return bool(self.constraints) and all(map(is_common, re.findall(r"\w+", bare)))

    @property
    def theme(self) -> str:
        """Return the need without its constraints and the words that only wish."""
        bare = self._subject
        return bare if re.search(r"\w{2}|[\u3400-\u9fff]", bare) else self.text

    @property
    def _subject(self) -> str:
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
        return " ".join(words).removeprefix("的").strip(" ,;:.")

    def has(self, name: str) -> bool:
        """Tell whether it has words of a list, such as "little_known" or "varied"."""
        return cue(name).search(self.text) is not None

    def note(self, match: re.Match[str] | None) -> None:
        """Say that no field tells what a word asks for."""
        if match:
            self.notes.append(
                f"no field here says what is “{match[0].strip()}”; it was searched for"
            )

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
    _read_size(need)
    _read_audience(need)
    return need


def _nouns() -> str:
    return "|".join(map(re.escape, sorted(phrase_tables()["tables"]["project"], key=len)[::-1]))


def _mark(text: str, one: NamedValue) -> int:
    """Return how surely a name of a language says what a thing is written in: 0 not, 2 said so."""
    start, end, value, _ = one
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
    found = find_values(need.text, info) if info else []
    marks = {one: _mark(need.text, one) for one in found}
    for group in joined(need.text, found):  # "in Go or Rust"
        marks |= dict.fromkeys(group, max(marks[one] for one in group))
    best = max(marks.values(), default=0)
    chosen = [one for one in found if marks[one] and marks[one] >= min(best, 2)]
    if chosen and info is not None:
        _add_values(need, "language", f"{OWN}{info.name.rsplit('.', 1)[-1]}", chosen)
    elif "text language" not in need.constraints:
        known = {*resource("programming")["names"]} if info else set()
        for match in re.finditer(r"[A-Z][\w+#]*", need.text):  # one that no document is in
            before = need.text[: match.start()]
            listed = match[0] in known and cue("before_language").search(before)
            if listed or cue("written_in").search(before):
                need.add("language", Constraint(wanted=match[0]),
                         with_marks(need.text, *match.span()))  # fmt: skip


def _add_values(
    need: Need,
    name: str,
    field_name: str | None,
    chosen: Sequence[NamedValue],
    *,
    every: bool = False,
) -> None:
    """Ask for any of the values that are named, and for none of those that are denied.

    With `every` all that a list joins must be so, unless it is a choice.
    """
    denials = denied_of(need.text, [one[:2] for one in chosen])
    denied = {one.name: one for one, no in zip(chosen, denials, strict=True) if no}
    wanted = [one for one, no in zip(chosen, denials, strict=True) if not no]
    names = list(dict.fromkeys(one.name for one in wanted))
    if both := sorted({*names} & {*denied}):
        raise CallerError(CONTRADICTION, value=f"{name}: {both[0]}",
                          hint="it is both asked for and left out")  # fmt: skip
    choices: list[list[NamedValue]] = []
    for group in joined(need.text, wanted) if every else [wanted] if wanted else []:
        strict = every and not is_choice(need.text, group)
        choices += [[one] for one in group] if strict else [group]
    filters = [f"{field_name}={_any_of(group)}" for group in choices] or [f"{field_name}=*"]
    unmet = field_name is None or any(not any(one.values for one in group) for group in choices)
    barred = [one for one in denied.values() if one.values]
    filters += [f"{field_name}!={_any_of(barred)}"] if barred else []
    constraint = Constraint(
        wanted=", ".join([*sorted(names), *(f"not {value}" for value in sorted(denied))]),
        field=None if unmet else field_name,
        filters=[] if unmet else list(dict.fromkeys(filters)),
    )
    need.add(name, constraint, *(with_marks(need.text, one.start, one.end) for one in chosen))


def _any_of(named: Sequence[NamedValue]) -> str:
    return "|".join(sorted({value.replace("|", "?") for one in named for value in one.values}))


def _read_platforms(need: Need) -> None:
    """Read what a thing must run on: all of "Linux and macOS", any of "Linux or macOS"."""
    info = need.roles.get("platform")
    if info is None and not {"licence", "stars", "forks"} & need.roles.keys():
        return  # nothing here is software
    rest = need.rest
    found = [one for one in find_values(need.text, info, systems=True)
             if rest[one.start : one.end] == need.text[one.start : one.end]]  # fmt: skip
    chosen: list[NamedValue] = []
    for group in joined(need.text, found):
        if any(_is_platform(rest, one) for one in group):
            chosen += group
        elif systems := [one.name for one in group if one.name in tables()["systems"]]:
            need.notes.append(f"“{systems[0]}” was searched for as a word; "
                              f"“for {systems[0]}” asks for what runs there")  # fmt: skip
    if chosen:
        _add_values(need, "platform", info.name if info else None, chosen, every=True)


def _is_platform(text: str, one: NamedValue) -> bool:
    """Tell whether a name says what a thing runs on, and not what it is about."""
    before, after = text[: one.start], text[one.end :]
    if cue("runs_on").search(before) or cue("before_platform").search(before):
        return True
    ends = re.match(r"\s*(?:$|[^\w\s]|的)", after) is not None
    apart = ends and re.search(r"[,;，；、(]\s*$", before) is not None
    if apart or (ends and is_denied(text, one.start)):
        return True
    if one.name not in tables()["systems"]:
        return False
    if cue("after_system").search(after) or cue("any_system").fullmatch(text[one.start : one.end]):
        return True
    noun = rf"^(?:[ -]|的)?(?:{_nouns()})s?\b"
    word = re.match(r"\s*([^\W\d_]+)", after)  # not "for Linux kernels"
    follows = ends or word is None or is_common(word[1]) or re.match(noun, after, re.IGNORECASE)
    return bool(follows) and (
        cue("before_system").search(before) is not None
        or is_denied(text, one.start)
        or re.match(noun, after, re.IGNORECASE) is not None
    )


def _read_maturity(need: Need) -> None:
    """Read the words for maturity, where anything here says how mature a document is."""
    info = need.roles.get("maturity")
    for one in find_values(need.text, info):
        assert info is not None
        near = rf"^[ -](?:\w+ )?(?:{_nouns()}|level|stage)s?\b"
        label = info.name.rsplit(".", 1)[-1].replace("_", " ")
        after = need.text[one.end :]
        meant = re.search(near, after, re.IGNORECASE) or label in need.text.casefold()
        if meant and maturity_of(one.name) is not None:
            _add_values(need, "maturity", info.name, [one])
            return
    known = next((need.roles[one] for one in ("maturity", "stars") if one in need.roles), None)
    mature, early = cue("mature").search(need.text), cue("experimental").search(need.text)
    if not (mature or early):
        return
    if known is None:
        need.note(mature or early)
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
    if match and not updated:
        need.note(match)
    elif match and updated:
        constraint = Constraint(wanted=match[0], field=updated.name, least=MAINTAINED)
        need.add("activity", constraint, match.span())
    match = None if need.has("little_known") else cue("popular").search(text)
    for role, least in tables()["popular"].items() if match else ():
        if role in roles and match and "popularity" not in need.constraints:
            filters = [f"{roles[role].name}>={least}"]
            constraint = Constraint(wanted=match[0], field=roles[role].name, filters=filters)
            need.add("popularity", constraint, match.span())
    if match and "popularity" not in need.constraints:
        need.note(match)
    for name, op in (("short", "<="), ("long", ">=")):
        match = cue(name).search(text)
        if match and "pages" in roles:
            filters = [f"{roles['pages'].name}{op}{tables()['pages'][name]}"]
            constraint = Constraint(wanted=match[0], field=roles["pages"].name, filters=filters)
            need.add("length", constraint, match.span())
        elif match:
            need.note(match)


def _read_size(need: Need) -> None:
    """Read that a thing must be small: by a field, else by what documents say of themselves.

    Of numbers the lower half of those that are here counts as small.
    """
    matches = [
        match
        for match in cue(SMALL).finditer(need.rest)
        if cue("before_size").search(_without_wish(need.rest[: match.start()]))
        and not is_denied(need.text, match.start())
    ]
    if not matches:
        return
    info, wanted = need.roles.get("size"), ", ".join(one[0] for one in matches)
    if info is None:
        constraint = Constraint(wanted=wanted, field=TEXT, cue=SMALL)
    elif info.type == "number":
        limit = median(float(one) for one in info.examples)
        constraint = Constraint(
            wanted=wanted, field=info.name, filters=[f"{info.name}<={_number(limit)}"]
        )
    else:
        values = sorted(one for one in info.examples if cue(SMALL).search(one))
        constraint = Constraint(wanted=wanted, field=info.name, cue=SMALL, values=values)
    need.add("size", constraint, *(one.span() for one in matches))


def _without_wish(text: str) -> str:
    return cue("wishes").sub("", text)


def _read_audience(need: Need) -> None:
    """Read whom a thing is for; the words stay part of what is searched for."""
    info = need.roles.get("audience")
    found = find_audience(need.text, info)
    if found is None:
        return
    said = need.text[found.start : found.end]
    if info is None:
        need.notes.append(f"no field here says whom a document is for; “{said}” was searched for")
        return
    denied = is_denied(need.text, found.start)
    constraint = Constraint(
        wanted=f"not {said}" if denied else said, field=info.name, cue=found.kind,
        values=list(found.values), denied=denied,
    )  # fmt: skip
    need.add("audience", constraint)


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
        need.add(label, constraint, *(with_marks(need.text, *span) for span in spans))
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
