"""What a run shows while its answer is being written."""

from __future__ import annotations

from typing import Literal

from core.types import Value


class StreamEvent(Value):
    """Hold one piece of text that a reader sees before the run has ended.

    A `sentence` has passed verification and goes on where the last sentence ended: joined, they
    are the beginning of the final answer. A `token` belongs to the model's draft, of which nothing
    has been checked.
    """

    kind: Literal["sentence", "token"]
    text: str
