"""Find what a claim exchanges between clauses of its evidence, or puts in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations, pairwise

from core.language.words import readings
from reasoning.claims.alignment import same
from reasoning.claims.edits import DATED, cases_of, contradict
from reasoning.claims.numbers import NumberEdits
from reasoning.claims.operators import OperatorEdits
from reasoning.claims.tokens import CLOSED, FUNCTION, MONTH, NAME, NUMBER, UNIT, WORD, ClaimToken

ENDING = frozenset(";；")
DIVIDING = frozenset(",，") | ENDING  # a dash stands for a verb
MINIMAL = 2  # words of a part that leaves out a verb
FIELD = frozenset(":：|")


class ClauseEdits(NumberEdits, OperatorEdits):
    """Judge the clauses of an alignment."""

    def _clauses(self, tokens: Sequence[ClaimToken], marks: frozenset[str] = CLOSED) -> list[int]:
        """Return the number of the clause that each token is of; some marks divide them."""
        found: list[int] = []
        number = 0
        for at, one in enumerate(tokens):
            apart = at and one.place != tokens[at - 1].place
            joins = one.word in self._words.joins | self._words.breaks | self._words.sequence
            number += bool(at) and bool(apart or joins or marks & set(one.before))
            found.append(number)
        return found

    def _drawn(self) -> dict[int, list[int]]:
        """Return the clauses of the evidence from which each of the claim has words, in order.

        What the evidence has twice may be either.
        """
        ours, theirs = self._clauses(self._claim), self._clauses(self._text)
        found: dict[int, list[int]] = {}
        for row, place in sorted(self._partner.items()):
            one = self._text[place]
            if one.role == FUNCTION or one.word in self._words.sequence:
                continue
            if sum(same(one, each) for each in self._text) == 1:
                found.setdefault(ours[row], []).append(theirs[place])
        return found

    def _exchanged_parts(self) -> str:
        """Find two clauses each of which has a part of the same two of the evidence."""
        drawn = {clause: frozenset(found) for clause, found in self._drawn().items()}
        for (_, one), (_, other) in combinations(drawn.items(), 2):
            if len(one & other) > 1:
                return "it exchanges what two parts of the quote say"
        return ""

    def _mixed_parts(self) -> str:
        """Find a word of one part beside a word of another, where each has its own of both.

        Of "8:15 on weekdays and 9:40 on Sundays" that is "9:40 on weekdays".
        """
        drawn = [
            (row, place)
            for row, place in sorted(self._partner.items(), key=lambda one: one[1])
            if self._claim[row].is_content and self._lists_nothing(place)
        ]
        ours = self._clauses(self._claim)
        for marks in (DIVIDING, ENDING):
            parts = self._clauses(self._text, marks)
            for (row, one), (beside, other) in combinations(drawn, 2):
                if ours[row] != ours[beside] or self._is_of_kind(one, other):
                    continue
                # Within one part only numbers and dates go with what is nearest.
                counted = self._text[one].role in DATED and self._text[other].role in DATED
                if parts[one] == parts[other] and not counted:
                    continue
                if parts[one] == parts[other]:
                    near, far = self._own(one, other, range(one + 1, other))
                    mixed = near is not None and far is not None and near < far
                else:
                    first, last = ([at for at, part in enumerate(parts) if part == parts[each]]
                                   for each in (one, other))  # fmt: skip
                    near, far = self._own(one, other, first)[0], self._own(one, other, last)[1]
                    mixed = near is not None and far is not None
                if mixed and near is not None:
                    return f"{self._text[one].text} goes with {self._text[near].text} in the quote"
        return ""

    @cached_property
    def _elliptic(self) -> frozenset[int]:
        """Return what stands in a part that leaves out what an earlier one says, and is claimed so.

        "The deposit is $150 for a bicycle and $40 for a helmet": for a helmet it is $40.
        """
        parts = self._clauses(self._text, DIVIDING)
        kept = [at for at in sorted(self._covered)
                if self._text[at].is_content and self._text[at].role != UNIT]  # fmt: skip
        found: set[int] = set()
        for own in {parts[at] for at in kept}:
            inside = [at for at in kept if parts[at] == own]
            whole = [at for at, part in enumerate(parts) if part == own]
            others = {parts[at] for at in kept} - {own}
            if len(inside) < MINIMAL or len(others) != 1 or self._has_verb(whole):
                continue
            rivals = [at for at in self._free if parts[at] in others and parts[at] < own]
            answered = sum(any(self._is_like(at, rival) for rival in rivals) for at in inside)
            if answered >= len(inside) - 1:
                found |= {*whole}
        return frozenset(found)

    def _is_of_another_clause(self, row: int, place: int) -> bool:
        return place not in self._elliptic and super()._is_of_another_clause(row, place)

    def _is_of_another_verb(self, row: int, place: int) -> bool:
        return place not in self._elliptic and super()._is_of_another_verb(row, place)

    def _counts_same(self, row: int, place: int) -> bool:
        return place in self._elliptic or super()._counts_same(row, place)

    def _has_verb(self, places: Iterable[int]) -> bool:
        """Tell whether there is a verb, in a language whose dictionary tells."""
        dictionary = self._words.known.dictionary
        return bool(dictionary) and any(self._is_verb(self._text[at]) for at in places)

    def _own(self, one: int, other: int, places: Iterable[int]) -> tuple[int | None, int | None]:
        """Return, of some places, what answers to the second of two words, and to the first.

        Only what the claim leaves out counts.
        """
        free = [at for at in places if at in self._free and self._text[at].is_content]
        near = next((at for at in free if self._is_like(other, at)), None)
        far = next((at for at in reversed(free) if self._is_like(one, at)), None)
        return near, far

    def _is_of_kind(self, place: int, at: int) -> bool:
        """Tell whether two words of the evidence are of one kind: two dates, two opposites."""
        one, other = self._text[place], self._text[at]
        if one.role == other.role == NUMBER:
            ours, theirs = self._unit(self._text, place), self._unit(self._text, at)
            if ours is None or theirs is None:
                return ours is theirs and self._is_of_year(one) == self._is_of_year(other)
            return same(ours, theirs)
        alike = one.role == other.role and one.role in (MONTH, NAME)
        # The first word of a sentence has a capital, too.
        alike = alike and self._is_verb(one) == self._is_verb(other)
        return alike or contradict(one, other, self._words)

    def _is_verb(self, one: ClaimToken) -> bool:
        """Tell whether a dictionary, or its form of the past, makes a word a verb."""
        words = self._words
        if words.known.dictionary:
            return any(
                each.pos == "VERB" for each in readings(one.word, words.known.dictionary)[:1]
            )
        ending = words.past_ending
        return one.word in words.past or bool(ending and one.word.endswith(ending))

    def _is_like(self, place: int, at: int) -> bool:
        """Tell whether two words are of one kind, or stand alike in their parts."""
        one, other = self._text[place], self._text[at]
        if self._is_of_kind(place, at):
            return True
        if {one.role, other.role} - {WORD, NAME}:
            return False
        if self._preposed(self._text, place) and self._preposed(self._text, at):
            return self._text[place - 1].word == self._text[at - 1].word
        dictionary = self._words.known.dictionary
        if self._is_verb(one) and self._is_verb(other):
            return True
        if dictionary and not cases_of(one, dictionary).isdisjoint(cases_of(other, dictionary)):
            return True
        return self._leads(place) and self._leads(at)

    def _leads(self, place: int) -> bool:
        """Tell whether a word is the first of its part."""
        before = self._text[place - 1] if place else None
        if before is None or before.place != self._text[place].place:
            return True
        divides = before.word in self._words.joins | self._words.breaks
        return divides or bool(DIVIDING & set(self._text[place].before))

    def _lists_nothing(self, place: int) -> bool:
        """Tell whether a word is of no row of a table and no field of a record."""
        own = self._text[place].place
        return not any(one.place == own and FIELD & set(one.before) for one in self._text)

    def _out_of_order(self) -> str:
        """Find steps that the evidence has in another order."""
        if not any(one.word in self._words.sequence for one in self._claim):
            return ""
        drawn = [Counter(found).most_common(1)[0][0] for _, found in sorted(self._drawn().items())]
        if any(after < before for before, after in pairwise(drawn)):
            return "the quote has it in another order"
        return ""
