"""Read the edits between a statement and its evidence: which of them change what it says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from core.language.words import MorphAnalysis, readings
from reasoning.claims.alignment import Alignment, same
from reasoning.claims.tokens import (
    CLOSED,
    FUNCTION,
    MONTH,
    NAME,
    NUMBER,
    OPERATOR,
    UNIT,
    WORD,
    ClaimToken,
)
from reasoning.claims.words import OPPOSITES, RELATIONS, SETTLED, WIDE, ClaimWords, Sense

# Says whether two words mean the same.
Similar = Callable[[str, str], bool]
REACH = 3  # content words behind an operator that it may be about; chosen, not measured
NEIGHBOURS = 2  # content words on each side of a number that say what it counts; chosen
CONTENT = (WORD, NAME, UNIT)
MINIMAL = 2  # letters of a word that a prefix denies: 'unit' is not 'it' denied
LONGEST_PHRASE = 3  # content words of a subject or an object; chosen, not measured
LEAST_KNOWN = 0.6  # of the words of a claim, for one in other words; chosen, not measured
OTHER_WORDS = ", and nothing in it is known to mean the same"
DATED = (NUMBER, MONTH)


class Judge:
    """Judge one alignment; `reason` is "" where the claim says nothing else than its evidence."""

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

    def reason(self) -> str:
        """Return the first difference that changes what is said, or ""."""
        checks = (
            self._numbers,
            self._operators,
            self._left_out,
            self._roles,
            self._elsewhere,
            self._put_in_place,
            self._crossed,
            self._order,
            self._subjects,
            self._added,
        )
        return next((found for check in checks if (found := check())), "")

    # Numbers

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
            led = {one.word for one in self._claim[max(0, row - 1) : row]}
            there = {one.word for one in self._text[max(0, place - 1) : place]}
            if led != there and led | there <= self._words.amounts:
                return f"{one.text} is led by another word in the quote"
            ours, theirs = self._unit(self._claim, row), self._unit(self._text, place)
            if theirs and ours and not same(ours, theirs):
                return f"the unit {ours.text} is not that of the quote"
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

    def _counts_same(self, row: int, place: int) -> bool:
        """Tell whether a number that stands elsewhere counts or dates the same there.

        What follows it is what it counts; where it is led by a preposition, or nothing follows,
        what stands around it must have something in common.
        """
        taken = self._exchanged.get(row)
        if taken is not None and self._text[taken].role in DATED:
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

    # Operators

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
            sense = self._operator(self._text, place)
            if sense is None or sense.group == "universal":
                continue
            if sense.group == "occasion" and not self._rules(place):
                continue
            if sense.group == "negation" and self._by_prefix(self._text, place, self._claim):
                continue
            holds = self._holds_for_all if sense.group in WIDE else self._holds_for_kept
            if holds(place):
                return self._differs(sense, self._text[place].text)
        return ""

    def _rules(self, place: int) -> bool:
        """Tell whether a sentence of the evidence says what may or must be, not what was."""
        return any(
            one.place == self._text[place].place and one.has(frozenset({"modality"}))
            for one in self._text
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

    def _differs(self, sense: Sense, text: str) -> str:
        return f"the claim and the quote differ in {sense.group} ({text})"

    def _after(self, tokens: Sequence[ClaimToken], place: int) -> int | None:
        """Return the place of the next content word of the same clause."""
        for at in range(place + 1, len(tokens)):
            if CLOSED & set(tokens[at].before):
                return None
            if tokens[at].is_content:
                return at
        return None

    def _holds_for_kept(self, place: int) -> bool:
        """Tell whether what an operator of the evidence is about is kept in the claim."""
        found = 0
        for at in range(place + 1, len(self._text)):
            one = self._text[at]
            if CLOSED & set(one.before) or one.place != self._text[place].place:
                break
            folded = one.word
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

    def _is_aside(self, place: int, following: int) -> bool:
        """Tell whether a source stands in a part that commas take out of the sentence."""
        sense = self._operator(self._text, place)
        start = place
        while start and start - 1 not in self._covered:
            start -= 1
        opened = set("".join(self._text[at].before for at in range(start, place + 1)))
        aside = bool(CLOSED & opened) and bool(CLOSED & set(self._text[following].before))
        return aside and sense is not None and sense.group != "condition"

    # Who did what to whom

    def _roles(self) -> str:
        relation, reason = 0, ""
        swapped = [row for row in self._exchanged if self._swaps(row)]
        compared = any(self._claim[row].word in self._words.comparators for row in self._partner)
        for row, one in enumerate(self._claim):
            if row in self._partner:
                continue
            opposed = self._opposite(one)
            if opposed is None:
                continue
            related = compared or any(sense.group.startswith(RELATIONS) for sense in one.senses)
            relation += related
            if related and (self._flips(row, opposed) or (compared and swapped)):
                self._partner.setdefault(row, opposed)
            else:
                reason = reason or f"{one.text} is the opposite of {self._text[opposed].text}"
        turned = self._turned = (relation + self._voice_changed()) % 2 == 1
        if (
            swapped
            and not turned
            and not self._all_listed(swapped)
            and not self._free_order(swapped)
        ):
            ours = self._claim[swapped[0]].text
            return f"{ours} has another role in the quote"
        if reason:
            return reason
        doer = self._doer_changed()
        if doer:
            return f"{doer} has another role in the quote"
        if self._cases_changed() and not turned:
            return "the cases of its nouns are exchanged"
        return ""

    def _flips(self, row: int, place: int) -> bool:
        """Tell whether what stood before "before" stands behind the "after" of the claim."""
        content = [at for at in sorted(self._partner) if self._claim[at].role in (*CONTENT, NUMBER)]
        before = [self._partner[at] for at in content if at < row][-NEIGHBOURS:]
        after = [self._partner[at] for at in content if at > row][:1]
        return any(at > place for at in before) and all(at < place for at in after)

    def _swaps(self, row: int) -> bool:
        """Tell whether a word stands where the evidence has one that stands where it has another.

        So do both of two that change their places, and all of several.
        """
        place = self._exchanged[row]
        taken = next((at for at, there in self._moved.items() if there == place), None)
        both = self._claim[row].is_content and self._text[place].is_content
        return both and row in self._moved and taken in self._exchanged

    def _elsewhere(self) -> str:
        """Find a word that the evidence says of something else, where it says the opposite here."""
        for row, place in self._partner.items():
            one = self._claim[row]
            if not any(sense.group.startswith((OPPOSITES, RELATIONS)) for sense in one.senses):
                continue
            beside = [
                self._partner[at]
                for at in (row - 2, row - 1, row + 1, row + 2)
                if at in self._partner and self._claim[at].is_content
            ]
            if not beside or any(self._clause(at) == self._clause(place) for at in beside):
                continue
            for at in self._free:
                if any(self._clause(at) == self._clause(near) for near in beside) and _contradict(
                    one, self._text[at], self._words
                ):
                    return f"{one.text} is the opposite of {self._text[at].text}"
        return ""

    def _put_in_place(self) -> str:
        """Find words from elsewhere that stand where the evidence names somebody else."""
        for row, one in enumerate(self._claim):
            if self._turned or row not in self._moved or one.role not in (WORD, NAME):
                continue
            place = self._moved[row]
            for step in (1, -1):
                beside = self._next(self._claim, row, step)
                if beside not in self._matched:
                    continue
                there = self._next(self._text, self._matched[beside], -step)
                if there is None or there not in self._free:
                    continue
                other = self._text[there]
                crossed = (place - self._matched[beside]) * step > 0
                # Where cases say who did what, the order alone does not.
                cased = bool(self._words.known.dictionary) and one.word == self._text[place].word
                apart = self._clause(place) != self._clause(there)
                if (
                    other.role in (WORD, NAME)
                    and (apart or (crossed and not cased))
                    and not any(same(other, mine) for mine in self._claim)
                ):
                    return f"{one.text} stands for {other.text} in the quote"
        return ""

    def _next(self, tokens: Sequence[ClaimToken], place: int, step: int) -> int | None:
        """Return the place of the next content word in one direction, within its clause."""
        at = place + step
        while 0 <= at < len(tokens) and not CLOSED & set(tokens[max(at, at - step)].before):
            if tokens[at].is_content:
                return at
            at += step
        return None

    def _crossed(self) -> str:
        """Find words of two clauses put together though the second has a subject of its own."""
        order = [row for row in sorted(self._partner) if self._claim[row].is_content]
        for row, beside in pairwise(order):
            first, last = self._partner[row], self._partner[beside]
            if last < first or self._text[first].place != self._text[last].place:
                continue
            if self._claim[beside].role not in (WORD, NAME):
                continue
            if any(CLOSED & set(one.before) for one in self._claim[row + 1 : beside + 1]):
                continue
            begins = [at for at in range(first + 1, last + 1) if self._begins_clause(at)]
            for at in range(begins[-1], last) if begins else ():
                one = self._text[at]
                if one.word in self._words.prepositions:
                    break
                if at in self._free and self._may_be_subject(one):
                    return f"{self._claim[beside].text} is said of {one.text} in the quote"
        return ""

    def _begins_clause(self, place: int) -> bool:
        one = self._text[place]
        return one.word in self._words.joins or bool(CLOSED & set(one.before))

    def _may_be_subject(self, one: ClaimToken) -> bool:
        if one.role not in (WORD, NAME) or one.word.endswith("ly"):
            return False
        if any(same(one, mine) for mine in self._claim):
            return False
        dictionary = self._words.known.dictionary
        return not dictionary or "nomn" in _cases(one, dictionary)

    def _clause(self, place: int) -> int:
        """Return the place where the clause of a token begins."""
        while place and not CLOSED & set(self._text[place].before):
            place -= 1
        return place

    def _opposite(self, one: ClaimToken) -> int | None:
        """Return the place of a word of the evidence, not in the claim, that contradicts one."""
        for place in self._free:
            if _contradict(one, self._text[place], self._words):
                return place
        return None

    def _voice_changed(self) -> int:
        """Return 1 where just one of the two says who did it as a passive does."""
        ours = sum(self._is_agent(self._claim, row) for row in range(len(self._claim)))
        theirs = sum(
            self._is_agent(self._text, place) and self._keeps_doer(place)
            for place in range(len(self._text))
        )
        verbs = sum(
            _is_passive(self._claim[row], self._words)
            != _is_passive(self._text[place], self._words)
            for row, place in self._partner.items()
        )
        return (abs(ours - theirs) + verbs) % 2

    def _doer_changed(self) -> str:
        """Name what a passive of one of the two says did it, while the other has it done to."""
        rows = {place: row for row, place in self._partner.items()}
        for tokens, partner, known in (
            (self._text, rows, self._covered),
            (self._claim, self._partner, self._partner),
        ):
            for place in range(len(tokens)):
                if place in known or not self._is_agent(tokens, place):
                    continue
                after = self._after(tokens, place)
                verb = next((at for at in range(place - 1, -1, -1) if tokens[at].is_content), None)
                if after in partner and verb in partner and partner[after] > partner[verb]:
                    return tokens[after].text
        return self._instrument_changed()

    def _instrument_changed(self) -> str:
        """Name the doer of a passive, known by its case, that is no subject in the active."""
        dictionary = self._words.known.dictionary
        if not dictionary:
            return ""
        verbs = [
            (_is_passive(self._claim[row], self._words), _is_passive(self._text[at], self._words))
            for row, at in self._partner.items()
        ]
        for row, at in self._partner.items():
            one, other = self._claim[row], self._text[at]
            if one.word == other.word:
                continue
            for passive, active, kind in ((one, other, (True, False)), (other, one, (False, True))):
                if kind in verbs and _cases(passive, dictionary) == {"ablt"}:
                    cases = _cases(active, dictionary)
                    if cases and "nomn" not in cases:
                        return one.text
        return ""

    def _keeps_doer(self, place: int) -> bool:
        after = self._after(self._text, place)
        return place in self._covered or (after is not None and after in self._covered)

    def _is_agent(self, tokens: Sequence[ClaimToken], place: int) -> bool:
        if tokens[place].word not in self._words.agents:
            return False
        after = self._after(tokens, place)
        if after is not None and tokens[after].role == NUMBER:
            after = self._after(tokens, after)
            return after is not None and tokens[after].role in (WORD, NAME)
        return after is not None and tokens[after].role in CONTENT

    def _all_listed(self, swapped: Sequence[int]) -> bool:
        """Tell whether the swapped words only stand in another order of a list."""
        return all(
            self._is_joined(self._claim, row) and self._is_joined(self._text, self._moved[row])
            for row in swapped
        )

    def _is_joined(self, tokens: Sequence[ClaimToken], place: int) -> bool:
        return any(
            one.word in self._words.joins or {",", "、"} & set(tokens[place].before)
            for one in (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])
        )

    def _free_order(self, swapped: Sequence[int]) -> bool:
        """Tell whether cases say who did what, so that the order does not."""
        dictionary = self._words.known.dictionary
        if not dictionary:
            return False
        is_clear = False
        for row in swapped:
            one, other = self._claim[row], self._text[self._moved[row]]
            if (
                one.role not in (WORD, NAME)
                or one.word != other.word
                or self._preposed(self._claim, row)
            ):
                return False
            # "Mount A" and "than Mount B": the noun before a name has the case of the two.
            ours, theirs = (
                tokens[at - 1] if at else None
                for tokens, at in ((self._claim, row), (self._text, self._moved[row]))
            )
            if ours and theirs and same(ours, theirs) and ours.word != theirs.word:
                return False
            cases = {reading.case for reading in readings(one.word, dictionary)[:3]}
            is_clear = is_clear or "nomn" not in cases
        return is_clear

    def _preposed(self, tokens: Sequence[ClaimToken], place: int) -> bool:
        return bool(place) and tokens[place - 1].word in self._words.prepositions

    def _cases_changed(self) -> bool:
        """Tell whether a subject of the evidence is an object of the claim and the reverse."""
        dictionary = self._words.known.dictionary
        if not dictionary:
            return False
        became_object = became_subject = False
        for row, place in self._partner.items():
            one, other = self._claim[row], self._text[place]
            if one.role not in (WORD, NAME) or one.word == other.word:
                continue
            ours = _cases(one, dictionary, _genders(other, dictionary))
            theirs = _cases(other, dictionary, _genders(one, dictionary))
            if not ours or not theirs:
                continue
            became_object |= "nomn" in theirs and "nomn" not in ours
            became_subject |= "nomn" not in theirs and "nomn" in ours
        return became_object and became_subject

    # Order

    def _order(self) -> str:
        dictionary = self._words.known.dictionary
        for row, one in enumerate(self._claim):
            place = self._partner.get(row)
            after = self._after(self._claim, row)
            if place is None or after is None or after not in self._partner:
                continue
            then = self._partner[after]
            if self._text[then].place != self._text[place].place:
                continue
            turned = (self._turned and one.word in self._words.comparators) or any(
                sense.group.startswith(RELATIONS)
                and _contradict(one, self._text[place], self._words)
                for sense in one.senses
            )
            related = any(sense.group.startswith(RELATIONS) for sense in one.senses)
            joining = one.role == FUNCTION or " " in one.text
            directed = (related and joining) or one.word in self._words.agents
            apart = place < then and any(
                CLOSED & set(each.before) for each in self._text[place + 1 : then + 1]
            )
            if directed and one.role != NUMBER and (apart or (then < place) != turned):
                return f"{one.text} joins other things in the quote"
            reversed_ = row in self._moved or after in self._moved
            if (
                dictionary
                or not reversed_
                or not {one.role, self._claim[after].role} <= set(CONTENT)
            ):
                continue
            if then < place and self._adjoin(then, place) and self._unlinked(row, after):
                if not self._turned and not self._helped(row, after):
                    return f"{one.text} has another role in the quote"
        return ""

    def _adjoin(self, first: int, last: int) -> bool:
        """Tell whether two words of the evidence stand side by side, but for articles."""
        between = self._text[first + 1 : last + 1]
        links = self._words.prepositions | self._words.joins | {"of", "的", "之"}
        return sum(one.is_content for one in between) <= NEIGHBOURS and not any(
            CLOSED & set(one.before) or one.word in links for one in between
        )

    def _unlinked(self, row: int, after: int) -> bool:
        links = (
            self._words.prepositions | self._words.joins | self._words.agents | {"of", "的", "之"}
        )
        return not any(one.word in links for one in self._claim[row + 1 : after])

    def _helped(self, row: int, after: int) -> bool:
        """Tell whether a passive of the claim needs no doer, or an adverb goes where it will."""
        return any(self._claim[at].word.endswith("ly") for at in (row, after))

    # Other subjects

    def _subjects(self) -> str:
        """Find what a later sentence, or the end of a list, says of somebody else."""
        kept = {self._text[at].place for at in self._covered if self._text[at].is_content}
        for place in sorted(kept)[1:]:
            lead: list[ClaimToken] = []
            for at, one in enumerate(self._text):
                if one.place == place:
                    if at in self._covered and one.is_content:
                        break
                    lead.append(one)
            pointed = any(one.word in self._words.definite | self._words.pronouns for one in lead)
            named = [one for one in lead if one.is_content and one.role in (NAME, WORD)]
            named = [one for one in named if not any(same(one, ours) for ours in self._claim)]
            strange = [one for one in named if one.role == NAME] if pointed else named
            if strange:
                return f"part of it is about {strange[0].text} in the quote"
        return self._bare() or self._stranded() or self._spliced()

    def _bare(self) -> str:
        """Find a subject that the evidence has behind a preposition: "unlike A, B is …"."""
        row = next((row for row, one in enumerate(self._claim) if one.is_content), -1)
        place = self._partner.get(row, 0) - 1
        if row < 0 or self._claim[row].role not in (WORD, NAME) or not self._words.known.spaced:
            return ""
        while (
            place > 0
            and self._text[place].role == FUNCTION
            and (self._text[place].word not in self._words.prepositions)
        ):
            if self._text[place].word in self._words.relatives:
                return ""  # "of which the county paid …"
            place -= 1
        led = place >= 0 and self._text[place].place == self._text[place + 1].place
        kept = place in self._partner.values()
        if led and not kept and self._text[place].word in self._words.prepositions:
            return f"{self._claim[row].text} has another role in the quote"
        return ""

    def _spliced(self) -> str:
        """Find a part left out that ends one thing and begins another: "France and Berlin of"."""
        order = sorted(self._matched.items())
        for (row, first), (following, last) in zip(order, order[1:], strict=False):
            if following > row + 1:
                continue
            run = self._text[first + 1 : last]
            joins = [at for at, one in enumerate(run) if one.word in self._words.joins]
            for at in joins[-1:]:
                ended = any(one.is_content for one in run[:at])
                begun = any(one.role in (NAME, NUMBER) for one in run[at + 1 :])
                pointed = any(
                    one.word in self._words.definite | self._words.pronouns for one in run[at + 1 :]
                )
                opened, closed = self._text[first], run[-1]
                again = same(opened, closed) or opened.role == closed.role == NUMBER
                if ended and begun and again and not pointed:
                    return f"it joins what the quote says of {run[at + 1].text} and of others"
        return ""

    # Words of its own

    def _added(self) -> str:
        rows = [row for row, one in enumerate(self._claim) if one.is_content]
        unknown = [row for row in rows if row not in self._partner and not self._known(row)]
        for row in unknown:
            one = self._claim[row]
            if one.role == NAME:
                return f"the name {one.text} is not in the quote"
            if one.role == UNIT:
                return f"the unit {one.text} is not in the quote"
        self.unknown = [self._claim[row].text for row in unknown]
        if unknown:
            shown, known = ", ".join(self.unknown[:3]), len(rows) - len(unknown)
            reason = f"only {known} of {len(rows)} words are in the quote, not {shown}"
            return f"{reason}{OTHER_WORDS}" if known >= LEAST_KNOWN * len(rows) else reason
        return ""

    def _known(self, row: int) -> bool:
        """Tell whether a word of the claim adds nothing to the evidence."""
        one = self._claim[row]
        other = self._text[self._exchanged[row]] if row in self._exchanged else None
        if not one.keys.isdisjoint(self._words.light) and one.role != NAME:
            return True
        if one.role == NAME and self._stands_for(row):
            return True
        # What is said once in the evidence may be said twice.
        if other is None and any(same(one, again) for again in self._text):
            return True
        if self._similar is None or not (one.role == WORD or (one.role == NAME and not row)):
            return False
        if other is not None and other.is_content and other.role != WORD:
            return False
        beside = [self._text[at] for at in self._free if self._text[at].role == WORD]
        near = [other] if other is not None and other.role == WORD else beside[:8]
        return any(
            not _contradict(one, each, self._words) and self._similar(one.text, each.text)
            for each in near
        )

    def _stands_for(self, row: int) -> bool:
        """Tell whether a name stands for a pronoun of the evidence, or beside a part of itself."""
        one = self._claim[row]
        if not any(same(one, each) for each in self._earlier()):
            return False
        beside = any(
            self._claim[at].role == NAME and at in self._partner
            for at in (row - 1, row + 1)
            if 0 <= at < len(self._claim)
        )
        return not self._replaced(row, row) and (beside or self._points(row, row))

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

    def _stranded(self) -> str:
        """Find one thing of another sentence that stands among the words of this one."""
        runs: list[list[int]] = []
        for row in sorted(self._partner):
            if self._claim[row].is_content:
                place = self._text[self._partner[row]].place
                if runs and self._text[self._partner[runs[-1][-1]]].place == place:
                    runs[-1].append(row)
                else:
                    runs.append([row])
        places = [self._text[self._partner[run[0]]].place for run in runs]
        for at, run in enumerate(runs):
            beside = {places[near] for near in (at - 1, at + 1) if 0 <= near < len(runs)}
            most = max(
                (len(runs[near]) for near in (at - 1, at + 1) if 0 <= near < len(runs)), default=0
            )
            phrase = len(run) <= LONGEST_PHRASE and len(run) * 2 <= most
            single = len(run) == 1 or all(self._claim[row].role == NAME for row in run)
            if not (single or phrase) or len(beside) != 1 or self._is_field(beside.pop()):
                continue
            foreign = single and at and not self._points(run[0], run[-1])
            if foreign or self._replaced(run[0], run[-1]):
                return f"{self._claim[run[0]].text} belongs to something else in the quote"
        return ""

    def _is_field(self, place: int) -> bool:
        """Tell whether a sentence of the evidence is a row of a table or a field of a record."""
        tokens = [one for one in self._text if one.place == place]
        if any("|" in one.before for one in tokens):
            return True
        return any(":" in one.before or "：" in one.before for one in tokens[1:4])


def _contradict(one: ClaimToken, other: ClaimToken, words: ClaimWords) -> bool:
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


def _is_passive(one: ClaimToken, words: ClaimWords) -> bool:
    dictionary = words.known.dictionary
    if not dictionary or one.role != WORD:
        return False
    folded = one.word
    found = readings(folded, dictionary)
    if not found or found[0].pos not in ("VERB", "PRTS", "PRTF", "INFN", "GRND"):
        return False
    return found[0].pos in ("PRTS", "PRTF") or folded.endswith(("ся", "сь"))


def _nouns(one: ClaimToken, dictionary: str) -> list[MorphAnalysis]:
    found = readings(one.word, dictionary)[:4]
    kinds = ("NOUN", "NPRO", "ADJF") if one.role == NAME else ("NOUN", "NPRO")
    return [reading for reading in found if reading.pos in kinds and reading.case]


def _genders(one: ClaimToken, dictionary: str) -> set[str]:
    return {reading.gender for reading in _nouns(one, dictionary)}


def _cases(one: ClaimToken, dictionary: str, genders: Collection[str] = ()) -> set[str]:
    """Return the cases that a noun may be in, as far as it is of one of some genders."""
    found = _nouns(one, dictionary)
    return {reading.case for reading in found if not genders or reading.gender in genders}
