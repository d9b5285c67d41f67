"""What a run shows while its answer is being written."""

from __future__ import annotations

from typing import Literal

from core.types import FrozenModel


class StreamEvent(FrozenModel):
    """Hold one piece of text that a reader sees before the run has ended.

    A `sentence` has passed verification and goes on where the last sentence ended: joined, they
    are the beginning of the final answer. A `token` belongs to the model's draft, of which nothing
    has been checked. `rules` is the verified answer that the rules would give, while a model still
    reads: it stands if the model is not ready in time, and gives way to what follows.
    """

    kind: Literal["sentence", "token", "rules"]
    text: str
