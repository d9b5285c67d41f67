"""Texts are batched by length: each once, few together where padding would cost more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.onnx_runtime import PADDING, batches


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(1, 16))
def test_every_text_is_in_one_batch_that_is_padded_little(lengths: list[int], most: int) -> None:
    found = list(batches(lengths, most))
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        sizes = [lengths[place] for place in batch]
        assert 1 <= len(batch) <= most
        assert max(sizes) * len(sizes) <= (1 + PADDING) * sum(sizes)
    ends = [lengths[batch[-1]] for batch in found]
    assert ends == sorted(ends)


def test_equal_lengths_fill_their_batches() -> None:
    assert [len(batch) for batch in batches([20] * 33, 16)] == [16, 16, 1]
    assert list(batches([], 16)) == []
