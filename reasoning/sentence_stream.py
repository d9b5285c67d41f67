"""Show an answer while it is written: verified sentences only, in the order of the final text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from core.trace import StreamEvent
from core.types import Claim, Draft, Evidence, Plan
from reasoning.rendering import render_claims
from reasoning.verification import OTHER_LANGUAGE, unsupported_reason


class SentenceStream:
    """Check claims as they come and write those that stand.

    What was written is never taken back, so nothing is written after a claim on which only the
    final verification can decide.
    """

    def __init__(
        self,
        plan: Plan,
        evidence: Sequence[Evidence],
        write: Callable[[Any], None],
        mode: Literal["verified", "tokens", "off"],
    ) -> None:
        """Write StreamEvents for claims about this plan that cite this evidence."""
        self._plan = plan
        self._evidence = {item.evidence_id: item for item in evidence}
        self._write = write
        self._mode = mode
        self._kept: list[Claim] = []
        self._heard: list[Claim] = []
        self._text = ""
        self._waits = mode == "off"

    def draft(self, text: str) -> None:
        """Show a piece of the draft, of which nothing has been checked."""
        if self._mode == "tokens":
            self._write(StreamEvent(kind="token", text=text))

    def by_rules(self, draft: Draft) -> None:
        """Show what the rules would answer, as far as it is supported, while a model reads."""
        kept = [one for one in draft.claims if not unsupported_reason(one, self._evidence)]
        if kept and self._mode != "off":
            text = render_claims(self._plan, kept, list(self._evidence.values()))
            self._write(StreamEvent(kind="rules", text=text))

    def claim(self, claim: Claim) -> None:
        """Show a claim when it is supported; drop it as the verification will when it is not."""
        self._heard.append(claim)
        reason = unsupported_reason(claim, self._evidence)
        self._waits = self._waits or reason == OTHER_LANGUAGE
        if reason or self._waits:
            return
        kept = [*self._kept, claim]
        text = render_claims(self._plan, kept, list(self._evidence.values()))
        if not text.startswith(self._text):
            self._waits = True
            return
        self._write(StreamEvent(kind="sentence", text=text.removeprefix(self._text)))
        self._kept, self._text = kept, text

    def rest(self, claims: Sequence[Claim]) -> None:
        """Show the claims of a finished draft that were not heard of while it was written."""
        for claim in claims:
            if claim not in self._heard:
                self.claim(claim)
