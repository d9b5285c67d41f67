"""Find what a claim adds or leaves out that changes what is said: denials, conditions, sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.chinese import part_of_speech
from core.language.words import readings
from reasoning.claims.alignment import same
from reasoning.claims.edits import Edits
from reasoning.claims.tokens import CLOSED, MONTH, NAME, NUMBER, OPERATOR, WORD, ClaimToken
from reasoning.claims.words import RELATIONS, WIDE, Sense

ORDER = "order"  # of what is left out: "after they have paid"
FUTURE, FALSITY = frozenset({"future"}), frozenset({"falsity"})
YEAR = re.compile(r"#(?:1[89]|20)\d\d")
OF_YEAR = re.compile(r"#\d{3,4}$")  # beside a month
REACH = 3  # content words behind an operator that it may be about; chosen, not measured


class OperatorEdits(Edits):
    """Judge the operators of an alignment."""

    def _operators(self) -> str:
        for row, one in enumerate(self._claim):
            sense = self._operator(self._claim, row)
            if sense is None or row in self._matched:
                continue
            place = self._moved.get(row)
            if place is not None and self._same_scope(row, place, sense):
                continue
            if sense.group == "negation" and self._by_prefix(self._claim, row, self._text):
                continue
            return self._differs(sense, one.text)
        return ""

    def _same_scope(self, row: int, place: int, sense: Sense) -> bool:
        """Tell whether an operator that stands elsewhere is about the same there."""
        ours, theirs = self._after(self._claim, row), self._after(self._text, place)
        if sense.group == "negation" and theirs is None and ours in self._partner:
            before = self._next(self._claim, row, -1)
            about = [self._partner[at] for at in (before, ours) if at in self._partner]
            return self._clause(place) in map(self._clause, about)
        if sense.group in WIDE or ours is None or theirs is None:
            return True
        if self._partner.get(ours) == theirs or sense.group == "negation":
            return self._partner.get(ours) == theirs
        beside = list(self._near(self._text, place))
        return any(same(one, other) for one in self._near(self._claim, row) for other in beside)

    def _by_prefix(
        self, tokens: Sequence[ClaimToken], place: int, others: Sequence[ClaimToken]
    ) -> bool:
        """Tell whether "not safe" stands for "unsafe"."""
        after = self._after(tokens, place)
        if after is None:
            return False
        denied = {prefix + tokens[after].word for prefix in self._words.prefixes}
        found = [at for at, other in enumerate(others) if other.word in denied]
        if found and tokens is self._claim:
            self._partner.setdefault(after, found[0])
        return bool(found)

    def _left_out(self) -> str:
        for place in self._free:
            sense = self._operator(self._text, place) or self._sequence(place)
            if sense is None or sense.group == "universal":
                continue
            general = sense.group == "occasion" and not self._is_over(place)
            if sense.group in ("occasion", ORDER) and not (general or self._rules(place)):
                continue
            if sense.group == "negation" and self._by_prefix(self._text, place, self._claim):
                continue
            holds = self._holds_for_all if sense.group in {*WIDE, ORDER} else self._holds_for_kept
            if holds(place):
                return self._differs(sense, self._text[place].text)
        return self._time_left_out() or self._scope_left_out()

    def _time_left_out(self) -> str:
        """Find a time that comes again left out of what is generally so: "on Sundays"."""
        kept = {(self._text[at].place, self._recurs(at)) for at in self._covered}
        for place in self._free:
            one, kind = self._text[place], self._recurs(place)
            if not kind or (one.place, kind) in kept or self._is_over(place):
                continue
            if self._holds_for_all(place):
                return f"the quote says it of a time ({one.text})"
        return ""

    def _scope_left_out(self) -> str:
        """Find what limits a general statement, or says whose it is, left out.

        That is "who …" without a comma behind what the claim keeps, a bound before all that it
        keeps ("above 39 °C"), or an aside that names somebody ("as Ortega writes").
        """
        words = self._words
        for place in self._free:
            one, before = self._text[place], self._text[max(0, place - 1)]
            opens = not place or bool(CLOSED & set(one.before)) or before.place != one.place
            named = self._text[place + 1 : place + 2]
            aside = one.word in words.source_leads and opens and place + 1 in self._free
            if aside and named and named[0].role == NAME and self._holds_for_all(place):
                return f"the claim and the quote differ in attribution ({named[0].text})"
            if self._is_over(place):
                continue
            kept = place - 1 in self._covered and before.is_content and not opens
            restricts = (one.word in words.restrictive and kept) or self._describes_many(place)
            if restricts and self._is_clause_left_out(place):
                return f"the quote says it only of those {one.text}"
            limits = self._bounds(place) and place - 1 in self._covered and before.is_content
            first = one.role == NUMBER and not self._is_of_year(one) and self._leads_sentence(place)
            if limits or first or self._restricts(place):
                return f"the quote says it of what is {one.text}"
            if one.word in words.limiting and self._limits_kept(place):
                return f"the quote says it {one.text} of what is left out"
        return ""

    def _limits_kept(self, place: int) -> bool:
        """Tell whether what "only" limits is left out behind what a claim keeps of its clause."""
        start = self._clause(place)
        kept = any(at in self._covered and self._text[at].is_content for at in range(start, place))
        joined = self._text[max(0, place - 1)].word in self._words.joins | self._words.breaks
        following = self._after(self._text, place)
        if following is None:
            following = self._next(self._text, place, -1)
        return kept and not joined and following in self._free

    def _describes_many(self, place: int) -> bool:
        """Tell whether a clause behind a comma says which of many: «ученики, которые …»."""
        dictionary, start = self._words.known.dictionary, place
        if self._preposed(self._text, place):  # «в которых»
            start = place - 1
        before = self._text[max(0, start - 1)]
        if not dictionary or start - 1 not in self._covered or "," not in self._text[start].before:
            return False
        many = any(one.pos == "NOUN" and one.number == "plur"
                   for one in readings(before.word, dictionary)[:3])  # fmt: skip
        forms = readings(self._text[place].word, dictionary)[:1]
        relative = not self._words.restrictive.isdisjoint(self._text[place].keys)
        return many and (relative or any(one.pos == "PRTF" for one in forms))

    def _restricts(self, place: int) -> bool:
        """Tell whether a word leads what says for whom or with what the subject is: "for children".

        In Chinese that is a verb before it: 持有证件的市民.
        """
        here = self._text[place].place
        own = [at for at in sorted(self._covered)
               if self._text[at].place == here and self._text[at].is_content]  # fmt: skip
        if not own:
            return False
        if not self._words.known.spaced:
            opens = not place or bool(CLOSED & set(self._text[place].before))
            ends = next((at for at in range(place, own[0]) if self._text[at].word == "的"), None)
            verb = part_of_speech(self._text[place].text)[:1] == "v"
            named = self._text[place].word in self._words.describing
            return opens and place < own[0] and verb and not named and ends == own[0] - 1
        leads = self._text[place].word in self._words.restricting and own[0] == place - 1
        return leads and len(own) > 1 and self._is_clause_left_out(place)

    def _is_clause_left_out(self, place: int) -> bool:
        following = self._after(self._text, place)
        return following is not None and following in self._free

    def _bounds(self, place: int) -> bool:
        """Tell whether a word compares with a number that is left out: "above 39"."""
        one, then = self._text[place], self._text[place + 1 : place + 3]
        dictionary = self._words.known.dictionary
        noun = dictionary and any(
            form.pos == "NOUN" for form in readings(one.word, dictionary)[:1]
        )  # «детям» answers to «родителям»
        compares = (
            one.word not in self._words.prepositions
            and not noun
            and any(
                sense.group == "bound" or sense.group.startswith(RELATIONS) for sense in one.senses
            )
        )
        numbers = [at for at, each in enumerate(then, place + 1) if each.role == NUMBER]
        return compares and bool(numbers) and numbers[0] in self._free

    def _leads_sentence(self, place: int) -> bool:
        """Tell whether a word is of a phrase with a preposition before all that a claim keeps."""
        own = self._text[place].place
        first = next(one for one in self._text if one.place == own)
        if first.word not in self._words.prepositions:
            return False
        kept = [at for at in self._covered if self._text[at].place == own]
        kept = [at for at in kept if self._text[at].is_content]
        return bool(kept) and min(kept) > place

    def _recurs(self, place: int) -> str:
        """Return what kind of time a word of the evidence is: a month without a year, a weekday."""
        one, words = self._text[place], self._words
        kinds = [words.recurring_groups.get(each.group, "") for each in one.senses]
        beside = self._text[max(0, place - 2) : place + 3]
        dated = any(each.role == NUMBER and any(map(OF_YEAR.match, each.keys)) for each in beside)
        named = one.role == MONTH or not words.recurring.isdisjoint({one.word, *one.keys})
        return max(kinds, default="") or ("month" if named and not dated else "")

    def _sequence(self, place: int) -> Sense | None:
        """Return what a word says that tells what comes first: "after", in the evidence."""
        one = self._text[place]
        related = any(sense.group.startswith(RELATIONS) for sense in one.senses)
        leads = one.word in self._words.prepositions
        return Sense(ORDER, one.word) if related and leads and not one.is_content else None

    def _matrix_left_out(self) -> str:
        """Find a clause left out on which what is claimed hangs: "they feared that …"."""
        for place in self._free:
            if self._text[place].word not in self._words.complementizers:
                continue
            main = [at for at in range(self._clause(place - 1), place) if self._text[at].is_content]
            following = self._after(self._text, place)
            if main and self._covered.isdisjoint(main) and following in self._covered:
                return f"it hangs on {self._text[main[-1]].text} in the quote"
        return ""

    def _prepositions(self) -> str:
        """Find a word led by another preposition than in the evidence: "from" for "until"."""
        known = self._words.prepositions
        for row, one in enumerate(self._claim[:-1]):
            after = self._after(self._claim, row)
            if one.word in known and self._leads_other(row, after):
                return f"{one.text} leads something else in the quote"
            if one.word not in known or row in self._partner or after not in self._partner:
                continue
            place = self._partner[after]
            lead = next(
                (
                    at
                    for at in range(place - 1, -1, -1)
                    if self._text[at].is_content and self._text[at].word not in known
                ),
                -1,
            )
            leads = [self._text[at] for at in range(lead + 1, place)]
            led = [each for each in leads if each.word in known or self._ends_range(each, place)]
            starts = any(
                (each.word, behind.word, one.word) in self._words.ranges
                for each in led
                for behind in self._text[place + 1 : place + 3]
            )
            if led and not starts and not any(same(one, each) for each in led):
                return f"{self._claim[after].text} is led by {led[-1].text} in the quote"
        return ""

    def _leads_other(self, row: int, after: int | None) -> bool:
        """Tell whether a preposition that was moved leads another word that the claim has, too."""
        if row not in self._moved or after not in self._partner:
            return False
        there = self._after(self._text, self._moved[row])
        led = there in self._covered and not same(self._claim[after], self._text[there])
        return led and not self._preposed(self._text, self._partner[after])

    def _ends_range(self, lead: ClaimToken, place: int) -> bool:
        counted = self._text[place].role == NUMBER
        return counted and lead.word in {end for _, end, _ in self._words.ranges}

    def _relations(self) -> str:
        """Find a word that relates two things, as "before" does, of which the evidence has none."""
        for row, one in enumerate(self._claim):
            related = any(sense.group.startswith(RELATIONS) for sense in one.senses)
            if related and not one.is_content and row not in self._partner:
                return f"the quote does not say {one.text}"
        return ""

    def _rules(self, place: int) -> bool:
        """Tell whether a sentence of the evidence says what may or must be, not what was."""
        return any(
            one.place == self._text[place].place and one.has(frozenset({"modality"}))
            for one in self._text
        )

    def _is_over(self, place: int) -> bool:
        """Tell whether a claim keeps of a sentence what was so, not what is so each time."""
        before: ClaimToken | None = None
        for at, one in enumerate(self._text):
            ending = self._words.past_ending
            helped = before is not None and before.word in self._words.passives - self._words.past
            ended = bool(ending) and one.role == WORD and one.word.endswith(ending)
            irregular = one.word in self._words.past
            over = ((ended or irregular) and not helped) or self._tense_of(one) == "past"
            over = over or one.role == MONTH or self._is_of_year(one)
            if over and at in self._covered and one.place == self._text[place].place:
                return True
            before = one
        return False

    def _tense(self) -> str:
        """Find what is to come stated as what is or was; with its date it may be so stated."""
        dated = any(self._claim[row].role == MONTH or self._is_year(row) for row in self._partner)
        says = any(self._tense_of(one) == "futr" for one in self._claim)
        for place in self._free:
            to_come = self._tense_of(self._text[place]) == "futr"
            if to_come and not says and self._holds_for_kept(place):
                verb = self._after(self._text, place)
                row = next((row for row, at in self._partner.items() if at == verb), None)
                kept = row is not None and self._is_present(self._claim[row], self._text[verb or 0])
                if not (dated and kept):
                    return f"the quote says that it is to come ({self._text[place].text})"
        for row, place in self._partner.items():
            ours, theirs = map(self._tense_of, (self._claim[row], self._text[place]))
            past = {ours, theirs} == {"past", "futr"}
            if past or (theirs == "futr" and ours == "pres" and not dated):
                return f"{self._claim[row].text} is {self._text[place].text} in the quote"
        return ""

    def _tense_of(self, one: ClaimToken) -> str:
        """Return the tense of a word by the lists of its language or the form of its verb."""
        if one.has(FUTURE):
            return "futr"
        dictionary = self._words.known.dictionary
        found = readings(one.word, dictionary)[:1] if dictionary else ()
        return next((each.tense for each in found if each.pos == "VERB"), "")

    def _is_year(self, row: int) -> bool:
        return self._is_of_year(self._claim[row])

    @staticmethod
    def _is_of_year(one: ClaimToken) -> bool:
        return one.role == NUMBER and any(map(YEAR.fullmatch, one.keys))

    def _is_present(self, one: ClaimToken, other: ClaimToken) -> bool:
        """Tell whether a verb may state what another says will be: "opens" for "will open"."""
        dictionary = bool(self._words.known.dictionary) or not self._words.known.spaced
        return dictionary or one.word in {f"{other.word}{ending}" for ending in ("", "s", "es")}

    def _differs(self, sense: Sense, text: str) -> str:
        return f"the claim and the quote differ in {sense.group} ({text})"

    def _holds_for_kept(self, place: int) -> bool:
        """Tell whether what an operator of the evidence is about is kept in the claim."""
        found = 0
        for at in range(place + 1, len(self._text)):
            one = self._text[at]
            if CLOSED & set(one.before) or one.place != self._text[place].place:
                break
            folded = one.word
            if one.role == OPERATOR and at == place + 1 and at in self._covered:
                return True  # "not may" of a language whose words stand as they will
            if found and folded in (self._words.prepositions | self._words.joins):
                return False
            if one.is_content:
                found += 1
                if at in self._covered:
                    return True
                if found == REACH:
                    return False
        # The last word of its clause is about what stands before it.
        if found or not place or CLOSED & set(self._text[place].before):
            return False
        return place - 1 in self._covered

    def _holds_for_all(self, place: int) -> bool:
        """Tell whether a condition or a source of the evidence is one of what the claim keeps."""
        if self._text[place].has(FALSITY) and not self._leads_clause(place):
            return self._holds_for_kept(place)
        kept = [at for at in self._covered if self._text[at].place == self._text[place].place
                and self._text[at].is_content]  # fmt: skip
        before, after = [at for at in kept if at < place], [at for at in kept if at > place]
        if before and after and self._is_aside(place, min(after)):
            return False
        for at in (max(before, default=None), min(after, default=None)):
            if at is None:
                continue
            first, last = sorted((at, place))
            between = self._text[first + 1 : last + 1]
            if not any(
                ";" in one.before or "；" in one.before or one.word in self._words.breaks
                for one in between
            ):
                return True
        return False

    def _leads_clause(self, place: int) -> bool:
        """Tell whether a word is followed by what it says: "denies that", "the myth that"."""
        words = {
            *self._text[place].word.split(),
            self._text[min(place + 1, len(self._text) - 1)].word,
        }
        return not words.isdisjoint(self._words.complementizers)

    def _is_aside(self, place: int, following: int) -> bool:
        """Tell whether a source stands in a part that commas take out of the sentence."""
        sense = self._operator(self._text, place)
        start = place
        while start and start - 1 not in self._covered:
            start -= 1
        opened = set("".join(self._text[at].before for at in range(start, place + 1)))
        aside = bool(CLOSED & opened) and bool(CLOSED & set(self._text[following].before))
        return aside and sense is not None and sense.group != "condition"
