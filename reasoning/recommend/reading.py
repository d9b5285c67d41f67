"""Read what a need says must be so, as filters on the fields that a collection has."""

from __future__ import annotations

import re

from core.language.cues import resource
from core.metadata import OWN
from core.types import ToolSpec
from languages.language import known_languages
from reasoning.recommend.audience import find_audience
from reasoning.recommend.degrees import read_degrees, read_maturity, read_numbers, read_size
from reasoning.recommend.licence import read_licence
from reasoning.recommend.need import Constraint, Need, add_values, project_nouns
from reasoning.recommend.roles import (
    cue,
    find_roles,
    is_apart,
    is_denied,
    tables,
    with_marks,
)
from reasoning.recommend.values import NamedValue, find_values, joined
from reasoning.rules.records.numbers import with_whole_numbers
from reasoning.rules.records.phrases import is_common

LEADING_WORDS = 2  # before the name of a system that says what a thing is; chosen, not measured
_RANGE = re.compile(r"(?<![\w-])(\d{1,9})[-–—](\d{1,9})(?![\w-]|[.,]\d)")
_OR_MORE = re.compile(r"\b(\d+) ?\+(?=\s|$)")  # "1000+ stars"


def read_need(text: str, spec: ToolSpec) -> Need:
    """Read a need for documents with the fields of `spec`; raises CallerError if contradictory."""
    text = _OR_MORE.sub(r">= \1", with_whole_numbers(text))
    text = _RANGE.sub(r"\1 – \2", text)  # else it is a code, as "555-1234"
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
    read_maturity(need)
    read_degrees(need)
    read_numbers(need, spec)
    read_size(need)
    _read_audience(need)
    return need


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
    noun = rf"^(?:[ -]|的)?(?:{project_nouns()})s?\b"
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
        apart = is_apart(need.text, group[0].start, group[-1].end)
        marks |= dict.fromkeys(group, max(2 * apart, *(marks[one] for one in group)))
    best = max(marks.values(), default=0)
    chosen = [one for one in found if marks[one] and marks[one] >= min(best, 2)]
    if chosen and info is not None:
        add_values(need, "language", f"{OWN}{info.name.rsplit('.', 1)[-1]}", chosen)
    elif "text language" not in need.constraints:
        known = {*resource("programming")["names"]} if info else set()
        for match in re.finditer(r"[A-Z][\w+#]*", need.text):  # one that no document is in
            before = need.text[: match.start()]
            listed = match[0] in known and cue("before_language").search(before)
            if listed or cue("written_in").search(before):
                need.add("language", Constraint(wanted=match[0]),
                         with_marks(need.text, *match.span()))  # fmt: skip


def _read_platforms(need: Need) -> None:
    """Read what a thing must run on: all of "Linux and macOS", any of "Linux or macOS"."""
    info = need.roles.get("platform")
    if info is None and not need.is_software:
        return
    rest = need.rest
    found = [one for one in find_values(need.text, info, systems=True)
             if rest[one.start : one.end] == need.text[one.start : one.end]]  # fmt: skip
    chosen: list[NamedValue] = []
    for group in joined(need.text, found):
        systems = [one for one in group if one.name in tables()["systems"]]
        about = cue("about_language").search(rest[: group[0].start])
        if any(_is_platform(rest, one) for one in group) or (len(systems) > 1 and not about):
            chosen += group
        elif systems or cue("before_system").search(rest[: group[0].start]):
            words = need.text[group[0].start : group[0].end]
            need.notes.append(f"“{words}” was searched for as a word; “on {group[0].name}” "
                              "asks for what runs there")  # fmt: skip
    if chosen:
        add_values(need, "platform", info.name if info else None, chosen, every=True)


def _is_platform(text: str, one: NamedValue) -> bool:
    """Tell whether a name says what a thing runs on, and not what it is about."""
    before, after = text[: one.start], text[one.end :]
    if cue("runs_on").search(before) or cue("before_platform").search(before):
        return True
    ends = re.match(r"\s*(?:$|[^\w\s]|的)", after) is not None
    denied = is_denied(text, one.start)
    if is_apart(text, one.start, one.end) or (ends and denied):
        return True
    if one.name not in tables()["systems"]:
        return False
    if cue("any_system").fullmatch(text[one.start : one.end]):
        return True
    noun = re.match(rf"^(?:[ -]|的)?(?:{project_nouns()})s?\b", after, re.IGNORECASE) or cue(
        "after_system"
    ).search(after)
    word = re.match(r"\s*([^\W\d_]+)", after)  # not "for Linux kernels"
    if cue("before_system").search(before) or denied:
        return bool(ends or noun or word is None or is_common(word[1]))
    # "A Windows app", and not "a tool to turn Windows apps into …".
    return noun is not None and len(re.split(r"[,;，；、]", before)[-1].split()) <= LEADING_WORDS


def _read_audience(need: Need) -> None:
    """Read whom a thing is for; the words stay part of what is searched for."""
    info = need.roles.get("audience")
    found = find_audience(need.text, info)
    if found is None:
        return
    words = need.text[found.start : found.end]
    if info is None:
        need.notes.append(f"no field here says whom a document is for; “{words}” was searched for")
        return
    denied = is_denied(need.text, found.start)
    constraint = Constraint(
        wanted=f"not {words}" if denied else words, field=info.name, cue=found.kind,
        values=list(found.values), denied=denied,
    )  # fmt: skip
    need.add("audience", constraint)
