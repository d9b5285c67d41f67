"""The words that decide whether a claim says the same, by the folder of a language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from core.language.analysis import word_pieces
from core.language.cues import stopwords
from languages.language import FALLBACK, Language, find_language, known_languages
from reasoning.rules.lexicon import lexicon

LONGEST = 4  # words of a phrase in the files


class Sense(NamedTuple):
    """Say what a word counts as: the group it belongs to, and which meaning of the group it has."""

    group: str
    side: str


# Groups whose words change a statement wherever they are added or left out; what a condition or a
# source says holds for the whole of its sentence.
OPERATORS = frozenset(
    {"negation", "modality", "hedge", "quantifier", "universal", "bound", "degree"}
)
WIDE = frozenset({"condition", "attribution", "falsity", "occasion"})
SETTLED = OPERATORS | WIDE
# Words of which those of another meaning contradict, and those of the same one are as good.
RELATIONS = "relations"
OPPOSITES = "opposites"
CONTRARY = (OPPOSITES, RELATIONS)
CONTRASTS = "contrasts"


class ClaimWords:
    """Hold the tables of one language, which `claims.yaml` of its folder describes."""

    def __init__(self, known: Language) -> None:
        """Read the tables of a language."""
        self.known = known
        self.function = stopwords(known.code)
        self.pronouns = frozenset(
            {*lexicon(known.code).words("reference"), *lexicon(known.code).words("pronoun")}
        )
        self.sequence = frozenset(lexicon(known.code).words("sequence"))
        self.determiners = frozenset(lexicon(known.code).words("determiner"))
        self.relatives = self.pronouns | frozenset(lexicon(known.code).words("question"))
        raw = known.read("claims")
        self.numbers: dict[str, float] = self._keyed(raw.get("numbers", {}))
        self.scales: dict[str, float] = self._keyed(raw.get("scales", {}))
        self.agents = frozenset(raw.get("agents", ()))
        self.partitives = frozenset(raw.get("partitives", ()))
        self.passives = frozenset(lexicon(known.code).words("passive"))
        # Of irregular verbs the forms behind the first; of the small ones a list of their own.
        self.past = frozenset(raw.get("past", ())) | {
            form for one in raw.get("forms", ()) for form in one[1:] if form != one[0]
        }
        self.past_ending = str(raw.get("past_ending", ""))
        self.amounts = frozenset(raw.get("amounts", ()))
        self.comparators = tuple(raw.get("comparators", ()))
        frames = (one.split("…") for one in raw.get("contrasts", ()) if "…" in one)
        self.frames = frozenset((lead, closing) for lead, closing in frames)
        self.ranges = frozenset(tuple(one) for one in raw.get("ranges", ()))
        self.proforms = frozenset(raw.get("proforms", ()))
        self.proform_leads = frozenset(raw.get("proform_leads", ()))
        self.definite = frozenset(raw.get("definite", ()))
        self.breaks = frozenset(raw.get("breaks", ()))
        self.source_leads = frozenset(raw.get("source_leads", ()))
        self.restricting = frozenset(raw.get("restricting", ()))
        self.describing = frozenset(raw.get("describing", ()))
        self.limiting = frozenset(raw.get("limiting", ()))
        which = raw.get("restrictive", ())
        self.restrictive = frozenset(form for word in which for form in (word, self.key(word)))
        self.joins = frozenset(raw.get("joins", ()))
        self.complementizers = frozenset(raw.get("complementizers", ()))
        self.prepositions = frozenset(raw.get("prepositions", ()))
        self.least_cosine = float(raw.get("least_cosine", 0))
        self.prefixes = tuple(raw.get("negating_prefixes", ()))
        self.light = frozenset(
            key for word in raw.get("light", ()) for key in (word, self.key(word))
        )
        self.written: dict[str, set[Sense]] = {}
        self.stemmed: dict[str, set[Sense]] = {}
        # By the keys of their tokens: which measure units are of, and their size in its smallest.
        places = {aliases[0]: place for place, aliases in enumerate(raw.get("units", ()))}
        self.measures = {
            f"units {places[unit]}": (number, float(size))
            for number, sizes in enumerate(raw.get("measures", ()))
            for unit, size in sizes.items()
        }
        for group, side, entry in _entries(raw):
            self._add(entry, Sense(group, side))
        self._read_times(raw.get("recurring", ()))

    def _read_times(self, listed: Iterable[Iterable[str]]) -> None:
        """Hold the words for times that come again, by kind: days, seasons, parts of a day."""
        # By the group of opposites that it is of, which kind of time comes again.
        kinds = [[str(word) for word in one] for one in listed]
        self.recurring = frozenset(
            form for one in kinds for word in one for form in (word, self.key(word))
        )
        self.recurring_groups = {
            sense.group: one[0]
            for one in kinds
            for word in one
            for sense in self.written.get(word, ())
            if sense.group.startswith(CONTRARY)
        }

    def _keyed(self, table: dict[str, float]) -> dict[str, float]:
        return {form: value for word, value in table.items() for form in (word, self.key(word))}

    def _add(self, entry: str, sense: Sense) -> None:
        self.written.setdefault(entry.casefold(), set()).add(sense)
        # The forms of an English operator mean other things ("state", "must"), those of a word
        # with cases do not.
        if self.known.dictionary or sense.group not in SETTLED:
            words = entry.split() if self.known.spaced else [entry]
            self.stemmed.setdefault(" ".join(map(self.key, words)), set()).add(sense)

    def key(self, word: str) -> str:
        """Return what the forms of a word share."""
        pieces = word_pieces(word, self.known.code)
        return pieces[0].term if pieces else word.casefold()

    def senses(self, written: str, key: str) -> tuple[Sense, ...]:
        """Return what a word or phrase counts as, by how it is written or else by its stem."""
        # In one order, so that every run judges alike.
        return tuple(sorted(self.written.get(written) or self.stemmed.get(key) or ()))


def _entries(raw: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the group, the meaning and the spelling of every entry."""
    for group, sides in raw.get("operators", {}).items():
        for place, side in enumerate(sides):
            yield from ((group, str(place), str(word)) for word in side)
    for kind in (OPPOSITES, RELATIONS):
        for number, sides in enumerate(raw.get(kind, ())):
            for place, side in enumerate(sides):
                yield from ((f"{kind} {number}", str(place), str(word)) for word in side)
    for kind in ("synonyms", "units", "months", "forms"):
        for place, side in enumerate(raw.get(kind, ())):
            yield from ((kind, str(place), str(word)) for word in side)
    for kind in (CONTRASTS, "neutral"):
        yield from ((kind, "0", str(word)) for word in raw.get(kind, ()) if "…" not in word)


@lru_cache(maxsize=8)
def claim_words(language: str) -> ClaimWords:
    """Return the tables of a language; one without any gets the English ones."""
    known = known_languages().get(language)
    return ClaimWords(known if known and known.read("claims") else find_language(FALLBACK))
