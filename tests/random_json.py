"""Any JSON at all, with the keys that a reader looks for among others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.floats() | st.text() | st.integers()


def any_json(*keys: str) -> st.SearchStrategy[Any]:
    """Return a strategy of values whose objects often have these keys."""
    names = st.sampled_from(keys) | st.text(max_size=3)

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)

    return st.recursive(SCALARS, nested, max_leaves=12)
