"""Find what a claim exchanges between clauses of its evidence, or puts in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise

from reasoning.claims.alignment import same
from reasoning.claims.edits import Edits
from reasoning.claims.tokens import CLOSED, FUNCTION, ClaimToken


class ClauseEdits(Edits):
    """Judge the clauses of an alignment."""

    def _clauses(self, tokens: Sequence[ClaimToken]) -> list[int]:
        """Return the number of the clause that each token is of."""
        found: list[int] = []
        number = 0
        for at, one in enumerate(tokens):
            apart = at and one.place != tokens[at - 1].place
            joins = one.word in self._words.joins | self._words.breaks | self._words.sequence
            number += bool(at) and bool(apart or joins or CLOSED & set(one.before))
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

    def _out_of_order(self) -> str:
        """Find steps that the evidence has in another order."""
        if not any(one.word in self._words.sequence for one in self._claim):
            return ""
        drawn = [Counter(found).most_common(1)[0][0] for _, found in sorted(self._drawn().items())]
        if any(after < before for before, after in pairwise(drawn)):
            return "the quote has it in another order"
        return ""
