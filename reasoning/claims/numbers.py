"""Find numbers, dates and units that the evidence has not, or has for something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isclose

from core.language.words import readings
from reasoning.claims.alignment import same
from reasoning.claims.edits import CONTENT, DATED, Edits
from reasoning.claims.tokens import CLOSED, NAME, NUMBER, UNIT, WORD, ClaimToken
from reasoning.claims.words import ClaimWords

FIGURE = re.compile(r"\d+(?:\.\d+)?")
VERBS = ("VERB", "PRTS", "PRTF", "INFN", "GRND", "PRED")


def equate_measures(
    claim: Sequence[ClaimToken], text: Sequence[ClaimToken], words: ClaimWords
) -> list[ClaimToken]:
    """Return a text in which amounts that a claim states in another unit say it in both."""
    stated = list(_amounts(claim, words))
    found = list(text)
    for at, place, size in _amounts(text, words):
        for row, other, value in stated:
            units = claim[row + 1].keys, text[at + 1].keys
            if other == place and units[0].isdisjoint(units[1]) and isclose(size, value):
                for step in (0, 1):
                    keys = found[at + step].keys | claim[row + step].keys
                    found[at + step] = found[at + step]._replace(keys=keys)
    return found


def _amounts(tokens: Sequence[ClaimToken], words: ClaimWords) -> Iterator[tuple[int, int, float]]:
    """Yield where an amount stands, what it measures, and its size in the smallest unit."""
    for at, (one, unit) in enumerate(pairwise(tokens)):
        figure = min(one.keys, default="").removeprefix("#")
        if one.role != NUMBER or unit.role != UNIT or not FIGURE.fullmatch(figure):
            continue
        for place, size in (words.measures[key] for key in unit.keys if key in words.measures):
            yield at, place, float(figure) * size


class NumberEdits(Edits):
    """Judge the numbers of an alignment."""

    def _numbers(self) -> str:
        for row, one in enumerate(self._claim):
            if one.role not in DATED:
                continue
            place = self._partner.get(row)
            if place is None:
                kind = "number" if one.role == NUMBER else "month"
                return f"the {kind} {one.text} is not in the quote"
            if row in self._moved and not self._counts_same(row, place):
                return f"the number {one.text} stands for something else in the quote"
            if (
                self._is_of_another_clause(row, place)
                or self._is_of_another_verb(row, place)
                or self._is_swapped(row, place)
            ):
                return f"the number {one.text} stands for something else in the quote"
            led = {one.word for one in self._claim[max(0, row - 1) : row]}
            there = {one.word for one in self._text[max(0, place - 1) : place]}
            if led and led != there and led | there <= self._words.amounts:
                return f"{one.text} is led by another word in the quote"
            ours, theirs = self._unit(self._claim, row), self._unit(self._text, place)
            if theirs and ours and not same(ours, theirs):
                return f"the unit {ours.text} is not that of the quote"
            if one.role == NUMBER and self._is_whole(place):
                return f"{one.text} is the whole of which the quote counts a part"
            if one.role == NUMBER and self._is_counted_otherwise(row, place):
                return f"what {one.text} counts is not what it counts in the quote"
            if theirs and not ours and theirs.text[:1] in "%$€£¥₽₴‰":
                return f"the unit {theirs.text} of {one.text} is left out"
        return ""

    def _unit(self, tokens: Sequence[ClaimToken], place: int) -> ClaimToken | None:
        if tokens[place].role != NUMBER:
            return None
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is None or following.role != UNIT or CLOSED & set(following.before):
            return None
        return following

    def _is_whole(self, place: int) -> bool:
        """Tell whether a number is that of all, of which another one is left out: "8 of the 40"."""
        counts, parts = self._text[place], self._words.partitives
        steps = (-1,) if self._words.known.spaced else (1,)
        for step in steps:
            at, led = place + step, False
            while 0 <= at < len(self._text) and self._text[at].place == counts.place:
                one = self._text[at]
                if led and one.role == NUMBER:
                    return at not in self._covered
                led = led or one.word in parts
                if one.is_content and (step < 0 or led):
                    break
                at += step
        return False

    def _is_counted_otherwise(self, row: int, place: int) -> bool:
        """Tell whether the word behind a number comes from elsewhere, and its own is left out."""
        ours, theirs = row + 1, place + 1
        if ours == len(self._claim) or theirs == len(self._text) or ours not in self._partner:
            return False
        one, other = self._claim[ours], self._text[theirs]
        divided = CLOSED & {*one.before, *other.before} or self._text[place].place != other.place
        counted = one.role in CONTENT and other.role in CONTENT and not divided
        return counted and theirs in self._free and not same(one, other)

    def _is_swapped(self, row: int, place: int) -> bool:
        """Tell whether the words right before two numbers are exchanged: "height 3 m, width 5"."""
        ours, theirs = self._next(self._claim, row, -1), self._next(self._text, place, -1)
        own = next((at for at, there in self._partner.items() if there == theirs), None)
        if ours not in self._partner or own is None or own == ours:
            return False
        here = self._next(self._claim, own, 1)
        there = self._next(self._text, self._partner[ours], 1)
        if here is None or there is None:
            return False
        one, other = self._claim[here], self._text[there]
        numbers = one.role == other.role == self._claim[row].role == NUMBER
        return numbers and not same(one, self._text[place]) and not same(self._claim[row], other)

    def _is_of_another_clause(self, row: int, place: int) -> bool:
        """Tell whether the clause that a moved number is of says nothing else of the claim's."""
        start = end = row
        while start and not CLOSED & set(self._claim[start].before):
            start -= 1
        while end + 1 < len(self._claim) and not CLOSED & set(self._claim[end + 1].before):
            end += 1
        ours = [
            self._clause(self._partner[at])
            for at in range(start, end + 1)
            if at in self._partner and self._claim[at].role in (WORD, NAME)
        ]
        own = self._clause(place)
        # What stands first of all, as "in 2019", is said of the whole.
        first = own == 0 or self._text[own - 1].place != self._text[own].place
        says = row in self._moved or any(
            self._text[at].role in CONTENT and self._clause(at) == own for at in self._free
        )
        return bool(ours) and says and not first and own not in ours

    def _is_of_another_verb(self, row: int, place: int) -> bool:
        """Tell whether a date is of what "and" joins to what the claim says, with its own date."""
        one, own = self._text[place], self._part(self._text, place)
        others = self._verb_parts(row) - {own}
        free = [(self._text[at], self._part(self._text, at)) for at in self._free]
        left = any(part == own and self._may_be_verb(each) for each, part in free)
        return left and any(
            (each.role, each.place) == (one.role, one.place) and part in others
            for each, part in free
        )

    def _verb_parts(self, row: int) -> set[int]:
        """Return the parts of the evidence of which the verbs beside a date of the claim are."""
        own = self._part(self._claim, row)
        return {
            self._part(self._text, place)
            for at, place in self._partner.items()
            if self._part(self._claim, at) == own and self._may_be_verb(self._claim[at])
        }

    def _part(self, tokens: Sequence[ClaimToken], place: int) -> int:
        """Return the place where what marks or "and" divide begins."""
        while place > 0 and tokens[place].word not in self._words.joins:
            divided = CLOSED & set(tokens[place].before)
            if divided or tokens[place - 1].place != tokens[place].place:
                break
            place -= 1
        return place

    def _may_be_verb(self, one: ClaimToken) -> bool:
        dictionary = self._words.known.dictionary
        forms = readings(one.word, dictionary)[:1] if dictionary else ()
        return one.role == WORD and (not dictionary or any(form.pos in VERBS for form in forms))

    def _counts_same(self, row: int, place: int) -> bool:
        """Tell whether a number that stands elsewhere counts or dates the same there.

        What follows it is what it counts; where it is led by a preposition, or nothing follows,
        what stands around it must have something in common.
        """
        taken = self._exchanged.get(row)
        if taken is not None and self._text[taken].role in DATED:
            if self._verb_parts(row) != {self._part(self._text, place)}:
                return False
        ours, theirs = self._after(self._claim, row), self._after(self._text, place)
        led = self._preposed(self._claim, row) and self._preposed(self._text, place)
        if led and same(self._claim[row - 1], self._text[place - 1]):
            return True
        if theirs is not None and any(
            one.word in self._words.pronouns for one in self._text[place:theirs]
        ):
            theirs = None
        if ours is not None and theirs is not None and not led:
            counted, there = self._claim[ours], self._text[theirs]
            if counted.role in CONTENT and there.role in CONTENT:
                return same(counted, there)
        beside = list(self._near(self._text, place))
        around = list(self._near(self._claim, row))
        return not around or any(same(one, other) for one in around for other in beside)
