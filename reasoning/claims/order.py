"""Find words that the evidence joins with others than the claim does."""

from __future__ import annotations

from itertools import pairwise

from core.language.words import readings
from reasoning.claims.alignment import same
from reasoning.claims.clauses import ClauseEdits
from reasoning.claims.edits import CONTENT, DATED, NEIGHBOURS, cases_of, contradict
from reasoning.claims.tokens import CLOSED, FUNCTION, NAME, NUMBER, WORD, ClaimToken
from reasoning.claims.words import OPPOSITES, RELATIONS

LONGEST_SUBJECT = 2  # words before the last of a subject; chosen, not measured


class OrderEdits(ClauseEdits):
    """Judge the order of an alignment."""

    def _elsewhere(self) -> str:
        """Find a word that the evidence says of something else, where it says the opposite here."""
        for row, one in enumerate(self._claim):
            if not any(sense.group.startswith((OPPOSITES, RELATIONS)) for sense in one.senses):
                continue
            anywhere = (at for at, each in enumerate(self._text) if same(one, each))
            place = self._partner.get(row, next(anywhere, None))
            if place is None:
                continue
            others = [
                at
                for at, each in enumerate(self._text)
                if each.place == self._text[place].place and contradict(one, each, self._words)
            ]
            if not others or place in self._elliptic:
                continue
            behind, before = self._words_beside(row, 1), self._words_beside(row, -1)
            start = max((at for at in range(place + 1) if self._divides(at)), default=0)
            # What stands before both may be the subject of both, where this has none of its own.
            owns = any(at in self._free and self._text[at].is_content for at in range(start, place))
            behind += [near for near in before if owns or near > min(others)]
            for near in behind:
                nearest = min(others, key=lambda at: self._distance(at, near))
                if self._distance(nearest, near) < self._distance(place, near):
                    return f"{one.text} is the opposite of {self._text[nearest].text}"
        return ""

    def _divides(self, at: int) -> bool:
        one = self._text[at]
        joined = one.word in self._words.joins | self._words.breaks
        return joined or bool(CLOSED & set(one.before)) or one.place != self._text[at - 1].place

    def _words_beside(self, row: int, step: int) -> list[int]:
        """Return where the evidence has what stands on a side of a word in the claim's clause."""
        found: list[int] = []
        at = row + step
        while 0 <= at < len(self._claim):
            one, later = self._claim[at], self._claim[max(at, at - step)]
            ended = one.word in self._words.joins | self._words.breaks
            if (
                ended
                or CLOSED & set(later.before)
                or contradict(self._claim[row], one, self._words)
            ):
                break
            if one.is_content and at in self._partner:
                found.append(self._partner[at])
            at += step
        return found

    def _distance(self, place: int, near: int) -> int:
        """Return how many clauses a word of the evidence is from another."""
        first, last = sorted((place, near))
        return sum(map(self._divides, range(first + 1, last + 1)))

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
                    and self._may_be_noun(one) == self._may_be_noun(other)
                    and (apart or (crossed and not cased))
                    and not any(same(other, mine) for mine in self._claim)
                    and place not in self._elliptic
                ):
                    return f"{one.text} stands for {other.text} in the quote"
        return ""

    def _crossed(self) -> str:
        """Find words of two clauses put together though the second has a subject of its own."""
        order = [row for row in sorted(self._partner) if self._claim[row].is_content]
        for row, beside in pairwise(order):
            first, last = self._partner[row], self._partner[beside]
            if self._text[first].place != self._text[last].place:
                if stranger := self._stranger(row, beside):
                    return stranger
                continue
            if last < first:
                own = self._leaves_out_its_own(first, last) and first not in self._elliptic
                if own and not self._is_divided(row, beside):
                    return f"{self._claim[row].text} is of another clause in the quote"
                continue
            if any(one.word in self._words.breaks for one in self._claim[row + 1 : beside]):
                continue
            lead = [self._clause(self._partner[at]) for at in order[: order.index(beside)]]
            if (
                len(lead) <= LONGEST_SUBJECT
                and len({*lead}) == 1
                and self._clause(last) > first
                and self._is_aside_word(self._partner[order[0]])
            ):
                return f"{self._claim[row].text} has another role in the quote"
            begins = [at for at in range(first + 1, last + 1) if self._begins_clause(at)]
            for start, end in reversed(list(zip(begins, [*begins[1:], last], strict=False))):
                one = self._text[start]
                found = self._subject_of_its_own(start, end)
                if found and (
                    start == begins[-1] or one.word in self._words.joins | self._words.breaks
                ):
                    return f"{self._claim[beside].text} is said of {found} in the quote"
                # What "and" adds, or a comma of Chinese, is still said of the subject before.
                goes_on = not self._words.known.spaced and one.before.strip() in (",", "，")
                if CLOSED & set(one.before) and not goes_on:
                    break
        return ""

    def _is_aside_word(self, place: int) -> bool:
        """Tell whether a word stands in what is said beside a subject that is left out."""
        start, small = self._clause(place), self._words.prepositions | self._words.relatives
        free = [at for at in range(start, place) if at in self._free
                and self._text[at].is_content and self._text[at].word not in small]  # fmt: skip
        led = False
        for one in self._text[start:place]:
            led = one.word in self._words.prepositions or (led and not one.is_content)
        relative = bool(free) and self._text[start].word in self._words.relatives
        head = any(
            at in self._free and self._text[at].role in (WORD, NAME)
            and self._text[at].place == self._text[place].place
            for at in range(start)
        )  # fmt: skip
        # A Chinese subject stands first in its clause.
        inner = not self._words.known.spaced and len(free) > LONGEST_SUBJECT
        return self._text[place].role in (WORD, NAME) and ((head and (led or relative)) or inner)

    def _leaves_out_its_own(self, first: int, last: int) -> bool:
        """Tell whether a clause of which something is left out takes a word of an earlier one."""
        start = self._clause(first)
        if start <= last or self._preposed(self._text, self._clause(last) + 1):
            return False
        end = next((at for at in range(first + 1, len(self._text))
                    if self._clause(at) != start), len(self._text))  # fmt: skip
        own = range(start, end)
        pointing = self._words.relatives | self._words.definite
        if any(self._text[at].word in pointing for at in own):
            return False
        return any(at in self._free and self._text[at].is_content for at in own)

    def _stranger(self, row: int, beside: int) -> str:
        """Tell of a word that stands for one of another sentence, which has its own there."""
        if self._is_divided(row, beside):
            return ""
        first, last = self._partner[row], self._partner[beside]
        kept = [self._text[at].place for at in self._covered if self._text[at].is_content]
        leads = kept.count(self._text[first].place) >= kept.count(self._text[last].place)
        host, step, guest = (first, 1, beside) if leads else (last, -1, row)
        slot = self._next(self._text, host, step)
        pointing = self._words.pronouns | self._words.definite
        between = self._text[min(host, slot or 0) : max(host, slot or 0)]
        if slot not in self._free or any(one.word in pointing for one in between):
            return ""
        other = self._text[slot]
        foreign = other.role not in (WORD, NAME) or other.place != self._text[host].place
        if foreign or any(same(other, mine) for mine in self._claim):
            return ""
        return f"{self._claim[guest].text} stands for {other.text} in the quote"

    def _subject_of_its_own(self, start: int, end: int) -> str:
        for at in range(start, end):
            one = self._text[at]
            following = self._text[at + 1] if at + 1 < end else one
            if one.word in self._words.prepositions and following.role not in DATED:
                break
            dated = one.role in DATED and any(
                self._text[kept].role == one.role and self._text[kept].place == one.place
                and same(self._text[kept + 1], following)
                for kept in self._covered
                if kept < start
            )  # fmt: skip
            if at in self._free and (dated or self._may_be_subject(one)):
                return one.text
        return ""

    def _may_be_noun(self, one: ClaimToken) -> bool:
        dictionary = self._words.known.dictionary
        return not dictionary or one.role == NAME or bool(cases_of(one, dictionary))

    def _may_be_subject(self, one: ClaimToken) -> bool:
        if one.role not in (WORD, NAME) or one.word.endswith("ly"):
            return False
        if any(same(one, mine) for mine in self._claim):
            return False
        dictionary = self._words.known.dictionary
        cases = cases_of(one, dictionary) if dictionary else set()
        return "nomn" in cases or (not cases and (not dictionary or one.role == NAME))

    def _relative_subject(self) -> str:
        """Find a word that does what the evidence says of another: "Ben, who bought it"."""
        small = self._words.definite | self._words.pronouns
        relatives, dictionary = self._words.restrictive, self._words.known.dictionary
        for place, one in enumerate(self._text):
            verb, head = self._after(self._text, place), place - 1
            if relatives.isdisjoint({one.word, *one.keys}) or head < 0 or verb is None:
                continue
            named = not dictionary or any(
                form.case == "nomn" for form in readings(one.word, dictionary)[:3]
            )
            if not named or one.word in self._words.complementizers:
                continue
            led = any(each.word in small for each in self._text[place + 1 : verb])
            row = next((at for at, there in self._partner.items() if there == verb), None)
            if led or row is None or self._text[verb].role != WORD or self._turned:
                continue
            while (
                head and self._text[head - 1].is_content and not CLOSED & {*self._text[head].before}
            ):
                head -= 1
            doers = [at for at in self._words_beside(row, -1) if self._text[at].place == one.place]
            if doers and not any(head <= at < place for at in doers):
                return f"{self._text[doers[0]].text} has another role in the quote"
        return ""

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
                and contradict(one, self._text[place], self._words)
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
        count = 0
        for lead, one in zip(self._text[first:last], between, strict=True):
            # "The mayor, Ann Lee" is one person, and a name of several words one thing.
            named = one.role == NAME and lead.role == WORD and one.before.strip() in (",", "，")
            if (CLOSED & set(one.before) and not named) or one.word in links:
                return False
            if one.word in self._words.comparators:
                return False
            count += one.is_content and (lead.role, one.role) != (NAME, NAME)
        return count <= NEIGHBOURS

    def _unlinked(self, row: int, after: int) -> bool:
        links = (
            self._words.prepositions | self._words.joins | self._words.agents | {"of", "的", "之"}
        )
        return not any(one.word in links for one in self._claim[row + 1 : after])

    def _helped(self, row: int, after: int) -> bool:
        """Tell whether a passive of the claim needs no doer, or an adverb goes where it will."""
        return any(self._claim[at].word.endswith("ly") for at in (row, after))
