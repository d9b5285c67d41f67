"""Find words of a claim that the evidence lacks, or says of another subject."""

from __future__ import annotations

from itertools import islice

from reasoning.claims.alignment import same
from reasoning.claims.edits import Edits, contradict, differ_in_part
from reasoning.claims.tokens import NAME, NUMBER, UNIT, WORD, ClaimToken

LONGEST_PHRASE = 3  # content words of a subject or an object; chosen, not measured
LEAST_KNOWN = 0.6  # of the words of a claim, for one in other words; chosen, not measured
OTHER_WORDS = ", and nothing in it is known to mean the same"


class WordEdits(Edits):
    """Judge the words and the subjects of an alignment."""

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
        beside = [*self._claim[max(0, row - 1) : row], *self._claim[row + 1 : row + 2]]
        if any(same(one, each) for each in beside):
            return False  # said twice at once
        if not one.keys.isdisjoint(self._words.light) and one.role != NAME:
            return True
        if one.role == NAME and self._is_called_so(row):
            return True
        if one.role in (NAME, WORD) and self._stands_for(row):
            strange = [at for at in range(len(self._claim))
                       if at not in self._partner and self._claim[at].is_content]  # fmt: skip
            names = [at for at in strange if self._claim[at].role == NAME]
            # A word does so alone, or as a part of a name.
            if row in names or strange == [row] or {row - 1, row + 1} & {*names}:
                return True
        # What is said once in the evidence may be said twice.
        times = sum(same(one, again) for again in self._text)
        if other is None and times:
            often = (again for again in self._claim if same(one, again))
            return next(islice(often, times + 1, None), None) is None
        if self._similar is None or not (one.role == WORD or (one.role == NAME and not row)):
            return False
        if any(self._measures(part) for part in one.word.split()):
            return False  # "per month", "per year"
        if other is not None and other.is_content and other.role != WORD:
            return False
        beside = [self._text[at] for at in self._free if self._text[at].role == WORD]
        near = [other] if other is not None and other.role == WORD else beside[:8]
        return any(
            not contradict(one, each, self._words)
            and not differ_in_part(one.word, each.word)
            and self._similar(one.text, each.text)
            for each in near
        )

    def _measures(self, word: str) -> bool:
        senses = self._words.senses(word, self._words.key(word))
        return any(sense.group == "units" for sense in senses)

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

    def _is_called_so(self, row: int) -> bool:
        """Tell whether a name is the only one before of what the evidence has: "the ship"."""
        head = next((at for at in range(row, -1, -1) if self._claim[at].role != NAME), -1)
        place = self._matched.get(head, 0)
        known = self._words.definite | self._words.determiners
        if not place or self._text[place - 1].word not in known:
            return False
        before, named = self._earlier(), row - head
        after = [before[at + 1 : at + 1 + named] for at, each in enumerate(before)
                 if same(each, self._claim[head])]  # fmt: skip
        after = [run for run in after if run and run[0].role == NAME]
        ours = self._claim[head + 1 : row + 1]
        return bool(after) and all(len(run) == named and all(map(same, run, ours)) for run in after)

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
        return self._stranded() or self._spliced()

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
            if self._opens_alike(self._partner[run[0]]):
                continue
            foreign = single and at and not self._points(run[0], run[-1])
            if foreign or self._replaced(run[0], run[-1]):
                return f"{self._claim[run[0]].text} belongs to something else in the quote"
        return ""

    def _opens_alike(self, place: int) -> bool:
        """Tell whether a sentence of the evidence names before a word only what the claim names."""
        lead = [
            one
            for one in self._text[:place]
            if one.place == self._text[place].place and one.is_content
        ]
        return bool(lead) and all(any(same(one, ours) for ours in self._claim) for one in lead)

    def _is_field(self, place: int) -> bool:
        """Tell whether a sentence of the evidence is a row of a table or a field of a record."""
        tokens = [one for one in self._text if one.place == place]
        if any("|" in one.before for one in tokens):
            return True
        return any(":" in one.before or "：" in one.before for one in tokens[1:4])
