"""The text of an answer as a reader gets it: verified sentences first, the rest at the end."""

from __future__ import annotations

from serve.types import RunEvent


class AnswerText:
    """Turn the events of a run into pieces of text that only ever go on."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self.shown = ""

    def piece(self, event: RunEvent) -> str:
        """Return what a sentence adds; drafts are not shown, since nothing has checked them."""
        if event.kind != "sentence":
            return ""
        text = str(event.data.get("text", ""))
        self.shown += text
        return text

    def rest(self, answer: str) -> str:
        """Return what the final answer adds to what was shown.

        An answer that is not what began to be shown (the run stopped while it was written) follows
        whole, after an empty line: what was sent cannot be taken back.
        """
        if answer.startswith(self.shown):
            added = answer[len(self.shown) :]
        else:
            added = f"\n\n{answer}"
        self.shown += added
        return added
