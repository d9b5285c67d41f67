"""Tell whether what two documents say to one question contradicts: by the values read in them.

The reader finds in each document what answers the question, however it is worded. Two values that
differ contradict each other unless something tells their subjects, their times or their ways of
counting apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from core.language.chinese import part_of_speech
from core.language.words import readings
from core.types import AnswerSpan, Evidence, SubQuestion
from reasoning.claims.alignment import align, same
from reasoning.claims.edits import contradict
from reasoning.claims.tokens import (
    CLOSED,
    FUNCTION,
    MONTH,
    NAME,
    NUMBER,
    UNIT,
    WORD,
    ClaimToken,
    claim_tokens,
)
from reasoning.claims.words import claim_words
from reasoning.rules.answering.headings import heading_of
from reasoning.rules.answering.things import KINDS, things_asked
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.value_spans import asked_noun

BEFORE = 200  # characters before a sentence that may say what it is about; chosen
MOST_WORDS = 6  # content words of a value that is compared as a name is; chosen
SURE = 1.0  # log odds of a reading whose words need not be those of the question (by hand)
LEAST = 2  # other content words that a sentence and its denial share; chosen
# Numbers that are one number in fewer digits, and those that are said to be about; chosen.
ROUNDED, ABOUT = 0.02, 0.1
YEARS = (1000, 2100)
DENIAL, HEDGE = frozenset({"negation"}), frozenset({"hedge"})
MODALITY = frozenset({"modality"})
BOUND, CONDITION = frozenset({"bound"}), frozenset({"condition"})
ABOVE, BELOW, NEAR = ("0", "2"), ("1", "3"), "5"  # meanings of the bounds in `claims.yaml`
FIGURE = re.compile(r"#(-?\d+(?:\.\d+)?)")
CLOCK = re.compile(r"#(\d{1,2}):(\d\d)")
HALF_A_DAY = 12
# What holds for one of two statements alone makes them statements about different things.
ONE_SIDED = ("typical", "not_now", "time_before", "day_name")


class Assertion:
    """Hold what one document says to a question: a sentence and the value in it."""

    def __init__(self, item: Evidence, reading: AnswerSpan) -> None:
        """Take a reading of a piece of evidence."""
        self.item = item
        self.start, self.end, self.odds = reading.start, reading.end, reading.odds
        self.text = item.text[reading.start : reading.end]
        self.language = item.language
        self.tokens = claim_tokens(self.text, item.language)
        self.places = self._value(reading)

    def _value(self, reading: AnswerSpan) -> list[int]:
        """Return the places of the value, with what a number at its end counts."""
        if reading.value is None:
            return []
        first, last = (at - reading.start for at in reading.value)
        found = [at for at, one in enumerate(self.tokens) if one.start < last and one.end > first]
        if found and self.tokens[found[-1]].role == NUMBER:
            after = found[-1] + 1
            if after < len(self.tokens) and self._counts(self.tokens[after]):
                found.append(after)
        return found

    def valued(self, first: int, last: int | None = None) -> Assertion:
        """Return the statement with a token of it, or those up to the last, as its value."""
        ending = self.tokens[first if last is None else last]
        span = self.start + self.tokens[first].start, self.start + ending.end
        return Assertion(
            self.item, AnswerSpan(start=self.start, end=self.end, value=span, odds=self.odds)
        )

    @staticmethod
    def _counts(one: ClaimToken) -> bool:
        return one.role in (UNIT, WORD) and not CLOSED & set(one.before)

    @cached_property
    def value(self) -> list[ClaimToken]:
        """Return the tokens of the value."""
        return [self.tokens[at] for at in self.places]

    @cached_property
    def rest(self) -> list[ClaimToken]:
        """Return the content words of the sentence beside the value."""
        own = set(self.places)
        return [one for at, one in enumerate(self.tokens) if one.is_content and at not in own]

    @cached_property
    def clause(self) -> list[ClaimToken]:
        """Return the tokens around the value up to the next mark or joining word."""
        if not self.places:
            return list(self.tokens)
        words = claim_words(self.language)
        joins = words.joins | words.breaks
        first, last = self.places[0], self.places[-1] + 1
        while first and not (CLOSED & set(self.tokens[first].before)):
            if self.tokens[first - 1].word in joins:
                break
            first -= 1
        while last < len(self.tokens) and not CLOSED & set(self.tokens[last].before):
            if self.tokens[last].word in joins:
                break
            last += 1
        return list(self.tokens[first:last])

    @cached_property
    def around(self) -> tuple[ClaimToken, ...]:
        """Return the tokens of the headings and of what stands before the sentence."""
        before = self.item.text[max(0, self.start - BEFORE) : self.start]
        return claim_tokens(f"{heading_of(self.item)}. {before}", self.language)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return what the content words of the sentence share with their forms."""
        return frozenset(key for one in self.tokens if one.is_content for key in one.keys)

    def has(self, word: ClaimToken) -> bool:
        """Tell whether the sentence says a word."""
        return any(same(word, one) for one in self.tokens)

    def says(self, word: ClaimToken) -> bool:
        """Tell whether the sentence, its headings or what stands before it say a word."""
        return self.has(word) or any(same(word, one) for one in self.around)

    @cached_property
    def end_of_clause(self) -> int:
        """Return where the clause of the value ends; what is behind it tells of something else."""
        return self.clause[-1].end if self.clause else len(self.text)

    def listed(self, name: str) -> bool:
        """Tell whether the sentence has a word of a list beside the value, or before it."""
        keys = _keys(name, self.language)
        near = (one for one in self.rest if one.start < self.end_of_clause)
        return any(not one.keys.isdisjoint(keys) for one in near) or (
            lexicon(self.language).found(name, self._beside)
        )

    @cached_property
    def _beside(self) -> str:
        if not self.value:
            return self.text
        start = min(one.start for one in self.value)
        end = max(one.end for one in self.value)
        return f"{self.text[:start]} | {self.text[end : self.end_of_clause]}"


@lru_cache(maxsize=64)
def _keys(name: str, language: str) -> frozenset[str]:
    """Return what the single words of a list share with their forms."""
    known = claim_words(language)
    if not known.known.dictionary:
        return frozenset()
    return frozenset(known.key(one) for one in lexicon(language).words(name) if " " not in one)


class _Amount(NamedTuple):
    """Hold the numbers of a value: those of dates apart, and what the others count."""

    years: tuple[float, ...]
    months: tuple[str, ...]
    figures: tuple[float, ...]
    units: tuple[ClaimToken, ...]
    clocked: bool


class Asked:
    """Hold a question to which documents may say different things."""

    def __init__(self, question: SubQuestion, language: str) -> None:
        """Take a question to evidence in a language."""
        lists = lexicon(language)
        self.wants = question.wants
        self.text = question.query or question.text
        self.words = claim_words(language)
        self.noun = asked_noun(self.text, lists)
        tokens = claim_tokens(f"{question.text} {question.query}", language)
        found = {one.word: one for one in tokens if one.is_content}
        self.content = list(found.values())
        self.rules = [one for one in tokens if one.has(MODALITY)]
        things = things_asked(self.text, lists)
        beside = {word for thing in things for word in thing.beside}
        self.modifiers = [one for one in self.content if one.text in beside]
        self.nouns = [one for one in self.content if one.text in {thing.noun for thing in things}]
        self.described = {
            thing.noun: [word for word in self.content if word.text in thing.beside]
            for thing in things
            if thing.beside
        }
        # Of what is allowed any number is the most: "up to twelve books", "eight books".
        self.permits = any(one.has(MODALITY) for one in tokens)
        # What was done may have been done again; what may be done is a rule.
        self.repeats = self._names("repeatable", language) and not self.permits
        self.one_sided = [name for name in ONE_SIDED if not self._names(name, language)]
        self.numbers = any(one.role in (NUMBER, MONTH) for one in self.content)
        self.language = language

    def _names(self, name: str, language: str) -> bool:
        """Tell whether the question has a word of a list."""
        keys = _keys(name, language)
        return lexicon(language).found(name, self.text) or any(
            not one.keys.isdisjoint(keys) for one in self.content
        )

    @staticmethod
    def _is_of_one_year(one: Assertion, other: Assertion) -> bool:
        """Tell whether two dates are of one year, in which most comes once: a season begins."""
        years = [
            {number for token in each.tokens for number in _numbers(token)
             if YEARS[0] <= number <= YEARS[1]}
            for each in (one, other)
        ]  # fmt: skip
        dated = all(any(token.role == MONTH for token in each.tokens) for each in (one, other))
        return dated and bool(years[0]) and years[0] == years[1]

    def contradict(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two statements give different answers."""
        if self.wants in ("list", "topic"):
            return False
        if self.wants == "yesno":
            differs = bool(self._denies(one)) != bool(self._denies(other))
            differs = differs or bool(self.numbers and self._differ(one, other))
            return differs and not self._is_apart(one, other)
        if not (one.value and other.value):
            return False
        return self._differ(one, other) and not self._is_apart(one, other)

    def is_other_case(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two statements give values for two cases: of adults, of children."""
        if self.wants in ("list", "topic", "yesno") or min(one.odds, other.odds) < SURE:
            return False
        for each in (one, other):
            if all(word.role not in (NUMBER, MONTH) for word in each.value):
                return False
        differ = self._differ(one, other) and not self._lacks(one, other)
        return differ and self._have_own_cases(one, other)

    def is_case_beside(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two sentences say the same but for one number and one word: of children."""
        if self.wants in ("list", "topic", "yesno") or one.keys.isdisjoint(other.keys):
            return False
        aligned = align(one.tokens, other.tokens)
        partner = {**aligned.moved, **aligned.matched}
        ours = [at for at in _numbered(one) if at not in partner]
        theirs = [at for at in _numbered(other) if at not in partner.values()]
        if len(ours) != 1 or len(theirs) != 1:
            return False
        mine, its = one.valued(ours[0]), other.valued(theirs[0])
        return self._differ(mine, its) and self._exchange_a_word(mine, its)

    def _differ(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether the values differ, so that only one can be right."""
        if any(word.role in (NUMBER, MONTH) for word in one.value):
            if not any(word.role in (NUMBER, MONTH) for word in other.value):
                return False
            return self._differ_in_numbers(one, other)
        if any(word.role in (NUMBER, MONTH) for word in other.value):
            return False
        mine = _own_part([word for word in one.value if word.is_content], other)
        theirs = _own_part([word for word in other.value if word.is_content], one)
        if not (0 < len(mine) <= MOST_WORDS and 0 < len(theirs) <= MOST_WORDS):
            return False
        if self.wants in ("person", "place") and self.words.known.spaced:
            if not all(any(word.role == NAME for word in side) for side in (mine, theirs)):
                return False
        elif self.wants == "text" and not self.noun:
            return False  # what is no person, place, number or date, nor any other one thing
        return not any(map(other.has, mine)) and not any(map(one.has, theirs))

    def _differ_in_numbers(self, one: Assertion, other: Assertion) -> bool:
        mine, theirs = self._amount(one), self._amount(other)
        if mine.years and theirs.years and not set(mine.years) & set(theirs.years):
            return not self._has_all(one, other, mine.years, theirs.years)
        if mine.months and theirs.months and not set(mine.months) & set(theirs.months):
            return True
        if not (mine.figures and theirs.figures):
            return False
        if mine.units and theirs.units:
            if not any(same(a, b) for a in mine.units for b in theirs.units):
                return self._differ_in_measure(mine, theirs)
        elif (mine.units or theirs.units) and not (mine.months and theirs.months):
            return False
        if len(mine.figures) != len(theirs.figures):
            return set(mine.figures).isdisjoint(theirs.figures)
        pairs = list(zip(mine.figures, theirs.figures, strict=True))
        clocked = mine.clocked or theirs.clocked
        if clocked:
            pairs = [(a % HALF_A_DAY, b % HALF_A_DAY) for a, b in pairs]
        if all(a == b for a, b in pairs):
            return False
        dated = bool(mine.months and theirs.months)
        if not (clocked or dated) and all(
            _is_rounded(a, b, self._about(one, other)) for a, b in pairs
        ):
            return False
        if len(pairs) == 1 and not self._exclude(one, other, *pairs[0]):
            return False
        return not self._has_all(one, other, mine.figures, theirs.figures)

    def _differ_in_measure(self, mine: _Amount, theirs: _Amount) -> bool:
        """Tell whether amounts of one measure in two units differ: 28 days, three weeks."""
        sizes = [
            {
                place: size * each.figures[0]
                for unit in each.units
                for place, size in self._sizes(unit)
            }
            for each in (mine, theirs)
        ]
        if len(mine.figures) != 1 or len(theirs.figures) != 1:
            return False
        both = [(sizes[0][place], sizes[1][place]) for place in sizes[0].keys() & sizes[1].keys()]
        return any(abs(a - b) > ABOUT * max(a, b) for a, b in both)

    def _sizes(self, unit: ClaimToken) -> list[tuple[int, float]]:
        return [self.words.measures[key] for key in unit.keys if key in self.words.measures]

    @staticmethod
    def _has_all(
        one: Assertion, other: Assertion, mine: tuple[float, ...], theirs: tuple[float, ...]
    ) -> bool:
        """Tell whether a sentence states the numbers of the other as well."""
        stated = [
            {number for token in each.tokens for number in _numbers(token)} for each in (one, other)
        ]
        return set(mine) <= stated[1] or set(theirs) <= stated[0]

    @staticmethod
    def _about(one: Assertion, other: Assertion) -> bool:
        return any(
            token.has(HEDGE) or any(sense == ("bound", NEAR) for sense in token.senses)
            for each in (one, other)
            for token in each.clause
        )

    def _exclude(self, one: Assertion, other: Assertion, mine: float, theirs: float) -> bool:
        """Tell whether bounds of two numbers leave room for none that meets both."""
        low, high = (
            {sense.side for token in each.clause for sense in token.senses
             if sense.group == "bound" and not (self.permits and sense.side in BELOW)}
            for each in (one, other)
        )  # fmt: skip
        if low == high:
            return True
        for sides, own, value in ((low, mine, theirs), (high, theirs, mine)):
            if sides.intersection(ABOVE) and value > own:
                return False
            if sides.intersection(BELOW) and value < own:
                return False
        return True

    def _amount(self, one: Assertion) -> _Amount:
        years: list[float] = []
        months: list[str] = []
        figures: list[float] = []
        units: list[ClaimToken] = []
        clocked = False
        dated = self.wants == "date" or any(token.role == MONTH for token in one.value)
        for token in one.value:
            if token.role == MONTH:
                months += [key for key in token.keys if key.startswith("months ")]
            elif token.role == NUMBER:
                clocked = clocked or any(CLOCK.fullmatch(key) for key in token.keys)
                for number in _numbers(token):
                    as_year = dated and YEARS[0] <= number <= YEARS[1]
                    (years if as_year else figures).append(number)
            elif token.is_content and figures:
                units.append(token)
        units = [one for one in units if one.role == UNIT] or units  # "3 kilometres long"
        return _Amount(tuple(years), tuple(months), tuple(figures), tuple(units), clocked)

    def _denies(self, one: Assertion) -> int:
        """Return 1 where a statement answers a question with no, by its denials and opposites."""
        denied = sum(token.has(DENIAL) is not None for token in one.clause)
        asked = sum(
            token.has(DENIAL) is not None for token in claim_tokens(self.text, self.language)
        )
        against = sum(
            any(contradict(word, token, self.words) for word in (*self.content, *self.rules))
            for token in one.clause
        )
        return (denied + against + asked) % 2

    def _is_apart(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two statements are about different things, times or ways of counting."""
        return (
            self._lacks(one, other)
            or self._is_other_kind(one, other)
            or any(one.listed(name) != other.listed(name) for name in self.one_sided)
            or self._has_condition(one) != self._has_condition(other)
            or (
                self.repeats
                and self.wants in ("date", "person", "number", "place")
                and not self._is_of_one_year(one, other)
            )
            or self._have_own_cases(one, other)
        )

    def _has_condition(self, one: Assertion) -> bool:
        """Tell whether a statement holds under a condition, or denies what holds under any."""
        if self.wants == "yesno" and self._denies(one) and one.listed("in_any_case"):
            return True
        return any(token.has(CONDITION) for token in one.clause)

    def _have_own_cases(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether each of two statements names a time or a case that the other does not."""
        return (
            _other_times(one, other)
            or self._opposed(one, other)
            or (self.wants != "yesno" and self._exchange_a_word(one, other))
        )

    def _exchange_a_word(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two statements differ in one word beside their values: "Adults pay"."""
        aligned = align(one.tokens, other.tokens)
        partner = {**aligned.moved, **aligned.matched}
        ours = [at for at in range(len(one.tokens)) if at not in partner]
        theirs = [at for at in range(len(other.tokens)) if at not in partner.values()]
        left = [one.tokens[at] for at in ours if at not in one.places]
        right = [other.tokens[at] for at in theirs if at not in other.places]
        sides = [[word for word in side if word.is_content] for side in (left, right)]
        kept = sum(aligned.claim[row].is_content for row in partner)
        if kept < LEAST or any(len(side) != 1 for side in sides):
            return False
        return not any(self._asks(word) for side in sides for word in side)

    def _lacks(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether one says a word of the question that tells its subject, the other not."""
        # A "no" about one thing denies nothing of another, however well it fits the question.
        sure = min(one.odds, other.odds) >= SURE and self.wants != "yesno"
        acts = self.wants in ("date", "person", "place") and not sure
        for word in self.content:
            if one.says(word) == other.says(word):
                continue
            if self.wants == "yesno" and (
                word.role in (NUMBER, MONTH)  # which is what is asked
                or _opposite(word, one, self)
                or _opposite(word, other, self)
            ):
                continue
            named = word.role in (NAME, NUMBER, MONTH) or word in self.modifiers
            if named or (not sure and word in self.nouns) or acts:
                return True
        return False

    def _is_other_kind(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether one says more of what the question names: "Kestrel 3 Pro", "audit logs"."""
        # Of a noun that is told from its like by words that both say, others but describe it.
        known = {
            noun
            for noun, beside in self.described.items()
            if all(one.says(word) and other.says(word) for word in beside)
        }
        kinds = [self._kinds(each, known) for each in (one, other)]
        return any(not other.says(word) for word in kinds[0]) or any(
            not one.says(word) for word in kinds[1]
        )

    def _kinds(self, one: Assertion, known: set[str]) -> list[ClaimToken]:
        whom = _keys("whom", self.language) | set(lexicon(self.language).words("whom"))
        found: list[ClaimToken] = []
        named = False
        nouns = [noun for noun in self.nouns if noun.text not in known]
        for at, token in enumerate(one.tokens):
            if token.start >= one.end_of_clause:
                break
            before = one.tokens[at - 1] if at else None
            if before is None or at in one.places or CLOSED & set(token.before):
                named = False
            elif named and not self._asks(token):
                found += [token] if token.role in (NAME, NUMBER) else []
                named = False
            elif before.word in whom and token.is_content:
                found.append(token)
            named = self._asks(token) and (token.role == NAME or named)
            if before is None or at - 1 in one.places or token.before.strip():
                continue
            led = at < 2 or not one.tokens[at - 2].is_content
            if led and self._is_kind(before) and any(same(token, noun) for noun in nouns):
                found.append(before)
        return [word for word in found if not self._asks(word)]

    def _asks(self, token: ClaimToken) -> bool:
        return any(same(token, word) for word in self.content)

    def _is_kind(self, token: ClaimToken) -> bool:
        """Tell whether a word before a noun tells its kind, and is no verb."""
        if token.role not in (WORD, NAME):
            return False
        if not self.words.known.spaced:
            return part_of_speech(token.text)[:1] in KINDS
        if dictionary := self.words.known.dictionary:
            found = readings(token.word, dictionary)[:1]
            return bool(found) and found[0].pos in ("ADJF", "NOUN")
        verbs = {self.words.key(one) for one in lexicon(self.language).words("base_verb")}
        return token.keys.isdisjoint(verbs)

    def _opposed(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether something beside the values is opposite: in winter, in summer."""
        if self.wants == "yesno":
            return False
        beside = [
            [token for at, token in enumerate(each.tokens) if at not in each.places]
            for each in (one, other)
        ]
        return any(
            contradict(mine, theirs, self.words) for mine in beside[0] for theirs in beside[1]
        )

    def is_revalued(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two sentences say the same but for a number or a name: one must be wrong."""
        if 2 * len(one.keys & other.keys) < max(len(one.keys), len(other.keys)):
            return False  # cheaper than to align them
        aligned = align(one.tokens, other.tokens)
        partner = {**aligned.moved, **aligned.matched}
        ours = _without_article(one, [at for at in range(len(one.tokens)) if at not in partner])
        own = set(partner.values())
        theirs = _without_article(other, [at for at in range(len(other.tokens)) if at not in own])
        if not (_is_value(one, ours) and _is_value(other, theirs)) or len(partner) <= LEAST:
            return False
        return self.contradict(one.valued(ours[0], ours[-1]), other.valued(theirs[0], theirs[-1]))

    def is_denied(self, one: Assertion, other: Assertion) -> bool:
        """Tell whether two sentences say the same but for a denial or a word and its opposite."""
        if 2 * len(one.keys & other.keys) < max(len(one.keys), len(other.keys)):
            return False  # cheaper than to align them
        aligned = align(one.tokens, other.tokens)
        partner = {**aligned.moved, **aligned.matched}
        ours = [each for row, each in enumerate(aligned.claim) if row not in partner]
        theirs = [each for at, each in enumerate(aligned.text) if at not in partner.values()]
        denials = [each for each in (*ours, *theirs) if each.has(DENIAL)]
        rest = [[each for each in side if each.is_content] for side in (ours, theirs)]
        full = [[each for each in side if each.role != FUNCTION] for side in (ours, theirs)]
        opposite = all(len(side) == 1 for side in full) and contradict(
            full[0][0], full[1][0], self.words
        )
        kept = sum(aligned.claim[row].is_content for row in partner)
        if kept < LEAST or not (opposite or not any(rest)):
            return False
        lacking = [word for word in self.content if one.says(word) and not other.says(word)]
        # A word of the sentence that the other lacks may be what the other denies.
        return (len(denials) + opposite) % 2 == 1 and all(map(one.has, lacking))


def _without_article(one: Assertion, places: list[int]) -> list[int]:
    led = len(places) > 1 and one.tokens[places[0]].role == FUNCTION
    return places[led:]


def _is_value(one: Assertion, places: Sequence[int]) -> bool:
    """Tell whether tokens are one, or a name of several."""
    if len(places) < 2:
        return len(places) == 1
    row = places[-1] - places[0] + 1 == len(places) <= MOST_WORDS
    return row and all(one.tokens[at].role == NAME for at in places)


def _numbered(one: Assertion) -> list[int]:
    return [at for at, token in enumerate(one.tokens) if token.role in (NUMBER, MONTH)]


def _own_part(words: list[ClaimToken], other: Assertion) -> list[ClaimToken]:
    """Return the words of a value behind those that the other sentence says, too: "Doctor"."""
    shared = 0
    while shared < len(words) - 1 and other.has(words[shared]):
        shared += 1
    return words[shared:]


def _opposite(word: ClaimToken, one: Assertion, asked: Asked) -> bool:
    return any(contradict(word, token, asked.words) for token in one.tokens)


def _numbers(token: ClaimToken) -> list[float]:
    """Return the number of a token; of a time of day its hours."""
    found: list[float] = []
    for key in token.keys:
        if match := FIGURE.fullmatch(key):
            found.append(float(match.group(1)))
        elif match := CLOCK.fullmatch(key):
            found.append(int(match.group(1)) + int(match.group(2)) / 60)
    return found


def _is_rounded(one: float, other: float, about: bool) -> bool:
    """Tell whether one of two numbers is the other in fewer digits; years are never rounded."""
    low, high = sorted((one, other))
    if about:
        return high - low <= ABOUT * abs(high)
    if all(YEARS[0] <= value <= YEARS[1] for value in (one, other)):
        return False
    digits = {len(f"{abs(value):g}".replace(".", "").strip("0")) for value in (one, other)}
    return high - low <= ROUNDED * abs(high) and len(digits) > 1


def _other_times(one: Assertion, other: Assertion) -> bool:
    """Tell whether both name years or months beside their values, and none in common."""
    times = [_times(each) for each in (one, other)]
    return bool(times[0] and times[1]) and times[0].isdisjoint(times[1])


def _times(one: Assertion) -> set[str]:
    own = set(one.places)
    rest: Iterable[ClaimToken] = (
        token for at, token in enumerate(one.tokens) if at not in own and token in one.clause
    )
    found: set[str] = set()
    for token in rest:
        if token.role == MONTH:
            found |= {key for key in token.keys if key.startswith("months ")}
        elif token.role == NUMBER and any(YEARS[0] <= n <= YEARS[1] for n in _numbers(token)):
            found |= token.keys
    return found
