"""Hold a need as it was read: what must be so, and what is left to search for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.errors import CallerError
from core.language.cues import stopwords
from core.language.detect import detect_language
from core.types import FieldInfo, FrozenModel
from reasoning.recommend.roles import cue, denied_of, with_marks
from reasoning.recommend.values import EDGES, NamedValue, is_choice, joined
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.fields import theme_of
from reasoning.rules.records.phrases import is_common
from reasoning.rules.records.phrases import tables as phrase_tables

CONTRADICTION = "a need must not contradict itself"
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
    def is_software(self) -> bool:
        """Tell whether the collection has fields of software."""
        return not {"licence", "stars", "forks"}.isdisjoint(self.roles)

    @property
    def is_bare(self) -> bool:
        """Tell whether there is nothing to search for: "anything for Linux"."""
        bare = cue("anything").sub(" ", self._subject)
        bare = re.sub(EDGES.format(project_nouns()), " ", bare, flags=re.IGNORECASE)
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


def add_values(
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
    lists = [(group[0].start, group[-1].end) for group in joined(need.text, chosen)]
    spans = [with_marks(need.text, one.start, one.end) for one in chosen]
    need.add(name, constraint, *spans, *lists)


def _any_of(named: Sequence[NamedValue]) -> str:
    return "|".join(sorted({value.replace("|", "?") for one in named for value in one.values}))


def project_nouns() -> str:
    """Return the words for a project, as alternatives of a pattern."""
    return "|".join(map(re.escape, sorted(phrase_tables()["tables"]["project"], key=len)[::-1]))
