"""Align a statement with the sentences of its evidence, and read what was changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix
from typing import NamedTuple

from core.language.scan import fold
from reasoning.claims.tokens import NAME, NUMBER, UNIT, WORD, ClaimToken
from reasoning.claims.words import CONTRARY

# What an edit costs, against 0 for a match: leaving a word of the evidence out is the cheapest, and
# one word for another is less than leaving one out and adding one. Chosen, not measured.
ADDED, LEFT_OUT, EXCHANGED = 0.9, 0.6, 1.0
ADDED_SMALL, LEFT_OUT_SMALL, EXCHANGED_SMALL = 0.4, 0.25, 0.5
OTHER_ROLE = 1.4  # a number for a word, a word for a function word
# Letters that forms of a word share, and their share of it; of a language with cases, where a verb
# has participles with endings of their own. Chosen, not measured.
LEAST_FORM, FORM_SHARE = 4, 0.7
LEAST_CASED, CASED_SHARE = 5, 0.5
LONGEST_CASE = 3  # letters of the ending of a name in a case: «Ковальчук» is no form of «Коваленко»


class Alignment(NamedTuple):
    """Hold for each token of the claim its place in the evidence, or None; and the cost.

    `exchanged` are the places of the evidence for which another token of the claim stands.
    """

    claim: Sequence[ClaimToken]
    text: Sequence[ClaimToken]
    matched: dict[int, int]
    exchanged: dict[int, int]
    moved: dict[int, int]
    cost: float


def same(one: ClaimToken, other: ClaimToken) -> bool:
    """Tell whether two tokens say the same: a shared key, or forms of one word."""
    if not one.keys.isdisjoint(other.keys):
        return True
    if one.word[:2] != other.word[:2] or {one.role, other.role} - {WORD, NAME}:
        return False
    if one.role == other.role == NAME and not _same_name(one.word, other.word):
        return False
    return same_form(one.word, other.word) and not clash(one, other)


def _same_name(one: str, other: str) -> bool:
    """Tell whether names differ at most by the endings of cases, which only some languages have."""
    if one.isascii():
        return False
    shared = len(commonprefix([one, other]))
    return max(len(one), len(other)) - shared <= LONGEST_CASE


def clash(one: ClaimToken, other: ClaimToken) -> bool:
    """Tell whether the tables have two words on different sides of one group."""
    return any(
        sense.group == theirs.group and sense.side != theirs.side
        for sense in one.senses
        if sense.group.startswith(CONTRARY)
        for theirs in other.senses
    )


@lru_cache(maxsize=65536)
def same_form(one: str, other: str) -> bool:
    """Tell whether two words begin alike and differ in their endings alone."""
    if any(character.isdigit() or character == " " for character in one + other):
        return False
    shared = len(commonprefix([one, other]))
    longest = max(len(one), len(other))
    least, share = (LEAST_FORM, FORM_SHARE) if one.isascii() else (LEAST_CASED, CASED_SHARE)
    return shared >= least and shared >= share * longest


def align(claim: Sequence[ClaimToken], text: Sequence[ClaimToken]) -> Alignment:
    """Find the cheapest way to make the claim of the evidence, word by word and in order."""
    rows, columns = len(claim), len(text)
    added = [ADDED if one.is_content else ADDED_SMALL for one in claim]
    dropped = [LEFT_OUT if one.is_content else LEFT_OUT_SMALL for one in text]
    known: dict[tuple[int, int], float] = {}
    costs = [[0.0] * (columns + 1)]
    for column in range(columns):
        costs[0][column + 1] = costs[0][column] + dropped[column]
    for row, one in enumerate(claim):
        above = costs[-1]
        line = [above[0] + added[row]]
        for column, other in enumerate(text):
            step = 0.0 if same(one, other) else _exchange(one, other)
            known[row, column] = step
            line.append(
                min(
                    above[column] + step,
                    above[column + 1] + added[row],
                    line[column] + dropped[column],
                )
            )
        costs.append(line)
    matched: dict[int, int] = {}
    exchanged: dict[int, int] = {}
    row, column = rows, columns
    while row and column:
        here, step = costs[row][column], known[row - 1, column - 1]
        if abs(here - costs[row - 1][column - 1] - step) < 1e-9:
            row, column = row - 1, column - 1
            (matched if step == 0.0 else exchanged)[row] = column
        elif abs(here - costs[row][column - 1] - dropped[column - 1]) < 1e-9:
            column -= 1
        else:
            row -= 1
    _keep_together(claim, text, matched)
    _join_split(claim, text, matched, exchanged)
    return Alignment(claim, text, matched, exchanged, _moved(claim, text, matched), costs[-1][-1])


def _exchange(one: ClaimToken, other: ClaimToken) -> float:
    if one.role == other.role:
        return EXCHANGED if one.is_content else EXCHANGED_SMALL
    if {one.role, other.role} <= {WORD, NAME, UNIT} or not (one.is_content or other.is_content):
        return EXCHANGED
    return OTHER_ROLE


def _keep_together(
    claim: Sequence[ClaimToken], text: Sequence[ClaimToken], matched: dict[int, int]
) -> None:
    """Of places that cost the same take those behind the word before: "3.2 kg and … 5.1 kg"."""
    for row in sorted(matched):
        before = matched.get(row - 1)
        if before is None or matched[row] == before + 1:
            continue
        end = row + 1
        while matched.get(end) == matched[end - 1] + 1:
            end += 1
        if all(same(claim[at], text[before + 1 + at - row]) for at in range(row, end)):
            matched.update((at, before + 1 + at - row) for at in range(row, end))


def _join_split(
    claim: Sequence[ClaimToken],
    text: Sequence[ClaimToken],
    matched: dict[int, int],
    exchanged: dict[int, int],
) -> None:
    """Match what is written alike and only cut otherwise ("e-mail", words of Chinese)."""
    anchors = [(-1, -1), *sorted(matched.items()), (len(claim), len(text))]
    for (row, column), (next_row, next_column) in zip(anchors, anchors[1:], strict=False):
        ours, theirs = range(row + 1, next_row), range(column + 1, next_column)
        if not ours or not theirs:
            continue
        joined = fold("".join(claim[one].text for one in ours))
        if joined == fold("".join(text[one].text for one in theirs)):
            for place, one in enumerate(ours):
                exchanged.pop(one, None)
                matched[one] = theirs[min(place, len(theirs) - 1)]


def _moved(
    claim: Sequence[ClaimToken], text: Sequence[ClaimToken], matched: dict[int, int]
) -> dict[int, int]:
    """Find tokens of the claim that the evidence has at another place, which nothing else took."""
    free = [place for place in range(len(text)) if place not in set(matched.values())]
    moved: dict[int, int] = {}
    for row, one in enumerate(claim):
        if row in matched:
            continue
        found = [place for place in free if same(one, text[place])]
        if found:
            near = moved.get(row - 1, matched.get(row - 1, -9))
            best = min(found, key=lambda place: abs(place - near - 1))
            moved[row] = best
            free.remove(best)
    return moved


__all__ = ["NUMBER", "Alignment", "align", "same", "same_form"]
