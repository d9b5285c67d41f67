"""Read the edits between a statement and its evidence: which of them change what it says."""

from __future__ import annotations

from reasoning.claims.order import OrderEdits
from reasoning.claims.roles import RoleEdits
from reasoning.claims.wording import WordEdits


class Judge(RoleEdits, OrderEdits, WordEdits):
    """Judge one alignment; `reason` is "" where the claim says nothing else than its evidence."""

    def reason(self) -> str:
        """Return the first difference that changes what is said, or ""."""
        checks = (
            self._numbers,
            self._operators,
            self._left_out,
            self._tense,
            self._bracketed,
            self._matrix_left_out,
            self._prepositions,
            self._roles,
            self._elsewhere,
            self._put_in_place,
            self._crossed,
            self._order,
            self._relative_subject,
            self._exchanged_parts,
            self._mixed_parts,
            self._out_of_order,
            self._relations,
            self._subjects,
            self._added,
        )
        return next((found for check in checks if (found := check())), "")
