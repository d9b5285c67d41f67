"""Find words of a claim that the evidence lacks."""

from __future__ import annotations

from reasoning.claims.alignment import same
from reasoning.claims.edits import Edits, contradict, differ_in_part
from reasoning.claims.tokens import NAME, UNIT, WORD

LEAST_KNOWN = 0.6  # of the words of a claim, for one in other words; chosen, not measured
OTHER_WORDS = ", and nothing in it is known to mean the same"


class WordEdits(Edits):
    """Judge the words of an alignment."""

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
        if one.role in (NAME, WORD) and self._stands_for(row):
            strange = [at for at in range(len(self._claim))
                       if at not in self._partner and self._claim[at].is_content]  # fmt: skip
            names = [at for at in strange if self._claim[at].role == NAME]
            # A word does so alone, or as a part of a name.
            if row in names or strange == [row] or {row - 1, row + 1} & {*names}:
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
            not contradict(one, each, self._words)
            and not differ_in_part(one.word, each.word)
            and self._similar(one.text, each.text)
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
