"""Hold one alignment and read what stands around its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from os.path import commonprefix

from core.language.words import MorphAnalysis, readings
from reasoning.claims.alignment import Alignment
from reasoning.claims.tokens import CLOSED, MONTH, NAME, NUMBER, OPERATOR, UNIT, WORD, ClaimToken
from reasoning.claims.words import OPPOSITES, RELATIONS, SETTLED, ClaimWords, Sense

# Says whether two words mean the same.
Similar = Callable[[str, str], bool]
NEIGHBOURS = 2  # content words on each side of a number that say what it counts; chosen
NEVER_ENDS = frozenset(":：—–")  # a clause
CONTENT = (WORD, NAME, UNIT)
MINIMAL = 2  # letters of a word that a prefix denies: 'unit' is not 'it' denied
DATED = (NUMBER, MONTH)
ACTIVE_PARTICIPLE = re.compile(r"(?:вш|[уюая]щ|[уюая]ч)[а-яії]{2,3}$")


class Edits:
    """Hold one alignment, with what its checks find on the way."""

    def __init__(
        self,
        aligned: Alignment,
        words: ClaimWords,
        earlier: Callable[[], Sequence[ClaimToken]] = tuple,
        similar: Similar | None = None,
    ) -> None:
        """Take what stands before the sentences of the evidence, for what its pronouns mean."""
        self._claim, self._text = aligned.claim, aligned.text
        self._matched, self._exchanged, self._moved = (
            aligned.matched,
            aligned.exchanged,
            aligned.moved,
        )
        self._words = words
        self._earlier = earlier
        self._similar = similar
        self._partner = {**aligned.moved, **aligned.matched}
        self._covered = frozenset(self._partner.values())
        self._free = [place for place in range(len(self._text)) if place not in self._covered]
        self._turned = False
        self.unknown: list[str] = []

    def _near(self, tokens: Sequence[ClaimToken], place: int) -> Iterator[ClaimToken]:
        for step in (1, -1):
            found, at = 0, place + step
            while 0 <= at < len(tokens) and found < NEIGHBOURS:
                if tokens[at].place != tokens[place].place:
                    break
                if tokens[at].role in (*CONTENT, MONTH, NUMBER):
                    yield tokens[at]
                    found += 1
                at += step

    def _after(self, tokens: Sequence[ClaimToken], place: int) -> int | None:
        """Return the place of the next content word of the same clause."""
        for at in range(place + 1, len(tokens)):
            if CLOSED & set(tokens[at].before):
                return None
            if tokens[at].is_content:
                return at
        return None

    def _next(self, tokens: Sequence[ClaimToken], place: int, step: int) -> int | None:
        """Return the place of the next content word in one direction, within its clause."""
        at = place + step
        while 0 <= at < len(tokens) and not CLOSED & set(tokens[max(at, at - step)].before):
            if tokens[at].is_content:
                return at
            at += step
        return None

    def _clause(self, place: int) -> int:
        """Return the place where the clause of a token of the evidence begins."""
        # A dash stands for a verb that is left out: "…, the chain – 420 hryvnias".
        while place > 0 and not (CLOSED - NEVER_ENDS) & set(self._text[place].before):
            if self._text[place - 1].place != self._text[place].place:
                break
            place -= 1
        return max(place, 0)

    def _is_divided(self, row: int, beside: int) -> bool:
        """Tell whether a mark or a joining word stands between two words of the claim."""
        return any(
            CLOSED & set(one.before) or one.word in self._words.joins | self._words.breaks
            for one in self._claim[row + 1 : beside + 1]
        )

    def _operator(self, tokens: Sequence[ClaimToken], place: int) -> Sense | None:
        """Return what an operator means; one that bounds numbers needs one beside it."""
        one = tokens[place]
        if one.role != OPERATOR:
            return None
        senses = [sense for sense in one.senses if sense.group in SETTLED]
        beside = [*tokens[max(0, place - 2) : place], *tokens[place + 1 : place + 3]]
        counted = any(other.role == NUMBER for other in beside)
        return next((sense for sense in senses if sense.group != "bound" or counted), None)

    def _preposed(self, tokens: Sequence[ClaimToken], place: int) -> bool:
        return bool(place) and tokens[place - 1].word in self._words.prepositions

    def _opposite(self, one: ClaimToken) -> int | None:
        """Return the place of a word of the evidence, not in the claim, that contradicts one."""
        for place in self._free:
            if contradict(one, self._text[place], self._words):
                return place
        return None

    def _is_agent(self, tokens: Sequence[ClaimToken], place: int) -> bool:
        if tokens[place].word not in self._words.agents:
            return False
        after = self._after(tokens, place)
        if after is not None and tokens[after].role == NUMBER:
            after = self._after(tokens, after)
            return after is not None and tokens[after].role in (WORD, NAME)
        return after is not None and tokens[after].role in CONTENT

    def _begins_clause(self, place: int) -> bool:
        one = self._text[place]
        return one.word in self._words.joins or bool(CLOSED & set(one.before))

    def _gap(self, first: int, last: int) -> list[ClaimToken]:
        """Return what the evidence has, and the claim has not, where the claim has some rows."""
        rows = [row for row in self._partner if row < first and self._claim[row].is_content]
        start = self._partner[max(rows)] + 1 if rows else None
        rows = [row for row in self._partner if row > last and self._claim[row].is_content]
        end = self._partner[min(rows)] if rows else None
        place = self._text[start - 1 if start else end if end is not None else 0].place
        inside = [at for at in self._free if self._text[at].place == place]
        start, end = start or 0, len(self._text) if end is None or end < (start or 0) else end
        return [self._text[at] for at in inside if start <= at < end]

    def _points(self, first: int, last: int) -> bool:
        pointing = self._words.pronouns | self._words.definite
        return any(one.word in pointing for one in self._gap(first, last))

    def _replaced(self, first: int, last: int) -> bool:
        """Tell whether something else stands there, and no pronoun with what it does."""
        gap = self._gap(first, last)
        pointing = self._words.pronouns | self._words.definite
        at = next((at for at, one in enumerate(gap) if one.word in pointing), len(gap))
        return any(one.is_content for one in gap[:at]) or any(one.role == NAME for one in gap[at:])


def contradict(one: ClaimToken, other: ClaimToken, words: ClaimWords) -> bool:
    """Tell whether two words are opposites by the tables, or by a prefix that denies."""
    if not one.keys.isdisjoint(other.keys):
        return False
    for sense in one.senses:
        opposed = sense.group.startswith((OPPOSITES, RELATIONS))
        if opposed and any(
            sense.group == theirs.group and sense.side != theirs.side for theirs in other.senses
        ):
            return True
    short, long = sorted((one.word, other.word), key=len)
    plain = (one.is_content or other.is_content) and len(short) > MINIMAL
    return plain and long in {prefix + short for prefix in words.prefixes}


def differ_in_part(one: str, other: str) -> bool:
    """Tell whether two words share a part, so that an embedder finds them alike, and differ."""
    if one.isascii() or not (one and other):
        return False
    if "\u3400" <= one[0] <= "\u9fff":
        return not set(one).isdisjoint(other)
    ending = len(commonprefix([one[::-1], other[::-1]]))
    return one[:2] != other[:2] and ending * 2 >= max(len(one), len(other))


def is_passive(one: ClaimToken, words: ClaimWords) -> bool:
    """Tell whether a verb of a language with cases is passive by its form."""
    dictionary = words.known.dictionary
    if not dictionary or one.role != WORD:
        return False
    folded = one.word
    found = readings(folded, dictionary)
    if not found or found[0].pos not in ("VERB", "PRTS", "PRTF", "INFN", "GRND"):
        return False
    if found[0].pos == "PRTF" and ACTIVE_PARTICIPLE.search(folded):
        return False
    return found[0].pos in ("PRTS", "PRTF") or folded.endswith(("ся", "сь"))


def _nouns(one: ClaimToken, dictionary: str) -> list[MorphAnalysis]:
    found = readings(one.word, dictionary)[: 9 if one.role == NAME else 4]
    kinds = ("NOUN", "NPRO", "ADJF") if one.role == NAME else ("NOUN", "NPRO")
    return [reading for reading in found if reading.pos in kinds and reading.case]


def genders_of(one: ClaimToken, dictionary: str) -> set[str]:
    """Return the genders that a noun may have."""
    return {reading.gender for reading in _nouns(one, dictionary)}


def cases_of(one: ClaimToken, dictionary: str, genders: Collection[str] = ()) -> set[str]:
    """Return the cases that a noun may be in, as far as it is of one of some genders."""
    found = _nouns(one, dictionary)
    return {reading.case for reading in found if not genders or reading.gender in genders}
