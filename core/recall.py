"""What the memory agent of a run knows: what it has looked for, found and read."""

from __future__ import annotations

from collections import defaultdict

from pydantic import Field

from core.types import Call, FrozenModel

KEYWORD_SEARCH, SEMANTIC_SEARCH = "keyword_search", "semantic_search"
READ_MEMORY, FINAL_ANSWER = "read_memory", "final_answer"
ACTIONS = (KEYWORD_SEARCH, SEMANTIC_SEARCH, READ_MEMORY, FINAL_ANSWER)
MAX_LOOPS = 3  # actions of one question before it must be answered (SPEC R6)
RANK = 60  # reciprocal rank fusion's constant (Cormack et al. 2009)
NOTE = "note"  # the kind of evidence that a note is


class RecallState(FrozenModel):
    """Hold one question put to memory; `first` where it is asked before the documents are.

    `action` is what the agent does next, `found` what each search has found, best first, `read` the
    notes read, `tokens` those of all notes that came back, and `trajectory` the actions so far.
    `over` tells that memory has been asked: once in a run.
    """

    question: str
    language: str = "und"
    first: bool = True
    action: Call | None = None
    found: list[list[str]] = Field(default_factory=list)
    read: list[str] = Field(default_factory=list)
    tokens: int = 0
    trajectory: list[Call] = Field(default_factory=list)
    over: bool = False

    @property
    def candidates(self) -> list[str]:
        """Return the notes found, by reciprocal rank fusion of the searches, best first."""
        scores: dict[str, float] = defaultdict(float)
        for ranking in self.found:
            for rank, name in enumerate(ranking, start=1):
                scores[name] += 1 / (RANK + rank)
        return sorted(scores, key=lambda name: -scores[name])

    @property
    def must_answer(self) -> bool:
        """Tell whether no other action is left than the answer."""
        return len(self.trajectory) >= MAX_LOOPS
