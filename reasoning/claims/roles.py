"""Find who did what to whom exchanged between a claim and its evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.language.chinese import part_of_speech
from core.language.words import readings
from reasoning.claims.alignment import same
from reasoning.claims.edits import (
    CONTENT,
    DATED,
    NEIGHBOURS,
    Edits,
    cases_of,
    genders_of,
    is_passive,
)
from reasoning.claims.tokens import CLOSED, NAME, NUMBER, OPERATOR, WORD, ClaimToken
from reasoning.claims.words import CONTRASTS, RELATIONS

VERB = "v"  # in the Chinese dictionary


class RoleEdits(Edits):
    """Judge the roles of an alignment."""

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
        doer = self._doer_changed() or self._contrasted()
        if doer:
            return f"{doer} has another role in the quote"
        if not turned and self._is_turned_round():
            return "who does it and to whom are exchanged"
        if not turned and self._sides_changed():
            return "what is compared with what is exchanged"
        if self._cases_changed() and not turned:
            return "the cases of its nouns are exchanged"
        return ""

    def _is_turned_round(self) -> bool:
        """Tell whether Chinese words stand on the other side of a verb in the evidence."""
        if self._words.known.spaced:
            return False
        agents = self._words.agents | self._words.passives
        if any(one.word in agents for one in (*self._claim, *self._text)):
            return False
        rows = [row for row in self._partner if self._claim[row].role in (WORD, NAME)]
        for verb, place in self._partner.items():
            if part_of_speech(self._claim[verb].text)[:1] != VERB:
                continue
            before = [row for row in rows if row < verb]
            after = [row for row in rows if row > verb]
            if before and all(self._partner[row] > place for row in before):
                if any(self._partner[row] < place for row in after):
                    return True
        return False

    def _sides_changed(self) -> bool:
        """Tell whether words of both sides of a comparison stand on the other in the evidence."""
        for row, place in self._partner.items():
            one = self._claim[row]
            than = one.text.casefold().endswith(self._words.comparators[:1])
            if not than and not any(sense.group.startswith(RELATIONS) for sense in one.senses):
                continue
            ours, theirs = self._sides(self._claim, row), self._sides(self._text, place)
            if all(self._crosses(ours[side], theirs, side, cased=not than) for side in (0, 1)):
                return True
        return False

    def _sides(
        self, tokens: Sequence[ClaimToken], place: int
    ) -> tuple[list[ClaimToken], list[ClaimToken]]:
        """Return the words before and behind a word of a sentence, but for those on both sides."""
        own = [at for at, one in enumerate(tokens)
               if one.place == tokens[place].place and at != place
               and (one.is_content or one.senses)]  # fmt: skip
        before = [tokens[at] for at in own if at < place]
        behind = [tokens[at] for at in own if at > place]
        return (
            [one for one in before if not any(same(one, other) for other in behind)],
            [one for one in behind if not any(same(one, other) for other in before)],
        )

    def _crosses(
        self,
        own: Sequence[ClaimToken],
        sides: tuple[Sequence[ClaimToken], Sequence[ClaimToken]],
        side: int,
        *,
        cased: bool,
    ) -> bool:
        """Tell whether a word of a side is in the evidence on the other alone.

        Where cases say what is compared, a word in the same form stands where it will.
        """
        cased = cased and bool(self._words.known.dictionary)
        return any(
            not any(same(one, other) for other in sides[side])
            and any(
                same(one, other) and not (cased and one.word == other.word)
                for other in sides[1 - side]
            )
            for one in own
        )

    def _contrasted(self) -> str:
        """Name what the evidence only compares with what the claim leaves out: "unlike Rome, …"."""
        than = self._words.comparators[:1]
        own = next((at for at, one in enumerate(self._claim) if one.word in than), None)
        stated = {self._partner[row] for row in self._partner if own is None or row < own}
        for place, one in enumerate(self._text):
            if self._turned or CONTRASTS not in one.keys:
                continue
            ends = (at for at in range(place + 1, len(self._text)) if self._clause(at) == at)
            aside = range(place + 1, next(ends, len(self._text)))
            led = [at for at in range(place) if self._text[at].is_content
                   and self._text[at].place == one.place]  # fmt: skip
            for at in aside:
                role = self._text[at].role
                peers = [each for each in led if self._text[each].role == role]
                if at in stated and self._text[at].is_content:
                    if not {*peers} <= stated if role in DATED else stated.isdisjoint(led[:1]):
                        return self._text[at].text
        return ""

    def _bracketed(self) -> str:
        """Find what the evidence says in brackets behind one thing said of another."""
        owners = self._brackets()
        heads = {place: owner for owner, (head, _) in enumerate(owners) for place in head}
        named = [(row, heads[at]) for row, at in sorted(self._partner.items()) if at in heads]
        for owner, (head, inside) in enumerate(owners):
            for row, place in sorted(self._partner.items()):
                if place not in inside or not self._text[place].is_content or not named:
                    continue
                near = min(abs(row - other) for other, _ in named)
                if owner not in {one for other, one in named if abs(row - other) == near}:
                    other = " ".join(self._text[at].text for at in head)
                    return f"{self._text[place].text} is said of {other} in the quote"
        return ""

    def _brackets(self) -> list[tuple[range, range]]:
        """Return the places of names, each with those of what brackets or a dash say of it."""
        found: list[tuple[range, range]] = []
        opened: int | None = None
        closing = ""
        places = [one.place for one in self._text]
        for place in range(len(self._text) + 1):
            marks = set(self._text[place].before) if place < len(places) else set()
            ends = place and places[place : place + 1] != places[place - 1 : place]
            if opened is not None and (ends or marks & set(closing)):
                first = opened
                while first and self._text[first - 1].is_content:
                    first -= 1
                    if CLOSED & set(self._text[first].before):
                        break
                found.append((range(first, opened), range(opened, place)))
                opened = None
            if place and marks & set("(（—–"):
                opened = place
                closing = ")）" if marks & set("(（") else ",;，；"
        return found

    def _flips(self, row: int, place: int) -> bool:
        """Tell whether what stood before "before" stands behind the "after" of the claim."""
        content = [at for at in sorted(self._partner) if self._claim[at].role in (*CONTENT, NUMBER)]
        before = [self._partner[at] for at in content if at < row][-NEIGHBOURS:]
        after = [self._partner[at] for at in content if at > row][:NEIGHBOURS]
        return any(at > place for at in before) and any(at < place for at in after)

    def _swaps(self, row: int) -> bool:
        """Tell whether a word stands where the evidence has one that stands where it has another.

        So do both of two that change their places, and all of several.
        """
        place = self._exchanged[row]
        taken = next((at for at, there in self._moved.items() if there == place), None)
        both = self._claim[row].is_content and self._text[place].is_content
        return both and row in self._moved and taken in self._exchanged

    def _voice_changed(self) -> int:
        """Return 1 where just one of the two says who did it as a passive does."""
        ours = sum(self._is_agent(self._claim, row) for row in range(len(self._claim)))
        theirs = sum(
            self._is_agent(self._text, place) and self._keeps_doer(place)
            for place in range(len(self._text))
        )
        verbs = sum(
            is_passive(self._claim[row], self._words) != is_passive(self._text[place], self._words)
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
                doer = self._doer(tokens, place, partner)
                verb = self._passive_verb(tokens, place, doer)
                if doer in partner and verb in partner and partner[doer] > partner[verb]:
                    return tokens[doer].text
        return self._instrument_changed()

    def _doer(self, tokens: Sequence[ClaimToken], place: int, known: Collection[int]) -> int | None:
        """Return who does it as a passive says behind "by": the first word there that is known."""
        first = at = self._after(tokens, place)
        while at is not None and at not in known:
            if at + 1 < len(tokens) and tokens[at + 1].word in self._words.prepositions:
                return first
            at = self._next(tokens, at, 1)
        return first if at is None else at

    def _passive_verb(
        self, tokens: Sequence[ClaimToken], place: int, doer: int | None
    ) -> int | None:
        """Return the verb of a passive: what follows its auxiliary, or in Chinese the doer."""
        at = doer if not self._words.known.spaced else None
        while at is not None:
            at = self._next(tokens, at, 1)
            if at is not None and part_of_speech(tokens[at].text)[:1] == VERB:
                return at
        before = range(place - 1, -1, -1)
        led = next((at for at in before if tokens[at].word in self._words.passives), -1)
        kinds = (WORD, OPERATOR) if led >= 0 else (WORD,)  # "was recommended by"
        verbs = [at for at in range(led + 1, place) if tokens[at].role in kinds]
        return (verbs[0] if led >= 0 else verbs[-1]) if verbs else None

    def _instrument_changed(self) -> str:
        """Name the doer of a passive, known by its case, that is no subject in the active."""
        dictionary = self._words.known.dictionary
        if not dictionary:
            return ""
        verbs = [
            (is_passive(self._claim[row], self._words), is_passive(self._text[at], self._words))
            for row, at in self._partner.items()
        ]
        for row, at in self._partner.items():
            one, other = self._claim[row], self._text[at]
            if one.word == other.word:
                continue
            ours, theirs = cases_of(one, dictionary), cases_of(other, dictionary)
            if theirs and theirs <= {"datv", "loct"} and "nomn" in ours:
                return one.text  # to whom it was done does it
            for passive, active, kind, tokens, at_active in (
                (ours, theirs, (True, False), self._text, at),
                (theirs, ours, (False, True), self._claim, row),
            ):
                if kind not in verbs or passive != {"ablt"} or not active:
                    continue
                # Where its form leaves it open, the doer stands before what it does.
                behind = "accs" in active and any(each.role == WORD for each in tokens[:at_active])
                if "nomn" not in active or behind:
                    return one.text
        return ""

    def _keeps_doer(self, place: int) -> bool:
        return (
            place in self._covered or self._doer(self._text, place, self._covered) in self._covered
        )

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
        subjects: set[bool] = set()
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
            subjects.add("accs" not in cases)
        # What can only be a subject is one on either side of its object, but not where two things
        # that could do it are set against each other.
        against = any(
            one.word.endswith(self._words.comparators) or one.has(frozenset({"negation"}))
            for one in self._claim
        )
        return is_clear or (len(subjects) > 1 and not against)

    def _cases_changed(self) -> bool:
        """Tell whether a subject of the evidence is an object of the claim and the reverse."""
        dictionary = self._words.known.dictionary
        if not dictionary:
            return False
        became_object = became_subject = False
        oblique = {"gent", "datv", "loct", "accs"}
        for row, place in self._partner.items():
            one, other = self._claim[row], self._text[place]
            if one.role not in (WORD, NAME) or one.word == other.word:
                continue
            ours = cases_of(one, dictionary, genders_of(other, dictionary))
            theirs = cases_of(other, dictionary, genders_of(one, dictionary))
            if not ours or not theirs:
                continue
            compared = row and self._claim[row - 1].word in self._words.comparators
            if not compared and (one.role == NAME or self._preposed(self._text, place)):
                if theirs <= oblique and "nomn" in ours and not ours & oblique:
                    return True
            became_object |= "nomn" in theirs and "nomn" not in ours
            became_subject |= "nomn" not in theirs and "nomn" in ours
        return became_object and became_subject
