"""A model that goes round in circles, seen in the text it has written so far."""

from __future__ import annotations

SHORTEST_RUN = 120  # characters: a ruled line or a few empty cells of a table are no loop
LONGEST_PIECE = 2000  # characters


def repeated_piece(text: str, copies: int) -> int:
    """Return the length of the piece that a text ends in `copies` times over, else 0."""
    if len(text) < SHORTEST_RUN:
        return 0
    last = text[-1]
    for size in range(1, min(len(text) // copies, LONGEST_PIECE) + 1):
        if text[-1 - size] != last:
            continue
        length = max(copies * size, SHORTEST_RUN)
        # a text that equals itself moved by `size` is made of copies of its last `size` characters
        if length <= len(text) and text[-length : len(text) - size] == text[size - length :]:
            return size
    return 0
